"""What a set of runs cost, as a reviewer asks it: which runs, how dear, the tail, the dearest calls, limits.

Runs are chosen whole: what is said of them adds up to what each of them says of itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from rlm_core import semconv as sc
from traces.calls import Spans
from traces.cost import CALLS, grouped
from traces.facts import LARGEST
from traces.home import Home
from traces.rows import RunSummary
from traces.summing import Spend

TAIL: Final = (1, 5)  # per cent of the calls, the dearest
CURVE: Final = (1, 2, 5, 10, 20, 30, 50, 75, 100)  # the same, for a line
DEAREST: Final = 10
_DIGITS: Final = 60  # of a number in a ledger
_DIMENSIONS: Final = ("usd", "tokens", "calls", "seconds")  # of the ledger, that have a limit to be passed


@dataclass(frozen=True, slots=True)
class Scope:
    """Which runs: of these ids (none: any), over a corpus, begun on days from `first` to `last` (UTC).

    Runs of a demo model cost nothing; they count only when `demo` says so.
    """

    runs: tuple[str, ...] = ()
    corpus: str | None = None
    first: date | None = None
    last: date | None = None
    demo: bool = False

    def fits(self, run: RunSummary) -> bool:
        """Whether a run is in it, demo or not. One whose start is not recorded began on no day."""
        if (self.runs and run.run_id not in self.runs) or self.corpus not in (None, run.corpus_id):
            return False
        if self.first is None and self.last is None:
            return True
        day = started_on(run)
        return day is not None and (self.first or date.min) <= day <= (self.last or date.max)


def started_on(run: RunSummary) -> date | None:
    """The UTC day on which a run began; None when that is not recorded."""
    if run.started_ns <= 0 or not run.started:
        return None
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=run.started_ns // 1000)).date()


@dataclass(frozen=True, slots=True)
class Chosen:
    """The runs of a scope that count, and how many runs of a demo model do not."""

    runs: tuple[RunSummary, ...]
    demo_left_out: int

    @property
    def run_ids(self) -> tuple[str, ...]:
        """Their ids."""
        return tuple(run.run_id for run in self.runs)

    @property
    def finished(self) -> tuple[RunSummary, ...]:
        """Those that ended with an answer. What a replay or the rest of a dead run costs says nothing of what
        a run does.
        """
        return tuple(run for run in self.runs if run.status == "ok" and not run.plays_a_record)


def choose(runs: Iterable[RunSummary], scope: Scope) -> Chosen:
    """The runs of a scope."""
    found = [run for run in runs if scope.fits(run)]
    counted = tuple(run for run in found if scope.demo or not run.demo)
    return Chosen(counted, len(found) - len(counted))


@dataclass(frozen=True, slots=True)
class PerRun:
    """Dollars of one finished run: p50, p95 and the most, over the `known` ones; `unknown` others."""

    known: int
    unknown: int
    spread: tuple[Decimal, Decimal, Decimal] | None


def per_run(runs: Sequence[RunSummary]) -> PerRun:
    """How what one run cost is spread, by nearest rank."""
    amounts = sorted(run.cost_usd for run in runs if run.cost_usd is not None)
    spread = (_rank(amounts, 50), _rank(amounts, 95), amounts[-1]) if amounts else None
    return PerRun(len(amounts), len(runs) - len(amounts), spread)


def _rank(ordered: Sequence[Decimal], percent: int) -> Decimal:
    return ordered[-(-percent * len(ordered) // 100) - 1]


@dataclass(frozen=True, slots=True)
class Totals:
    """What the runs cost in all and by role, and the models whose cost is not known, with their calls."""

    whole: Spend
    by_role: dict[str | None, Spend]
    unknown: tuple[tuple[str | None, int], ...]
    gaps: int
    served: int = 0  # calls that no model was asked for: they are in no figure
    refused: int = 0  # those of them that a limit refused


def totals(spans: Spans) -> Totals:
    """The sums over all calls."""
    whole, rows = grouped(spans, ("role", "model"))
    by_role: dict[str | None, Spend] = {}
    unknown: dict[str | None, int] = {}
    for (role, model), group in rows.items():
        by_role.setdefault(role, Spend()).add(group.spend)
        if group.spend.unknown:
            unknown[model] = unknown.get(model, 0) + group.spend.unknown
    whole.add_gaps(spans.gaps)
    ordered = sorted(unknown.items(), key=lambda pair: (-pair[1], pair[0] or ""))
    return Totals(whole, by_role, tuple(ordered), spans.gaps, spans.served, spans.refused)


@dataclass(frozen=True, slots=True)
class Tail:
    """How the cost is spread over calls whose cost is known.

    `role` None: all of them. `shares` are parts of the sum, 0 to 1, that the dearest per cents of `CURVE`
    cost (None when nothing cost anything); so many per cent of the calls are rounded up to a whole call.
    """

    role: str | None
    calls: int
    usd: Decimal
    p50: Decimal
    p95: Decimal
    most: Decimal
    shares: dict[int, float] | None


def tails(spans: Spans) -> list[Tail]:
    """The tail of all calls, then of those of each role."""
    sums = ", ".join(f"sum(cost_usd) FILTER (WHERE place <= ceil(n * {part} / 100.0))" for part in CURVE)
    sql = f"""
    WITH c AS MATERIALIZED (SELECT role, cost_usd FROM {{spans}} WHERE {CALLS} AND cost_usd IS NOT NULL),
    each AS (SELECT *, row_number() OVER (PARTITION BY role ORDER BY cost_usd DESC) AS place,
            count(*) OVER (PARTITION BY role) AS n FROM c),
    every AS (SELECT NULL AS role, cost_usd, row_number() OVER (ORDER BY cost_usd DESC) AS place,
            count(*) OVER () AS n FROM c)
    SELECT 0 AS part, role, count(*), sum(cost_usd), quantile_disc(cost_usd, [0.5, 0.95, 1]), {sums}
        FROM every GROUP BY role
    UNION ALL
    SELECT 1 AS part, role, count(*), sum(cost_usd), quantile_disc(cost_usd, [0.5, 0.95, 1]), {sums}
        FROM each GROUP BY role
    ORDER BY 1, 4 DESC, 2"""
    return [_tail(*row[1:]) for row in spans.rows(sql)]


def _tail(role: str | None, calls: int, usd: Decimal, spread: Sequence[Decimal], *parts: Decimal) -> Tail:
    shares = {part: float(sum_ / usd) for part, sum_ in zip(CURVE, parts, strict=True)} if usd else None
    p50, p95, most = spread
    return Tail(role, calls, usd, p50, p95, most, shares)


@dataclass(frozen=True, slots=True)
class Dear:
    """A sub-call and what it cost; `place` are its iteration, cell and number in the cell, where recorded."""

    run_id: str
    span_id: str
    model: str | None
    usd: Decimal
    input: int | None
    output: int | None
    depth: int
    place: tuple[int | None, int | None, int | None]
    preview: str | None


def dearest(spans: Spans, most: int = DEAREST) -> list[Dear]:
    """The dearest sub-calls; of equally dear ones the earliest."""
    sql = f"""SELECT run_id, span_id, model, cost_usd, tok_input, tok_output, depth, iteration, cell,
        call_index, preview FROM {{spans}} WHERE kind = 'sub_call' AND cost_usd > 0
        ORDER BY cost_usd DESC, start_ns, run_id, span_id LIMIT {most:d}"""
    return [_dear(*row) for row in spans.rows(sql)]


def _dear(*row: Any) -> Dear:
    run_id, span_id, model, usd, given, made, depth, *place, preview = row
    return Dear(run_id, span_id, model, usd, given, made, depth, (place[0], place[1], place[2]), preview)


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit of a run and what the run took of it, both in dollars, tokens, calls or seconds.

    `exact` is False where part of what was spent is not known: it is then at least that much.
    """

    run_id: str
    dimension: str
    spent: Decimal
    limit: Decimal
    exact: bool

    @property
    def over(self) -> Decimal:
        """By how much the limit was passed; 0 when it held."""
        return max(Decimal(0), self.spent - self.limit)

    @property
    def used(self) -> float:
        """What part of the limit was taken: 1 is all of it."""
        return float(self.spent / self.limit) if self.limit else float(self.spent > 0) + 1.0


