"""Landlock: which files a thread may read and write, enforced by the kernel (landlock(7)).

Acts on the calling thread and on those it starts later, never on threads that exist already.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from typing import Any, Final

from rlm_core.worker.kernel import system_call

_CREATE_RULESET: Final = 444  # the same numbers on every processor
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_ASK_VERSION: Final = 1
_PATH_BENEATH: Final = 1

WRITE_FILE: Final = 1 << 1
READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
_REMOVE_DIR: Final = 1 << 4
_REMOVE_FILE: Final = 1 << 5
_MAKE_DIR: Final = 1 << 7
_MAKE_REG: Final = 1 << 8
TRUNCATE: Final = 1 << 14
# What each version of the kernel's interface can forbid: all of it is forbidden where no rule allows it.
# EXECUTE and the making of links, devices, sockets and pipes are allowed nowhere, nor is REFER.
_FILES: Final = ((1, (1 << 13) - 1), (2, 1 << 13), (3, TRUNCATE), (5, 1 << 15))
_TCP: Final = (4, 0b11)  # bind and connect
_SCOPES: Final = (6, 0b11)  # abstract sockets and signals of others
_OF_A_FILE: Final = WRITE_FILE | READ_FILE | TRUNCATE
READ: Final = READ_FILE | READ_DIR
READ_AND_WRITE: Final = READ | WRITE_FILE | TRUNCATE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG


class _Ruleset(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("files", "tcp", "scopes")]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def version() -> int:
    """The version of the kernel's interface, 0 where there is no Landlock or it is switched off."""
    try:
        return system_call(_CREATE_RULESET, None, 0, _ASK_VERSION)
    except OSError:
        return 0


class Ruleset:
    """What will be allowed. Nothing is enforced before `enforce`."""

    def __init__(self, abi: int) -> None:
        """`abi`: what `version()` says, at least 1. Raises `OSError`."""
        self._files = sum(bits for least, bits in _FILES if abi >= least)
        wanted: list[int] = [bits if abi >= least else 0 for least, bits in (_TCP, _SCOPES)]
        attributes = _Ruleset(self._files, *wanted)
        # an older kernel takes the larger structure as long as what it does not know is zero
        self._handle = system_call(_CREATE_RULESET, ctypes.byref(attributes), ctypes.sizeof(attributes), 0)
        self._rule = _PathBeneath()

    def allow(self, paths: Iterable[str], rights: int) -> None:
        """Allow rights on files, and on folders with all that is in them. Raises `OSError` with the path."""
        rule, files = self._rule, self._files
        reference: Any = ctypes.byref(rule)
        for path in paths:
            rule.parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                folder = stat.S_ISDIR(os.fstat(rule.parent).st_mode)
                rule.allowed = rights & files & (-1 if folder else _OF_A_FILE)
                system_call(_ADD_RULE, self._handle, _PATH_BENEATH, reference, 0)
            except OSError as error:
                raise OSError(error.errno, error.strerror, path) from None
            finally:
                os.close(rule.parent)

    def enforce(self) -> None:
        """Lock this thread in, for good; new privileges must have been given up. Raises `OSError`."""
        system_call(_RESTRICT_SELF, self._handle, 0)
        os.close(self._handle)
