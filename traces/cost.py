"""What runs cost, by any of role, model, depth, iteration, cell and class.

Sums are exact: amounts are DECIMAL in SQL and `Decimal` here. A group in which any cost is unknown has no
amount, only a lower bound (`known_usd`). Calls are root calls and sub-calls; an attempt's tokens and cost are
in its call's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rlm_core.errors import InputError
from traces.facts import CLASSES
from traces.home import Home
from traces.rows import money_json
from traces.runs import Warn, current, resolve_run, spool_views
from traces.store import append_spans, in_memory, rows_of
from traces.summing import CALL_KINDS, Spend
from traces.view import RunView

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

KEYS: Final = ("role", "model", "depth", "iteration", "cell", "class")
_CLASS: Final = "class"
_CALLS: Final = f"kind IN {CALL_KINDS!r}"

Key = tuple[Any, ...]


def cost_report(
    home: Home, run_refs: Sequence[str], by: Sequence[str], *, warn: Warn | None = None
) -> dict[str, Any]:
    """Spend of the given runs (of all runs when none is given), grouped.

    {total_usd, known_usd, cost_status, tokens, calls, rows: [{<keys of by>, cost_usd, known_usd, cost_status,
    tokens, calls}]}, dearest first. With `class`, tokens are the billable ones of that class; the class None
    holds what cannot be told apart by class. Raises InputError for an unknown key or run.
    """
    unknown = [key for key in by if key not in KEYS]
    if unknown:
        raise InputError(f"{unknown[0]!r} is not one of {', '.join(KEYS)}.")
    keys = tuple(dict.fromkeys(by))
    wanted = None if not run_refs else {resolve_run(home, ref, warn=warn) for ref in run_refs}
    report = _Report(keys)
    with current(home, warn) as now:
        if now.con is not None:
            report.add(now.con, *_filter(wanted, now.spools))
    live = [run_id for run_id in now.spools if wanted is None or run_id in wanted]
    report.add_views(list(spool_views(home, live, warn)))
    return report.to_json()


def _filter(wanted: set[str] | None, elsewhere: Sequence[str]) -> tuple[str, list[str]]:
    """SQL and values for the stored runs that count: the wanted ones, less those read from their spools."""
    if wanted is None:
        values, operator = list(elsewhere), "NOT IN"
    else:
        values, operator = sorted(wanted.difference(elsewhere)), "IN"
    if not values:
        return ("TRUE" if wanted is None else "FALSE"), []
    return f"run_id {operator} ({', '.join('?' * len(values))})", values


class _Report:
    """Sums of calls, in all and by group."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = keys
        self._by_class = _CLASS in keys
        self._total = Spend()
        self._groups: dict[Key, Spend] = {}

    def add(self, con: DuckDBPyConnection, where: str = "TRUE", values: Sequence[str] = ()) -> None:
        """Add the calls of a store's runs."""
        columns = [key for key in self._keys if key != _CLASS]
        sums = ", ".join(
            [_SUMS, *(_class_sums(name) for name in CLASSES), _REST] if self._by_class else [_SUMS]
        )
        grouping = f"GROUP BY {', '.join(columns)}" if columns else ""
        sql = f"SELECT {', '.join([*columns, sums])} FROM span WHERE {_CALLS} AND {where} {grouping}"
        width = len(columns)
        for row in rows_of(con, sql, values):
            plain = dict(zip(columns, row[:width], strict=True))
            spend = Spend(*row[width : width + _SUM_WIDTH])
            if not spend.calls:
                continue  # without grouping, SQL gives one row of zeros for no calls
            self._total.add(spend)
            if not self._by_class:
                self._add(plain, spend)
                continue
            rest = row[width + _SUM_WIDTH :]
            for place, name in enumerate((*CLASSES, None)):
                part = Spend(*rest[place * _SUM_WIDTH : (place + 1) * _SUM_WIDTH])
                if part.calls:
                    self._add({**plain, _CLASS: name}, part)

    def add_views(self, views: Sequence[RunView]) -> None:
        """Add the calls of runs that are not in the store: by the same SQL, over a store in memory."""
        if views:
            with in_memory() as con:
                for view in views:
                    append_spans(con, view.spans)
                self.add(con)

    def _add(self, group: Mapping[str, Any], spend: Spend) -> None:
        key = tuple(group[name] for name in self._keys)
        self._groups.setdefault(key, Spend()).add(spend)

    def to_json(self) -> dict[str, Any]:
        """The document of `rlmscope cost`."""
        rows = [{**dict(zip(self._keys, key, strict=True)), **_figures(s)} for key, s in self._sorted()]
        figures = _figures(self._total)
        return {"total_usd": figures.pop("cost_usd"), **figures, "rows": rows}

    def _sorted(self) -> list[tuple[Key, Spend]]:
        """Dearest first; equal ones by their keys, unknown keys last."""

        def order(item: tuple[Key, Spend]) -> tuple[Any, ...]:
            return -item[1].known_usd, *((value is None, str(type(value)), value or 0) for value in item[0])

        return sorted(self._groups.items(), key=order)


def _class_sums(name: str) -> str:
    tokens, usd = f"class_{name}", f"usd_{name}"
    given, made = ("0", tokens) if name == "output" else (tokens, "0")
    unknown = f"count(*) FILTER (WHERE {tokens} > 0 AND {usd} IS NULL)"
    return _sums_of(f"{tokens} > 0", given, made, usd, unknown)


def _sums_of(counted: str, given: str, made: str, usd: str, unknown: str) -> str:
    """SQL for the fields of `Spend`, in their order, over the calls that `counted` picks."""
    statuses = [
        f"count(*) FILTER (WHERE {counted} AND cost_status = '{status}')" for status in ("priced", "demo")
    ]
    sums = [f"coalesce(sum({part}), 0)" for part in (given, made, usd)]
    return ", ".join([f"count(*) FILTER (WHERE {counted})", *sums, unknown, *statuses])


_SUMS: Final = _sums_of("TRUE", "tok_input", "tok_output", "cost_usd", "count(*) - count(cost_usd)")
_SUM_WIDTH: Final = len(Spend.__slots__)
_CLASSED: Final = " + ".join(f"usd_{name}" for name in CLASSES)
#: What the classes leave over: calls without usage, and amounts that do not come from their own tokens.
_REST: Final = _sums_of(
    f"(class_input IS NULL OR cost_usd <> {_CLASSED})",
    "0",
    "0",
    f"cost_usd - ({_CLASSED})",
    "count(*) FILTER (WHERE class_input IS NULL AND cost_usd IS NULL)",
)


def _figures(spend: Spend) -> dict[str, Any]:
    return {
        "cost_usd": money_json(spend.usd),
        "known_usd": money_json(spend.known_usd),
        "cost_status": spend.status,
        "tokens": spend.tokens,
        "calls": spend.calls,
    }
