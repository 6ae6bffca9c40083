"""What recorded calls would have cost with other models: their usage priced again, without a call.

The assumption is that another model would have read and written as many tokens, cached ones included. Prices
are those of the day of each call. What was served from the record, or never sent, cost nothing and would
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Context
from typing import Any, Final

from rlm_core.errors import InputError
from rlm_core.models import check_model_id
from traces.calls import Spans, spans_of
from traces.cost import Group, Key, check_keys, grouped, report_json
from traces.home import Home
from traces.prices import price_table
from traces.repricing import repriced
from traces.rows import money_json
from traces.runs import Warn
from traces.summing import Spend

ROLES: Final = ("root", "sub")
_EXACT: Final = Context(prec=60)


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
    check_models(models)
    with spans_of(home, run_refs, warn) as spans:
        return what_if_of(home, spans, keys, models)


def check_models(models: Mapping[str, str]) -> None:
    """Raises InputError for what is no role, or no id of a model."""
    for role, model in models.items():
        if role not in ROLES:
            raise InputError(f"{role[:40]!r} is no role; there are {' and '.join(ROLES)}")
        check_model_id(model, f"the model for {role}")


def what_if_of(home: Home, spans: Spans, keys: Sequence[str], models: Mapping[str, str]) -> dict[str, Any]:
    """The document of `what_if`, for these spans; keys and models were checked."""
    with repriced(spans, models, price_table(home)) as other:
        now, rows = grouped(other.spans, keys)
    then, recorded = grouped(spans, keys)
    for whole in (then, now):
        whole.add_gaps(spans.gaps)
    rows.update((key, _nothing(group)) for key, group in recorded.items() if key not in rows)
    report = report_json(keys, now, rows)
    for row in report["rows"]:
        key: Key = tuple(row[name] for name in keys)
        row.update(_compared(recorded[key].spend if key in recorded else Spend(), rows[key].spend))
    unpriced = [{"model": model, "calls": count} for model, count in sorted(other.unpriced.items())]
    counts = {name: getattr(other, name) for name in ("without_usage", "estimated", "not_billed")}
    counts["runs_with_gaps"] = spans.gaps
    counts |= {"served_calls": spans.served, "refused_calls": spans.refused}
    groups = report.pop("rows")
    return {
        **report,
        **_compared(then, now),
        "as": dict(models),
        "unpriced": unpriced,
        **counts,
        "rows": groups,
    }


def _nothing(group: Group) -> Group:
    """What is left of a row that would be gone: its calls, at no cost."""
    return Group(
        Spend(
            group.spend.calls,
            group.spend.input,
            group.spend.output,
            untold=group.spend.untold,
            derived=group.spend.derived,
        ),
        None,
    )


def _compared(then: Spend, now: Spend) -> dict[str, Any]:
    """What was recorded, and the difference (null when one of the two is unknown)."""
    change = None if then.usd is None or now.usd is None else _EXACT.subtract(now.usd, then.usd)
    return {
        "recorded_usd": money_json(then.usd),
        "recorded_known_usd": money_json(then.known_usd),
        "difference_usd": money_json(change),
    }
