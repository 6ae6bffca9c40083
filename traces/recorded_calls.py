"""Model calls as they were recorded, with the usage of each attempt: what can be priced again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import Any, Final, NamedTuple

from rlm_core import semconv as sc
from rlm_core.lm_handler import Usage
from rlm_core.pricing import CLASSES
from traces.calls import Spans
from traces.cost import CALLS
from traces.facts import class_tokens, token_counts

_COLUMNS: Final = ("role", "model", "depth", "iteration", "cell")
_USAGE: Final = ("tok_input", "tok_output", "cached_read", "cache_write", "told")


def _says(attribute: str, table: str = "") -> str:
    """SQL: the attributes hold this. Inside of a text, a quote is escaped in stored JSON."""
    return f"contains({table}attrs::VARCHAR, '{attribute}')"


_TOLD: Final = f"""{_says(f'"{sc.USAGE_INPUT}":')} AND {_says(f'"{sc.USAGE_OUTPUT}":')}"""
#: One row for each attempt with usage, else one for the call: a tier goes by the input of one attempt.
_SQL: Final = f"""
    WITH s AS MATERIALIZED (SELECT *, {_TOLD} AS told FROM {{spans}}
        WHERE {CALLS} OR (kind = 'attempt' AND tok_input IS NOT NULL))
    SELECT c.run_id, c.span_id, {", ".join(f"c.{name}" for name in _COLUMNS)},
        {_says(f'"{sc.SERVED_FROM}":"record"', "c.")},
        {_says(f'"{sc.USAGE_ESTIMATED}":true', "c.")},
        c.cost_usd, c.cost_status, c.start_ns, {", ".join(f"c.usd_{name}" for name in CLASSES)},
        c.tok_input, c.tok_output, c.cached_read, c.cache_write,
        {", ".join(f"CASE WHEN a.span_id IS NULL THEN c.{name} ELSE a.{name} END" for name in _USAGE)}
    FROM (FROM s WHERE {CALLS}) c LEFT JOIN (FROM s WHERE kind = 'attempt') a
        ON a.run_id = c.run_id AND a.parent_id = c.span_id
    ORDER BY c.run_id, c.span_id"""
_FIXED: Final = 2 + len(_COLUMNS) + 5 + len(CLASSES) + 4  # columns that say something of the call as a whole


class Cost(NamedTuple):
    """What a call costs: in all, and by class."""

    usd: Decimal | None
    status: str
    classes: Mapping[str, Decimal | None]


@dataclass(slots=True)
class RecordedCall:
    """One root call or sub-call. `place` is where it stands: role, model, depth, iteration, cell.

    `served`: its answer came from the record; `estimated`: the engine counted its tokens. `tokens` are the
    billable ones by class; `usages` those of each attempt that has any (else of the call), None: not told.
    """

    place: dict[str, Any]
    served: bool
    estimated: bool
    start_ns: int
    recorded: Cost
    tokens: Mapping[str, int | None]
    usages: list[Usage | None]


def recorded_calls(spans: Spans) -> list[RecordedCall]:
    """All calls among the spans."""
    found = []
    for _, rows in groupby(spans.rows(_SQL), key=lambda row: row[:2]):
        several = list(rows)
        fixed = several[0][2:_FIXED]
        width = len(_COLUMNS)
        served, estimated, usd, status, start_ns, *rest = fixed[width:]
        costs, (given, made, read, written) = rest[: len(CLASSES)], rest[len(CLASSES) :]
        found.append(
            RecordedCall(
                place=dict(zip(_COLUMNS, fixed[:width], strict=True)),
                served=served,
                estimated=estimated,
                start_ns=start_ns,
                recorded=Cost(usd, status, dict(zip(CLASSES, costs, strict=True))),
                tokens=class_tokens(None if given is None else token_counts(given, made), read, written),
                usages=[Usage(*usage) if told else None for *usage, told in (r[_FIXED:] for r in several)],
            )
        )
    return found
