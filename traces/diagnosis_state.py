"""What the lines of a diagnosis' log say together: how far it is, and what it found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from traces.job_log import Status, records
from traces.trial import Budget, Mode, Target

Task = Literal["diagnose", "replay", "prove"]


@dataclass(frozen=True, slots=True)
class State:
    """What a log says by now.

    `status` lost: the process is gone without an end. `trials` are as `Trial.to_json`, in order; `diagnosis`
    as `Diagnosis.to_json`, None as long as there is none (and of a task "replay" or "prove", whose trials are
    all there is). `about` is the diagnosis that a task "prove" is for. `reason` says why it failed or was
    cancelled; `stage` what is being done, in words. `replayability` is as `Replayability.to_json`, None
    before it is known. Times are ISO 8601 in UTC and seconds.
    """

    diagnosis_id: str
    run_id: str
    task: Task
    status: Status
    started: str
    good_run_id: str | None = None
    span_id: str | None = None
    target: Target | None = None
    budget: Budget = Budget()
    mode: Mode = "strict"
    seconds: float = 0.0
    stage: str | None = None
    trials: tuple[dict[str, Any], ...] = ()
    diagnosis: dict[str, Any] | None = None
    reason: str | None = None
    replayability: dict[str, Any] | None = None
    about: str | None = None


def folded(diagnosis_id: str, raw: Iterable[bytes], alive: bool) -> State | None:
    """What the lines of a log say together; those that cannot be read are passed over. `alive`: the process
    that writes it lives. None when they do not begin as a log does."""
    lines = _sorted(records(raw))
    start, end = lines.start, lines.end or {}
    if start is None or not isinstance(start.get("run_id"), str):
        return None
    result = end.get("diagnosis")
    status = end.get("status", "running" if alive else "lost")
    try:
        return State(
            diagnosis_id,
            start["run_id"],
            start["task"],
            status,
            start["time"],
            start["good_run_id"],
            start["span_id"],
            None if start["target"] is None else Target(*start["target"]),
            _budget(*start["budget"]),
            start["mode"],
            float(end.get("seconds", 0.0)),
            lines.stage,
            tuple(lines.trials),
            {**result, "trials": lines.trials} if isinstance(result, dict) else None,
            end.get("reason"),
            lines.check or (result.get("replayability") if isinstance(result, dict) else None),
            _text(start.get("about")),
        )
    except (LookupError, TypeError, ValueError, ArithmeticError):
        return None


@dataclass(slots=True)
class _Lines:
    """The lines of a log, sorted."""

    start: dict[str, Any] | None = None
    end: dict[str, Any] | None = None
    stage: str | None = None
    check: dict[str, Any] | None = None
    patches: list[dict[str, Any]] = field(default_factory=list)
    trials: list[dict[str, Any]] = field(default_factory=list)


def _sorted(found: Iterable[dict[str, Any]]) -> _Lines:
    lines = _Lines()
    for record in found:
        kind = record.pop("kind")
        if lines.start is None and kind != "start":
            continue
        if kind == "start":
            lines.start = record
        elif kind == "patch":
            lines.patches.append({name: record.get(name) for name in ("span_id", "text")})
        elif kind == "trial":
            numbers = record.get("patches")
            listed = numbers if isinstance(numbers, list) else []
            lines.trials.append({**record, "patches": [lines.patches[n] for n in listed if _fits(n, lines)]})
        elif kind == "check" and isinstance(record.get("replayability"), dict):
            lines.check = record["replayability"]
        elif kind == "stage":
            lines.stage = str(record.get("words"))
        elif kind == "end":
            lines.end = record
    return lines


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _fits(number: object, lines: _Lines) -> bool:
    return type(number) is int and 0 <= number < len(lines.patches)


def _budget(replays: int, live_calls: int, usd: str | None) -> Budget:
    return Budget(replays, live_calls, None if usd is None else Decimal(usd))
