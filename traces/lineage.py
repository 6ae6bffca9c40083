"""How a reply may have come into the answer: from sub-calls over prompts and cells to the answer.

Edges from the record alone are candidates: a call was made in a cell, a cell read a name that an earlier one
wrote, a later prompt or the answer says what a reply says. Edges from trials are proven: with another reply,
and every other reply as before, this prompt, output or answer came out differently. The chain of cells is
that of `traces.evidence`. A string-matching index gives candidates and perturbation gives proof, because
marking strings does not survive formatting, joining or parsing.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol

from rlm_core import semconv as sc
from rlm_core.normalise import normalise
from traces.evidence import COMPARED_WHOLE, Evidence, answer_names, evidence, reads
from traces.facts import Facts
from traces.perturb import perturbed_text
from traces.reply_facts import texts_of
from traces.rows import SpanRow
from traces.shared_values import values_of
from traces.siblings import siblings_of
from traces.trial import Mode, Patch, Trial
from traces.view import RunView

ANSWER: Final = "answer"  # the end of a path, in place of a span id
Basis = Literal["made in", "read by", "set by", "shown by", "said in", "changed"]
#: Basis -> what an edge from one end to the other says, as a clause.
BASES: Final[dict[Basis, str]] = {
    "made in": "its reply went to the code of this cell",
    "read by": "this cell read names that the other one wrote",
    "set by": "this cell set the answer",
    "shown by": "the root was shown the output of this cell before it answered",
    "said in": "what it says stands there too",
    "changed": "with another reply this came out differently",
}
_COMMON: Final = 0.2  # of the texts: a value in more than these says nothing about one of them
_FEW_TEXTS: Final = 8
_LINE_CHARS: Final = 3  # of a line that is looked for
_PER_TARGET: Final = 200  # candidate edges to one prompt
_NAMED: Final = 3  # values or names that are told


@dataclass(frozen=True, slots=True)
class Edge:
    """That something may have come (`proven`: has come) from one span to another, or to the `ANSWER`.

    `values` are what both say, or the names that were read; they may quote texts of the run.
    """

    source: str
    target: str
    basis: Basis
    proven: bool = False
    values: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {name: getattr(self, name) for name in Edge.__slots__} | {"values": list(self.values)}


@dataclass(frozen=True, slots=True)
class Lineage:
    """The edges of a run. `whole`: prompts and whole replies were compared, which only happens for up to
    2,000 calls; else edges of the basis "said in" come only from the beginnings of replies.
    """

    edges: tuple[Edge, ...]
    whole: bool = True

    def with_edges(self, proven: Iterable[Edge]) -> Lineage:
        """The same with more edges, those of trials."""
        return replace(self, edges=tuple(dict.fromkeys((*proven, *self.edges))))

    def path(self, span_id: str) -> tuple[Edge, ...]:
        """The shortest way from a span to the answer, by proven edges where they lead there; () for none."""
        return self.paths([span_id])[span_id]

    def paths(self, span_ids: Iterable[str]) -> dict[str, tuple[Edge, ...]]:
        """`path` of each of these spans, by span; all of them for the price of one."""
        proven, known = self._next_steps(proven=True), self._next_steps(proven=False)
        return {one: _followed(proven, one) or _followed(known, one) for one in span_ids}

    def way(self, span_id: str) -> tuple[tuple[Edge, bool], ...]:
        """The way of the candidates from a span to the answer, which names the cells between; each step with
        whether it is proven that its target depends on the span. () where nothing leads to the answer.
        """
        proven = {edge.target: edge for edge in self.edges if edge.proven and edge.source == span_id}
        steps = Lineage(tuple(edge for edge in self.edges if not edge.proven), self.whole).path(span_id)
        if not steps and ANSWER in proven:
            return ((proven[ANSWER], True),)
        return tuple((edge, edge.target in proven) for edge in steps)

    def _next_steps(self, *, proven: bool) -> dict[str, Edge]:
        """The first edge of the shortest way from each span that has one (breadth first, from the answer)."""
        before: dict[str, list[Edge]] = defaultdict(list)
        for edge in self.edges:
            if edge.proven or not proven:
                before[edge.target].append(edge)
        steps: dict[str, Edge] = {}
        todo = deque([ANSWER])
        while todo:
            for edge in sorted(before[todo.popleft()], key=lambda one: not one.proven):
                if edge.source not in steps:
                    steps[edge.source] = edge
                    todo.append(edge.source)
        return steps

    def to_json(self) -> dict[str, Any]:
        """`edges` and `whole`."""
        return {"edges": [edge.to_json() for edge in self.edges], "whole": self.whole}


def _followed(steps: Mapping[str, Edge], span_id: str) -> tuple[Edge, ...]:
    path: list[Edge] = []
    place = span_id
    while place != ANSWER:
        if place not in steps:
            return ()
        path.append(steps[place])
        place = steps[place].target
    return tuple(path)


class Trials(Protocol):
    """What of `traces.replay.Replayer` is needed for proof."""

    def trial(self, patches: Sequence[Patch] = (), *, mode: Mode = "strict") -> Trial:
        """Play the run again."""
        ...


def lineage(view: RunView) -> Lineage:
    """The candidate edges of a run. Raises RecordError when its texts cannot be read."""
    behind = evidence(view)
    whole = behind.whole and len(behind.supports) <= COMPARED_WHOLE
    calls = [support.span for support in behind.supports]
    edges = [*_over_cells(view, behind), *_in_answer(behind)]
    if whole:
        edges += _in_prompts(view, sorted(calls, key=lambda span: span.seq))
    return Lineage(tuple(edges), whole)


def perturbed(
    replayer: Trials,
    view: RunView,
    span_ids: Iterable[str],
    *,
    tell: Callable[[Trial], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[Edge, ...]:
    """Proven edges: each of these replies is changed by itself, in a way that keeps its form, and every other
    prompt gets its old reply; what came out differently then depends on it. One trial for each span, of which
    `tell` is told; no further one is begun once `cancelled` says so.

    Spans without `other_replies` have no edges. Raises what a trial raises, such as a budget that is used up.
    """
    found: list[Edge] = []
    for span_id, changed in other_replies(view, span_ids).items():
        if cancelled():
            break
        trial = replayer.trial([Patch(span_id, changed)], mode="frozen")
        tell(trial)
        found += edges_of(span_id, trial.influenced, trial.outcome, trial.stopped)
    return tuple(found)


def other_replies(view: RunView, span_ids: Iterable[str]) -> dict[str, str]:
    """What each of these replies is changed to; that of a call that failed to the commonest one of its
    siblings. Spans for which the record holds neither are left out. Raises RecordError.
    """
    wanted = [view.by_id[span_id] for span_id in span_ids if span_id in view.by_id]
    texts, others = _replies_of(view, wanted), _sibling_texts(view, wanted)
    found: dict[str, str] = {}
    for span in wanted:
        text, siblings = texts.get(span.span_id), others.get(siblings_of(span), [])
        if text is not None:
            found[span.span_id] = perturbed_text(text, siblings)
        elif siblings and span.kind == "sub_call":
            found[span.span_id] = Counter(siblings).most_common(1)[0][0]
    return found


def edges_of(source: str, influenced: Iterable[str], outcome: object, stopped: object) -> list[Edge]:
    """What a trial proves in which this span alone was replaced. One that was `stopped` proves nothing: what
    it did not come to did not come out differently.
    """
    if stopped is not None:
        return []
    targets = [*influenced, *([ANSWER] if outcome in ("fixed", "moved") else [])]
    return [Edge(source, target, "changed", True) for target in targets]


def _over_cells(view: RunView, behind: Evidence) -> Iterator[Edge]:
    """Call to its cell, cell to the cells that read it, cell to the answer."""
    chain = behind.chain
    if not chain:
        return
    numbers = {cell.span_id: cell for cell in chain}
    for support in behind.supports:
        above: SpanRow | None = support.span
        seen: set[str] = set()
        while above is not None and above.span_id not in numbers and above.span_id not in seen:
            seen.add(above.span_id)
            above = view.by_id.get(above.parent_id or "")
        if above is not None and above.span_id in numbers:
            yield Edge(support.span.span_id, above.span_id, "made in")
    run = next((span for span in view.spans if span.kind == "run" and not span.orphan), None)
    named = answer_names(run) if behind.basis == "read" else frozenset()
    for reader, needs in zip(chain, reads(chain, named), strict=True):
        for writer, names in needs.items():
            yield Edge(chain[writer].span_id, reader.span_id, "read by", values=tuple(names[:_NAMED]))
    if behind.basis in ("read", "code"):
        yield Edge(chain[-1].span_id, ANSWER, "set by")
    else:
        shown = [behind.printed] if behind.printed is not None else chain
        yield from (Edge(cell.span_id, ANSWER, "shown by") for cell in shown)


def _in_answer(behind: Evidence) -> Iterator[Edge]:
    """Calls whose reply says something of the answer that few other replies say."""
    for span_id, values in telling(behind).items():
        yield Edge(span_id, ANSWER, "said in", values=values)


def telling(behind: Evidence) -> dict[str, tuple[str, ...]]:
    """What the reply of a call shares with the answer, without what many replies share with it."""
    counts = Counter(value.casefold() for support in behind.supports for value in support.answer)
    most = max(_NAMED, _COMMON * len(behind.supports))
    found = {
        support.span.span_id: tuple(v for v in support.answer if counts[v.casefold()] <= most)
        for support in behind.supports
    }
    return {span_id: values for span_id, values in found.items() if values}


def _in_prompts(view: RunView, calls: Sequence[SpanRow]) -> Iterator[Edge]:
    """Replies that stand in prompts made after them: a line of the reply, found by its rarest value."""
    texts = _replies_of(view, calls)
    replies = {key: values_of(text) for key, text in texts.items()}
    lines = {key: _line(text) for key, text in texts.items()}
    prompts = {
        key: text
        for kind, prefix in (("sub_call", sc.PROMPT), ("run", sc.QUESTION))
        for key, text in texts_of(view, [span for span in calls if span.kind == kind], prefix)
    }
    said = {key: values_of(text) for key, text in prompts.items()}
    common = _common(said)
    sources: dict[str, list[str]] = defaultdict(list)
    for key, values in replies.items():
        for value in values.keys() - common:
            sources[value].append(key)
    for span in calls:
        if span.span_id in said:
            yield from _into(view, span, (said[span.span_id], prompts[span.span_id]), sources, lines)


def _into(
    view: RunView,
    span: SpanRow,
    prompt: tuple[Mapping[str, str], str],
    sources: Mapping[str, Sequence[str]],
    lines: Mapping[str, str],
) -> Iterator[Edge]:
    values, text = prompt
    shared: dict[str, list[str]] = defaultdict(list)
    rarest_first = sorted(values.items(), key=lambda item: len(sources.get(item[0], ())))
    for value, written in rarest_first:
        for source in sources.get(value, ()):
            if source != span.span_id and _before(view.by_id[source], span):
                shared[source].append(written)
    folded = normalise(text) if shared else ""
    whole = [source for source in shared if lines.get(source) and lines[source] in folded]
    for source in whole[:_PER_TARGET]:
        yield Edge(source, span.span_id, "said in", values=tuple(shared[source][:_NAMED]))


def _before(one: SpanRow, other: SpanRow) -> bool:
    """Whether a reply was there before a prompt was; the prompts of one batch are older than its replies."""
    same_batch = one.parent_id == other.parent_id and Facts(one.attributes).count(sc.BATCH_SIZE) is not None
    return one.end_ns is not None and one.end_ns <= other.start_ns and not same_batch


def _common(texts: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Values of the template: those in many of the prompts."""
    if len(texts) < _FEW_TEXTS:
        return set()
    counts = Counter(value for values in texts.values() for value in values)
    return {value for value, count in counts.items() if count > _COMMON * len(texts)}


def _line(text: str) -> str:
    """The longest line of a reply in normal form, where it is long enough to be looked for."""
    line = normalise(max(text.splitlines(), key=len, default=""))
    return line if len(line) >= _LINE_CHARS or line.isdigit() else ""


def _replies_of(view: RunView, spans: Iterable[SpanRow]) -> dict[str, str]:
    """What each call or child run gave back, whole, where the record holds it."""
    listed = list(spans)
    found: dict[str, str] = {}
    for kind, prefix in (("sub_call", sc.RESPONSE), ("run", sc.ANSWER)):
        found |= dict(texts_of(view, [span for span in listed if span.kind == kind], prefix))
    return found


def _sibling_texts(view: RunView, wanted: Sequence[SpanRow]) -> dict[str, list[str]]:
    families = {siblings_of(span) for span in wanted}
    members: dict[str, list[SpanRow]] = defaultdict(list)
    for span in view.spans:
        if span.kind == "sub_call" and (family := siblings_of(span)) in families:
            members[family].append(span)
    return {family: list(_replies_of(view, members[family]).values()) for family in families}
