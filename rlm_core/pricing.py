"""What a model call costs, in exact decimal dollars, by the model that was *asked for*.

A price that a person set comes first, then the offline table of genai-prices. The model's name in the answer
and the server's address play no part: a gateway that calls itself gpt-5 does not get gpt-5's price. Unknown
stays unknown and is never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow
from typing import Final, Literal

from rlm_core.lm_handler import Usage
from rlm_core.price_rows import CLASSES, Costs, Override, PriceRow, decimal_text, listed_rows, row_for

__all__ = ["CLASSES", "DEMO_PREFIX", "Override", "Price", "PriceTable", "billable_tokens", "decimal_text"]

PriceStatus = Literal["priced", "free", "unknown", "demo"]

DEMO_PREFIX: Final = "demo/"

# Exact or an error, whatever the caller's own decimal context is.
_EXACT: Final = Context(prec=60, traps=[Inexact, InvalidOperation, DivisionByZero, Overflow])


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of one call: `usd` is None when `status` is unknown; `classes` add up to `usd` to the last
    digit. `row` is the price row used, as JSON (see `PriceRow`).
    """

    status: PriceStatus
    usd: Decimal | None = None
    row: str | None = None
    classes: Costs = field(default_factory=dict)


class PriceTable:
    """The prices of genai-prices with a person's own on top. Never changes; safe to share.

    The first look at a model that has no price of a person's imports genai-prices (about 0.3 s), later ones
    take microseconds. `now` is the time of the call, by default the present: it chooses among dated prices.
    """

    def __init__(self, overrides: Iterable[Override] = ()) -> None:
        """`overrides`: of several for one model and one first day the last one counts."""
        self._overrides: dict[str, dict[date, Override]] = {}
        for override in overrides:
            self._overrides.setdefault(override.model, {})[override.valid_from or date.min] = override

    def price(self, model: str, usage: Usage, *, now: datetime | None = None) -> Price:
        """Price one call by the model asked for and the usage reported; never raises."""
        if model.startswith(DEMO_PREFIX):
            return Price("demo", Decimal(0))
        tokens = billable_tokens(usage)
        if tokens is None or usage.input is None:
            return Price("unknown")
        found = row_for(self.rows(model, now), usage.input)
        if found is None:
            return Price("unknown")
        costs = _costs(found.rates, tokens)
        return Price("free" if found.is_free else "priced", _total(costs), found.json, costs)

    def upper_bound_usd(
        self, model: str, input_tokens: int, output_tokens: int, *, now: datetime | None = None
    ) -> Decimal | None:
        """The most a call with so many tokens can cost, or None when the model's price is unknown.

        Input counts at the dearest of its classes: whether it will be read from or written to a cache is not
        known yet.
        """
        if model.startswith(DEMO_PREFIX):
            return Decimal(0)
        found = row_for(self.rows(model, now), input_tokens)
        if found is None:
            return None
        dearest = max(found.rates[name] for name in CLASSES if name != "output")
        rates = {"input": dearest, "output": found.rates["output"]}
        return _total(_costs(rates, {"input": input_tokens, "output": output_tokens}))

    def rows(self, model: str, now: datetime | None = None) -> list[PriceRow]:
        """The rows that apply to a model at a time, one for each tier; none when its price is unknown."""
        now = (now or datetime.now(UTC)).astimezone(UTC)
        override = self.override(model, now.date())
        if override is None:
            return listed_rows(model, now)
        row = override.row(now.date())
        return [row] if row is not None else []

    def override(self, model: str, day: date) -> Override | None:
        """What a person set for calls of this UTC day, if anything."""
        by_start = self._overrides.get(model, {})
        start = max((start for start in by_start if start <= day), default=None)
        return None if start is None else by_start[start]


def billable_tokens(usage: Usage) -> dict[str, int] | None:
    """Usage in the disjoint `CLASSES`; None when input or output is unknown or the parts exceed the whole.

    Cached tokens that were not told count as ordinary input.
    """
    if usage.input is None or usage.output is None:
        return None
    read, written = usage.cached_read or 0, usage.cache_write or 0
    rest = usage.input - read - written
    if min(rest, read, written, usage.output) < 0:
        return None
    return {"input": rest, "cached_read": read, "cache_write": written, "output": usage.output}


def _costs(rates: Costs, tokens: Mapping[str, int]) -> Costs:
    return {name: _EXACT.scaleb(_EXACT.multiply(rates[name], Decimal(n)), -6) for name, n in tokens.items()}


def _total(costs: Costs) -> Decimal:
    total = Decimal(0)
    for cost in costs.values():
        total = _EXACT.add(total, cost)
    return total
