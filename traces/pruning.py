"""What can go from a home: old runs, payloads that nothing cites, files that killed processes left behind.

First a plan that says what would go and why the rest stays, then its execution. Both may be done while runs
are recorded and read: only closed runs are touched, and only files of ours whose lock nobody holds.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rlm_core.staging import remove_stale
from rlm_core.telemetry import sha256_text
from traces import ingest, store, user_log
from traces.home import Home
from traces.locks import FileLock, is_held
from traces.rows import RunSummary
from traces.runs import Warn, current, list_runs
from traces.spool import decode, encode
from traces.upkeep import REBUILDING, delete_runs, is_example, spool_bytes

Tell = Callable[[str], None]  # told, in words, how far a long work is
_SETTLED: Final = 3600.0  # seconds: a temporary file without a lock that is older was left behind
_SWEEPING: Final = ".sweep-"
#: A payload is cited when its hash stands anywhere in its run: in attributes, or in a text that lists others.
_UNCITED: Final = """
    WITH texts AS (
        SELECT run_id, attrs::VARCHAR AS body FROM span UNION ALL
        SELECT run_id, attrs::VARCHAR FROM span_event UNION ALL
        SELECT run_id, facts::VARCHAR FROM run UNION ALL
        SELECT run_id, text FROM payload),
    cited AS (SELECT run_id, unnest(regexp_extract_all(body, '[0-9a-f]{64}')) AS sha256 FROM texts)
    SELECT run_id, sha256, strlen(text) FROM payload ANTI JOIN cited USING (run_id, sha256)
    WHERE chars > 0 ORDER BY ALL"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pruning removes. Bytes are those on disk; `kept` counts old runs that stay, by reason."""

    runs: tuple[RunSummary, ...]
    run_bytes: int
    kept: Mapping[str, int]
    payloads: Mapping[str, frozenset[str]]  # run id -> hashes
    payload_bytes: int
    files: tuple[Path, ...]
    file_bytes: int

    @property
    def empty(self) -> bool:
        """Whether there is nothing to remove."""
        return not (self.runs or self.payloads or self.files)


def plan(
    home: Home,
    older_than: float | None = None,
    *,
    keep_verdicts: bool = False,
    now: float | None = None,
    warn: Warn | None = None,
) -> Plan:
    """What a pruning would remove; nothing is changed, except that closed runs are taken in first.

    `older_than` is in seconds before `now` (default: the clock) and counts from the start of a run; None
    leaves all runs. `keep_verdicts` keeps runs about which the user log says anything. Raises RecordError as
    all readers do.
    """
    moment = time.time() if now is None else now
    runs: list[RunSummary] = []
    kept: Counter[str] = Counter()
    if older_than is not None:
        said = _runs_in_user_log(home) if keep_verdicts else frozenset()
        for run in list_runs(home, replays=True, warn=warn):
            if run.started_ns > (moment - older_than) * 1e9:
                continue
            reason = _reason_to_keep(home, run, said)
            kept.update([reason] if reason else [])
            runs.extend([] if reason else [run])
    payloads, payload_bytes = _uncited(home, {run.run_id for run in runs}, warn)
    files = tuple(sorted(_left_over(home, moment)))
    return Plan(
        runs=tuple(runs),
        run_bytes=sum(spool_bytes(home, run.run_id) for run in runs),
        kept=dict(kept),
        payloads=payloads,
        payload_bytes=payload_bytes,
        files=files,
        file_bytes=sum(map(_size, files)),
    )


def _reason_to_keep(home: Home, run: RunSummary, said: Collection[str]) -> str | None:
    if run.status == "running":
        return "running"
    if not run.started_ns:
        return "undated"
    if run.run_id in said:
        return "verdict"
    return "example" if is_example(home, run.run_id) else None


def _runs_in_user_log(home: Home) -> frozenset[str]:
    """Runs that a person gave a verdict, note, tag or place in a set."""
    entries = (entry for entry in user_log.records(home) if entry.get("kind") != user_log.DELETED)
    return frozenset(entry["run_id"] for entry in entries if isinstance(entry.get("run_id"), str))


