"""Signals while a run works: the first asks it to stop, the second (or too slow an end) stops the process."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import Any, Final

GRACE: Final = (
    4.0  # seconds a cancelled run has to end in order; nothing may outlive a killed run by more than 5
)
_ONE_WISH: Final = 0.3  # seconds: `timeout` and process groups deliver one wish to stop as two signals
_AGAIN: Final = 0.25  # seconds between two times that a run is asked to stop
_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)


class Interrupts:
    """Turns signals into `cancel()` for the time of a `with` block; outside the main thread it does nothing.

    `cancel` is called until the block ends: the first time there may be nothing yet to be cancelled.
    The handler only puts a number into a queue, because it may interrupt any line of the program, one that
    holds a lock included; a thread does the work.
    """

    def __init__(
        self, cancel: Callable[[], None], before_exit: Callable[[], None], grace: float = GRACE
    ) -> None:
        self._cancel = cancel
        self._before_exit = before_exit
        self._grace = grace
        self._signals: SimpleQueue[int | None] = SimpleQueue()
        self._previous: dict[int, Any] = {}
        self._thread = threading.Thread(target=self._watch, name="rlm-interrupts", daemon=True)
        self.cancelled = False

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._thread.start()
            self._previous = {number: signal.getsignal(number) for number in _SIGNALS}
            for number, handler in self._previous.items():
                if handler is not signal.SIG_IGN:  # nohup and background jobs ignore some on purpose
                    signal.signal(number, self._noted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if self._thread.is_alive():
            self._signals.put(None)
            self._thread.join()

    def request(self) -> None:
        """Ask as a signal would; safe from other threads. Outside a `with` block nothing happens."""
        self._signals.put(0)

    def _noted(self, number: int, _frame: FrameType | None) -> None:
        self._signals.put(number)

    def _watch(self) -> None:
        if self._signals.get() is None:
            return
        self.cancelled = True
        _tell("cancelling the run; once more stops it at once")
        self._cancel()
        if self._ended_in_order():
            return
        _tell("stopped; what was recorded so far is kept")
        self._before_exit()
        os._exit(1)

    def _ended_in_order(self) -> bool:
        """Wait for the end of the block (True), a second wish to stop, or the end of patience."""
        begin = time.monotonic()
        while True:
            left = begin + self._grace - time.monotonic()
            try:
                number = self._signals.get(timeout=max(min(left, _AGAIN), 0))
            except Empty:
                if left <= 0:
                    _tell("the run did not end in time")
                    return False
                self._cancel()
                continue
            if number is None:
                return True
            if time.monotonic() - begin > _ONE_WISH:
                return False


def _tell(text: str) -> None:
    # straight to the descriptor: the main thread may hold the lock of sys.stderr
    try:
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"rlmscope: {text}\n".encode())
    except (OSError, ValueError):
        return
