"""Figures and short words of a run page. Unknown is written as unknown, never as 0."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final

from rlm_core import semconv as sc
from traces.rows import SpanRow
from traces.summing import Spend
from traces.tree import outcome
from traces.visible import line

_TINY: Final = Decimal("0.000001")
_FINE: Final = ("ok", "running")
_SHORT: Final = 160
Clean = Callable[[str], str]  # takes what looks like a key out of a text
UNKNOWN: Final = "unknown"
#: Marks of numbers that another engine's record gave, in words.
MARKS: Final = {
    "reported": "reported",
    "derived": "derived",
    "known_wrong": "known to be wrong",
    "missing": "not in the record",
}


def money(usd: Decimal | None, status: str | None = None) -> str:
    """Dollars; `status` as in the record.

    >>> money(Decimal("0.0012340")), money(None), money(Decimal(0), "demo")
    ('$0.001234', 'unknown', '$0 (demo)')
    """
    if usd is None:
        return UNKNOWN
    shown = f"<${_TINY:f}" if 0 < usd < _TINY else "$" + format(usd.quantize(_TINY).normalize(), "f")
    return f"{shown} ({status})" if status in ("free", "demo") else shown


def spent(spend: Spend) -> str:
    """What calls cost together; the part of it that is known, where not all is.

    >>> spent(Spend(known_usd=Decimal("0.5"), unknown=1))
    'at least $0.5'
    """
    if spend.usd is None and spend.known_usd:
        return f"at least {money(spend.known_usd)}"
    return money(spend.usd, spend.status)


def duration(seconds: float | None) -> str:
    """Seconds as people read them.

    >>> [duration(seconds) for seconds in (None, 0.0124, 3.4, 125, 3720)]
    ['unknown', '12 ms', '3.4 s', '2 min 05 s', '1 h 02 min']
    """
    if seconds is None:
        return UNKNOWN
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def counted(number: int, one: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {one if number == 1 else one + 's'}"


def short(text: object) -> str:
    """The beginning of any text on one line, safe to show."""
    shown = line(str(text)[: _SHORT * 2])
    return shown if len(shown) <= _SHORT else shown[: _SHORT - 1] + "…"


def label(span: SpanRow, clean: Clean) -> str:
    """What a span is called in the tree; `clean` takes keys out of a text, before it is cut."""
    number = "" if span.call_index is None else f" {span.call_index}"
    labels = {
        "run": "run" if span.parent_id is None else f"rlm_query{number}, depth {span.depth}",
        "iteration": f"iteration {'' if span.iteration is None else span.iteration} {span.preview or ''}",
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