def budgets(spans: Spans) -> tuple[list[Budget], int]:
    """Every limit of dollars, tokens, calls or seconds that a run had, the most used first.

    Also how many runs have no statement of what they spent: only a run that ended by itself has one.
    """
    path = f'$."{sc.LEDGER}"'
    sql = f"""SELECT run_id, json_extract_string(attrs, '{path}') FROM {{spans}}
        WHERE kind = 'run' AND depth = 0"""
    found: list[Budget] = []
    silent = 0
    for run_id, raw in spans.rows(sql):
        ledger = _parsed(raw)
        silent += not ledger
        found.extend(filter(None, (_budget(run_id, name, ledger.get(name)) for name in _DIMENSIONS)))
    return sorted(found, key=lambda one: (-one.used, one.run_id, one.dimension)), silent


def _parsed(raw: str | None) -> dict[str, Any]:
    try:
        made = json.loads(raw) if raw is not None else None
    except (ValueError, RecursionError):
        return {}
    return made if isinstance(made, dict) else {}


def _budget(run_id: str, dimension: str, told: Any) -> Budget | None:
    """A limit out of a ledger, which is as untrusted as the rest of a record."""
    if not isinstance(told, dict):
        return None
    spent, limit = _amount(told.get("spent")), _amount(told.get("limit"))
    if spent is None or limit is None:
        return None
    return Budget(run_id, dimension, spent, limit, told.get("known") is not False)


def _amount(value: object) -> Decimal | None:
    """A number, or a text that is one; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or len(str(value)) > _DIGITS:
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 <= amount < LARGEST else None


def state_of(home: Home) -> str:
    """A text that changes with the record of a home, for keeping what was computed from it."""
    parts = []
    for path in (home.store, home.user_log):
        try:
            found = path.stat()
            parts.append(f"{found.st_mtime_ns}:{found.st_size}")
        except OSError:
            parts.append("-")
    spools = []
    with os.scandir(home.spool) as entries:
        for entry in entries:
            with suppress(OSError):  # deleted since it was listed
                if entry.name.endswith(".jsonl"):
                    spools.append(entry.stat())
    newest = max((found.st_mtime_ns for found in spools), default=0)
    return " ".join([*parts, str(len(spools)), str(newest), str(sum(found.st_size for found in spools))])
