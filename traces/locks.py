"""Locks between processes, on a file of their own, that the operating system drops when the holder dies.

`flock` on POSIX: unlike `lockf` it also works between two openings in one process, and it is not lost when
someone else in the process closes the same file. `msvcrt.locking` on Windows. Contents of lock files mean
nothing.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.05


class FileLock:
    """One opening of a lock file. Not reentrant, not shared between threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._fd is not None

    def try_acquire(self, *, shared: bool = False, exclusive_file: bool = False) -> bool:
        """Take the lock if it is free. `exclusive_file` refuses a file that already exists.

        Raises OSError when the file cannot be opened (FileExistsError in the `exclusive_file` case).
        """
        flags = os.O_RDWR | os.O_CREAT | (os.O_EXCL if exclusive_file else 0)
        fd = os.open(self._path, flags, 0o600)
        if not _lock(fd, shared):
            os.close(fd)
            return False
        self._fd = fd
        _held.add(self)
        return True

    def acquire(self, deadline: float, *, shared: bool = False) -> bool:
        """Wait for the lock until `deadline` (of `time.monotonic`); False when it passed. Raises OSError."""
        for pause in pauses(deadline):
            if self.try_acquire(shared=shared):
                return True
            time.sleep(pause)
        return False

    def fileno(self) -> int:
        """The descriptor of a held lock: a child that inherits it holds the lock as well (POSIX).

        Raises ValueError when the lock is not held.
        """
        if self._fd is None:
            raise ValueError("the lock is not held")
        return self._fd

    def release(self) -> None:
        """Give the lock back; nothing happens when it is not held."""
        fd, self._fd = self._fd, None
        if fd is not None:
            _unlock(fd)
            os.close(fd)

    def forget(self) -> None:
        """Close the descriptor that a forked child inherited, so that the lock dies with the parent."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def is_held(path: Path) -> bool:
    """Whether some process holds the lock. A missing file is a free lock; nothing is created."""
    try:
        fd = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    except PermissionError:
        # another user's file: nothing can be learnt from its lock, and calling a living run dead would be
        # wrong
        return True
    try:
        # shared, so that two who ask at the same time do not take each other for the holder
        free = _lock(fd, shared=True)
        if free:
            _unlock(fd)
        return not free
    finally:
        os.close(fd)


def pauses(deadline: float) -> Iterator[float]:
    """Growing, jittered pauses until the deadline; at least one, so that everything is tried once."""
    pause = _FIRST_PAUSE
    while True:
        left = deadline - time.monotonic()
        yield max(0.0, min(pause * random.uniform(0.5, 1.5), left))
        if left <= 0:
            return
        pause = min(pause * 1.5, _LONGEST_PAUSE)


if sys.platform == "win32":

    def _lock(fd: int, shared: bool) -> bool:
        try:
            os.lseek(fd, 0, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(fd: int) -> None:
        with contextlib.suppress(OSError):
            os.lseek(fd, 0, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:

    def _lock(fd: int, shared: bool) -> bool:
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(fd: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)


_held: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _forget_all() -> None:
    for lock in list(_held):
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
