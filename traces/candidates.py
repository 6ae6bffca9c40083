"""What may have broken an answer: spans of a bad run, each with the text that could stand in its place.

Against a good run these are the rows of the frontier: same question, other reply, and what the good run has
there. Calls whose prompt was wrong already are never among them: they only pass the fault on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from rlm_core.normalise import normalise
from traces.copied import Copies
from traces.diagnosis import Culprit, Origin
from traces.diff_plan import same_but_literals
from traces.missed import was_missed
from traces.proposals import proposals
from traces.rows import SpanRow
from traces.same_answer import numbers_of
from traces.suspects import Suspect
from traces.trial import Patch, Target
from traces.view import RunView

if TYPE_CHECKING:
    from traces.diff import Row

Kind = Literal["sub_call", "run", "cell"]
#: Kind of span -> prefix of the payload that a patch takes the place of.
_TEXT: Final[dict[str, str]] = {"sub_call": sc.RESPONSE, "run": sc.ANSWER, "cell": sc.CODE}
_ENDS: Final = re.compile(r"\b(?:FINAL|SUBMIT)\s*\(|\banswer\s*\[")  # how code ends a run with a value
_COMPARED: Final = 5_000  # rows whose texts are compared; of more only the order counts
_TRIED: Final = 10  # suspects for which texts are proposed
_LEAST: Final = 0.05  # weight of a candidate against which nothing speaks
_OTHER_NUMBERS: Final = 1.0  # more weight where the two texts hold other numbers: words differ for nothing


@dataclass(frozen=True, slots=True)
class Candidate:
    """A span, the text for its place, and how likely it is at fault: a weight over 0, no probability."""

    culprit: Culprit
    weight: float

    @property
    def span_id(self) -> str:
        """The span."""
        return self.culprit.span_id

    @property
    def patch(self) -> Patch:
        """The text for its place."""
        return Patch(self.culprit.span_id, self.culprit.patch)


@dataclass(frozen=True, slots=True)
class Choice:
    """Sets of candidates to be tried one after another until one makes the answer right, each in the order of
    the record; `lost` are spans for which the good run holds no text, `stuck` those where nothing can be
    replaced. `late` is a last set, for when none of them does: with all code that differs, though its root
    had been shown something else before.
    """

    sets: tuple[tuple[Candidate, ...], ...]
    lost: tuple[str, ...] = ()
    late: tuple[Candidate, ...] = ()
    stuck: tuple[str, ...] = ()


def from_good_run(
    view: RunView,
    good: RunView,
    frontier: Sequence[Row],
    suspected: Mapping[str, Suspect],
    parted: tuple[str, str] | None = None,
    late: Sequence[tuple[str, str]] = (),
) -> Choice:
    """Candidates out of the frontier of a bad and a good run (rows with `a` in the bad one). `late` are cells
    of both that differ after unlike outputs.

    First what is inside of child runs instead of the child runs; then that with the cells in which the roots
    `parted` after they had been shown unlike outputs, which may differ for nothing; then the first without
    cells; then child runs as a whole.
    """
    pairs = [
        (view.by_id[row.a], good.by_id[row.b])
        for row in frontier
        if row.a in view.by_id and row.b in good.by_id and row.kind in _TEXT
    ]
    known = _paired(view, good, pairs, suspected)
    more = () if parted is None else ((view.by_id[parted[0]], good.by_id[parted[1]]),)
    code = tuple(_paired(view, good, more, suspected))
    ids = {one.span_id for one in known}
    above = {one.span_id: ids & set(_child_runs_above(view, one.span_id)) for one in known}
    opened = frozenset[str]().union(*above.values())
    inner = tuple(one for one in known if one.span_id not in opened)
    replies = tuple(one for one in inner if one.culprit.kind != "cell")
    wider = tuple(sorted(inner + code, key=lambda one: view.by_id[one.span_id].seq)) if code else ()
    outer = tuple(one for one in known if not above[one.span_id])
    cells = _paired(view, good, [(view.by_id[a], good.by_id[b]) for a, b in late if a not in ids], suspected)
    all_code = sorted((*inner, *cells), key=lambda one: view.by_id[one.span_id].seq) if cells else ()
    lost = tuple(span.span_id for span, _ in pairs if span.span_id not in ids)
    sets = tuple(dict.fromkeys(one for one in (inner, wider, replies, outer) if one))
    return Choice(sets, lost, () if tuple(all_code) in sets else tuple(all_code))


def within_reach(choice: Choice, out_of_reach: Callable[[Sequence[Patch]], frozenset[str]]) -> Choice:
    """The choice without candidates in cells that a replay does not run again, of which `out_of_reach` tells
    the spans; as it is where there are no others.
    """
    stuck: dict[str, None] = {}

    def reached(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        out = out_of_reach([one.patch for one in candidates])
        stuck.update(dict.fromkeys(one.span_id for one in candidates if one.span_id in out))
        return tuple(one for one in candidates if one.span_id not in out)

    sets = tuple(dict.fromkeys(left for one in choice.sets if (left := reached(one))))
    late = reached(choice.late)
    return replace(choice, sets=sets, late=late, stuck=tuple(stuck)) if sets and stuck else choice


def late_cells(
    view: RunView, good: RunView, rows: Iterable[Row], target: Target | None
) -> list[tuple[str, str]]:
    """Cells of a bad and a good run in which the roots wrote other code after unlike outputs; without those
    into which the root of the good run typed its answer, or a root what only its own outputs say: such code
    passes a fault on.
    """
    found = [row for row in rows if row.kind == "cell" and row.status == "downstream"]
    pairs = [(row.a, row.b) for row in found if row.a and row.b and "code" in row.changed]
    mine = texts_of(view, (view.by_id[a] for a, _ in pairs))
    theirs = texts_of(good, (good.by_id[b] for _, b in pairs))
    copies = Copies(view, good)
    return [
        (a, b)
        for a, b in pairs
        if not _typed(mine.get(a, ""), theirs.get(b, ""), target)
        and not copies.copied((view.by_id[a], mine.get(a, "")), (good.by_id[b], theirs.get(b, "")))
    ]


def _typed(code: str, right: str, target: Target | None) -> bool:
    if target is not None and normalise(target.text) in normalise(right):
        return True
    return _ENDS.search(right) is not None and same_but_literals(code, right)


def from_patches(view: RunView, patches: Iterable[Patch], origin: Origin) -> tuple[Candidate, ...]:
    """Candidates out of texts that somebody gave, in the order of the record. Raises InputError for a span
    that the run does not have.
    """
    given = {patch.span_id: patch.text for patch in patches}
    if unknown := [one for one in given if one not in view.by_id]:
        raise InputError(
            f"span {unknown[0][:40]!r} is no span of run {view.run_id}: nothing can be tried there"
        )
    spans = sorted((view.by_id[one] for one in given), key=lambda span: span.seq)
    return tuple(
        Candidate(Culprit(span.span_id, kind_of(span), given[span.span_id], origin), 1.0) for span in spans
    )


def from_proposals(
    view: RunView, suspected: Mapping[str, Suspect], target: Target | None
) -> tuple[Candidate, ...]:
    """Candidates out of texts that rules propose for the likeliest suspects, the likeliest first."""
    return tuple(
        Candidate(Culprit(span_id, kind_of(view.by_id[span_id]), one.text, one.origin), suspect.score)
        for span_id, suspect in [*suspected.items()][:_TRIED]
        for one in proposals(view, span_id, target, missed=was_missed(suspect))
    )


def asked_anew(
    view: RunView, suspected: Mapping[str, Suspect], ask: Callable[[str], str | None]
) -> Iterator[Candidate]:
    """The likeliest suspects, each with the reply that `ask` gives to its prompt; without those that are
    answered as before, or not at all.
    """
    spans = [view.by_id[span_id] for span_id in [*suspected][:_TRIED]]
    old = texts_of(view, spans)
    for span in spans:
        text = ask(span.span_id) if span.kind == "sub_call" else None
        if text is not None and normalise(text) != normalise(old.get(span.span_id, "")):
            culprit = Culprit(span.span_id, "sub_call", text, "re-ask")
            yield Candidate(culprit, suspected[span.span_id].score)


def kind_of(span: SpanRow) -> Kind:
    """What a patch of a span replaces: the reply of a sub-call, the answer of a child run, code of a cell."""
    return "cell" if span.kind == "cell" else "run" if span.kind == "run" else "sub_call"


def texts_of(view: RunView, spans: Iterable[SpanRow]) -> dict[str, str]:
    """By span id what a patch would replace: response, answer or code; absent where there is none."""
    digests = {span.span_id: span.attributes.get(_TEXT[kind_of(span)] + ".sha256") for span in spans}
    wanted = {digest for digest in digests.values() if isinstance(digest, str)}
    texts = view.payloads(wanted)
    return {
        span_id: texts[digest]
        for span_id, digest in digests.items()
        if isinstance(digest, str) and digest in texts
    }


def _paired(
    view: RunView,
    good: RunView,
    pairs: Sequence[tuple[SpanRow, SpanRow]],
    suspected: Mapping[str, Suspect],
) -> list[Candidate]:
    better = texts_of(good, (one for _, one in pairs))
    worse = texts_of(view, (one for one, _ in pairs)) if len(pairs) <= _COMPARED else {}
    found = []
    for span, right in sorted(pairs, key=lambda pair: pair[0].seq):
        if right.span_id in better:
            text = better[right.span_id]
            weight = _weight(suspected.get(span.span_id), worse.get(span.span_id), text)
            found.append(Candidate(Culprit(span.span_id, kind_of(span), text, "good run"), weight))
    return found


def _weight(suspect: Suspect | None, old: str | None, new: str) -> float:
    differ = old is not None and sorted(numbers_of(old)) != sorted(numbers_of(new))
    return _LEAST + (suspect.score if suspect is not None else 0.0) + (_OTHER_NUMBERS if differ else 0.0)


def _child_runs_above(view: RunView, span_id: str) -> Iterable[str]:
    """Not cells: a cell with other code takes the other replies inside of it as well."""
    return (above for above in _ancestors(view, span_id) if view.by_id[above].kind == "run")


def _ancestors(view: RunView, span_id: str) -> Iterable[str]:
    seen = {span_id}
    above = view.by_id[span_id].parent_id
    while above is not None and above in view.by_id and above not in seen:
        seen.add(above)
        yield above
        above = view.by_id[above].parent_id
