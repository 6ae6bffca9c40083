"""Typed facts of one span out of its recorded attributes, which are untrusted.

A fact of the wrong type or out of range is unknown, and said to be unusable; the attribute itself is kept.
Usage is split into disjoint billable classes: input (neither cached nor written to a cache), cached_read,
cache_write and output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final

from rlm_core import semconv as sc

CLASSES: Final = ("input", "cached_read", "cache_write", "output")
LARGEST: Final = 2**62  # of any count or time: sums of many still fit
_LARGEST_USD: Final = Decimal(10**9)
_USD_DIGITS: Final = 18
_EXACT: Final = Context(prec=60)
_COST_STATUSES: Final = ("priced", "free", "unknown", "demo")
_PRICE_KEYS: Final = {
    "input": "input_per_mtok",
    "cached_read": "cached_read_per_mtok",
    "cache_write": "cache_write_per_mtok",
    "output": "output_per_mtok",
}
_NO_RATES: Final[tuple[Decimal | None, ...]] = (None,) * len(CLASSES)
_PREVIEWS: Final[dict[str, tuple[str, ...]]] = {
    "run": (sc.QUESTION,),
    "root_call": (sc.RESPONSE,),
    "sub_call": (sc.RESPONSE, sc.PROMPT),
    "cell": (sc.CODE,),
    "attempt": (sc.RESPONSE,),
}


class Facts:
    """Reads attributes by type; `unusable` says that one had a type or value that means nothing."""

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self.attributes = attributes
        self.unusable = False

    def text(self, key: str) -> str | None:
        """A string, or None."""
        value = self.attributes.get(key)
        if value is None or isinstance(value, str):
            return value
        self.unusable = True
        return None

    def count(self, key: str) -> int | None:
        """A whole number that is not negative, or None."""
        value = self.attributes.get(key)
        if value is None:
            return None
        if type(value) is int and 0 <= value < LARGEST:
            return value
        self.unusable = True
        return None

    def flag(self, key: str) -> bool:
        """A boolean; absent is False."""
        value = self.attributes.get(key, False)
        if isinstance(value, bool):
            return value
        self.unusable = True
        return False

    def preview(self, kind: str) -> str | None:
        """One line of text for lists: the given preview, else one of the span's payloads, else its error."""
        keys = (sc.PREVIEW, *(prefix + ".preview" for prefix in _PREVIEWS.get(kind, ())), sc.ERROR_MESSAGE)
        return next((text for key in keys if (text := self.text(key))), None)

    def tokens(self) -> dict[str, int] | None:
        """{input, output, total}; None when neither side was reported."""
        given = (self.count(sc.USAGE_INPUT), self.count(sc.USAGE_OUTPUT))
        if given == (None, None):
            return None
        return token_counts(given[0] or 0, given[1] or 0)

    def cost(self) -> tuple[Decimal | None, str | None]:
        """Amount and status of a span; (None, None) when it says nothing about cost."""
        amount, status = self.text(sc.COST_USD), self.text(sc.COST_STATUS)
        if status is None and amount is None:
            return None, None
        usd = None if amount is None else usd_amount(amount)
        self.unusable |= (amount is not None and usd is None) or status not in (None, *_COST_STATUSES)
        if status in ("free", "demo"):
            return usd if usd is not None else Decimal(0), status
        if status == "unknown" or usd is None:
            return None, "unknown"
        return usd, "priced"


def token_counts(given: int, made: int) -> dict[str, int]:
    """Token totals in the one form every reader uses."""
    return {"input": given, "output": made, "total": given + made}


def usd_amount(text: object) -> Decimal | None:
    """A decimal string as dollars; None for anything that is not an amount the store can hold exactly."""
    if not isinstance(text, str) or len(text) > 100:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and _fits(value) else None


def _fits(value: Decimal) -> bool:
    if not 0 <= value < _LARGEST_USD:
        return False
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -_USD_DIGITS:
        exponent = value.normalize().as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -_USD_DIGITS


def class_tokens(
    tokens: Mapping[str, int] | None, cached_read: int | None, cache_write: int | None
) -> dict[str, int | None]:
    """Billable tokens by class; all None when usage is unknown. Cached parts never exceed the input."""
    if tokens is None:
        return dict.fromkeys(CLASSES)
    cached = min(cached_read or 0, tokens["input"])
    written = min(cache_write or 0, tokens["input"] - cached)
    return {
        "input": tokens["input"] - cached - written,
        "cached_read": cached,
        "cache_write": written,
        "output": tokens["output"],
    }


def class_costs(
    tokens: Mapping[str, int | None], cost_usd: Decimal | None, price: object
) -> dict[str, Decimal | None]:
    """Dollars by class from the price row on the span (JSON, dollars per million tokens as decimal strings).

    A call that cost nothing has zeros; without tokens nothing can be told apart and all classes are zero
    beside a known cost; without a price row they are unknown.
    """
    if cost_usd is None:
        return dict.fromkeys(CLASSES)
    if cost_usd == 0 or tokens["input"] is None:
        return dict.fromkeys(CLASSES, Decimal(0))
    rates = _rates(price) if isinstance(price, str) else _NO_RATES
    return {name: _class_cost(tokens[name] or 0, rate) for name, rate in zip(CLASSES, rates, strict=True)}


@lru_cache(maxsize=256)
def _rates(price: str) -> tuple[Decimal | None, ...]:
    """Dollars per million tokens by class; None where the row says nothing usable."""
    try:
        row = json.loads(price)
    except (ValueError, RecursionError):
        return _NO_RATES
    return (
        tuple(usd_amount(row.get(_PRICE_KEYS[name])) for name in CLASSES)
        if isinstance(row, dict)
        else _NO_RATES
    )


def _class_cost(tokens: int, rate: Decimal | None) -> Decimal | None:
    if tokens == 0:
        return Decimal(0)
    if rate is None:
        return None
    value = _EXACT.divide(_EXACT.multiply(rate, tokens), 1_000_000)
    return value if _fits(value) else None


def exact_total(amounts: Iterable[Decimal]) -> Decimal:
    """The sum of recorded dollars, to the last digit."""
    total = Decimal(0)
    for amount in amounts:
        total = _EXACT.add(total, amount)
    return total
