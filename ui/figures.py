"""Money, tokens, times and sizes in words for people. Unknown is written as unknown, never as 0."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

TINY = Decimal("0.000001")
MOST_DOLLARS = 1_000_000_000  # of a limit: more is a slip, and far more has too many digits to be shown


def money(cost: Decimal | str | None, status: str | None) -> str:
    """Dollars as shown to people; `status` is priced, free, demo, partial or unknown.

    >>> money(Decimal("0.0012340"), "priced"), money(None, "unknown"), money(Decimal(0), "demo")
    ('$0.001234', 'unknown', '$0 (demo)')
    """
    if cost is None:
        return "unknown"
    amount = Decimal(cost)
    tiny = 0 < amount < TINY
    shown = f"<${TINY:f}" if tiny else "$" + format(amount.quantize(TINY).normalize(), "f")
    if status == "partial":
        return f"at least {shown}"
    return f"{shown} ({status})" if status in ("free", "demo") else shown


def spent(cost: Decimal | str | None, status: str | None, known: Decimal | str | None) -> str:
    """Dollars with the lower bound, where there is one, of what is not known.

    >>> spent(None, "partial", "0.01"), spent(None, "unknown", "0"), spent("0.02", "priced", "0.02")
    ('unknown (at least $0.01)', 'unknown', '$0.02')
    """
    shown = money(cost, status)
    return f"{shown} (at least {money(known, None)})" if cost is None and known and Decimal(known) else shown


def least(cost: Decimal | str | None, status: str | None, known: Decimal | str) -> str:
    """Dollars, or what is known to be the least of them, in few words.

    >>> least(None, "partial", "0.01"), least(None, "unknown", "0"), least("0.02", "priced", "0.02")
    ('at least $0.01', 'unknown', '$0.02')
    """
    return money(known, "partial") if cost is None and Decimal(known) else money(cost, status)


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


def duration(seconds: float | None) -> str:
    """Seconds as people read them: `12 ms`, `3.4 s`, `2 min 05 s`, `1 h 02 min`."""
    if seconds is None:
        return "unknown"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


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


def count(number: int | None) -> str:
    """A number where there is little room; None, one that is not known, is a question mark.

    >>> count(1200), count(0), count(None)
    ('1,200', '0', '?')
    """
    return "?" if number is None else f"{number:,}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
