"""Starting programs, and getting at other processes."""

from __future__ import annotations

from typing import Final

from tests.escapes.attempts.model import Attempt, blocked, contained

_X86: Final = ("x86_64",)

ATTEMPTS: Final[tuple[Attempt, ...]] = (
    blocked(
        "E24",
        "a program started with subprocess",
        "processes",
        """
        import subprocess
        print('ESCAPED', subprocess.run(['/bin/echo', 'out'], capture_output=True).stdout)
        """,
    ),
    blocked(
        "E25",
        "a shell started with os.system",
        "processes",
        """
        import os
        status = os.system('echo out > from_shell')
        print('ESCAPED' if status == 0 and os.path.exists('from_shell') else status)
        """,
    ),
    blocked(
        "E26",
        "the worker itself replaced by a shell",
        "processes",
        """
        import os
        for number in range(3, 40):
            try:
                os.set_inheritable(number, True)  # so that the engine does not see its pipe close
            except OSError:
                pass
        os.execv('/bin/sh', ['sh', '-c', f'echo out > {CANARIES}/by_shell; exec sleep 20'])
        """,
        state="any",
        fresh=True,
        seconds=1,
    ),
    blocked(
        "E27",
        "many forks (20 at most)",
        "processes",
        """
        import os, time
        made = 0
        try:
            for _ in range(20):
                if os.fork() == 0:
                    time.sleep(6)
                    os._exit(0)
                made += 1
        except OSError as error:
            print(type(error).__name__)
        print('ESCAPED' if made else 'nothing', made)
        """,
        fresh=True,
    ),
    blocked(
        "E28",
        "a fork by its number",
        "processes",
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        number = (57,) if os.uname().machine == 'x86_64' else (220, 17, 0, 0, 0, 0)
        child = libc.syscall(*number)
        if child == 0:
            libc._exit(0)
        print('ESCAPED' if child > 0 else ctypes.get_errno())
        """,
        state="any",
        fresh=True,
    ),
    blocked(
        "E29",
        "a fork by clone3, whose arguments a filter cannot see",
        "processes",
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        wanted = (ctypes.c_uint64 * 11)()
        wanted[4] = 17
        child = libc.syscall(435, wanted, 88)
        if child == 0:
            libc._exit(0)
        print('ESCAPED' if child > 0 else ctypes.get_errno())
        """,
        state="any",
        fresh=True,
    ),
    blocked(
        "E30",
        "a fork by the numbers of another interface (x32)",
        "processes",
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        child = libc.syscall(0x40000000 + 57)
        if child == 0:
            libc._exit(0)
        print('ESCAPED' if child > 0 else ctypes.get_errno())
        """,
        state="any",
        fresh=True,
        machines=_X86,
        shown="no",
        why="most kernels are built without the x32 interface",
    ),
    blocked(
        "E31",
        "a fork by a 32-bit system call from machine code",
        "processes",
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        page = libc.mmap(None, 4096, 7, 0x22, -1, 0)
        ctypes.memmove(page, bytes.fromhex('b802000000cd80c3'), 8)  # mov eax, 2; int 0x80; ret
        child = ctypes.CFUNCTYPE(ctypes.c_int)(page)()
        if child == 0:
            libc._exit(0)
        print('ESCAPED' if child > 0 else child)
        """,
        state="any",
        fresh=True,
        machines=_X86,
    ),
    blocked(
        "E32",
        "a pool of processes",
        "processes",
        """
        import multiprocessing
        with multiprocessing.get_context('fork').Pool(2) as pool:
            print('ESCAPED', pool.map(abs, [-1, -2]))
        """,
        fresh=True,
    ),
    contained(
        "E33",
        "3,000 threads that sleep",
        """
        import threading, time
        made = 0
        try:
            for _ in range(3000):
                threading.Thread(target=time.sleep, args=(3,), daemon=True).start()
                made += 1
        except (RuntimeError, MemoryError) as error:
            print(error)
        print(made, 'threads')
        """,
        heavy=True,
    ),
    blocked("E34", "SIGKILL to the parent", "processes", "import os\nos.kill(PPID, 9)", fresh=True),
    blocked(
        "E35",
        "a signal to every process of the user",
        "processes",
        "import os\nos.kill(-1, 15)",
        state="any",
        fresh=True,
    ),
    blocked(
        "E36",
        "the parent taken over as a debugger would",
        "processes",
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        seized = libc.ptrace(0x4206, PPID, 0, 0)  # PTRACE_SEIZE: unlike an attach it does not stop it
        print('ESCAPED' if seized == 0 else ctypes.get_errno())
        """,
        fresh=True,
    ),
    blocked(
        "E37",
        "memory of the parent read with process_vm_readv",
        "processes",
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        class Part(ctypes.Structure):
            _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
        mine = ctypes.create_string_buffer(8)
        here, there = Part(ctypes.addressof(mine), 8), Part(PADDR, 8)
        got = libc.process_vm_readv(PPID, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        print('ESCAPED' if got > 0 else ctypes.get_errno())
        """,
    ),
    blocked(
        "E38",
        "memory of the parent read through /proc",
        "reading",
        """
        memory = open(f'/proc/{PPID}/mem', 'rb')
        memory.seek(PADDR)
        print('ESCAPED' if memory.read(8) else 'nothing')
        """,
    ),
    blocked(
        "E39",
        "a descriptor taken from the parent",
        "processes",
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        parent = libc.syscall(434, PPID, 0)
        taken = libc.syscall(438, parent, PFD, 0) if parent >= 0 else -1
        print('ESCAPED' if taken >= 0 else ctypes.get_errno())
        """,
    ),
    blocked(
        "E40",
        "its own limits raised",
        "limits",
        """
        import resource
        resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print('ESCAPED')
        """,
        fresh=True,
        shown="naked",
        why="without the right to raise hard limits the kernel stops it at level none too",
    ),
    blocked(
        "E107",
        "a program started by the part below subprocess",
        "processes",
        """
        import _posixsubprocess, os
        out, into = os.pipe()
        errors, failed = os.pipe()
        ends = (-1, -1, -1, into, -1, -1, errors, failed)
        rest = (False, False, -1, None, None, None, -1, None, False)
        start = [b'/bin/echo', b'out'], [b'/bin/echo'], True, (failed,), None, None, *ends
        try:
            child = _posixsubprocess.fork_exec(*start, *rest)
        except TypeError:  # Python 3.14 has no last argument any more
            child = _posixsubprocess.fork_exec(*start, *rest[:-1])
        print('ESCAPED' if child > 0 else 'nothing')
        """,
        state="any",
        fresh=True,
    ),
)
