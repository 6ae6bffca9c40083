"""The DuckDB file: short connections, one at a time in a process, and rows in and out of its tables.

The file is an index over the spools. A process that has it open must never touch it with Python file I/O:
closing any other descriptor of it would silently drop the lock that DuckDB holds.
"""

from __future__ import annotations

import gc
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb
from duckdb import DuckDBPyConnection

from rlm_core import semconv as sc
from rlm_core.errors import RecordError
from traces.facts import class_costs, class_tokens, token_counts
from traces.folding import Event, Header
from traces.home import Home
from traces.locks import FileLock, pauses
from traces.migrations import migrate
from traces.rows import RunSummary, SpanRow, ended_attempts, so_far

#: Serialises every use of DuckDB in this process: it refuses a read-only and a writing connection side by
#: side.
GATE = threading.RLock()
PATIENCE = 5.0  # seconds to wait for a store that others use
_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "storage_compatibility_version": "v1.5.0",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
_SHUT: Final[dict[str, str | bool | int | float | list[str]]] = {"python_enable_replacements": False}
#: Set once the store is attached. Without external access alone DuckDB still opens the files of what is
#: attached, and closing one of those would drop our lock.
_SHUT_LAST: Final = (
    "enable_external_access = false",
    "disabled_filesystems = 'LocalFileSystem'",
    "lock_configuration = true",
)
TABLES: Final = ("run", "span", "span_event", "payload", "spool_file")
_SUMMARY: Final = tuple(name for name in RunSummary.__slots__ if name != "tokens")
_SPAN: Final = tuple(name for name in SpanRow._fields if name not in ("tokens", "attributes", "so_far_usd"))


_TOKENS: Final = SpanRow._fields.index("tokens")
_NOT_FETCHED: Final = ("run_id", "cost_usd")  # known already; as text: DuckDB converts decimals slowly
_READ_SPANS: Final = f"""SELECT {", ".join("NULL" if name in _NOT_FETCHED else name for name in _SPAN)},
    tok_input, tok_output, cost_usd::VARCHAR FROM span WHERE run_id = ? ORDER BY seq"""
_span_values = attrgetter(*_SPAN)
_T = TypeVar("_T")
_ALIAS: Final = "store_"  # and a number: what a store is called inside the instance that reads
_attached: list[Path] = []  # stores that this process reads at the moment
_kept: DuckDBPyConnection | None = None
_abandoned: DuckDBPyConnection | None = None  # never closed: that would wait for threads that are not there


class StoreBusy(RecordError):
    """The store cannot be had now: another program has it open for longer than we wait."""


class StoreUnwritable(StoreBusy):
    """The disk is full, or something else refuses what DuckDB writes: it may well work later."""


class StoreUnreadable(RecordError):
    """The file is damaged, or no store that this version of DuckDB can read."""


def deadline_in(patience: float | None = None) -> float:
    """The moment (of `time.monotonic`) until which to wait: in `patience` seconds, else in `PATIENCE`."""
    return time.monotonic() + (PATIENCE if patience is None else patience)


@contextmanager
def reader(home: Home, deadline: float) -> Iterator[DuckDBPyConnection | None]:
    """A read-only connection for a moment, or None when there is no store yet.

    Waits for writers until `deadline` (of `time.monotonic`); raises StoreBusy after it, StoreUnreadable for
    a damaged file.
    """
    with GATE, _ctrl_c():
        con = _instance(home).cursor()
        try:
            if home.store in _attached:  # a second opening would, when closed, drop the lock of the first
                con.execute(f"USE {_ALIAS}{_attached.index(home.store)}").fetchall()
                yield con
            else:
                with _attachment(con, home, deadline) as found:
                    yield con if found else None
        except duckdb.Error as error:
            raise _unusable(home.store, str(error)) from error
        finally:
            con.close()


@contextmanager
def _attachment(con: DuckDBPyConnection, home: Home, deadline: float) -> Iterator[bool]:
    """Attach the store of a home, for reading only; False when there is none."""
    alias = f"{_ALIAS}{len(_attached)}"
    quoted = str(home.store).replace("'", "''")

    def attach() -> bool:
        _let_ingesters_pass(home, deadline)
        if not home.store.exists():
            return False
        con.execute(f"ATTACH '{quoted}' AS {alias} (READ_ONLY)").fetchall()
        return True

    if not _patiently(attach, home.store, deadline):
        yield False
        return
    _attached.append(home.store)
    try:
        con.execute(f"USE {alias}").fetchall()
        yield True
    finally:
        _attached.pop()
        con.execute("USE memory").fetchall()
        con.execute(f"DETACH {alias}").fetchall()


def _instance(home: Home) -> DuckDBPyConnection:
    """The one DuckDB of this process that reads. It lives on, without a file: starting one takes 20 times as
    long as attaching a file to it. What does not fit its memory goes where it goes for the file itself."""
    global _kept
    if _kept is None:
        _kept = duckdb.connect(":memory:", config={**_CONFIG, "temp_directory": f"{home.store}.tmp"})
    return _kept


