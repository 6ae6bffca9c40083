"""Jobs about a recorded run: finding what broke its answer, testing one reply, making a twin.

Each is a process of its own, which no page waits for and none interrupts. All that it finds stands in its log
(`traces.diagnosis_log`) under the id that is its ticket; until that is there, the files of a start
(`ui.web.order.StartFiles`) say how far it is: the order, later instead of it the sentence about a failure.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, Literal

from rlm_core.errors import InputError, RecordError
from traces.diagnosis_log import ask_to_stop, log_file, new_diagnosis_id, read_diagnosis
from traces.home import is_run_id
from traces.locks import FileLock, is_held
from traces.opinions import NORMALISED, check_how
from traces.trial import MODES, Budget, Mode, Patch, Target
from ui.figures import MOST_DOLLARS
from ui.web.order import StartFiles
from ui.web.processes import start_process

if TYPE_CHECKING:
    from traces.diagnosis_state import State
    from traces.home import Home

Task = Literal["diagnose", "test", "twin", "prove"]
#: Replays, model calls that a page offers at first; dollars have no limit unless one is given.
BUDGET: Final = Budget()
_PROCESS: Final = "ui.web.diagnose_process"
_LARGEST: Final = 1_000_000


@dataclass(frozen=True)
class Job:
    """What to do about a run.

    `diagnose`: find a minimal cause, with a good run, an expected answer, or neither. `test`: one replay with
    `patches` (pairs of span id and text). `twin`: the same cells, with every sub-call asked again of the
    model `sub` (None: the one of the record). `prove`: the edges of the calls `spans`, by replays in which
    their replies are changed, for the diagnosis `about`. `usd` is an amount as text; `repeat` says how often
    a replay is made that asks the root.
    """

    task: Task
    run_id: str
    good: str | None = None
    expected: str | None = None
    how: str = NORMALISED
    patches: Sequence[Sequence[str]] = ()
    mode: Mode = "strict"
    replays: int = BUDGET.replays
    live_calls: int = BUDGET.live_calls
    usd: str | None = None
    sub: str | None = None
    repeat: int = 1
    spans: Sequence[str] = ()
    about: str | None = None

    def check(self) -> None:
        """Raises InputError, in one sentence, for what cannot be done."""
        _ = self.budget
        if _count("repetitions", self.repeat) < 1:
            raise InputError("something must be tried at least once")
        check_how(self.how, self.expected)
        if self.mode not in MODES:
            raise InputError(f"there is no mode {str(self.mode)[:40]!r}; there are {', '.join(MODES)}")
        if self.good == self.run_id:
            raise InputError("a run cannot be its own good run")

    @property
    def budget(self) -> Budget:
        """What may be spent. Raises InputError for what is no budget."""
        return Budget(_count("replays", self.replays), _count("model calls", self.live_calls), _usd(self.usd))

    @property
    def replaced(self) -> tuple[Patch, ...]:
        """The patches."""
        return tuple(Patch(span_id, text) for span_id, text in self.patches)

    @property
    def target(self) -> Target | None:
        """The answer that a person expects, if one was given."""
        return None if self.expected is None else Target(self.expected, self.how)


def _count(name: str, value: int) -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise InputError(f"the number of {name} must be a whole number from 0 to {_LARGEST:,}")
    return value


def _usd(text: str | None) -> Decimal | None:
    if not text:
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or not 0 <= amount <= MOST_DOLLARS:
        raise InputError(f"the budget in dollars must be an amount like 0.50, not {text[:40]!r}")
    return amount


@dataclass(frozen=True)
class Progress:
    """How a job stands: `starting` before its log is there; `logged` with the log's state; `failed` when
    there never will be one. `error` is the sentence its process left, which may quote anything."""

    word: Literal["starting", "logged", "failed"]
    state: State | None = None
    error: str | None = None

    @property
    def working(self) -> bool:
        """Whether there is more to come."""
        return self.word == "starting" or (self.state is not None and self.state.status == "running")


class JobFiles(StartFiles):
    """The files of the start of a job."""

    def write_job(self, job: Job) -> bool:
        """Write the order, or return False when it was written before. Raises OSError."""
        try:
            descriptor = os.open(self.request, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            return False
        with open(descriptor, "w", encoding="utf-8") as out:
            json.dump({"order": asdict(job)}, out)
        return True

    def read_job(self) -> Job:
        """The order. Raises InputError when there is none to be read."""
        try:
            kept: dict[str, Any] = json.loads(self.request.read_text("utf-8"))["order"]
            return Job(**kept)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise InputError(f"{self.request} holds no order: {error}") from error


def start(home: Home, job: Job, ticket: str | None = None) -> str:
    """Begin a job in a process of its own; returns the id of its log, which is the ticket when one is given:
    with one that was used before nothing begins.

    Raises InputError for what cannot be done, RecordError when no process can be started.
    """
    job.check()
    ticket = ticket or new_diagnosis_id()
    files = JobFiles(home, ticket)
    lock = FileLock(files.lock)
    try:
        files.request.parent.mkdir(mode=0o700, exist_ok=True)
        if log_file(home, ticket).exists() or not lock.try_acquire():
            return ticket
        if files.write_job(job):
            start_process(_PROCESS, [str(home.root), ticket], files.log, lock)
    except OSError as error:
        if lock.held:
            files.remove()
            lock.release()
        raise RecordError(f"The job could not be started: {error.strerror or error}.") from error
    return ticket


def look(home: Home, ticket: str) -> Progress | None:
    """How a job stands, or a diagnosis that the command line made; None when nothing is known of it. Cheap
    enough to be asked every second. Raises RecordError when its log cannot be read."""
    if not is_run_id(ticket):
        return None
    files = JobFiles(home, ticket)
    # in this order: whoever finds an order whose lock is free afterwards knows that its process has ended
    ordered = files.request.exists()
    alive = is_held(files.lock)
    error = files.read_error()
    with suppress(InputError):
        return Progress("logged", read_diagnosis(home, ticket), error)
    if error is not None:
        return Progress("failed", error=error)
    if alive:
        return Progress("starting")
    if not ordered:
        return None
    return Progress("failed", error=f"The process of this job ended at once; see {files.log}.")


def wait(home: Home, ticket: str, seconds: float) -> Progress | None:
    """`look`, after the end of the job or after so many seconds, whatever comes first."""
    deadline = time.monotonic() + seconds
    while (found := look(home, ticket)) is not None and found.working and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def cancel(home: Home, ticket: str) -> None:
    """Ask a job to stop; what it found until then is kept. Raises InputError, OSError."""
    ask_to_stop(home, ticket)
