"""Taking closed runs from their spools into the store: each run whole, exactly once.

Small runs share a transaction: what one costs is mostly that of its transaction and of the tables it opens.

A run is closed when its last record says so or when nobody holds its liveness lock. Spools are kept: they are
the truth, recognised by name and size, so that thousands of old ones cost one directory listing and one
query.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rlm_core.errors import RecordError
from traces import store, user_log
from traces.folding import Event, Fold, Header, spool_text
from traces.home import Home, is_run_id
from traces.locks import FileLock, is_held
from traces.migrations import MIGRATIONS, schema_version
from traces.rows import RunSummary, SpanRow
from traces.spool import SpoolReader, has_final_record
from traces.summing import summarise

if TYPE_CHECKING:
    from _duckdb import Appender
    from duckdb import DuckDBPyConnection

_Step = Callable[[Home, "DuckDBPyConnection", Sequence[str]], None]
_FLUSH_CHARS = 16 * 1024 * 1024
_TOGETHER = 200  # runs in one transaction
_TOGETHER_BYTES = 8 * 1024 * 1024  # of their spools: a larger one has a transaction to itself


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
            _attempt(_forget, home, con, [run_id], notices)
        for group in _groups(home, found.closed):
            _take(home, con, group, taken, notices)
    except store.StoreUnwritable as full:  # it refuses the others as well
        notices.append(str(full))
    return IngestReport(tuple(taken), tuple(notices))


def _groups(home: Home, run_ids: Sequence[str]) -> Iterator[list[str]]:
    """Runs that share a transaction: as many as are bounded in number and bytes."""
    group: list[str] = []
    size = 0
    for run_id in run_ids:
        try:
            more = home.spool_file(run_id).stat().st_size
        except OSError:  # whoever reads it says what is wrong
            more = 0
        if group and (len(group) >= _TOGETHER or size + more > _TOGETHER_BYTES):
            yield group
            group, size = [], 0
        group.append(run_id)
        size += more
    if group:
        yield group


def _take(
    home: Home, con: DuckDBPyConnection, group: Sequence[str], taken: list[str], notices: list[str]
) -> None:
    """Take runs in together, and one by one where one of them cannot be. Raises StoreUnwritable."""
    if len(group) > 1 and _attempt(_take_in, home, con, group, []):
        taken.extend(group)
        return
    for run_id in group:
        if _attempt(_take_in, home, con, [run_id], notices):
            taken.append(run_id)


def _attempt(
    step: _Step, home: Home, con: DuckDBPyConnection, run_ids: Sequence[str], notices: list[str]
) -> bool:
    """One bad spool must not keep the others out. Raises StoreUnwritable."""
    try:
        step(home, con, run_ids)
    except store.StoreUnwritable:
        raise
    except RecordError as error:
        notices.append(str(error))
    except OSError as error:
        notices.append(f"The spool of {run_ids[0]} cannot be used: {error.strerror or error}.")
    else:
        return True
    return False


def _take_in(home: Home, con: DuckDBPyConnection, run_ids: Sequence[str]) -> None:
    with store.transaction(con):
        for (run_id,) in store.rows_of(
            con, "SELECT run_id FROM spool_file WHERE list_contains(?, run_id)", [list(run_ids)]
        ):
            store.erase(con, run_id)  # the file changed since: it was not closed after all
        with con.appender("payload") as out:
            read = [_read(home.spool_file(run_id), run_id, out) for run_id in run_ids]
        store.append_spans(con, [row for run in read for row in run.rows])
        store.append_events(con, [(run.summary.run_id, event) for run in read for event in run.events])
        with con.appender("spool_file") as files:
            for run in read:
                files.append_row(f"{run.summary.run_id}.jsonl", run.summary.run_id, run.size)
        store.append_runs(con, [(run.summary, run.header) for run in read])
    # their lock files are of no more use: the runs are closed and their ids are never used again
    for run_id in run_ids:
        with suppress(OSError):
            home.liveness_lock(run_id).unlink(missing_ok=True)


class _Read(NamedTuple):
    """What of a whole spool goes into the store beside the payloads; `size` in bytes."""

    summary: RunSummary
    header: Header
    rows: tuple[SpanRow, ...]
    events: Sequence[Event]
    size: int


def _read(path: Path, run_id: str, out: Appender) -> _Read:
    """Read a spool, storing payloads on the way."""
    fold, reader, waiting = Fold(run_id), SpoolReader(path), 0
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
    rows, problems = fold.span_rows(alive=False)
    summary = summarise(fold, rows, problems, alive=False, text=lambda sha256: spool_text(path, fold, sha256))
    return _Read(summary, fold.header, rows, fold.events, reader.offset)


def _forget(home: Home, con: DuckDBPyConnection, run_ids: Sequence[str]) -> None:
    """Finish deletions: rows first, so that an interruption leaves spools without rows."""
    with store.transaction(con):
        for run_id in run_ids:
            store.erase(con, run_id)
    for run_id in run_ids:
        home.spool_file(run_id).unlink(missing_ok=True)
        home.liveness_lock(run_id).unlink(missing_ok=True)