def _forget_instance() -> None:
    """In a forked child: the threads of the instance did not come along."""
    global _kept, _abandoned
    _kept, _abandoned = None, _kept
    _attached.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_instance)


@contextmanager
def writer(path: Path, deadline: float) -> Iterator[DuckDBPyConnection]:
    """A writing connection to an up-to-date schema, for use under the ingest lock. Raises like `reader`."""
    with GATE, _ctrl_c():
        if not path.exists():
            _make(path)
        con = _patiently(lambda: duckdb.connect(str(path), config=_CONFIG), path, deadline)
        with _closing(con, path):
            path.chmod(0o600)
            migrate(con)
            yield con


@contextmanager
def _ctrl_c() -> Iterator[None]:
    """DuckDB says of a query that Ctrl-C broke off that something went wrong; here it is what it was."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from error


def _make(path: Path) -> None:
    """Make an empty store, whole or not at all: half a file would pass for a damaged store."""
    fresh = path.with_name(path.name + ".new")
    remove(fresh)  # of one that was killed here
    try:
        con = _patiently(lambda: duckdb.connect(str(fresh), config=_CONFIG), fresh, 0.0)
        with _closing(con, fresh):
            migrate(con)
            con.checkpoint()
    except StoreUnwritable:
        remove(fresh)
        raise
    fresh.chmod(0o600)
    os.replace(fresh, path)


def remove(path: Path) -> None:
    """Delete a store file that nobody has open, and the log that DuckDB keeps beside it."""
    for file in (path, path.with_name(path.name + ".wal")):
        file.unlink(missing_ok=True)


@contextmanager
def _closing(con: DuckDBPyConnection, path: Path) -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise _unusable(path, str(error)) from error
    finally:
        con.close()


@contextmanager
def transaction(con: DuckDBPyConnection) -> Iterator[None]:
    """All or nothing. Raises RecordError when DuckDB refuses, StoreUnwritable when the disk does."""
    con.begin()
    try:
        yield
        con.commit()
    except BaseException as error:
        with suppress(duckdb.Error):
            con.rollback()
        if isinstance(error, duckdb.Error):
            raise _unwritten(str(error)) from error
        raise


@contextmanager
def shut_in(home: Home, deadline: float) -> Iterator[DuckDBPyConnection]:
    """A connection for questions in SQL of others: it reads the tables of the store (empty ones where there
    is none yet), and reaches no file, no network, no setting and no variable of Python. What does not fit its
    memory fails. Raises like `reader`.
    """
    with GATE, _ctrl_c(), duckdb.connect(":memory:", config=_CONFIG | _SHUT) as con:
        path = str(home.store).replace("'", "''")

        def attach() -> bool:
            _let_ingesters_pass(home, deadline)
            found = home.store.exists()
            if found:
                con.execute(f"ATTACH '{path}' AS store (READ_ONLY)").fetchall()
            return found

        if _patiently(attach, home.store, deadline):
            con.execute("USE store").fetchall()
        else:
            migrate(con)
        for setting in _SHUT_LAST:
            con.execute(f"SET {setting}").fetchall()
        yield con


@contextmanager
def in_memory() -> Iterator[DuckDBPyConnection]:
    """A store of nothing but memory, for questions about runs that are not in the file."""
    with GATE, duckdb.connect(":memory:", config=_CONFIG) as con:
        migrate(con)
        yield con


def _let_ingesters_pass(home: Home, deadline: float) -> None:
    """A waiting or working ingester holds the lock, so polling readers queue here instead of starving it."""
    gate = FileLock(home.ingest_lock)
    try:
        gate.acquire(deadline, shared=True)
    except OSError:
        return  # a home that cannot be written has no ingesters either
    gate.release()


def _patiently(attempt: Callable[[], _T], path: Path, deadline: float) -> _T:
    """The result of opening a file, tried until the deadline while others have it open."""
    refusal = ""
    for pause in pauses(deadline):
        try:
            return attempt()
        except duckdb.Error as error:
            refusal = str(error)
            if not _is_busy(refusal):
                raise _unusable(path, refusal) from error
        time.sleep(pause)
    holder = re.search(r"PID (\d+)", refusal)
    who = f"process {holder[1]}" if holder else "another program"
    raise StoreBusy(f"The store {path.name} is in use by {who}.")


def _is_busy(refusal: str) -> bool:
    words = ("Could not set lock", "Conflicting lock", "used by another process", "already attached")
    return any(word in refusal for word in words)


def _unusable(path: Path, why: str) -> RecordError:
    """What an error of DuckDB means; a full disk must not pass for a damaged file."""
    if _is_refusal_of_the_disk(why):
        return _unwritten(why)
    return StoreUnreadable(
        f"The store {path} cannot be read ({why.splitlines()[0][:200]}). Nothing is lost: "
        "`rlmscope ingest --rebuild` makes a new one from the spools."
    )


def _unwritten(why: str) -> RecordError:
    kind = StoreUnwritable if _is_refusal_of_the_disk(why) else RecordError
    return kind(f"The store cannot be written ({why.splitlines()[0][:200]}).")


def _is_refusal_of_the_disk(why: str) -> bool:
    return any(words in why for words in ("No space left", "Could not write", "Failed to commit"))


def rows_of(con: DuckDBPyConnection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a query; nothing stays open behind it (an open result owns the connection)."""
    return con.execute(sql, list(values)).fetchall()


