"""The spans that a question about money is asked of: those of stored runs and of live ones, in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_core import semconv as sc
from traces.home import Home
from traces.refused import refused, unsent
from traces.rows import SpanRow
from traces.runs import Current, Warn, current, resolve_run, spool_views
from traces.store import append_spans, in_memory, rows_of
from traces.summing import CALL_KINDS
from traces.view import RunView

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_LIVE = "live_span"
_LIVE_RUNS = "live_run"
_FREE = "free_call"
_UNSENT = "unsent_call"
_REFUSED = f"status = 'error' AND error_type IN {sc.LIMIT_ERRORS!r}"
_TRIED = "tried_call"
_OPEN = "open_call"
_SO_FAR = "so_far"
# a run of another engine of whose calls some are not on record at all, or one of ours that lacks records
_LACKING = f"""(problems > 0 AND NOT demo) OR (untold_calls > 0 AND untold_calls > (
    SELECT count(*) FROM span WHERE span.run_id = run.run_id AND kind IN {CALL_KINDS!r}
    AND trust IS NOT NULL AND tok_input IS NULL))"""
_FEW = 50  # runs that are named one by one, so that the store skips what cannot be theirs


@dataclass(frozen=True, slots=True)
class Spans:
    """A connection, and the spans as a table expression in SQL with its values.

    `gaps` counts the runs that lack records (those of a demo model cost nothing whatever they lack);
    `corpora` is a table expression of `run_id` and `corpus_id`, of these runs and maybe of others. Calls that
    no model was asked for are not among the spans: `served` counts them, and `refused` those of them that a
    limit refused. The table has a column `so_far_usd`, see `SpanRow`.
    """

    con: DuckDBPyConnection
    table: str
    values: Sequence[Any]
    gaps: int
    corpora: str
    served: int = 0
    refused: int = 0

    def rows(self, sql: str, more: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query in which `{spans}` stands once for the table; `more` are values after its own."""
        return rows_of(self.con, sql.replace("{spans}", self.table), [*self.values, *more])


@contextmanager
def spans_of(home: Home, run_refs: Sequence[str], warn: Warn | None) -> Iterator[Spans]:
    """The spans of the given runs (of all when none is given). Raises InputError for an unknown run."""
    wanted = None if not run_refs else {resolve_run(home, ref, warn=warn) for ref in run_refs}
    with spans_of_runs(home, wanted, warn) as spans:
        yield spans


@contextmanager
def spans_of_runs(home: Home, wanted: Collection[str] | None, warn: Warn | None) -> Iterator[Spans]:
    """The spans of the runs of these full ids (None: of all); ids of no run count for nothing."""
    wanted = None if wanted is None else set(wanted)
    with current(home, warn) as now, ExitStack() as stack:
        con = now.con if now.con is not None else stack.enter_context(in_memory())
        where, values = _stored(wanted, now)
        table = f"SELECT * FROM span WHERE {where}"
        lacking = f"SELECT count(*) FROM run WHERE {where} AND ({_LACKING})"
        ((gaps,),) = rows_of(con, lacking, values)
        served = turned_away = 0
        if left_out := _leave_out_unsent(con, stack, where, values):
            counts = f"SELECT count(*), count(*) FILTER ({_REFUSED}) FROM {_UNSENT}"
            ((served, turned_away),) = rows_of(con, counts)
            table += f" AND NOT ({left_out})"
        corpora = "(SELECT run_id, corpus_id FROM run)"
        live = [run_id for run_id in now.spools if wanted is None or run_id in wanted]
        if live:
            temporary(con, stack, _LIVE, "FROM span LIMIT 0")
            temporary(con, stack, _LIVE_RUNS, "SELECT run_id, corpus_id FROM run LIMIT 0")
            for view in spool_views(home, live, warn):
                counted = _asked(view)
                served += len(view.spans) - len(counted)
                turned_away += len(refused(view.spans))
                append_spans(con, counted, _LIVE)
                rows_of(con, f"INSERT INTO {_LIVE_RUNS} VALUES (?, ?)", [view.run_id, view.summary.corpus_id])
                gaps += (view.summary.problems > 0 and not view.summary.demo) or _lacks_calls(view)
            table += f" UNION ALL SELECT * FROM {_LIVE}"
            stored = f"SELECT run_id, corpus_id FROM run ANTI JOIN {_LIVE_RUNS} USING (run_id)"
            corpora = f"({stored} UNION ALL FROM {_LIVE_RUNS})"
        yield Spans(con, _with_so_far(con, stack, table, values), values, gaps, corpora, served, turned_away)


def _lacks_calls(view: RunView) -> bool:
    """Whether calls of a run of another engine are not on record at all."""
    return view.summary.untold_calls > sum(
        span.kind in CALL_KINDS and span.tokens_untold for span in view.spans
    )


