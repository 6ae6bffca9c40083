"""Building the store anew, and deleting runs for good."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from rlm_core.errors import InputError, RecordError
from traces import ingest, store, user_log
from traces.diagnosis_log import delete_diagnoses
from traces.home import Home
from traces.locks import FileLock, pauses
from traces.migrations import schema_version
from traces.runs import current
from traces.spool import SpoolReader

EXAMPLE: Final = "rlm.example"  # a fact of the runs that come with the program
REBUILDING: Final = "traces.rebuild.duckdb"  # the new store while it is built beside the old one


def rebuild(home: Home, *, patience: float | None = None) -> ingest.IngestReport:
    """Write a new store from the spools beside the old one and put it in its place.

    Readers and other ingesters go on with the old one until the swap. Raises RecordError when the store is
    newer than this program, when it holds runs whose spools are gone (they would be lost), when it stays in
    use, or when the home folder cannot be written.
    """
    alone = FileLock(home.rebuild_lock)
    try:
        free = alone.try_acquire()
    except OSError as error:
        raise RecordError(f"The home folder {home.root} cannot be written ({error.strerror}).") from None
    if not free:
        raise RecordError("Another process is rebuilding the store.")
    try:
        _refuse_loss(home, store.deadline_in(patience))
        fresh = home.root / REBUILDING
        store.remove(fresh)
        with store.writer(fresh, store.deadline_in(patience)) as con:
            first = ingest.fill(home, con)
        # closed or deleted since: the last step is short and under the lock
        deadline = store.deadline_in(patience)
        with ingest.ingest_lock(home, deadline):
            with store.writer(fresh, deadline) as con:
                last = ingest.fill(home, con)
                con.checkpoint()
            _swap(home, fresh, deadline)
        return ingest.IngestReport(first.runs + last.runs, last.notices)
    except store.StoreUnwritable:
        store.remove(home.root / REBUILDING)  # on a full disk nothing useless stays
        raise
    finally:
        alone.release()


def _refuse_loss(home: Home, deadline: float) -> None:
    try:
        with store.reader(home, deadline) as con:
            if con is None or schema_version(con) == 0:
                return
            stored = [
                run_id for (run_id,) in store.rows_of(con, "SELECT run_id FROM spool_file ORDER BY run_id")
            ]
    except store.StoreUnreadable:
        return  # nothing can be learnt from it; it is kept aside
    deleted = user_log.deleted_runs(home)
    gone = [run_id for run_id in stored if run_id not in deleted and not home.spool_file(run_id).exists()]
    if gone:
        named = ", ".join(gone[:3]) + (" ..." if len(gone) > 3 else "")
        raise RecordError(
            f"The spools of {len(gone)} stored runs are gone ({named}); "
            "a rebuild would lose these runs. Put the files back, or delete the runs first."
        )


def _swap(home: Home, fresh: Path, deadline: float) -> None:
    """Put the new file in the old one's place when nobody has that open for writing. Raises StoreBusy."""
    try:
        with store.writer(home.store, deadline):
            pass  # it is ours alone, and closing it leaves no log that would be replayed into the new file
    except store.StoreUnreadable:
        os.replace(home.store, home.root / "traces.unreadable.duckdb")
        store.remove(home.store)
    for pause in pauses(deadline):
        try:
            os.replace(fresh, home.store)
            return
        except PermissionError:  # Windows, while a reader has it open
            time.sleep(pause)
    raise store.StoreBusy("The store is being read by another program and could not be replaced.")


def delete_run(home: Home, run_id: str) -> ingest.IngestReport:
    """`delete_runs` for one run."""
    return delete_runs(home, [run_id])


def delete_runs(home: Home, run_ids: Iterable[str]) -> ingest.IngestReport:
    """Delete closed runs for good: they never come back, neither by an ingest nor by a rebuild.

    All deletions are noted first, and nothing when one of them is refused. Rows and spools go next; what is
    interrupted there, or finds the store in use (see the notices), is finished by the next ingest, and no
    reader shows the runs meanwhile. Freed space inside the store file is reused; a rebuild leaves no trace.
    Raises InputError for an unknown or running run, RecordError when nothing can be written.
    """
    wanted = list(dict.fromkeys(run_ids))
    for run_id, open_ in _states(home, wanted).items():
        if open_:
            raise InputError(f"The run {run_id} is still going on; it can be deleted when it has ended.")
    for run_id in wanted:
        user_log.append(home, user_log.DELETED, {"run_id": run_id})
    delete_diagnoses(home, wanted)  # they hold texts of the run
    return ingest.ingest(home)


def _states(home: Home, run_ids: Sequence[str]) -> dict[str, bool]:
    """Whether each run is going on. Raises InputError for one that does not exist."""
    with current(home) as now:
        stored = set(store.run_ids(now.con, "")) if now.con is not None else set()
    states = {}
    for run_id in run_ids:
        if run_id not in now.spools and run_id not in stored:
            raise InputError(f"There is no run {run_id[:100]!r}.")
        states[run_id] = run_id in now.spools and ingest.is_open(home, run_id)
    return states


def is_example(home: Home, run_id: str) -> bool:
    """Whether the record of a run says that it came with the program."""
    try:
        first = next(SpoolReader(home.spool_file(run_id)).read(), None)
    except (OSError, RecordError):
        return False
    facts = first.record.get("facts") if first is not None and first.record is not None else None
    return isinstance(facts, dict) and facts.get(EXAMPLE) is True


def spool_bytes(home: Home, run_id: str) -> int:
    """What the spool of a run takes on disk, 0 when there is none."""
    try:
        return home.spool_file(run_id).stat().st_size
    except FileNotFoundError:
        return 0
