"""The checks of regression sets that were made: a file of JSON lines each, so that there is a trend.

`HOME/checks/ID.jsonl` (append-only): a line `start`, one `result` line per run of the set, an `end`. No text
of a run stands in it, only what was found: deleting a run leaves nothing of it here but its id. A lock beside
it is held while the process lives; the file of `stop_file` asks it to stop.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal

from rlm_core.errors import InputError, RecordError, RLMScopeError
from traces.home import Home, is_run_id, new_run_id
from traces.locks import FileLock, is_held
from traces.regression import WHYS, CheckMode, Result, Why
from traces.rows import money_json
from traces.spool import APPEND

Status = Literal["running", "done", "cancelled", "failed", "lost"]
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found of one run. `passed` None: it could not be told, for the reason that `why` names,
    see `traces.regression.WHYS`; None in files that do not say it.
    """

    run_id: str
    passed: bool | None
    changed: bool
    now_run_id: str | None
    moved_by: tuple[str, ...]
    moved_by_now: tuple[str, ...]
    proven: bool
    why: Why | None = None


@dataclass(frozen=True, slots=True)
class PastCheck:
    """A check as its file tells it. `models` are by role; `cost_usd` is a decimal string, None unknown;
    `started` is ISO 8601 in UTC; `reason` says why it failed. `members` is how many runs it was to play.
    """

    check_id: str
    name: str
    mode: CheckMode
    status: Status
    started: str
    members: int
    models: Mapping[str, str | None]
    findings: tuple[Finding, ...] = ()
    cost_usd: str | None = None
    live_calls: int = 0
    reason: str | None = None

    def count(self, passed: bool | None) -> int:
        """How many runs passed (True), failed (False) or could not be decided (None)."""
        return sum(finding.passed is passed for finding in self.findings)

    def of(self, run_id: str) -> Finding | None:
        """What was found of a run."""
        return next((finding for finding in self.findings if finding.run_id == run_id), None)


def new_check_id() -> str:
    """The letter c before an id as runs have."""
    return "c" + new_run_id()


def folder(home: Home) -> Path:
    """Where the files are; it may not exist yet."""
    return home.root / "checks"


def log_file(home: Home, check_id: str) -> Path:
    """The file of a check. Raises InputError for an id that could leave the folder."""
    if not is_run_id(check_id):
        raise InputError(f"{check_id[:100]!r} is not the id of a check.")
    return folder(home) / f"{check_id}.jsonl"


def stop_file(home: Home, check_id: str) -> Path:
    """The file whose existence asks a check to stop. Raises InputError for what is no id."""
    return home.root / "control" / f"{log_file(home, check_id).stem}.cancel"


def ask_to_stop(home: Home, check_id: str) -> None:
    """Ask the process of a check to stop after the run it is at. Raises InputError, OSError."""
    path = stop_file(home, check_id)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


