"""Figures and short words of a run page. Unknown is written as unknown, never as 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rlm_core import semconv as sc
from traces.figures import least
from traces.rows import SpanRow
from traces.summing import Spend
from traces.tree import outcome
from traces.visible import line

_FINE: Final = ("ok", "running")
_SHORT: Final = 160
Clean = Callable[[str], str]  # takes what looks like a key out of a text
#: Marks of numbers that another engine's record gave, in words.
MARKS: Final = {
    "reported": "reported",
    "derived": "derived",
    "known_wrong": "known to be wrong",
    "missing": "not in the record",
}


def spent(spend: Spend) -> str:
    """What calls cost together; the part of it that is known, where not all is."""
    return least(spend.usd, spend.status, spend.known_usd)


def short(text: object) -> str:
    """The beginning of any text on one line, safe to show."""
    shown = line(str(text)[: _SHORT * 2])
    return shown if len(shown) <= _SHORT else shown[: _SHORT - 1] + "…"


def turn_number(span: SpanRow) -> str:
    """The number of an iteration. The call for a forced answer stands in one that is not counted as such."""
    number = "" if span.iteration is None else str(span.iteration)
    return f"{number}, forced" if _is_forced(span) else number


def _is_forced(span: SpanRow) -> bool:
    return span.attributes.get(sc.FORCED) is True


def label(span: SpanRow, clean: Clean) -> str:
    """What a span is called in the tree; `clean` takes keys out of a text, before it is cut."""
    number = "" if span.call_index is None else f" {span.call_index}"
    turn = span.preview or ("forced answer" if _is_forced(span) else "")
    labels = {
        "run": "run" if span.parent_id is None else f"rlm_query{number}, depth {span.depth}",
        "iteration": f"iteration {'' if span.iteration is None else span.iteration} {turn}",
        "root_call": "root call",
        "cell": f"cell {'' if span.cell is None else span.cell} {span.phase or ''}",
        "batch": "llm_batch",
        "sub_call": f"llm_query{number}",
        "attempt": "attempt",
    }
    if span.kind == "tool":
        return short(clean(f"tool {span.attributes.get(sc.TOOL_NAME) or span.name}"))
    if span.kind == "root_call" and span.attributes.get(sc.COMPACTED) is True:
        return "root call, a summary"
    return short(clean(labels.get(span.kind, span.name)))


def problem(span: SpanRow, clean: Clean) -> str:
    """What went wrong in a span, in a line; empty where nothing did."""
    if outcome(span) == "empty":
        return "empty reply"
    if span.status in _FINE:
        return ""
    kind, message = span.error_type or span.status, span.attributes.get(sc.ERROR_MESSAGE)
    if not message:
        return line(clean(kind))
    said = line(clean(str(message)))  # by itself: what was cut off is told by its length
    return said if str(message).startswith(kind) else f"{line(clean(kind))}: {said}"


def is_bad(span: SpanRow) -> bool:
    """Whether a span itself failed, was lost or cancelled, or came back empty."""
    return outcome(span) not in _FINE
