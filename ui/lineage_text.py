"""How replies came into the answer, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from traces.diagnosis_words import name_of, quoted
from traces.lineage import ANSWER, BASES
from ui.figures import counted
from ui.visible import line

if TYPE_CHECKING:
    from traces.lineage import Lineage
    from traces.proving import Proof
    from traces.view import RunView

_LISTED: Final = 20  # ways, unless calls were named
_NAMED: Final = 2  # calls of one way


def told_calls(known: Lineage, view: RunView) -> tuple[str, ...]:
    """The calls that have a way to the answer: those with a candidate on it in the order in which they would
    be tried, then those that are proven.
    """
    from traces.proving import unproven_calls

    calls = [span.span_id for span in view.spans if span.kind in ("sub_call", "run")]
    ways = [span_id for span_id, path in known.paths(calls).items() if path]
    return tuple(dict.fromkeys((*unproven_calls(known, view), *ways)))


def lineage_lines(
    view: RunView,
    known: Lineage,
    told: Sequence[str],
    proof: Proof | None,
    wanted: Sequence[str],
    *,
    every: bool,
) -> Iterator[str]:
    """One sentence, then the ways of the calls that are `told`, calls with the same one together (the first
    20 ways unless `every`), then what a proof took and left open of the calls that were `wanted`.
    """
    yield _summary(view, known, told)
    if not known.whole:
        yield "of so many calls only the beginnings of replies were compared"
    alike: dict[tuple[str, ...], list[str]] = {}
    for span_id in told:
        alike.setdefault(tuple(_way(view, known, span_id)), []).append(span_id)
    groups = list(alike.items())
    for way, span_ids in groups if every else groups[:_LISTED]:
        yield ""
        more = f", and {counted(len(span_ids) - _NAMED, 'more call')}" if len(span_ids) > _NAMED else ""
        yield ", ".join(f"{name_of(view.by_id[one])} · {one}" for one in span_ids[:_NAMED]) + more
        yield from way
    if not every and (left := sum(len(span_ids) for _, span_ids in groups[_LISTED:])):
        yield ""
        yield f"and {counted(left, 'call')} with other ways (--json lists all)"
    if proof is not None:
        yield ""
        yield from _proof(proof, wanted)


def _summary(view: RunView, known: Lineage, told: Sequence[str]) -> str:
    answer = f"the answer {quoted(view.summary.answer)}"
    calls = [span.span_id for span in view.spans if span.kind == "sub_call"]
    calls += [span.span_id for span in view.spans if span.kind == "run" and span.parent_id is not None]
    ways = sum(bool(path) for path in known.paths(calls).values())
    if view.summary.answer is None:
        return "The run gave no answer, so nothing leads to one."
    if not ways:
        return f"No call is known to have come into {answer}: no name and no shared word leads there."
    sure = sum(edge.proven and edge.target == ANSWER for edge in known.edges)
    proven = f"that it depends on them is proven for {sure:,}" if sure else "that it does is proven for none"
    return f"{ways:,} of {counted(len(calls), 'call')} may have come into {answer}; {proven}."


def _way(view: RunView, known: Lineage, span_id: str) -> Iterator[str]:
    steps = known.way(span_id)
    if not steps:
        yield "  no way to the answer is known"
    for edge, proven in steps:
        target = "the answer" if edge.target == ANSWER else name_of(view.by_id[edge.target])
        values = f": {', '.join(map(line, edge.values))}" if edge.values else ""
        yield f"  {'proven   ' if proven else 'candidate'} → {target}, because {BASES[edge.basis]}{values}"
    between = {edge.target for edge, _ in steps}
    for edge in known.edges:
        if edge.proven and edge.source == span_id and edge.target not in between:
            target = "the answer" if edge.target == ANSWER else name_of(view.by_id[edge.target])
            yield f"  proven    → {target}, because {BASES['changed']}"


def _proof(proof: Proof, wanted: Sequence[str]) -> Iterator[str]:
    """What was tried, and why not more."""
    if proof.replayability.status != "replayable":
        yield f"Nothing can be proven: {line(proof.replayability.words)}"
        return
    tried, edges = len(proof.tried), len(proof.edges)
    yield (
        f"{counted(tried, 'replay')} with one reply changed, all others as recorded: "
        f"{counted(edges, 'edge')} proven; no model was asked, cost $0"
    )
    if left := len(wanted) - tried:
        yield f"{counted(left, 'call')} not tried: beyond --max-replays, no reply to change, or stopped"