def _uncited(home: Home, going: Collection[str], warn: Warn | None) -> tuple[dict[str, frozenset[str]], int]:
    """Payloads that nothing in their run cites, by run id, and their bytes; not of runs that go anyway."""
    with current(home, warn) as now:
        rows = store.rows_of(now.con, _UNCITED) if now.con is not None else []
    found: dict[str, set[str]] = {}
    total = 0
    for run_id, sha256, size in rows:
        if run_id not in going and home.spool_file(run_id).exists():
            found.setdefault(run_id, set()).add(sha256)
            total += size
    return {run_id: frozenset(hashes) for run_id, hashes in found.items()}, total


def _left_over(home: Home, moment: float) -> Iterator[Path]:
    """Files and folders that only processes which are gone can have left."""
    if not is_held(home.rebuild_lock):
        yield from home.root.glob(f"{REBUILDING}*")
    temporary = [*home.root.glob(".doctor-*"), *home.spool.glob(".example-*")]
    temporary += [*home.spool.glob(f"{_SWEEPING}*"), *home.root.glob(f"{home.store.name}.new*")]
    temporary += (lock for lock in home.spool.glob("*.lock") if not is_held(lock))
    # a new one may be at the point of being locked
    yield from (path for path in temporary if _age(path, moment) > _SETTLED)
    yield from home.corpora.glob(".removed-*")
    for folder in home.corpora.glob(".adding-*"):
        if folder.suffix != ".lock" and not is_held(folder.with_name(folder.name + ".lock")):
            yield folder


def _age(path: Path, moment: float) -> float:
    try:
        return moment - path.stat().st_mtime
    except OSError:
        return 0.0


def _size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder; what is gone meanwhile has none."""
    files = path.rglob("*") if path.is_dir() else (path,)
    total = 0
    for file in files:
        with suppress(OSError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def prune(home: Home, what: Plan, tell: Tell = lambda _: None) -> tuple[str, ...]:
    """Remove what a plan names; returns notices, one sentence each, about what stayed.

    Runs first, then payloads, then files; each step is whole or is finished by the next one that comes by.
    Raises InputError when a run of the plan does not exist any more, RecordError when nothing can be written.
    """
    notices: list[str] = []
    if what.runs:
        tell(f"deleting runs: {len(what.runs):,}")
        notices += delete_runs(home, [run.run_id for run in what.runs]).notices
    if what.payloads:
        tell(f"sweeping spools: {len(what.payloads):,}")
        notices += _sweep(home, what.payloads)
    if what.files:
        notices += _remove(home, what.files)
    return tuple(notices)


def _sweep(home: Home, payloads: Mapping[str, frozenset[str]]) -> list[str]:
    """Take texts out of closed spools, then take these spools in again."""
    notices = []
    with ingest.ingest_lock(home, store.deadline_in()):
        for run_id, hashes in payloads.items():
            if ingest.is_open(home, run_id):
                continue
            try:
                _rewrite(home.spool_file(run_id), hashes)
            except FileNotFoundError:
                continue  # deleted meanwhile
            except OSError as error:
                notices.append(f"The spool of {run_id} could not be swept: {error.strerror or error}.")
    return [*notices, *ingest.ingest(home).notices]


def _rewrite(path: Path, hashes: Collection[str]) -> None:
    """A copy of a spool in its place, where the empty text stands for those payloads.

    Their records keep their numbers, so nothing seems to be missing; all other lines stay byte for byte.
    """
    fresh = path.with_name(f"{_SWEEPING}{path.stem}-{os.getpid()}")
    try:
        with (
            path.open("rb") as old,
            open(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as new,
        ):
            for line in old:
                record = decode(line) if b'"sha256"' in line else None
                if record is not None and record["kind"] == "b" and record.get("sha256") in hashes:
                    line = encode({"seq": record["seq"], "kind": "b", "sha256": sha256_text(""), "text": ""})
                new.write(line)
            new.flush()
            os.fsync(new.fileno())
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def _remove(home: Home, files: Collection[Path]) -> Iterator[str]:
    """Remove left-over files; those of a rebuild under its lock."""
    rebuild = FileLock(home.rebuild_lock)
    for path in files:
        if path.parent == home.corpora:
            continue
        if path.name.startswith(REBUILDING) and not (rebuild.held or rebuild.try_acquire()):
            continue
        try:
            if path.is_dir():  # what did not fit the memory of a DuckDB that was killed
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            yield f"{path} could not be removed: {error.strerror or error}."
    rebuild.release()
    if any(path.parent == home.corpora for path in files):
        remove_stale(home.corpora)
