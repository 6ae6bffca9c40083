"""Checks of sets that the app starts: each is a process of its own, which goes on when the page is left."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from rlm_core.errors import InputError, RecordError
from traces.check_log import PastCheck, log_file, new_check_id, read_check
from traces.locks import FileLock, is_held
from traces.regression import CHECK_MODES
from ui.figures import MOST_DOLLARS
from ui.web.order import StartFiles
from ui.web.processes import start_process

if TYPE_CHECKING:
    from traces.home import Home
    from ui.checking import Order

_PROCESS: Final = "ui.web.check_process"


@dataclass(frozen=True, slots=True)
class Job:
    """A check as a page asks for it; dollars as text. Models "" are those of the present configuration."""

    name: str
    mode: str = "replay"
    root: str = ""
    sub: str = ""
    max_calls: int | None = None
    max_cost: str = ""

    def order(self) -> Order:
        """The order that a checker takes. Raises InputError for what has not its form."""
        from ui.checking import Order

        for mode in CHECK_MODES:
            if mode == self.mode:
                return Order(
                    mode, self.root or None, self.sub or None, self.max_calls, _dollars(self.max_cost)
                )
        raise InputError(f"there is no mode {self.mode!r} of checks")

    def to_text(self) -> str:
        """A word for the process that carries it out."""
        return json.dumps({name: getattr(self, name) for name in Job.__slots__})

    @staticmethod
    def from_text(text: str) -> Job:
        """The job of `to_text`. Raises InputError for anything else."""
        try:
            given: dict[str, Any] = json.loads(text)
            return Job(**given)
        except (ValueError, TypeError):
            raise InputError("this is no order of a check") from None


def _dollars(text: str) -> Decimal | None:
    if not text.strip():
        return None
    try:
        amount = Decimal(text.strip().removeprefix("$"))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or not 0 < amount <= MOST_DOLLARS:
        raise InputError(f"the cost limit must be an amount in dollars like 0.50, not {text[:40]!r}")
    return amount


def start(home: Home, job: Job, check_id: str | None = None) -> str:
    """Begin a check in a process of its own; returns its id, which is the given one if there is one.

    Raises InputError for what cannot be checked, RecordError when no process can be started.
    """
    import os

    from traces.regression import regression_set
    from ui.checking import Checker

    Checker(home, job.order(), os.environ)  # refuses models that cannot be used
    regression_set(home, job.name)
    check_id = check_id or new_check_id()
    files = StartFiles(home, check_id)
    lock = FileLock(files.lock)
    try:
        files.lock.parent.mkdir(mode=0o700, exist_ok=True)
        lock.try_acquire()
        start_process(_PROCESS, [str(home.root), check_id, job.to_text()], files.log, lock)
    except OSError as error:
        lock.release()
        raise RecordError(f"The check cannot be started: {error.strerror or error}.") from error
    return check_id


def look(home: Home, check_id: str) -> PastCheck | None:
    """How a check stands; None when it has written nothing yet."""
    return read_check(log_file(home, check_id))


def is_starting(home: Home, check_id: str) -> bool:
    """Whether the process of a check lives that has written nothing yet."""
    return is_held(StartFiles(home, check_id).lock) and look(home, check_id) is None


def wait(home: Home, check_id: str, seconds: float) -> None:
    """Return when the check has begun to write, its process is gone, or after so many seconds."""
    deadline = time.monotonic() + seconds
    while is_starting(home, check_id) and time.monotonic() < deadline:
        time.sleep(0.03)


def forget_start(home: Home, check_id: str) -> None:
    """Remove the files of a start; what the check found stays."""
    with suppress(OSError, InputError):
        StartFiles(home, check_id).remove()