def _with_so_far(con: DuckDBPyConnection, stack: ExitStack, table: str, values: Sequence[Any]) -> str:
    """The table expression with what the ended attempts of calls cost that have no end."""
    is_open = f"kind IN {CALL_KINDS!r} AND end_ns IS NULL AND cost_usd IS NULL"
    temporary(con, stack, _OPEN, f"SELECT run_id, span_id FROM ({table}) WHERE {is_open}", values)
    if not rows_of(con, f"FROM {_OPEN} LIMIT 1"):
        return f"(SELECT *, NULL::DECIMAL(38,18) AS so_far_usd FROM ({table}))"
    attempts = f"""SELECT a.run_id, a.parent_id AS span_id, sum(a.cost_usd)::DECIMAL(38,18) AS so_far_usd
        FROM ({table}) a SEMI JOIN {_OPEN} o ON a.run_id = o.run_id AND a.parent_id = o.span_id
        WHERE a.kind = 'attempt' AND a.end_ns IS NOT NULL AND a.cost_usd IS NOT NULL GROUP BY ALL"""
    temporary(con, stack, _SO_FAR, attempts, values)
    return f"(FROM ({table}) LEFT JOIN {_SO_FAR} USING (run_id, span_id))"


def _leave_out_unsent(con: DuckDBPyConnection, stack: ExitStack, where: str, values: Sequence[Any]) -> str:
    """SQL that holds for the stored calls that no model was asked for (see `traces.refused.unsent`); "" when
    there is none. They are in a table of their own then.
    """
    free = f"""SELECT run_id, span_id, kind, status, error_type FROM span WHERE {where}
        AND kind IN {CALL_KINDS!r} AND cost_status = 'free' AND tok_input IS NULL AND end_ns IS NOT NULL
        AND trust IS NULL"""
    temporary(con, stack, _FREE, free, values)
    if not rows_of(con, f"FROM {_FREE} LIMIT 1"):
        return ""
    tried = f"""SELECT DISTINCT run_id, parent_id AS span_id FROM span
        SEMI JOIN (SELECT DISTINCT run_id FROM {_FREE}) USING (run_id)
        WHERE kind = 'attempt' AND tok_input IS NULL AND parent_id IS NOT NULL"""
    temporary(con, stack, _TRIED, tried)
    temporary(con, stack, _UNSENT, f"FROM {_FREE} ANTI JOIN {_TRIED} USING (run_id, span_id)")
    return f"(run_id, span_id) IN (SELECT run_id, span_id FROM {_UNSENT})"


def _asked(view: RunView) -> Sequence[SpanRow]:
    """The spans of a run, without the calls that no model was asked for."""
    left_out = unsent(view.spans)
    return [span for span in view.spans if span.span_id not in left_out] if left_out else view.spans


def served_calls(view: RunView) -> Mapping[str, int]:
    """How many calls of a replay or resumed run no model was asked for, by kind: `root_call`, `sub_call`.
    Those that a limit refused are not among them.
    """
    if not view.summary.plays_a_record:
        return {}
    turned_away = refused(view.spans)
    made = Counter(span.kind for span in view.spans if span.span_id not in turned_away)
    return made - Counter(span.kind for span in _asked(view))


def calls_of_replays(home: Home, run_ids: Collection[str], warn: Warn | None = None) -> dict[str, int]:
    """How many sub-calls of each run reached a model; runs without any are left out."""
    sql = "SELECT run_id, count(*) FROM {spans} WHERE kind = 'sub_call' GROUP BY run_id"
    with spans_of_runs(home, run_ids, warn) as spans:
        return dict(spans.rows(sql))


def temporary(
    con: DuckDBPyConnection, stack: ExitStack, name: str, sql: str, values: Sequence[Any] = ()
) -> None:
    """Make a table of what a query gives, which is dropped when the stack is left."""
    rows_of(con, f"CREATE TEMP TABLE {name} AS {sql}", values)
    stack.callback(lambda: rows_of(con, f"DROP TABLE {name}"))


def _stored(wanted: set[str] | None, now: Current) -> tuple[str, list[Any]]:
    """SQL and values for the stored runs that count: the wanted ones, less those read from their spools."""
    if wanted is None:
        values, operator = list(now.spools), "NOT IN"
    else:
        values, operator = sorted(wanted.difference(now.spools)), "IN"
    if not values:
        return ("TRUE" if wanted is None else "FALSE"), []
    if len(values) > _FEW:
        return f"run_id {operator} (SELECT unnest(?::VARCHAR[]))", [values]
    return f"run_id {operator} ({', '.join('?' * len(values))})", values
