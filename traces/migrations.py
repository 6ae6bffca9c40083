"""Numbered steps that bring a store's schema up to date, each applied once and in one transaction.

Steps are never changed once released; a new need is a new step. Throwing the file away and rebuilding it from
the spools is always possible too. Big tables carry no index: runs are appended whole, so min-max statistics
on `run_id` are enough, and an index would be loaded at every opening.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rlm_core.errors import RecordError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Step = Callable[["DuckDBPyConnection"], None]

_FIRST_SCHEMA = (
    "CREATE TABLE meta (key VARCHAR, value VARCHAR)",
    """CREATE TABLE spool_file (
        name VARCHAR, run_id VARCHAR, bytes BIGINT)""",
    """CREATE TABLE run (
        run_id VARCHAR, question VARCHAR, status VARCHAR, answer VARCHAR, stop_reason VARCHAR, forced BOOLEAN,
        root_model VARCHAR, sub_model VARCHAR, sub_calls BIGINT, failed_sub_calls BIGINT, iterations BIGINT,
        cost_usd DECIMAL(38,18), cost_status VARCHAR, known_usd DECIMAL(38,18),
        tok_input HUGEINT, tok_output HUGEINT, started VARCHAR, started_ns BIGINT, seconds DOUBLE,
        sandbox VARCHAR, corpus_id VARCHAR, demo BOOLEAN, complete BOOLEAN, problems BIGINT, spans BIGINT,
        trace_id VARCHAR, engine_version VARCHAR, pid BIGINT, host VARCHAR, facts JSON)""",
    """CREATE TABLE span (
        run_id VARCHAR, span_id VARCHAR, parent_id VARCHAR, seq BIGINT, kind VARCHAR, name VARCHAR,
        role VARCHAR, depth BIGINT, status VARCHAR, start_ns BIGINT, end_ns BIGINT,
        model VARCHAR, model_returned VARCHAR, tok_input BIGINT, tok_output BIGINT,
        cost_usd DECIMAL(38,18), cost_status VARCHAR, iteration BIGINT, cell BIGINT, call_index BIGINT,
        phase VARCHAR, preview VARCHAR, orphan BOOLEAN, error_type VARCHAR, response_chars BIGINT,
        cached_read BIGINT, cache_write BIGINT,
        class_input BIGINT, class_cached_read BIGINT, class_cache_write BIGINT, class_output BIGINT,
        usd_input DECIMAL(38,18), usd_cached_read DECIMAL(38,18),
        usd_cache_write DECIMAL(38,18), usd_output DECIMAL(38,18), attrs JSON)""",
    """CREATE TABLE span_event (
        run_id VARCHAR, span_id VARCHAR, seq BIGINT, name VARCHAR, time_ns BIGINT, attrs JSON)""",
    "CREATE TABLE payload (run_id VARCHAR, sha256 VARCHAR, chars BIGINT, text VARCHAR)",
    "INSERT INTO meta VALUES ('format', 'rlmscope-store')",
)


def _create_tables(con: DuckDBPyConnection) -> None:
    for statement in _FIRST_SCHEMA:
        con.execute(statement).fetchall()


def _add_replay_of(con: DuckDBPyConnection) -> None:
    """What no run of a store without this column is: the replay of another one."""
    con.execute("ALTER TABLE run ADD COLUMN replay_of VARCHAR").fetchall()


def _add_ways(con: DuckDBPyConnection) -> None:
    """What runs of a store without these columns were: begun anew, by the one strategy there was."""
    con.execute("ALTER TABLE run ADD COLUMN resumed_from VARCHAR").fetchall()
    con.execute("ALTER TABLE run ADD COLUMN strategy VARCHAR").fetchall()


def _add_imports(con: DuckDBPyConnection) -> None:
    """What no run or span of a store without these columns is: read from the record of another engine."""
    con.execute("ALTER TABLE run ADD COLUMN imported_from VARCHAR").fetchall()
    con.execute("ALTER TABLE span ADD COLUMN trust VARCHAR").fetchall()


def _add_untold_calls(con: DuckDBPyConnection) -> None:
    """What no run of a store without this column has: calls whose tokens nobody told."""
    con.execute("ALTER TABLE run ADD COLUMN untold_calls BIGINT DEFAULT 0").fetchall()


def _add_what_imports_say(con: DuckDBPyConnection) -> None:
    """The file that a run was read from, and whether its record would say that there were sub-calls."""
    con.execute("ALTER TABLE run ADD COLUMN imported_file VARCHAR").fetchall()
    con.execute("ALTER TABLE run ADD COLUMN untold_sub_calls BOOLEAN DEFAULT false").fetchall()
    con.execute(
        """UPDATE run SET imported_file = facts ->> '$."rlm.import.file"' WHERE imported_from IS NOT NULL"""
    ).fetchall()
    con.execute(
        """UPDATE run SET untold_sub_calls = true
        WHERE imported_from IS NOT NULL AND imported_from <> 'rlmscope' AND sub_calls = 0
        AND (imported_from NOT IN ('rlms', 'fast-rlm', 'predict-rlm')
            OR contains(facts ->> '$."rlm.import.missing"', 'the log holds none of these calls')
            OR contains(facts ->> '$."rlm.import.missing"', 'recorded none of these calls'))"""
    ).fetchall()


def _add_refused_calls(con: DuckDBPyConnection) -> None:
    """Sub-calls that a limit refused were counted among those that were made, and among the failed ones."""
    con.execute("ALTER TABLE run ADD COLUMN refused_sub_calls BIGINT DEFAULT 0").fetchall()
    con.execute(
        """UPDATE run SET refused_sub_calls = r.calls, sub_calls = sub_calls - r.calls,
            failed_sub_calls = failed_sub_calls - r.calls
        FROM (SELECT run_id, count(*) AS calls FROM span s WHERE kind = 'sub_call' AND status = 'error'
            AND error_type IN ('budget', 'depth') AND cost_status = 'free' AND tok_input IS NULL
            AND trust IS NULL AND NOT EXISTS (SELECT 1 FROM span a WHERE a.kind = 'attempt'
                AND a.run_id = s.run_id AND a.parent_id = s.span_id)
            GROUP BY run_id) r
        WHERE run.run_id = r.run_id"""
    ).fetchall()


def _read_imports_again(con: DuckDBPyConnection) -> None:
    """What is said of times and tokens of runs of other engines has changed: the next ingest takes them in
    again, as every spool whose size is not the one that was read. Without its spool a run stays.
    """
    con.execute(
        """UPDATE spool_file SET bytes = -1
        WHERE run_id IN (SELECT run_id FROM run WHERE imported_from IS NOT NULL)"""
    ).fetchall()


#: Number -> (name, step). Numbers start at 1 and have no gaps.
MIGRATIONS: Final[dict[int, tuple[str, Step]]] = {
    1: ("first schema", _create_tables),
    2: ("runs that play another one again", _add_replay_of),
    3: ("runs that continue a dead one, and strategies", _add_ways),
    4: ("runs of other engines, and how far their numbers can be trusted", _add_imports),
    5: ("calls of other engines without tokens", _add_untold_calls),
    6: ("files of other engines, and whether they tell of sub-calls", _add_what_imports_say),
    7: ("sub-calls that a limit refused", _add_refused_calls),
    8: ("runs of other engines are read again", _read_imports_again),
}


def schema_version(con: DuckDBPyConnection) -> int:
    """The number of the last applied step, 0 for an empty file.

    Raises RecordError when the file holds other tables than ours, or a schema newer than this program.
    """
    ours = "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
    tables = {name for (name,) in con.execute(ours).fetchall()}
    if not tables:
        return 0
    if "migration" not in tables:
        raise RecordError("The store file is a DuckDB database of something else; it is left alone.")
    (number,) = con.execute("SELECT max(number) FROM migration").fetchall()[0]
    newest = max(MIGRATIONS)
    if (number or 0) > newest:
        raise RecordError(
            f"The store was written by a newer version (schema {number}, this program knows {newest}); "
            "it is left alone. Update the program, or use another home folder."
        )
    return number or 0


def migrate(con: DuckDBPyConnection) -> None:
    """Apply the missing steps. Raises RecordError as `schema_version` does."""
    for number in range(schema_version(con) + 1, max(MIGRATIONS) + 1):
        name, step = MIGRATIONS[number]
        con.begin()
        try:
            con.execute("CREATE TABLE IF NOT EXISTS migration (number INTEGER, name VARCHAR)").fetchall()
            step(con)
            con.execute("INSERT INTO migration VALUES (?, ?)", [number, name]).fetchall()
        except BaseException:
            con.rollback()
            raise
        con.commit()