def erase(con: DuckDBPyConnection, run_id: str) -> None:
    """Delete all rows of a run."""
    for table in TABLES:
        con.execute(f"DELETE FROM {table} WHERE run_id = ?", [run_id]).fetchall()


def append_spans(con: DuckDBPyConnection, rows: Iterable[SpanRow], table: str = "span") -> None:
    """Add span rows, to `span` or a table of its columns."""
    columns = [*_SPAN, "tok_input", "tok_output", *_CLASS_COLUMNS, "attrs"]
    with con.appender(table, columns=columns) as out:
        for row in rows:
            tokens: Mapping[str, int | None] = row.tokens or _NO_TOKENS
            classes = class_tokens(row.tokens, row.cached_read, row.cache_write)
            costs = class_costs(classes, row.cost_usd, row.attributes.get(sc.COST_PRICE))
            out.append_row(
                *_span_values(row),
                tokens["input"],
                tokens["output"],
                *classes.values(),
                *costs.values(),
                _json(row.attributes),
            )


_NO_TOKENS: Final[dict[str, int | None]] = {"input": None, "output": None}
_CLASS_COLUMNS: Final = (
    "class_input", "class_cached_read", "class_cache_write", "class_output",
    "usd_input", "usd_cached_read", "usd_cache_write", "usd_output",
)  # fmt: skip


def append_events(con: DuckDBPyConnection, events: Iterable[tuple[str, Event]]) -> None:
    """Add events, each with the id of its run."""
    with con.appender("span_event") as out:
        for run_id, event in events:
            out.append_row(
                run_id, event.span_id, event.seq, event.name, event.time_ns, _json(event.attributes)
            )


def append_runs(con: DuckDBPyConnection, runs: Iterable[tuple[RunSummary, Header]]) -> None:
    """Add the rows of runs, last of all their rows: readers ignore what has none."""
    columns = [*_SUMMARY, "tok_input", "tok_output", "pid", "host", "facts"]
    with con.appender("run", columns=columns) as out:
        for summary, header in runs:
            tokens = summary.tokens
            out.append_row(
                *(getattr(summary, name) for name in _SUMMARY),
                *(tokens["input"], tokens["output"]),
                *(header.pid, header.host, _json(header.facts)),
            )


def read_summaries(
    con: DuckDBPyConnection, limit: int | None = None, *, run_id: str | None = None, replays: bool = True
) -> list[RunSummary]:
    """Summaries of all stored runs or of one, newest first; without `replays` only runs that are none."""
    columns = ", ".join((*_SUMMARY, "tok_input", "tok_output"))
    fits = "($1 IS NULL OR run_id = $1)" + ("" if replays else " AND replay_of IS NULL")
    sql = f"SELECT {columns} FROM run WHERE {fits} ORDER BY started_ns DESC, run_id DESC"
    rows = rows_of(con, sql if limit is None else f"{sql} LIMIT {limit:d}", [run_id])
    return [_summary(row) for row in rows]


def run_ids(con: DuckDBPyConnection, prefix: str) -> list[str]:
    """Ids of stored runs that begin with a text."""
    return [
        run_id for (run_id,) in rows_of(con, "SELECT run_id FROM run WHERE starts_with(run_id, ?)", [prefix])
    ]


def _summary(row: tuple[Any, ...]) -> RunSummary:
    *fields, given, made = row
    return RunSummary(**dict(zip(_SUMMARY, fields, strict=True)), tokens=token_counts(given, made))


def read_spans(con: DuckDBPyConnection, run_id: str, attributes: Callable[[str], Any]) -> tuple[SpanRow, ...]:
    """All spans of a run in seq order; `attributes` makes the mapping of one span from its id."""
    spans = []
    with _nothing_collected():
        for row in rows_of(con, _READ_SPANS, [run_id]):
            given, made, usd = row[-3:]
            tokens = None if given is None else token_counts(given, made)
            amount = None if usd is None else Decimal(usd)
            parts = (
                run_id,
                *row[1:_TOKENS],
                tokens,
                amount,
                *row[_TOKENS + 1 : -3],
                attributes(row[1]),
                None,
            )
            spans.append(SpanRow._make(parts))
    known = {call: so_far(attempts) for call, attempts in ended_attempts(spans).items()}
    if not known:
        return tuple(spans)
    return tuple(span._replace(so_far_usd=known.get(span.span_id)) for span in spans)


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """No search for garbage meanwhile: among rows that are all kept it finds none, in a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
