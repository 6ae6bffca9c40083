"""What recorded calls would have cost with other models: their usage priced again, without a call.

The assumption is that another model would have read and written as many tokens, cached ones included. Prices
are those of the day of each call. What was served from the record, or never sent, cost nothing and would
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, Final

from rlm_core.errors import InputError
from rlm_core.lm_handler import Usage
from rlm_core.models import check_model_id
from rlm_core.pricing import CLASSES, Price, PriceTable
from traces.calls import spans_of
from traces.cost import CLASS, Group, Key, check_keys, report_json
from traces.facts import exact_total, token_counts
from traces.home import Home
from traces.prices import price_table
from traces.recorded_calls import Cost, RecordedCall, recorded_calls
from traces.rows import money_json
from traces.runs import Warn
from traces.summing import Spend

ROLES: Final = ("root", "sub")
_EXACT: Final = Context(prec=60)


@dataclass(slots=True)
class _Sum:
    """The calls of one group, as they were and as they would have been."""

    then: Spend = field(default_factory=Spend)
    now: Spend = field(default_factory=Spend)
    costs: list[Decimal] = field(default_factory=list)

    def add(
        self,
        tokens: dict[str, int],
        then: Decimal | None,
        now: Decimal | None,
        how: RecordedCall,
        status: str,
    ) -> None:
        _count(self.then, tokens, then, how.recorded.status)
        _count(self.now, tokens, now, status)
        if now is not None:
            self.costs.append(now)

    def group(self) -> Group:
        """The row as it would have been."""
        ordered = sorted(self.costs)
        ranks = (-(-part * len(ordered) // 100) - 1 for part in (50, 95, 100))  # nearest rank
        return Group(self.now, [ordered[rank] for rank in ranks] if ordered else None)

    def compared(self) -> dict[str, Any]:
        """What was recorded, and the difference (null when one of the two is unknown)."""
        then, now = self.then.usd, self.now.usd
        change = None if then is None or now is None else _EXACT.subtract(now, then)
        known = money_json(self.then.known_usd)
        return {
            "recorded_usd": money_json(then),
            "recorded_known_usd": known,
            "difference_usd": money_json(change),
        }


def what_if(
    home: Home,
    run_refs: Sequence[str],
    by: Sequence[str],
    models: Mapping[str, str],
    *,
    warn: Warn | None = None,
) -> dict[str, Any]:
    """The document of `cost_report`, as if each role in `models` had been played by that model.

    The total and each row also have `recorded_usd, recorded_known_usd, difference_usd`; at the top stand
    `as` (the models), `unpriced` ([{model, calls}]: no price is known), `without_usage`, `estimated` and
    `not_billed` (calls whose usage nobody reported, was counted by the engine, or that cost nothing since
    nothing was sent). Keys of `by` are those of the record. Raises InputError for what cannot be asked.
    """
    keys = check_keys(by)
    for role, model in models.items():
        if role not in ROLES:
            raise InputError(f"{role[:40]!r} is no role; there are {' and '.join(ROLES)}")
        check_model_id(model, f"the model for {role}")
    pricer = _Pricer(price_table(home), models)
    with spans_of(home, run_refs, warn) as spans:
        calls = recorded_calls(spans)
        whole, groups = _summed(calls, keys, pricer)
    for spend in (whole.then, whole.now):
        spend.add_gaps(spans.gaps)
    report = report_json(keys, whole.now, {key: groups[key].group() for key in groups})
    for row in report["rows"]:
        row.update(groups[tuple(row[key] for key in keys)].compared())
    rows = report.pop("rows")
    unpriced = [{"model": model, "calls": count} for model, count in sorted(pricer.unpriced.items())]
    counts = {name: getattr(pricer, name) for name in ("without_usage", "estimated", "not_billed")}
    counts["runs_with_gaps"] = spans.gaps
    return {**report, **whole.compared(), "as": dict(models), "unpriced": unpriced, **counts, "rows": rows}


class _Pricer:
    """Prices calls with other models, and counts what cannot be priced."""

    def __init__(self, table: PriceTable, models: Mapping[str, str]) -> None:
        self._models = models
        self.unpriced: dict[str, int] = {}
        self.without_usage = self.estimated = self.not_billed = 0

        @lru_cache(maxsize=100_000)
        def price(model: str, usage: Usage, day: int) -> Price:
            return table.price(model, usage, now=_moment(day))

        self._price = price
        self._table = table

    def cost(self, call: RecordedCall) -> Cost:
        """What a call would have cost."""
        model = self._models.get(call.place["role"])
        if model is None:
            return call.recorded
        if call.served or (call.recorded.status == "free" and call.tokens["input"] is None):
            self.not_billed += 1
            return call.recorded
        self.estimated += call.estimated
        usages = [usage for usage in call.usages if usage is not None]
        if len(usages) < len(call.usages):
            self.without_usage += 1
            return _UNKNOWN
        day = call.start_ns // 86_400_000_000_000
        prices = [self._price(model, usage, day) for usage in usages]
        if any(price.usd is None for price in prices):
            if not self._table.rows(model, _moment(day)):
                self.unpriced[model] = self.unpriced.get(model, 0) + 1
            else:
                self.without_usage += 1
            return _UNKNOWN
        return _summed_prices(prices)


def _moment(day: int) -> datetime:
    """The beginning of a day, counted from 1970."""
    return datetime.fromtimestamp(day * 86_400, UTC)


_UNKNOWN: Final = Cost(None, "unknown", dict.fromkeys(CLASSES))


def _summed_prices(prices: Sequence[Price]) -> Cost:
    classes = dict.fromkeys(CLASSES, Decimal(0))
    for price in prices:
        for name, usd in price.classes.items():
            classes[name] = _EXACT.add(classes[name], usd)
    return Cost(exact_total(classes.values()), prices[-1].status, dict(classes))


def _summed(
    calls: Sequence[RecordedCall], keys: Sequence[str], pricer: _Pricer
) -> tuple[_Sum, dict[Key, _Sum]]:
    whole, groups = _Sum(), dict[Key, _Sum]()
    for call in calls:
        now = pricer.cost(call)
        made = call.tokens["output"] or 0
        tokens = token_counts(sum(n or 0 for n in call.tokens.values()) - made, made)
        whole.add(tokens, call.recorded.usd, now.usd, call, now.status)
        parts = _parts(call, now) if CLASS in keys else [(None, tokens, call.recorded.usd, now.usd)]
        for name, counts, then_usd, now_usd in parts:
            place = {**call.place, CLASS: name}
            group = groups.setdefault(tuple(place[key] for key in keys), _Sum())
            group.add(counts, then_usd, now_usd, call, now.status)
    return whole, groups


def _parts(
    call: RecordedCall, now: Cost
) -> Iterator[tuple[str | None, dict[str, int], Decimal | None, Decimal | None]]:
    """A call by class, and what its classes leave over."""
    for name in CLASSES:
        if count := call.tokens[name]:
            counts = token_counts(*((0, count) if name == "output" else (count, 0)))
            yield name, counts, call.recorded.classes[name], now.classes[name]
    then_rest, now_rest = _rest(call, call.recorded), _rest(call, now)
    if then_rest != 0 or now_rest != 0 or call.tokens["input"] is None:
        yield None, token_counts(0, 0), then_rest, now_rest


def _rest(call: RecordedCall, cost: Cost) -> Decimal | None:
    """What a call cost beyond its classes; unknown only where nothing else of it shows that it is."""
    if cost.usd is None and not any(call.tokens.values()):
        return None
    rest = cost.usd or Decimal(0)
    for usd in cost.classes.values():
        if usd is None:
            return Decimal(0)
        rest = _EXACT.subtract(rest, usd)
    return rest


def _count(spend: Spend, tokens: Mapping[str, int], usd: Decimal | None, status: str) -> None:
    spend.add(
        Spend(
            calls=1,
            input=tokens["input"],
            output=tokens["output"],
            known_usd=usd or Decimal(0),
            unknown=usd is None,
            priced=status == "priced",
            demo=status == "demo",
        )
    )
