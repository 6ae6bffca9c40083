"""The filter of system calls (seccomp(2)): an allowlist, with rules on arguments where a call could do harm.

Written for and run on x86_64 Linux only. A filter is a program for the classic BPF machine of the kernel
(struct sock_filter: code, two jump distances, value). It sees the number of a call and the values of its
arguments, not what they point to.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Sequence
from typing import Any, Final

from rlm_core.worker.kernel import system_call
from rlm_core.worker.system_calls import ALLOWED, NO_ATTRIBUTES, PRETENDED, WITH_RULES

_SECCOMP: Final = 317
_SET_FILTER: Final = 1
_ALL_THREADS: Final = 1
_MACHINE: Final = 0xC000003E  # AUDIT_ARCH_X86_64
_X32: Final = 0x40000000
_FIRST_NEWER: Final = 424  # libraries know what to do where the calls from here on do not exist

_LOAD: Final = 0x20  # a word of struct seccomp_data: 0 the number, 4 the machine, 16 + 8 * n an argument
_EQUAL: Final = 0x15
_AT_LEAST: Final = 0x35
_ANY_BIT: Final = 0x45
_AND: Final = 0x54
_RETURN: Final = 0x06

_ALLOW: Final = 0x7FFF0000
_KILL: Final = 0x80000000
_ERROR: Final = 0x00050000  # or-ed with an errno; with 0 the call does nothing and reports success

_CLONE_THREAD: Final = 0x10000
_NEW_NAMESPACES: Final = 0x7E020000
_WRITABLE: Final = 0x2  # PROT_WRITE
_SHARED: Final = 0x1  # also in MAP_SHARED_VALIDATE
_ANONYMOUS: Final = 0x20
_TRUNCATE: Final = 0x200
_UNIX: Final = 1
_STREAM: Final = 1
_IOCTLS: Final = (0x5401, 0x541B, 0x5421, 0x5450, 0x5451)  # TCGETS, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
# F_DUPFD to F_SETLKW, locks of open files, F_DUPFD_CLOEXEC, sizes of pipes. Not F_SETOWN and F_SETSIG: they
# send signals to other processes. Not leases and notices.
_FCNTLS: Final = (*range(8), 36, 37, 38, 1030, 1031, 1032)
# Reading a few things, PR_SET_NAME and PR_SET_VMA (names of threads and of memory). Not the death signal.
_PRCTLS: Final = (2, 3, 15, 16, 21, 23, 39, 0x53564D41)

Step = tuple[int, int, int, int]


def _fail(number: int) -> Step:
    return (_RETURN, 0, 0, _ERROR | number)


_REFUSED: Final = _fail(errno.EPERM)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


def install(pid: int) -> None:
    """Put every thread of this process under the filter, for good; `pid` is its number as it sees it.

    New privileges must have been given up. Raises `OSError`.
    """
    steps = program(pid)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    described: Any = ctypes.byref(_Program(len(steps), ctypes.addressof(code)))
    system_call(_SECCOMP, _SET_FILTER, _ALL_THREADS, described)


def program(pid: int) -> list[Step]:
    """The filter for the process with this number."""
    steps: list[Step] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, _MACHINE),
        (
            _RETURN,
            0,
            0,
            _KILL,
        ),  # code of another architecture in the same process: its numbers mean other calls
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, _X32),
        _REFUSED,
    ]
    for name, checks in _rules(pid).items():
        steps += [(_EQUAL, 0, len(checks) + 1, WITH_RULES[name]), *checks, (_RETURN, 0, 0, _ALLOW)]
    for table, verdict in (
        (ALLOWED, (_RETURN, 0, 0, _ALLOW)),
        (PRETENDED, _fail(0)),
        (NO_ATTRIBUTES, _fail(errno.ENOTSUP)),
    ):
        for number in table.values():
            steps += [(_EQUAL, 0, 1, number), verdict]
    return [*steps, (_AT_LEAST, 0, 1, _FIRST_NEWER), _fail(errno.ENOSYS), _REFUSED]


def _rules(pid: int) -> dict[str, list[Step]]:
    """Checks of arguments by call; a call that passes all of its checks is allowed."""
    return {
        # threads only. clone3 keeps its flags where a filter cannot see them, and so "does not exist"
        "clone": [*_load(0), (_ANY_BIT, 1, 0, _CLONE_THREAD), _REFUSED, *_never(0, _NEW_NAMESPACES)],
        # the limit on data does not count shared memory: files may be shared to read, and nothing else
        "mmap": [*_load(3), (_ANY_BIT, 0, 5, _SHARED), *_never(3, _ANONYMOUS)[1:], *_never(2, _WRITABLE)],
        "open": _opening(1),
        "openat": _opening(2),
        "kill": _only(0, [pid]),
        "tgkill": _only(0, [pid]),
        "prlimit64": [*_only(0, [0, pid]), *_null(2)],  # reading limits, not setting them
        "ioctl": _only(1, _IOCTLS, errno.ENOTTY),
        "fcntl": _only(1, _FCNTLS),
        "prctl": _only(0, _PRCTLS),
        # connected streams: a datagram socket could still write to a named socket of another program
        "socketpair": [*_only(0, [_UNIX]), *_load(1), (_AND, 0, 0, 0x0F), *_only(1, [_STREAM])[1:]],
        "sendto": _null(4),
    }


def _load(argument: int) -> list[Step]:
    """The lower half of an argument; all that the kernel looks at where an argument is an int."""
    return [(_LOAD, 0, 0, 16 + 8 * argument)]


def _only(argument: int, values: Sequence[int], error: int = errno.EPERM) -> list[Step]:
    """Refuse all values of an argument but these."""
    last = len(values)
    tests = [(_EQUAL, last - place, 0, value) for place, value in enumerate(values)]
    return [*_load(argument), *tests, _fail(error)]


def _never(argument: int, bits: int) -> list[Step]:
    """Refuse an argument with any of these bits."""
    return [*_load(argument), (_ANY_BIT, 0, 1, bits), _REFUSED]


def _null(argument: int) -> list[Step]:
    """Refuse a pointer that is not null."""
    upper = (_LOAD, 0, 0, 20 + 8 * argument)
    return [*_load(argument), (_EQUAL, 0, 2, 0), upper, (_EQUAL, 1, 0, 0), _REFUSED]


def _opening(argument: int) -> list[Step]:
    """Refuse to truncate what is not opened for writing: no right is asked for that by Landlock 1 and 2.

    The access mode 3 counts as neither reading nor writing there.
    """
    checks: list[Step] = [*_load(argument), (_AND, 0, 0, 3), (_EQUAL, 0, 1, 3), _REFUSED]
    return [*checks, (_EQUAL, 0, 3, 0), *_never(argument, _TRUNCATE)]
