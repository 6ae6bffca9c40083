"""The clock and the quotas of one running cell."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rlm_core.errors import WorkerDied
from rlm_core.limits import Limits

POLL_SECONDS: Final = 0.25
GRACE_SECONDS: Final = 1.0
TORN_FRAME_SECONDS: Final = 5.0
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
    _outstanding: int = 0
    _paused: float = 0.0
    _paused_at: float = 0.0
    _frame_at: float | None = None
    _killed: bool = False
    _ended: float | None = None

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._cpu_began = process_cpu_seconds(self.pid)
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

    def explain(self, death: WorkerDied) -> WorkerDied:
        """The death of the worker, with the limit that caused it where one did."""
        if self.reason is None or not self._killed:
            return death
        return WorkerDied("limit", f"the cell was stopped ({self.reason}) and its process had to be ended")

    def _over(self, polls: int) -> str | None:
        limits = self.limits
        if self.active_seconds > limits.cell_seconds:
            return f"over {limits.cell_seconds:g} s of wall time"
        if (self.cpu_seconds or 0.0) > limits.cell_cpu_seconds:
            return f"over {limits.cell_cpu_seconds:g} s of CPU time"
        if anonymous_bytes(self.pid) > limits.memory_bytes:
            return f"over {limits.memory_bytes >> 20} MiB of memory"
        if polls % _SCRATCH_EVERY == 0:
            used, files = scratch_use(self.scratch, limits.scratch_bytes, limits.scratch_files)
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


def process_cpu_seconds(pid: int) -> float | None:
    """User and system time of a process, or None where there is no /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))


def anonymous_bytes(pid: int) -> int:
    """Anonymous memory of a process: mapped files do not count. 0 where there is no /proc."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def scratch_use(folder: str, most_bytes: int, most_files: int) -> tuple[int, int]:
    """Bytes on disk and number of entries below a folder; stops counting just above either limit."""
    used = files = 0
    folders = [folder]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                files += 1
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                with contextlib.suppress(OSError):
                    used += _bytes_on_disk(entry.stat(follow_symlinks=False))
                if used > most_bytes or files > most_files:
                    return used, files
    return used, files


def _bytes_on_disk(status: os.stat_result) -> int:
    """Blocks, so that a sparse file costs what it takes; the plain size where there are no blocks."""
    return int(getattr(status, "st_blocks", -(-status.st_size // 512))) * 512
