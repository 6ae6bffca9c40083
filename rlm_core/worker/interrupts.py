"""Ctrl-C in a worker: it stops the code of a cell and nothing else.

Python runs signal handlers in the main thread, between any two instructions. So an interrupt raises only
while the cell's own code runs there; inside the worker's code it waits, which keeps frames whole and locks in
order.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

# Bound now: a cell may delete or replace the builtins of these names.
_ANYTHING: Final = BaseException
_INTERRUPT: Final = KeyboardInterrupt
_MAIN: Final = threading.get_ident()
_this_thread: Final = threading.get_ident
_settrace: Final = sys.settrace
_setprofile: Final = sys.setprofile


class Interrupts:
    """Where the main thread is: in a cell's code (interrupts raise) or in the worker's own (they wait)."""

    def __init__(self) -> None:
        self._in_cell = False
        self._allowed = False
        self._pending = False

    def install(self) -> None:
        """Take over Ctrl-C (again: a cell may have done the same)."""
        signal.signal(signal.SIGINT, self._arrives)

    def forget(self) -> None:
        """A new cell begins: an interrupt that came too late for the last one is not meant for it."""
        self._pending = False

    def run(self, work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        """Run code of a cell; returns its value and what it raised. SystemExit and Ctrl-C end here too."""
        value = error = None
        try:
            try:
                self._in_cell = self._allowed = True
                self.check()
                value = work()
            except _ANYTHING as caught:
                error = caught
            self._leave()
        except _ANYTHING as late:  # struck between the cell's last instruction and the end of the line above
            self._leave()
            error = late if error is None else error
        return value, error

    def can_strike(self) -> bool:
        """Whether this is the main thread, and in a cell."""
        return self._in_cell and _this_thread() == _MAIN

    def check(self) -> None:
        """Raise an interrupt that waited, if it can strike here."""
        if self._pending and self.can_strike():
            self._pending = False
            raise _INTERRUPT

    def shield(self) -> _Switch:
        """`with`: interrupts wait, and raise at the end."""
        return _Switch(self, False)

    def window(self) -> _Switch:
        """`with`, inside a shield around a call that blocks: an interrupt may end it."""
        return _Switch(self, True)

    def _leave(self) -> None:
        self._in_cell = self._allowed = False
        _settrace(None)  # a tracer of the cell would run in the worker's own code
        _setprofile(None)

    def _arrives(self, *_: object) -> None:
        self._pending = True
        if self._allowed:
            self.check()


class _Switch:
    """Lets interrupts through or not for a while. Threads other than the main one are never interrupted."""

    def __init__(self, interrupts: Interrupts, allowed: bool) -> None:
        self._interrupts = interrupts
        self._allowed = allowed
        self._was = False

    def __enter__(self) -> None:
        if _this_thread() == _MAIN:
            self._was = self._interrupts._allowed
            self._interrupts._allowed = self._allowed and self._interrupts._in_cell
            if self._allowed:
                self._interrupts.check()

    def __exit__(self, *_: object) -> None:
        if _this_thread() == _MAIN:
            self._interrupts._allowed = self._was
            if self._was:
                self._interrupts.check()
