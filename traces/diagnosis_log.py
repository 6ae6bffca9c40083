"""The logs of diagnoses: each is an append-only file of JSON lines that outlives the process which writes it.

`HOME/diagnoses/ID.jsonl`: a line `start`, `patch` lines (every text once), one `trial` line per replay, an
`end`. Beside it a lock that the process holds while it lives, as a run has; whoever wants it to stop makes
the file `stop_file`. The command line and the app write and read the same files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from rlm_core.errors import InputError, RecordError
from traces.diagnosis import Diagnosis
from traces.diagnosis_state import State, Task, folded
from traces.home import Home
from traces.job_log import JobLog, LogKind
from traces.locks import is_held
from traces.rows import money_json
from traces.trial import Budget, Mode, Replayability, Target, Trial

_LOGS: Final = LogKind("diagnosis", "diagnoses", "d")
new_diagnosis_id, folder, log_file = _LOGS.new_id, _LOGS.folder, _LOGS.log_file
stop_file, ask_to_stop = _LOGS.stop_file, _LOGS.ask_to_stop


class DiagnosisLog(JobLog):
    """The open log of a diagnosis, or of another job of `Task`."""

    def __init__(self, home: Home, diagnosis_id: str, start: Mapping[str, Any]) -> None:
        """Make the file. Raises InputError for a bad id, RecordError when it exists or cannot be written."""
        super().__init__(_LOGS, home, diagnosis_id, start)
        self.diagnosis_id = diagnosis_id
        self._known: dict[tuple[str, str], int] = {}

    def stage(self, words: str) -> None:
        """Say what is being done now. Raises RecordError when it cannot be written."""
        self._write("stage", {"words": words})

    def checked(self, found: Replayability) -> None:
        """Keep whether the run comes out as recorded at all. Raises RecordError when it cannot be written."""
        self._write("check", {"replayability": found.to_json()})

    def trial(self, trial: Trial) -> None:
        """Keep one trial. Raises RecordError when it cannot be written."""
        numbers = []
        for patch in trial.patches:
            key = patch.span_id, patch.text
            if key not in self._known:
                self._known[key] = len(self._known)
                self._write("patch", {"span_id": patch.span_id, "text": patch.text})
            numbers.append(self._known[key])
        self._write("trial", {**trial.to_json(), "patches": numbers})

    def end(self, diagnosis: Diagnosis | None = None) -> None:
        """Keep the result, in which the trials stand already; None for other tasks. Raises RecordError.

        A diagnosis that was stopped ends as cancelled, with what was found so far.
        """
        result = None if diagnosis is None else {**diagnosis.to_json(), "trials": None}
        self._end("cancelled" if self.cancelled() else "done", diagnosis=result)


def open_diagnosis(
    home: Home,
    run_id: str,
    *,
    task: Task = "diagnose",
    good: str | None = None,
    span_id: str | None = None,
    target: Target | None = None,
    budget: Budget | None = None,
    mode: Mode = "strict",
    diagnosis_id: str | None = None,
    about: str | None = None,
) -> DiagnosisLog:
    """Begin the log of a diagnosis of a run, with a new id unless one is given; or that of a replay that a
    person started, or of a proof of edges of a lineage, for the diagnosis `about`. Raises InputError for a
    bad id, RecordError when it cannot be written."""
    allowed = budget or Budget()
    start = {
        "run_id": run_id,
        "task": task,
        "good_run_id": good,
        "span_id": span_id,
        "target": None if target is None else [target.text, target.how, target.origin],
        "budget": [allowed.replays, allowed.live_calls, money_json(allowed.usd)],
        "mode": mode,
        "about": about,
    }
    return DiagnosisLog(home, diagnosis_id or new_diagnosis_id(), start)


def read_diagnosis(home: Home, diagnosis_id: str) -> State:
    """What the log of a diagnosis says now; lines that cannot be read are passed over. Raises InputError when
    there is none, RecordError when it cannot be read."""
    path = log_file(home, diagnosis_id)
    alive = is_held(path.with_suffix(".lock"))  # asked first: then all that a dead process wrote is read
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        raise InputError(f"There is no diagnosis {diagnosis_id[:100]!r}.") from None
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror or error}.") from error
    state = folded(diagnosis_id, lines, alive)
    if state is None:
        raise RecordError(f"{path} does not begin as the log of a diagnosis does.")
    return state


def diagnoses(home: Home, run_id: str | None = None) -> list[State]:
    """The diagnoses of a run (of all runs), the newest first; logs that cannot be read are passed over."""
    found = []
    for path in sorted(folder(home).glob("*.jsonl"), key=lambda one: one.name, reverse=True):
        with suppress(InputError, RecordError):
            state = read_diagnosis(home, path.stem)
            if run_id is None or state.run_id == run_id:
                found.append(state)
    return found


def delete_diagnoses(home: Home, run_ids: Iterable[str]) -> int:
    """Delete all diagnoses of some runs and those that quote one of them as the good run; how many there
    were. One that goes on is asked to stop. Raises RecordError when a file cannot be removed."""
    wanted = frozenset(run_ids)
    gone = [state for state in diagnoses(home) if wanted & {state.run_id, state.good_run_id}]
    for state in gone:
        path = log_file(home, state.diagnosis_id)
        try:
            if state.status == "running":
                ask_to_stop(home, state.diagnosis_id)
            path.unlink(missing_ok=True)
        except OSError as error:
            raise RecordError(f"{path} cannot be removed: {error.strerror or error}.") from error
    return len(gone)
