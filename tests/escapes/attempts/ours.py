"""More ways to reach the parent, to outlive it, or to hide memory, beside those of the survey."""

from __future__ import annotations

from typing import Final

from tests.escapes.attempts.model import Attempt, blocked

ATTEMPTS: Final[tuple[Attempt, ...]] = (
    blocked(
        "E112",
        "a signal to the parent by way of a pipe that reports to it",
        "processes",
        """
        import fcntl, os
        out, into = os.pipe()
        fcntl.fcntl(out, 8, PPID)  # F_SETOWN
        fcntl.fcntl(out, 10, 10)  # F_SETSIG: SIGUSR1
        fcntl.fcntl(out, fcntl.F_SETFL, fcntl.fcntl(out, fcntl.F_GETFL) | 0x2000)  # O_ASYNC
        os.write(into, b'x')
        """,
        fresh=True,
    ),
    blocked(
        "E113",
        "no death with the parent any more",
        "processes",
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(1, 0, 0, 0, 0)
        asked = ctypes.c_int(-1)
        libc.prctl(2, ctypes.byref(asked), 0, 0, 0)
        print('ESCAPED' if asked.value == 0 else ctypes.get_errno())
        """,
        fresh=True,
    ),
    blocked(
        "E114",
        "the parent made slow: its priority",
        "processes",
        """
        import os
        now = os.getpriority(os.PRIO_PROCESS, PPID)
        os.setpriority(os.PRIO_PROCESS, PPID, now + 1)
        print('ESCAPED')
        """,
        fresh=True,
    ),
    blocked(
        "E115",
        "the parent made poor: its limits",
        "processes",
        """
        import resource
        _, most = resource.prlimit(PPID, resource.RLIMIT_NOFILE)
        resource.prlimit(PPID, resource.RLIMIT_NOFILE, (min(most, 200), most))
        print('ESCAPED')
        """,
        fresh=True,
    ),
    blocked(
        "E116",
        "the parent kept on one processor",
        "processes",
        """
        import os
        os.sched_setaffinity(PPID, os.sched_getaffinity(PPID))
        print('ESCAPED')
        """,
        fresh=True,
    ),
    blocked(
        "E117",
        "shared memory of System V, which outlives its process",
        "limits",
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        made = libc.shmget(0, 1 << 20, 0o1600)
        print('ESCAPED' if made >= 0 else ctypes.get_errno())
        libc.shmctl(made, 0, None)  # IPC_RMID
        """,
    ),
    blocked(
        "E118",
        "the keys that the kernel keeps for the session",
        "processes",
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        number = 250 if os.uname().machine == 'x86_64' else 219
        ring = libc.syscall(number, 0, -3, 1)  # KEYCTL_GET_KEYRING_ID of the session
        print('ESCAPED' if ring > 0 else ctypes.get_errno())
        """,
    ),
    blocked(
        "E119",
        "a watch on the private folder of a user",
        "processes",
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.inotify_init1(0)
        print('ESCAPED' if libc.inotify_add_watch(watch, HOME.encode(), 0xfff) >= 0 else ctypes.get_errno())
        """,
    ),
)
