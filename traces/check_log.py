"""The checks of regression sets that were made: a file of JSON lines each, so that there is a trend.

`HOME/checks/ID.jsonl` (append-only): a line `start`, one `result` line per run of the set, an `end`. No text
of a run stands in it, only what was found: deleting a run leaves nothing of it here but its id. A lock beside
it is held while the process lives; the file of `stop_file` asks it to stop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from traces.home import Home, is_run_id
from traces.job_log import JobLog, LogKind, Status, records
from traces.locks import is_held
from traces.regression import WHYS, CheckMode, Result, Why
from traces.rows import money_json


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


_LOGS: Final = LogKind("check", "checks", "c")
new_check_id, folder, log_file = _LOGS.new_id, _LOGS.folder, _LOGS.log_file
stop_file, ask_to_stop = _LOGS.stop_file, _LOGS.ask_to_stop


class CheckLog(JobLog):
    """The open file of a check."""

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
        self.check_id = check_id or new_check_id()
        start = {"set": name, "mode": mode, "models": dict(models), "members": members}
        super().__init__(_LOGS, home, self.check_id, start)

    def result(self, result: Result) -> None:
        """Keep what was found of one run. Raises RecordError when it cannot be written."""
        facts = {
            "run_id": result.member.run.run_id,
            "passed": result.passed,
            "changed": result.changed,
            "now_run_id": result.played.run_id,
            "moved_by": list(result.moved_by),
            "moved_by_now": list(result.moved_by_now),
            "proven": result.proven,
            "why": result.why,
            "cost_usd": money_json(result.played.cost_usd),
            "live_calls": result.played.live_calls,
        }
        self._write("result", facts)

    def end(self, *, cancelled: bool) -> None:
        """Note that all there is was checked, or that it was stopped. Raises RecordError."""
        self._end("cancelled" if cancelled else "done")


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
        start, *lines = records(path.read_bytes().splitlines())
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
