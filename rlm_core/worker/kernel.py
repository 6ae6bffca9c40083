"""System calls of Linux by number, through ctypes: the lock needs some that no library offers."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Final

_PR_SET_NO_NEW_PRIVS: Final = 38
_libc: Any = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def system_call(number: int, *arguments: Any) -> int:
    """The result of one system call; raises `OSError` with the kernel's reason when it fails.

    Whole numbers are passed as machine words, everything else as ctypes passes it.
    """
    words = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def control(option: int, value: int) -> None:
    """`prctl(option, value, 0, 0, 0)`; raises `OSError`."""
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def give_up_new_privileges() -> None:
    """No program started later can gain rights (prctl(2)); Landlock and seccomp ask for it."""
    control(_PR_SET_NO_NEW_PRIVS, 1)
