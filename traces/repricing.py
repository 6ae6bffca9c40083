"""Recorded calls priced again as if other models had answered them: a table like that of the spans.

All of it happens in SQL, for a million spans at once; the rates of a model and a day are looked up once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Context, Decimal
from itertools import pairwise
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.pricing import CLASSES, DEMO_PREFIX, PriceTable
from traces.calls import Spans, temporary
from traces.cost import CALLS
from traces.store import rows_of

_EXACT: Final = Context(prec=60)
_TABLE: Final = "repriced"
_RATES: Final = "rate"
_USD: Final = "DECIMAL(38,18)"  # rates have at most 12 decimals and are for a million tokens: this is exact
_DAY_NS: Final = 86_400_000_000_000
_MOST_TOKENS: Final = 10**15  # of one class of an attempt; with more the cost is beyond any that can be meant
_MOST_USD: Final = 10**9  # of one call, as in `traces.facts`


def _says(attribute: str) -> str:
    """SQL: the attributes hold this. Inside of a text, a quote is escaped in stored JSON."""
    return f"contains(attrs::VARCHAR, '{attribute}')"


_TOLD: Final = f"""{_says(f'"{sc.USAGE_INPUT}":')} AND {_says(f'"{sc.USAGE_OUTPUT}":')}"""
_ESTIMATED: Final = _says(f'"{sc.USAGE_ESTIMATED}":true')
_USAGE: Final = ("tok_input", "tok_output", "cached_read", "cache_write", "told")
#: Billable tokens of an attempt, as `rlm_core.pricing.billable_tokens` has them.
_BILLED: Final = {
    "input": "u.tok_input - coalesce(u.cached_read, 0) - coalesce(u.cache_write, 0)",
    "cached_read": "coalesce(u.cached_read, 0)",
    "cache_write": "coalesce(u.cache_write, 0)",
    "output": "u.tok_output",
}
_AMOUNTS: Final = ", ".join(
    f"least({tokens}, {_MOST_TOKENS})::HUGEINT * r.{name} AS usd_{name}" for name, tokens in _BILLED.items()
)
_OF_CLASSES: Final = [f"usd_{name}" for name in CLASSES]
_KEPT_COLUMNS: Final = (
    "run_id", "kind", "role", "model", "depth", "iteration", "cell", "start_ns",
    "tok_input", "tok_output", "trust",
    *(f"class_{name}" for name in CLASSES),
)  # fmt: skip


#: How the cost of a call comes about; p is the sum of its attempts.
_TOTAL: Final = " + ".join(f"coalesce(p.{usd}, 0)" for usd in _OF_CLASSES)
_WHY: Final = f"""CASE WHEN c.kept THEN 'kept' WHEN c.not_billed THEN 'not_billed'
    WHEN NOT p.told THEN 'without_usage' WHEN NOT p.known THEN 'unpriced'
    WHEN NOT p.usable OR {_TOTAL} >= {_MOST_USD} THEN 'without_usage' ELSE 'priced' END"""


def _cost(priced: str, recorded: str, unknown: str = "NULL") -> str:
    """SQL of a value that depends on `why`."""
    return (
        f"CASE WHEN why = 'priced' THEN {priced} WHEN why IN {_AS_IT_WAS} THEN {recorded} ELSE {unknown} END"
    )


def _of_class(name: str) -> str:
    """SQL of what the tokens of a class cost; an amount without tokens of its class stands in none."""
    return _cost(f"CASE WHEN c.class_{name} > 0 THEN p.usd_{name} ELSE 0 END", f"c.usd_{name}")


_AS_IT_WAS: Final = ("kept", "not_billed")
_COLUMNS: Final = ", ".join([
    *(f"c.{name}" for name in _KEPT_COLUMNS),
    "c.estimated",
    f"{_WHY} AS why",
    f"{_cost('p.status', 'c.cost_status', repr('unknown'))} AS cost_status",
    f"{_cost(_TOTAL, 'c.cost_usd')} AS cost_usd",
    *(f"{_of_class(name)} AS usd_{name}" for name in CLASSES),
    "CASE WHEN c.kept THEN c.so_far_usd END AS so_far_usd",
])  # fmt: skip


def _sql(kept: str) -> str:
    """The re-priced table. `why` says of each call how its cost came about, `estimated` that its tokens did.

    `c` are the calls: one of a role that keeps its model is `kept`; one that was never answered cost nothing
    and would again. `u` has a row for each attempt with usage, else one for the call: a tier goes by the
    input of one attempt. `a` has their amounts, `p` the sums for each call.
    """
    usage = ", ".join(f"CASE WHEN a.span_id IS NULL THEN c.{n} ELSE a.{n} END AS {n}" for n in _USAGE)
    sums = ", ".join(f"sum({usd}) AS {usd}" for usd in _OF_CLASSES)
    return f"""
    WITH s AS MATERIALIZED (SELECT *, {_TOLD} AS told FROM {{spans}}
        WHERE {CALLS} OR (kind = 'attempt' AND tok_input IS NOT NULL)),
    c AS MATERIALIZED (SELECT *, {kept} AS kept,
        NOT kept AND cost_status = 'free' AND class_input IS NULL AS not_billed,
        NOT kept AND NOT not_billed AND {_ESTIMATED} AS estimated FROM s WHERE {CALLS}),
    u AS (SELECT c.run_id, c.span_id, c.role, c.start_ns // {_DAY_NS} AS day, {usage}
        FROM c LEFT JOIN (FROM s WHERE kind = 'attempt') a ON a.run_id = c.run_id AND a.parent_id = c.span_id
        WHERE NOT c.kept AND NOT c.not_billed),
    a AS (SELECT u.run_id, u.span_id, told, r.status, {_AMOUNTS},
        r.status = 'demo' OR least({", ".join(_BILLED.values())}) >= 0 AS usable
        FROM u LEFT JOIN {_RATES} r
            ON r.role = u.role AND r.day = u.day AND u.tok_input > r.above AND u.tok_input <= r.upto),
    p AS (SELECT run_id, span_id, bool_and(told) AS told, bool_and(status IS NOT NULL) AS known,
        bool_and(usable) AS usable, max(status) AS status, {sums} FROM a GROUP BY ALL)
    SELECT {_COLUMNS} FROM c LEFT JOIN p ON p.run_id = c.run_id AND p.span_id = c.span_id"""


@dataclass(frozen=True, slots=True)
class Repriced:
    """The calls as they would have been, and how many could not be priced, by why.

    `unpriced` counts calls by the model whose price is unknown; `without_usage` those whose usage nobody
    reported; `estimated` those whose tokens the engine counted; `not_billed` those that cost nothing since
    no attempt was answered.
    """

    spans: Spans
    unpriced: dict[str, int] = field(default_factory=dict)
    without_usage: int = 0
    estimated: int = 0
    not_billed: int = 0


@contextmanager
def repriced(spans: Spans, models: Mapping[str, str], prices: PriceTable) -> Iterator[Repriced]:
    """The calls among `spans` as if each role in `models` had been played by that model."""
    with ExitStack() as stack:
        _rates(spans, stack, models, prices)
        others = ", ".join(f"'{role}'" for role in models)
        kept = f"coalesce(role, '') NOT IN ({others})" if models else "TRUE"
        temporary(spans.con, stack, _TABLE, _sql(kept).replace("{spans}", spans.table), spans.values)
        table = replace(spans, table=_TABLE, values=())
        unpriced: dict[str, int] = {}
        counts = {"without_usage": 0, "estimated": 0, "not_billed": 0}
        sql = "SELECT role, why, estimated, count(*) FROM {spans} GROUP BY ALL"
        for role, why, estimated, calls in table.rows(sql):
            if why == "unpriced":
                unpriced[models[role]] = unpriced.get(models[role], 0) + calls
            elif why in counts:
                counts[why] += calls
            counts["estimated"] += calls if estimated else 0
        yield Repriced(table, unpriced, **counts)


def _rates(spans: Spans, stack: ExitStack, models: Mapping[str, str], prices: PriceTable) -> None:
    """Make the table of what a token costs: by role, day and tier. A model without a price has no rows."""
    columns = ", ".join(f"NULL::{_USD} AS {name}" for name in CLASSES)
    sql = (
        f"SELECT '' AS role, 0::BIGINT AS day, 0::BIGINT AS above, 0::BIGINT AS upto, '' AS status, {columns}"
    )
    temporary(spans.con, stack, _RATES, f"{sql} LIMIT 0")
    days = f"SELECT DISTINCT role, start_ns // {_DAY_NS} FROM {{spans}} WHERE {CALLS} AND role IS NOT NULL"
    made = [
        row for role, day in spans.rows(days) if role in models for row in _tiers(role, day, models, prices)
    ]
    if made:
        marks = ", ".join("?" * len(made[0]))
        for row in made:
            rows_of(spans.con, f"INSERT INTO {_RATES} VALUES ({marks})", row)


def _tiers(role: str, day: int, models: Mapping[str, str], prices: PriceTable) -> Iterator[list[Any]]:
    model = models[role]
    if model.startswith(DEMO_PREFIX):
        yield [role, day, -1, 2**63 - 1, "demo", *(Decimal(0) for _ in CLASSES)]
        return
    rows = prices.rows(model, datetime.fromtimestamp(day * 86_400, UTC))
    starts = [-1, *(row.above for row in rows[1:]), 2**63 - 1]
    for row, (above, upto) in zip(rows, pairwise(starts), strict=False):
        rates = [_EXACT.scaleb(row.rates[name], -6) for name in CLASSES]
        yield [role, day, above, upto, "free" if row.is_free else "priced", *rates]
