"""Append-only logs of jobs about runs: a file of JSON lines that outlives the process which writes it.

`HOME/FOLDER/ID.jsonl`: a line `start`, the lines of the job, an `end`. Beside it a lock that the process
holds while it lives, as a run has; whoever wants it to stop makes the file `stop_file`.
`traces.diagnosis_log` and `traces.check_log` are the two kinds.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

from rlm_core.errors import InputError, RecordError, RLMScopeError
from traces.home import Home, is_run_id, new_run_id
from traces.locks import FileLock
from traces.spool import APPEND

Status = Literal["running", "done", "cancelled", "failed", "lost"]
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class LogKind:
    """A kind of log: what its jobs are called, the name of its folder, and the letter that tells its ids from
    those of runs.
    """

    what: str
    place: str
    letter: str

    def new_id(self) -> str:
        """The letter before an id as runs have."""
        return self.letter + new_run_id()

    def folder(self, home: Home) -> Path:
        """Where the logs are; it may not exist yet."""
        return home.root / self.place

    def log_file(self, home: Home, job_id: str) -> Path:
        """The log of a job. Raises InputError for an id that could leave the folder."""
        if not is_run_id(job_id):
            raise InputError(f"{job_id[:100]!r} is not the id of a {self.what}.")
        return self.folder(home) / f"{job_id}.jsonl"

    def stop_file(self, home: Home, job_id: str) -> Path:
        """The file whose existence asks a job to stop. Raises InputError for what is no id."""
        return home.root / "control" / f"{self.log_file(home, job_id).stem}.cancel"

    def ask_to_stop(self, home: Home, job_id: str) -> None:
        """Ask the process of a job, whoever started it, to stop. Raises InputError, OSError."""
        path = self.stop_file(home, job_id)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


class JobLog:
    """An open log, a context manager. Leaving it without an end notes that it failed, or was cancelled."""

    def __init__(self, kind: LogKind, home: Home, job_id: str, start: Mapping[str, Any]) -> None:
        """Make the file. Raises InputError for a bad id, RecordError when it exists or cannot be written."""
        self._kind = kind
        self._path = kind.log_file(home, job_id)
        self._stop = kind.stop_file(home, job_id)
        self._lock_file = self._path.with_suffix(".lock")
        self._lock = FileLock(self._lock_file)
        self._began = time.monotonic()
        self._ended = False
        try:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            self._lock.try_acquire()
            self._fd = os.open(self._path, APPEND | os.O_EXCL, 0o600)
        except OSError as error:
            self._lock.release()
            raise RecordError(f"{self._path} cannot be made: {error.strerror or error}.") from error
        self._write("start", {"v": VERSION, "time": datetime.now(UTC).isoformat(), **start})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self._ended:
                stopped = isinstance(error, KeyboardInterrupt) or self.cancelled()
                why = str(error) if isinstance(error, RLMScopeError) else None
                if not stopped and why is None:
                    why = f"It broke off unexpectedly ({'no result' if kind is None else kind.__name__})."
                self._end("cancelled" if stopped else "failed", why)
        finally:
            os.close(self._fd)
            self._lock.release()
            for path in (self._stop, self._lock_file):
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def cancelled(self) -> bool:
        """Whether somebody asked this job to stop."""
        return self._stop.exists()

    def _end(self, status: Status, reason: str | None = None, **more: Any) -> None:
        self._ended = True
        seconds = round(time.monotonic() - self._began, 3)
        self._write("end", {"status": status, "reason": reason, **more, "seconds": seconds})

    def _write(self, kind: str, facts: Mapping[str, Any]) -> None:
        data = json.dumps({"kind": kind, **facts}, separators=(",", ":")).encode("ascii") + b"\n"
        try:
            if os.write(self._fd, data) != len(data):
                raise OSError("the disk is full")
        except OSError as error:
            what = f"The {self._kind.what} cannot be kept"
            raise RecordError(f"{what}: {error.strerror or error}.") from error


def records(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The lines of a log as objects, without those that cannot be read, such as one that a power cut tore."""
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and "kind" in record:
            yield record
