"""Ways from one span to others: its parents, its neighbours, the next call that failed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from traces.reading import RunView, SpanRow
from traces.tree import outcome

_FINE: Final = ("ok", "running")
_WORDS: Final = {
    "run": "run",
    "iteration": "iteration",
    "root_call": "root call",
    "cell": "cell",
    "batch": "llm_batch",
    "sub_call": "llm_query",
    "attempt": "attempt",
    "tool": "tool",
}


def word_of(span: SpanRow) -> str:
    """The kind of a span as people call it."""
    return "sub-call" if span.kind == "sub_call" else _WORDS.get(span.kind, "span")


def title(span: SpanRow) -> str:
    """What a span is, in words of ours and numbers, so that it may stand on a button."""
    numbers = {"iteration": span.iteration, "cell": span.cell, "sub_call": span.call_index}
    word = _WORDS.get(span.kind, "span")
    if span.kind == "run" and span.parent_id is not None:
        return f"rlm_query{'' if span.call_index is None else f' {span.call_index}'}, depth {span.depth}"
    number = numbers.get(span.kind)
    return word if number is None else f"{word} {number}"


def parents(view: RunView, span: SpanRow) -> list[SpanRow]:
    """The spans above, topmost first. Parents that lead round in a circle are followed once."""
    path: list[SpanRow] = []
    seen = {span.span_id}
    above = span.parent_id
    while above is not None and above in view.by_id and above not in seen:
        seen.add(above)
        path.append(view.by_id[above])
        above = path[-1].parent_id
    return path[::-1]


def neighbours(view: RunView, span: SpanRow) -> tuple[SpanRow | None, SpanRow | None]:
    """The span before and the one after: for a sub-call among its siblings, else among all of its kind."""
    row = [other for other in view.spans if other.kind == span.kind and _beside(other, span)]
    row.sort(key=lambda other: (-1 if other.call_index is None else other.call_index, other.seq))
    place = next(number for number, other in enumerate(row) if other.span_id == span.span_id)
    return (row[place - 1] if place > 0 else None, row[place + 1] if place + 1 < len(row) else None)


def _beside(other: SpanRow, span: SpanRow) -> bool:
    return span.kind not in ("sub_call", "attempt") or other.parent_id == span.parent_id


def failed_calls(view: RunView, turned_away: Collection[str]) -> list[SpanRow]:
    """Sub-calls that were made and did not go well or came back empty, in the order of the record; if there
    are none, those that a limit has `turned_away`.
    """
    bad = [span for span in view.spans if span.kind == "sub_call" and outcome(span) not in _FINE]
    return [span for span in bad if span.span_id not in turned_away] or bad


def next_of(spans: list[SpanRow], span: SpanRow) -> SpanRow | None:
    """The first of some spans, in the order of the record, after a span, round the end; None when there is no
    other.
    """
    others = [other for other in spans if other.span_id != span.span_id]
    return next((other for other in others if other.seq > span.seq), others[0] if others else None)
