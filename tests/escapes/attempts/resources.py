"""Eating the machine: memory, processor, output."""

from __future__ import annotations

from typing import Final

from tests.escapes.attempts.model import Attempt, blocked, contained

_SMALL: Final = {"memory_bytes": 256 << 20}
_CAPPED: Final = "level none has this limit too"

ATTEMPTS: Final[tuple[Attempt, ...]] = (
    blocked(
        "E57",
        "three times the limit at once",
        "none",
        "taken = bytearray(3 * MEMORY)\nprint('ESCAPED')",
        shown="naked",
        why=_CAPPED,
    ),
    blocked(
        "E58",
        "a list that grows to three times the limit",
        "none",
        """
        taken = []
        while len(taken) < 3 * (MEMORY >> 24):
            taken.append(b'x' * (1 << 24))
        print('ESCAPED')
        """,
        limits=_SMALL,
        state="any",
        fresh=True,
        seconds=20,
        shown="naked",
        why=_CAPPED,
    ),
    blocked(
        "E59",
        "shared memory of three times the limit, which limits of a process do not count",
        "limits",
        """
        import mmap
        taken = mmap.mmap(-1, 3 * MEMORY)
        for place in range(0, 3 * MEMORY, 4096):
            taken[place] = 1
        print('ESCAPED')
        """,
        limits=_SMALL,
        state="any",
        fresh=True,
        seconds=20,
        heavy=True,
    ),
    blocked(
        "E60",
        "numbers of three times the limit",
        "none",
        """
        import numpy
        taken = numpy.zeros(3 * MEMORY // 8)
        print('ESCAPED')
        """,
        state="any",
        shown="naked",
        why=_CAPPED,
    ),
    contained("E61", "a number of a billion digits", "10 ** (10 ** 9)", seconds=1, heavy=True),
    contained("E62", "an endless loop", "while True: pass", state="keep", seconds=0.3),
    contained(
        "E63",
        "an endless loop that catches its interrupt",
        """
        while True:
            try:
                while True: pass
            except BaseException:
                pass
        """,
        seconds=0.3,
    ),
    contained(
        "E64",
        "an endless loop that ignores the signal",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        seconds=0.3,
        heavy=True,
    ),
    contained(
        "E65",
        "an endless loop that blocks the signal",
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nwhile True: pass",
        seconds=0.3,
        heavy=True,
    ),
    contained(
        "E66",
        "a regular expression that never ends, in C",
        "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
        seconds=0.3,
    ),
    contained("E67", "arithmetic that takes minutes, in C", "pow(3, 10 ** 8)", seconds=0.3, heavy=True),
    contained("E68", "a sleep of 1,000 s", "import time\ntime.sleep(1000)", state="keep", seconds=0.3),
    contained("E69", "deep recursion", "def down(n): return down(n + 1)\ndown(0)", state="keep"),
    contained(
        "E70",
        "recursion until the stack of C is full",
        """
        import sys
        sys.setrecursionlimit(10 ** 9)
        class Down:
            def __getattr__(self, name): return getattr(self, name + 'x')
        Down().start
        """,
    ),
    contained("E71", "a read from address zero", "import ctypes\nctypes.string_at(0)"),
    contained("E72", "an end without goodbye", "import os\nos._exit(3)"),
    contained("E73", "SIGKILL to itself", "import os\nos.kill(os.getpid(), 9)"),
    contained("E74", "sys.exit", "import sys\nsys.exit(1)", state="keep"),
    contained(
        "E75",
        "a thread that spins on after its cell",
        """
        import threading
        def spin():
            while True: pass
        threading.Thread(target=spin, daemon=True).start()
        """,
    ),
    contained(
        "E76",
        "hooks left behind for the next cell",
        """
        import atexit, sys
        def hook(*_): raise SystemExit
        atexit.register(hook)
        class Late:
            def __del__(self): raise SystemExit
        late = Late()
        sys.settrace(hook)
        sys.setprofile(hook)
        """,
        state="keep",
    ),
    contained("E77", "print without end", "while True: print('x' * 1000)", state="keep", seconds=0.5),
    contained(
        "E78",
        "writing to standard output without end",
        "import os\nwhile True: os.write(1, b'y' * 65536)",
        state="keep",
        seconds=0.5,
    ),
    contained(
        "E79",
        "control characters for a terminal",
        r"import os; os.write(2, b'\x1b]0;title\x07' * 100); print('\x1b[2J')",
        state="keep",
    ),
    contained("E80", "a value whose text has a billion characters", "'x' * (1 << 30)", heavy=True),
    contained("E81", "text that is no text", r"print('\udcff\x00\ud800')", state="keep"),
    contained(
        "E111",
        "a loop with a body that catches everything",
        """
        while True:
            try:
                for number in range(10 ** 9): pass
            except BaseException:
                pass
        """,
        seconds=0.3,
    ),
)
