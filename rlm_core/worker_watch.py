"""The clock and the quotas of one running cell."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rlm_core.errors import WorkerDied
from rlm_core.limits import Limits
from rlm_core.worker_measures import (
    anonymous_bytes,
    deleted_bytes,
    process_cpu_seconds,
    scratch_use,
    thread_count,
)

POLL_SECONDS: Final = 0.25
GRACE_SECONDS: Final = 1.0
TORN_FRAME_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 1.0  # between two looks at a worker that runs no cell
MOST_THREADS: Final = 1_000
_SCRATCH_EVERY: Final = 4  # polls between two looks at the scratch folder


@dataclass
class Watch:
    """Measures a cell and ends it at its limits: Ctrl-C first, SIGKILL after a grace second.

    Wall time pauses while sub-calls are outstanding; CPU time of the worker never pauses.
    """

    pid: int
    scratch: str
    limits: Limits
    exited: Callable[[], bool] = lambda: False
    on_exit: Callable[[], None] = lambda: None  # called when the process is gone but its pipe stays open
    kill: Callable[[], None] | None = None  # ends the worker and what belongs to it; None: its process group
    clock: Callable[[], float] = time.monotonic
    reason: str | None = None
    cpu_before: float | None = None  # CPU time of the worker when this begins, if it was just measured
    _outstanding: int = 0
    _paused: float = 0.0
    _paused_at: float = 0.0
    _frame_at: float | None = None
    _killed: bool = False
    _ended: float | None = None

    def __post_init__(self) -> None:
        self._began = self.clock()
        known = self.cpu_before
        self._cpu_began = process_cpu_seconds(self.pid) if known is None else known
        self._cpu_now = self._cpu_began

    def pause(self) -> None:
        """A sub-call goes out."""
        if self._outstanding == 0:
            self._paused_at = self.clock()
        self._outstanding += 1

    def resume(self) -> None:
        """A sub-call is answered."""
        self._outstanding -= 1
        if self._outstanding == 0:
            self._paused += self.clock() - self._paused_at

    def frame_begins(self) -> None:
        """The header of a frame came; its body must follow soon."""
        self._frame_at = self.clock()

    def frame_ends(self) -> None:
        """The frame is whole."""
        self._frame_at = None

    def end(self) -> None:
        """The cell is over; measure it."""
        self._ended = self.clock()
        self._cpu_now = process_cpu_seconds(self.pid) or self._cpu_now

    @property
    def cpu_now(self) -> float | None:
        """CPU time of the worker in its whole life, as last measured."""
        return self._cpu_now

    @property
    def active_seconds(self) -> float:
        """Wall time of the cell without the time sub-calls were outstanding."""
        now = self._ended if self._ended is not None else self.clock()
        paused = self._paused + (now - self._paused_at if self._outstanding else 0.0)
        return max(0.0, now - self._began - paused)

    @property
    def cpu_seconds(self) -> float | None:
        """CPU time of the worker in this cell; None where the system does not tell."""
        if self._cpu_began is None or self._cpu_now is None:
            return None
        return max(0.0, self._cpu_now - self._cpu_began)

    def interrupt(self, reason: str) -> None:
        """Ctrl-C the cell now; the reason given first stays."""
        if self.reason is None:
            self.reason = reason
            self._strike()

    async def guard(self) -> None:
        """Poll until the cell ends."""
        polls = 0
        interrupted_at: float | None = None
        struck_again = False
        while True:
            was_gone = self.exited()
            await asyncio.sleep(POLL_SECONDS)
            polls += 1
            self._cpu_now = process_cpu_seconds(self.pid) or self._cpu_now
            if self.reason is None and (reason := self._over(polls)) is not None:
                self.interrupt(reason)
            if self.reason is not None:
                interrupted_at = interrupted_at or self.clock()
                waited = self.clock() - interrupted_at
                if waited > GRACE_SECONDS:
                    self._kill()
                elif waited > GRACE_SECONDS / 2 and not struck_again:
                    struck_again = True
                    self._strike()
            if self._frame_at is not None and self.clock() - self._frame_at > TORN_FRAME_SECONDS:
                self.reason = self.reason or "a frame that never ended"
                self._kill()
            if was_gone:  # for a whole poll: what it sent has been read; something it left holds the pipe
                self.on_exit()

    async def guard_idle(self) -> None:
        """Poll between two cells, in which threads of the last one may go on; at a limit the process ends."""
        while self.reason is None:
            await asyncio.sleep(IDLE_SECONDS)
            self._cpu_now = process_cpu_seconds(self.pid) or self._cpu_now
            self.reason = self._over_use(look_at_scratch=True)
        self._kill()

    def explain(self, death: WorkerDied) -> WorkerDied:
        """The death of the worker, with the limit that caused it where one did."""
        if self.reason is None or not self._killed:
            return death
        return WorkerDied("limit", f"the cell was stopped ({self.reason}) and its process had to be ended")

    def _over(self, polls: int) -> str | None:
        if self.active_seconds > self.limits.cell_seconds:
            return f"over {self.limits.cell_seconds:g} s of wall time"
        return self._over_use(look_at_scratch=polls % _SCRATCH_EVERY == 0)

    def _over_use(self, look_at_scratch: bool) -> str | None:
        """The first limit, of all but wall time, that the worker is over."""
        limits = self.limits
        if (self.cpu_seconds or 0.0) > limits.cell_cpu_seconds:
            return f"over {limits.cell_cpu_seconds:g} s of CPU time"
        if anonymous_bytes(self.pid) > limits.memory_bytes:
            return f"over {limits.memory_bytes >> 20} MiB of memory"
        if thread_count(self.pid) > MOST_THREADS:
            return f"over {MOST_THREADS:,} threads"
        if look_at_scratch:
            used, files = scratch_use(self.scratch, limits.scratch_bytes, limits.scratch_files)
            used += deleted_bytes(self.pid, self.scratch, limits.scratch_bytes)
            if used > limits.scratch_bytes or files > limits.scratch_files:
                most = f"{limits.scratch_bytes >> 20} MiB or {limits.scratch_files:,} files"
                return f"over {most} in its scratch folder"
        return None

    def _strike(self) -> None:
        """Ctrl-C. One that comes just before a blocking call is seen only after it; a second one ends it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGINT)

    def _kill(self) -> None:
        self._killed = True
        if self.kill is not None:
            self.kill()
        else:
            kill_group(self.pid)


def kill_group(pid: int) -> None:
    """SIGKILL a worker and whatever it started in its process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGTERM)
