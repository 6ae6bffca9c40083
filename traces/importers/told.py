"""Numbers of a record with their marks: one that is there but unusable is told apart from one that is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from traces.importers.foreign import ForeignSpan, T, TokenUse, Told, missing, reported
from traces.importers.source import as_text
from traces.importers.values import amount, count, dollars

UNUSABLE: Final = "in the record, but unusable: "
_SHOWN: Final = 60  # characters of a value


def told(value: Any, read: Callable[[Any], T | None]) -> Told[T]:
    """A value as `read` gives it, which gives None for what cannot be used."""
    found = read(value)
    return reported(found) if found is not None else lacking(value)


def lacking(*values: Any) -> Told[Any]:
    """The mark of a number that cannot be had of these values; that they are there is said."""
    there = ", ".join(as_text(value)[:_SHOWN] for value in values if value is not None)
    return missing(UNUSABLE + there if there else None)


def tokens_of(usage: Mapping[str, Any], sent: str, made: str, zero: str) -> Told[TokenUse]:
    """The tokens of a call by the names of both sides; of nothing but zeros `zero` says why it is unknown."""
    given = usage.get(sent), usage.get(made)
    used, back = count(given[0]), count(given[1])
    if used is None or back is None:
        return lacking(*(value for value in given if count(value) is None))
    return reported(TokenUse(used, back)) if used or back else missing(zero)


def cost_of(usage: Mapping[str, Any]) -> Told[Decimal]:
    """The dollars of a call, under the name `cost`."""
    return told(usage.get("cost"), dollars)


def milliseconds(value: Any) -> Told[float]:
    """A duration that is given in milliseconds."""
    found = amount(value)
    return lacking(value) if found is None else reported(found / 1000)


def unusable(top: ForeignSpan) -> list[str]:
    """A sentence on the numbers of a run that are in its record and cannot be used, if there are any."""
    numbers = (
        number.why
        for span in top.walk()
        for number in (span.start, span.seconds, span.tokens, span.cost)
        if number.mark == "missing"
    )
    found = sum(why is not None and why.startswith(UNUSABLE) for why in numbers)
    return [f"Numbers that are in the record, but unusable: {found:,}."] if found else []
