"""Taking closed runs from their spools into the store: each run whole, in one transaction, exactly once.

A run is closed when its last record says so or when nobody holds its liveness lock. Spools are kept: they are
the truth, recognised by name and size, so that thousands of old ones cost one directory listing and one
query.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_core.errors import RecordError
from traces import store, user_log
from traces.folding import Fold, spool_text
from traces.home import Home, is_run_id
from traces.locks import FileLock, is_held
from traces.migrations import MIGRATIONS, schema_version
from traces.spool import SpoolReader, has_final_record
from traces.summing import summarise

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_Step = Callable[[Home, "DuckDBPyConnection", str], None]
_FLUSH_CHARS = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class IngestReport:
    """`runs` that were taken in now; `notices`, one sentence each, about what could not be."""

    runs: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(slots=True)
class Survey:
    """How the spools stand to the store: run ids by what has to be done with them."""

    closed: list[str] = field(default_factory=list)  # to be taken in
    open: list[str] = field(default_factory=list)  # their process lives
    deleted: list[str] = field(default_factory=list)  # a person deleted them, but rows or files are left

    @property
    def settled(self) -> bool:
        """Whether the store needs no writing."""
        return not self.closed and not self.deleted

    @property
    def readable(self) -> list[str]:
        """Runs whose spool must be read because the store does not hold them."""
        return sorted(self.closed + self.open)


def ingest(home: Home, *, patience: float | None = None) -> IngestReport:
    """Take all closed runs in, waiting at most `patience` seconds (5) for a store that others use.

    What cannot be taken in now stays in the spools and is named in the notices. Raises RecordError when the
    store is unreadable or newer than this program.
    """
    deadline = store.deadline_in(patience)
    try:
        with store.reader(home, deadline) as con:
            found = survey(home, con)
            if found.settled and is_current(con):
                return IngestReport()
        return take_in_all(home, deadline)
    except store.StoreBusy as busy:
        return IngestReport(notices=(f"{busy} Closed runs stay in their spools and are taken in later.",))


def take_in_all(home: Home, deadline: float) -> IngestReport:
    """`ingest` without looking first. Raises StoreBusy when the lock or the store is not free in time."""
    with ingest_lock(home, deadline), store.writer(home.store, deadline) as con:
        return fill(home, con)


@contextmanager
def ingest_lock(home: Home, deadline: float) -> Iterator[None]:
    """Be the only process that writes the store. Raises StoreBusy when that cannot be had in time."""
    lock = FileLock(home.ingest_lock)
    with (
        store.GATE
    ):  # always before the lock: two threads that took them in different order would wait in vain
        try:
            if not lock.acquire(deadline):
                raise store.StoreBusy("Another process has been writing the store for several seconds.")
        except OSError as error:
            raise store.StoreBusy(
                f"The home folder {home.root} cannot be written ({error.strerror})."
            ) from error
        try:
            yield
        finally:
            lock.release()


def is_current(con: DuckDBPyConnection | None) -> bool:
    """Whether the schema is the one this program writes (also when there is no store yet)."""
    return con is None or schema_version(con) == max(MIGRATIONS)


def survey(home: Home, con: DuckDBPyConnection | None) -> Survey:
    """Compare the spools with the store (None: no store yet). Raises RecordError for a newer schema."""
    stored: dict[str, int] = {}
    if con is not None and schema_version(con) > 0:
        stored = dict(store.rows_of(con, "SELECT run_id, bytes FROM spool_file"))
    deleted = user_log.deleted_runs(home)
    found = Survey(deleted=sorted(deleted & stored.keys()))
    for run_id, size in spools(home):
        if run_id in deleted:
            if run_id not in stored:
                found.deleted.append(run_id)
        elif stored.get(run_id) != size:
            (found.open if is_open(home, run_id) else found.closed).append(run_id)
    found.closed.sort()
    found.open.sort()
    return found


def spools(home: Home) -> Iterator[tuple[str, int]]:
    """Run id and size of every spool file."""
    try:
        entries = list(os.scandir(home.spool))
    except FileNotFoundError:
        return
    for entry in entries:
        run_id, dot, ending = entry.name.rpartition(".")
        if dot and ending == "jsonl" and is_run_id(run_id):
            with suppress(FileNotFoundError):  # deleted since the listing
                yield run_id, entry.stat().st_size


def is_open(home: Home, run_id: str) -> bool:
    """Whether the run's process lives and has not closed its record."""
    return is_held(home.liveness_lock(run_id)) and not has_final_record(home.spool_file(run_id))


def fill(home: Home, con: DuckDBPyConnection) -> IngestReport:
    """Bring a writable store up to date with spools and deletions."""
    found = survey(home, con)
    taken: list[str] = []
    notices: list[str] = []
    try:
        for run_id in found.deleted:
            _attempt(_forget, home, con, run_id, notices)
        for run_id in found.closed:
            if _attempt(_take_in, home, con, run_id, notices):
                taken.append(run_id)
    except store.StoreUnwritable as full:  # it refuses the others as well
        notices.append(str(full))
    return IngestReport(tuple(taken), tuple(notices))


def _attempt(step: _Step, home: Home, con: DuckDBPyConnection, run_id: str, notices: list[str]) -> bool:
    """One bad spool must not keep the others out. Raises StoreUnwritable."""
    try:
        step(home, con, run_id)
    except store.StoreUnwritable:
        raise
    except RecordError as error:
        notices.append(str(error))
    except OSError as error:
        notices.append(f"The spool of {run_id} cannot be used: {error.strerror or error}.")
    else:
        return True
    return False


def _take_in(home: Home, con: DuckDBPyConnection, run_id: str) -> None:
    with store.transaction(con):
        if store.rows_of(con, "SELECT 1 FROM spool_file WHERE run_id = ?", [run_id]):
            store.erase(con, run_id)  # the file changed since: it was not closed after all
        path = home.spool_file(run_id)
        fold, size = _append_payloads(con, run_id, path)
        rows, problems = fold.span_rows(alive=False)
        summary = summarise(
            fold, rows, problems, alive=False, text=lambda sha256: spool_text(path, fold, sha256)
        )
        store.append_spans(con, rows)
        store.append_events(con, run_id, fold.events)
        con.execute("INSERT INTO spool_file VALUES (?, ?, ?)", [path.name, run_id, size]).fetchall()
        store.append_run(con, summary, fold.header)
    # its lock file is of no more use: the run is closed and its id is never used again
    with suppress(OSError):
        home.liveness_lock(run_id).unlink(missing_ok=True)


def _append_payloads(con: DuckDBPyConnection, run_id: str, path: Path) -> tuple[Fold, int]:
    """Read the whole spool, storing payloads on the way; the number of bytes read comes back too."""
    fold, reader, waiting = Fold(run_id), SpoolReader(path), 0
    with con.appender("payload") as out:
        for line in reader.read(final=True):
            text = fold.feed(line)
            if text is None or line.record is None:
                continue
            sha256 = line.record["sha256"]
            out.append_row(run_id, sha256, fold.payloads[sha256].chars, text)
            waiting += len(text)
            if waiting > _FLUSH_CHARS:
                out.flush()
                waiting = 0
    return fold, reader.offset


def _forget(home: Home, con: DuckDBPyConnection, run_id: str) -> None:
    """Finish a deletion: rows first, so that an interruption leaves a spool without rows."""
    with store.transaction(con):
        store.erase(con, run_id)
    home.spool_file(run_id).unlink(missing_ok=True)
    home.liveness_lock(run_id).unlink(missing_ok=True)
