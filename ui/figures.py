"""Money, tokens, times and sizes in words for people. Unknown is written as unknown, never as 0."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from ui.of_traces import by_place

if TYPE_CHECKING:
    from traces.figures import UNKNOWN, count, counted, duration, least, money
else:
    _shared = by_place("figures")
    UNKNOWN = _shared.UNKNOWN
    count, counted, duration = _shared.count, _shared.counted, _shared.duration
    least, money = _shared.least, _shared.money

__all__ = [
    "MOST_DOLLARS", "UNKNOWN", "count", "counted", "duration", "least", "money", "size", "spent", "tokens",
    "total_tokens", "with_tokens",
]  # fmt: skip
MOST_DOLLARS = 1_000_000_000  # of a limit: more is a slip, and far more has too many digits to be shown


def spent(cost: Decimal | str | None, status: str | None, known: Decimal | str | None) -> str:
    """Dollars with the lower bound, where there is one, of what is not known.

    >>> spent(None, "partial", "0.01"), spent(None, "unknown", "0"), spent("0.02", "priced", "0.02")
    ('unknown (at least $0.01)', 'unknown', '$0.02')
    """
    shown = money(cost, status)
    return f"{shown} (at least {money(known, None)})" if cost is None and known and Decimal(known) else shown


def tokens(counts: Mapping[str, int | None] | None, untold: int = 0) -> str:
    """`1,200 in, 80 out`; a side that nobody reported is a question mark. `untold` more calls did not say.

    >>> tokens({"input": 9, "output": 1}, 2), tokens({"input": 0, "output": 0}, 2), tokens(None)
    ('at least 9 in, 1 out', 'unknown', 'unknown')
    """
    if not counts or (counts.get("input"), counts.get("output")) == (None, None):
        return "unknown"
    if untold and not any(counts.get(side) for side in ("input", "output")):
        return "unknown"
    sides = ("?" if counts.get(side) is None else f"{counts[side]:,}" for side in ("input", "output"))
    return ("at least " if untold else "") + "{} in, {} out".format(*sides)


def with_tokens(counts: Mapping[str, int | None] | None, untold: int = 0) -> str:
    """The same with its word in front."""
    return f"tokens {tokens(counts, untold)}"


def total_tokens(counts: Mapping[str, int], untold: int = 0) -> str:
    """Both sides in one number, for narrow columns.

    >>> total_tokens({"total": 1200}), total_tokens({"total": 10}, 1), total_tokens({"total": 0}, 1)
    ('1,200', '≥ 10', 'unknown')
    """
    total = counts["total"]
    if untold and not total:
        return "unknown"
    return f"≥ {total:,}" if untold else f"{total:,}"


def size(count: int | None) -> str:
    """Bytes as people read them, in units of a thousand: `512 bytes`, `3.4 KB`, `120 MB`."""
    if count is None:
        return "unknown"
    if count < 1000:
        return counted(count, "byte")
    amount, unit = count / 1000, "KB"
    for larger in ("MB", "GB", "TB"):
        if amount < 999.5:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:,.0f} {unit}" if amount >= 9.95 else f"{amount:.1f} {unit}"
