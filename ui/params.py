"""Parameter types that click does not have; each refuses a bad value with one clear sentence."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from ui.figures import MOST_DOLLARS


class Dollars(click.ParamType[Decimal]):
    """A positive amount of money, kept exact."""

    name = "usd"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        """Text to `Decimal`."""
        try:
            amount = Decimal(str(value).removeprefix("$"))
        except InvalidOperation:
            self.fail(f"{value!r} is not an amount in dollars, like 0.50", param, ctx)
        if not amount.is_finite() or amount <= 0:
            self.fail(f"{value!r} is not a positive amount", param, ctx)
        if amount > MOST_DOLLARS:
            self.fail(f"{str(value)[:40]!r} is more than {MOST_DOLLARS:,} dollars", param, ctx)
        return amount


class ModelId(click.ParamType[str]):
    """A model id; an empty one, as of a variable that is not set, would silently mean some default."""

    name = "model"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The id as it was given; whether it can be used is told when it is."""
        if not str(value).strip():
            self.fail("it is empty: name a model, or leave the option out", param, ctx)
        return str(value)


class Rate(click.ParamType[Decimal]):
    """A price that may be 0, kept exact."""

    name = "usd"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        """Text to `Decimal`."""
        try:
            rate = Decimal(str(value).removeprefix("$"))
        except InvalidOperation:
            rate = Decimal("NaN")
        if not rate.is_finite() or rate < 0:
            self.fail(f"{str(value)[:80]!r} is not a price in dollars, like 0.25", param, ctx)
        return rate


class Number(click.ParamType[float]):
    """A finite number; `most` and `least` are allowed themselves, `least` only when `closed`."""

    name = "number"

    def __init__(self, least: float, most: float = math.inf, *, closed: bool = True) -> None:
        self.least, self.most, self.closed = least, most, closed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Text to `float`; NaN and infinities are refused."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number", param, ctx)
        low = number < self.least or (number == self.least and not self.closed)
        if not math.isfinite(number) or low or number > self.most:
            self.fail(f"{value!r} is not {self._range()}", param, ctx)
        return number

    def _range(self) -> str:
        low = f"{self.least:g}"
        if math.isinf(self.most):
            return f"a finite number of at least {low}" if self.closed else f"a finite number above {low}"
        return f"between {low} and {self.most:g}"
