"""The spans that a question about money is asked of: those of stored runs and of live ones, in one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traces.home import Home
from traces.runs import Current, Warn, current, resolve_run, spool_views
from traces.store import append_spans, in_memory, rows_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_LIVE = "live_span"


@dataclass(frozen=True, slots=True)
class Spans:
    """A connection, and the spans as a table expression in SQL with its values.

    `gaps` counts the runs that lack records (those of a demo model cost nothing whatever they lack).
    """

    con: DuckDBPyConnection
    table: str
    values: Sequence[Any]
    gaps: int

    def rows(self, sql: str, more: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query in which `{spans}` stands once for the table; `more` are values after its own."""
        return rows_of(self.con, sql.replace("{spans}", self.table), [*self.values, *more])


@contextmanager
def spans_of(home: Home, run_refs: Sequence[str], warn: Warn | None) -> Iterator[Spans]:
    """The spans of the given runs (of all when none is given). Raises InputError for an unknown run."""
    wanted = None if not run_refs else {resolve_run(home, ref, warn=warn) for ref in run_refs}
    with current(home, warn) as now, ExitStack() as stack:
        con = now.con if now.con is not None else stack.enter_context(in_memory())
        where, values = _stored(wanted, now)
        table = f"SELECT * FROM span WHERE {where}"
        lacking = f"SELECT count(*) FROM run WHERE {where} AND problems > 0 AND NOT demo"
        ((gaps,),) = rows_of(con, lacking, values)
        live = [run_id for run_id in now.spools if wanted is None or run_id in wanted]
        if live:
            con.execute(f"CREATE TEMP TABLE {_LIVE} AS FROM span LIMIT 0").fetchall()
            stack.callback(lambda: con.execute(f"DROP TABLE {_LIVE}").fetchall())
            for view in spool_views(home, live, warn):
                append_spans(con, view.spans, _LIVE)
                gaps += view.summary.problems > 0 and not view.summary.demo
            table += f" UNION ALL SELECT * FROM {_LIVE}"
        yield Spans(con, f"({table})", values, gaps)


def _stored(wanted: set[str] | None, now: Current) -> tuple[str, list[str]]:
    """SQL and values for the stored runs that count: the wanted ones, less those read from their spools."""
    if wanted is None:
        values, operator = list(now.spools), "NOT IN"
    else:
        values, operator = sorted(wanted.difference(now.spools)), "IN"
    if not values:
        return ("TRUE" if wanted is None else "FALSE"), []
    return f"run_id {operator} ({', '.join('?' * len(values))})", values
