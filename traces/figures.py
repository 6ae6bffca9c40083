"""Money, times and counts in words, for every page, table and terminal. Unknown is written as unknown.

Nothing but the standard library is imported: `ui.figures` loads this file by its place.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

UNKNOWN: Final = "unknown"
_TINY: Final = Decimal("0.000001")


def money(cost: Decimal | str | None, status: str | None = None) -> str:
    """Dollars as shown to people; `status` is priced, free, demo, partial or unknown.

    >>> money(Decimal("0.0012340"), "priced"), money(None, "unknown"), money(Decimal(0), "demo")
    ('$0.001234', 'unknown', '$0 (demo)')
    """
    if cost is None:
        return UNKNOWN
    amount = Decimal(cost)
    tiny = 0 < amount < _TINY
    shown = f"<${_TINY:f}" if tiny else "$" + format(amount.quantize(_TINY).normalize(), "f")
    if status == "partial":
        return f"at least {shown}"
    return f"{shown} ({status})" if status in ("free", "demo") else shown


def least(cost: Decimal | str | None, status: str | None, known: Decimal | str) -> str:
    """Dollars, or what is known to be the least of them, in few words.

    >>> least(None, "partial", "0.01"), least(None, "unknown", "0"), least("0.02", "priced", "0.02")
    ('at least $0.01', 'unknown', '$0.02')
    """
    return money(known, "partial") if cost is None and Decimal(known) else money(cost, status)


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


def count(number: int | None) -> str:
    """A number where there is little room; None, one that is not known, is a question mark.

    >>> count(1200), count(0), count(None)
    ('1,200', '0', '?')
    """
    return "?" if number is None else f"{number:,}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
