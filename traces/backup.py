"""A backup: a folder that is a home of its own, with the store copied through SQL and every spool.

Made under the ingest lock, so rows and spools fit each other, in a folder beside the place it is to have; it
gets its name when it has been opened again and found equal.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlm_core.errors import InputError, RecordError
from traces import check_log, diagnosis_log, ingest, store
from traces.home import Home

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Tell = Callable[[str], None]  # told, in words, how far the work is
_TOLD: Final = 500  # spools between two words
_TABLES: Final = (*store.TABLES, "meta", "migration")


@dataclass(slots=True)
class Backup:
    """What a backup holds. `rows` by table; `running` are runs recorded up to the moment of the copy."""

    path: Path
    rows: dict[str, int] = field(default_factory=dict)
    spools: int = 0
    bytes: int = 0
    running: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def backup(home: Home, target: Path, tell: Tell = lambda _: None) -> Backup:
    """Copy store, spools and user log into a new folder `target`, and compare the copy with the original.

    Diagnoses are in it, corpora and settings are not. Raises InputError when the target exists, lies inside
    the home or has no folder to stand in; RecordError when it cannot be written or is not equal; StoreBusy.
    """
    target = target.expanduser().absolute()
    _refuse_place(home, target)
    try:
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-incomplete-", dir=target.parent))
    except OSError as error:
        raise RecordError(
            f"A backup cannot be made in {target.parent}: {error.strerror or error}."
        ) from error
    try:
        made = _fill(home, Home(partial), tell)
        if target.exists():  # made by somebody else meanwhile
            raise InputError(_EXISTS.format(target))
        partial.rename(target)
    except OSError as error:
        raise RecordError(f"The backup could not be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    made.path = target
    return made


_EXISTS: Final = "{} is there already; a backup never overwrites anything. Name a new folder."


def _refuse_place(home: Home, target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise InputError(_EXISTS.format(target))
    if not target.parent.is_dir():
        raise InputError(f"There is no folder {target.parent} to put the backup in.")
    if target.resolve().is_relative_to(home.root.resolve()):
        raise InputError(f"{target} lies inside the home folder; a backup belongs outside of it.")


def _fill(home: Home, copy: Home, tell: Tell) -> Backup:
    copy.create()
    made = Backup(copy.root)
    deadline = store.deadline_in()
    with ingest.ingest_lock(home, deadline):
        # the log first: a run that is deleted from now on is in the copy whole, or as deleted
        with suppress(FileNotFoundError):
            made.bytes += _copy_lines(home.user_log, copy.user_log)
        made.bytes += _copy_logs(diagnosis_log.folder(home), diagnosis_log.folder(copy))
        made.bytes += _copy_logs(check_log.folder(home), check_log.folder(copy))
        with store.writer(home.store, deadline) as con:
            made.notices = ingest.fill(home, con).notices
            tell("copying the store")
            before = _fingerprint(con)
            _copy_store(con, copy.store)
        _copy_spools(home, made, copy, tell)
    tell("comparing the copy")
    with store.reader(copy, store.deadline_in()) as con:
        assert con is not None
        if _fingerprint(con) != before:
            raise RecordError("The copy of the store is not equal to the store; there is no backup.")
        _compare_spools(con, copy)
    made.rows = {table: count for table, (count, _) in before.items()}
    made.bytes += copy.store.stat().st_size
    return made


def _copy_store(con: DuckDBPyConnection, target: Path) -> None:
    quoted = str(target).replace("'", "''")
    (source,) = store.rows_of(con, "SELECT current_database()")[0]
    name = '"' + source.replace('"', '""') + '"'
    store.rows_of(con, f"ATTACH '{quoted}' AS backup_copy (STORAGE_VERSION 'v1.5.0')")
    try:
        store.rows_of(con, f"COPY FROM DATABASE {name} TO backup_copy")
    finally:
        store.rows_of(con, "DETACH backup_copy")
    target.chmod(0o600)


def _fingerprint(con: DuckDBPyConnection) -> dict[str, tuple[Any, ...]]:
    """Number of rows and a hash over all of them, by table."""
    sql = "SELECT count(*), bit_xor(hash(t)) FROM {} t"
    return {table: store.rows_of(con, sql.format(table))[0] for table in _TABLES}


def _copy_spools(home: Home, made: Backup, copy: Home, tell: Tell) -> None:
    """Closed spools as they are; of a run that goes on, the lines that are complete."""
    running = []
    for number, (run_id, _) in enumerate(sorted(ingest.spools(home))):
        if number % _TOLD == 0:
            tell(f"copying spools: {number:,} so far")
        with suppress(FileNotFoundError):  # deleted since the listing
            if ingest.is_open(home, run_id):
                made.bytes += _copy_lines(home.spool_file(run_id), copy.spool_file(run_id))
                running.append(run_id)
            else:
                shutil.copyfile(home.spool_file(run_id), copy.spool_file(run_id))
                made.bytes += copy.spool_file(run_id).stat().st_size
            copy.spool_file(run_id).chmod(0o600)
            made.spools += 1
    made.running = tuple(running)


def _copy_logs(source: Path, target: Path) -> int:
    """The logs of a folder, of those that go on the lines that are complete; the number of bytes."""
    logs = sorted(source.glob("*.jsonl"))
    if logs:
        target.mkdir(mode=0o700)
    copied = 0
    for log in logs:
        with suppress(FileNotFoundError):  # deleted since the listing
            copied += _copy_lines(log, target / log.name)
    return copied


def _copy_lines(source: Path, target: Path) -> int:
    """Copy a file that may grow meanwhile up to its last complete line; the number of bytes."""
    shutil.copyfile(source, target)
    target.chmod(0o600)
    with target.open("rb+") as file:
        end = file.seek(0, 2)
        while end > 0:
            begin = max(0, end - 65536)
            file.seek(begin)
            newline = file.read(end - begin).rfind(b"\n")
            end = begin if newline < 0 else begin + newline + 1
            if newline >= 0:
                break
        file.truncate(end)
    return end


def _compare_spools(con: DuckDBPyConnection, copy: Home) -> None:
    """Every spool that the store took in must have been copied in that size, unless it was gone before."""
    sizes = dict(ingest.spools(copy))
    for run_id, size in store.rows_of(con, "SELECT run_id, bytes FROM spool_file"):
        if sizes.get(run_id, size) != size:
            raise RecordError(f"The spool of {run_id} changed while it was copied; there is no backup.")