class CheckLog:
    """An open file of a check, a context manager. Leaving it without `end` notes that the check
    failed, or was cancelled by Ctrl-C."""

    def __init__(
        self,
        home: Home,
        name: str,
        mode: CheckMode,
        models: Mapping[str, str | None],
        members: int,
        check_id: str | None = None,
    ) -> None:
        """Make the file. Raises InputError for a bad id, RecordError when it cannot be written."""
        self._home = home
        self.check_id = check_id or new_check_id()
        path = log_file(home, self.check_id)
        self._lock_file = path.with_suffix(".lock")
        self._lock = FileLock(self._lock_file)
        self._ended = False
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            self._lock.try_acquire()
            self._fd = os.open(path, APPEND | os.O_EXCL, 0o600)
        except OSError as error:
            self._lock.release()
            raise RecordError(f"{path} cannot be made: {error.strerror or error}.") from error
        moment = datetime.now(UTC).isoformat()
        self._write(
            "start", v=VERSION, time=moment, set=name, mode=mode, models=dict(models), members=members
        )

    def __enter__(self) -> CheckLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self._ended:
                if isinstance(error, KeyboardInterrupt):
                    self.end(cancelled=True)
                else:
                    known = isinstance(error, RLMScopeError)
                    broke = f"It broke off ({'no end' if kind is None else kind.__name__})."
                    self._write("end", status="failed", reason=str(error) if known else broke)
        finally:
            os.close(self._fd)
            self._lock.release()
            for path in (stop_file(self._home, self.check_id), self._lock_file):
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def cancelled(self) -> bool:
        """Whether somebody asked this check to stop."""
        return stop_file(self._home, self.check_id).exists()

    def result(self, result: Result) -> None:
        """Keep what was found of one run. Raises RecordError when it cannot be written."""
        self._write(
            "result",
            run_id=result.member.run.run_id,
            passed=result.passed,
            changed=result.changed,
            now_run_id=result.played.run_id,
            moved_by=list(result.moved_by),
            moved_by_now=list(result.moved_by_now),
            proven=result.proven,
            why=result.why,
            cost_usd=money_json(result.played.cost_usd),
            live_calls=result.played.live_calls,
        )

    def end(self, *, cancelled: bool) -> None:
        """Note that all there is was checked, or that it was stopped. Raises RecordError."""
        self._ended = True
        self._write("end", status="cancelled" if cancelled else "done", reason=None)

    def _write(self, kind: str, **facts: Any) -> None:
        data = json.dumps({"kind": kind, **facts}, separators=(",", ":")).encode("ascii") + b"\n"
        try:
            if os.write(self._fd, data) != len(data):
                raise OSError("the disk is full")
        except OSError as error:
            raise RecordError(f"The check cannot be kept: {error.strerror or error}.") from error


def checks(home: Home, name: str | None = None) -> list[PastCheck]:
    """The checks of a set (of all sets), the oldest first; files that cannot be read are passed over."""
    found = []
    for path in folder(home).glob("*.jsonl"):
        past = read_check(path) if is_run_id(path.stem) else None
        if past is not None and name in (None, past.name):
            found.append(past)
    return sorted(found, key=lambda check: (check.started, check.check_id))


def read_check(path: Path) -> PastCheck | None:
    """What a file says by now; None when it does not begin as the file of a check does."""
    alive = is_held(path.with_suffix(".lock"))  # asked first: then all that a dead process wrote is read
    try:
        start, *lines = filter(None, map(_record, path.read_bytes().splitlines()))
        results = [line for line in lines if line["kind"] == "result"]
        ends: list[dict[str, Any]] = [line for line in lines if line["kind"] == "end"]
        end = ends[-1] if ends else {}
        return PastCheck(
            check_id=path.stem,
            name=start["set"],
            mode=start["mode"],
            status=end.get("status", "running" if alive else "lost"),
            started=start["time"],
            members=start["members"],
            models=start["models"],
            findings=tuple(map(_finding, results)),
            cost_usd=_sum(line["cost_usd"] for line in results),
            live_calls=sum(line["live_calls"] for line in results),
            reason=end.get("reason"),
        )
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError):
        return None


def _record(line: bytes) -> dict[str, Any] | None:
    """A line as an object; None for one that a power cut tore."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and "kind" in record else None


def _finding(line: Mapping[str, Any]) -> Finding:
    return Finding(
        line["run_id"], line["passed"], line["changed"], line["now_run_id"],
        tuple(line["moved_by"]), tuple(line["moved_by_now"]), line["proven"],
        next((why for why in WHYS if why == line.get("why")), None),
    )  # fmt: skip


def _sum(costs: Iterable[str | None]) -> str | None:
    amounts = [None if cost is None else Decimal(cost) for cost in costs]
    known = [amount for amount in amounts if amount is not None]
    return money_json(sum(known, Decimal(0))) if len(known) == len(amounts) else None


def last_word(past: Iterable[PastCheck]) -> dict[str, bool]:
    """Whether each run passed when last a check could tell."""
    return {
        finding.run_id: finding.passed
        for check in past
        for finding in check.findings
        if finding.passed is not None
    }


def trend(past: Iterable[PastCheck], run_id: str, most: int = 10) -> tuple[int, int]:
    """In how many of the last checks that could tell a run was right, and how many those were."""
    told = [found.passed for check in past if (found := check.of(run_id)) and found.passed is not None]
    return sum(told[-most:]), len(told[-most:])
