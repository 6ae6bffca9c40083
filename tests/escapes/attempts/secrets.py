"""Reading what is not the run's: the environment of others, keys, private files."""

from __future__ import annotations

from typing import Final

from tests.escapes.attempts.model import Attempt, blocked

_EMPTY: Final = "level none builds the environment of a worker from nothing too"

ATTEMPTS: Final[tuple[Attempt, ...]] = (
    blocked(
        "E01",
        "a secret of the parent in the worker's own environment",
        "environment",
        """
        import os
        print('ESCAPED' if any(MARK in value for value in os.environ.values()) else 'nothing')
        """,
        shown="naked",
        why=_EMPTY,
    ),
    blocked(
        "E02",
        "the environment of the parent, through /proc",
        "reading",
        """
        found = open(f'/proc/{PPID}/environ', 'rb').read()
        print('ESCAPED' if MARK.encode() in found else 'nothing')
        """,
    ),
    blocked(
        "E03",
        "the environment this process was started with, through /proc/self",
        "environment",
        """
        found = open('/proc/self/environ', 'rb').read()
        print('ESCAPED' if MARK.encode() in found else 'nothing')
        """,
        shown="naked",
        why=_EMPTY,
    ),
    blocked(
        "E04",
        "the environment of every process",
        "reading",
        """
        import os
        for name in os.listdir('/proc'):
            try:
                if name.isdigit() and MARK.encode() in open(f'/proc/{name}/environ', 'rb').read():
                    print('ESCAPED')
            except OSError:
                pass
        """,
    ),
    blocked(
        "E05",
        "a private key under the home folder",
        "reading",
        "print('ESCAPED' if MARK in open(HOME + '/.ssh/id_x').read() else 'nothing')",
    ),
    blocked(
        "E06",
        "cloud credentials, by a path that climbs out of the scratch folder",
        "reading",
        """
        import os
        climb = '/..' * (os.getcwd().count('/') + 2)
        print('ESCAPED' if MARK in open(os.getcwd() + climb + HOME + '/.aws/credentials').read() else '')
        """,
    ),
    blocked(
        "E07",
        "the names in the home folder",
        "reading",
        """
        import os
        print('ESCAPED', os.listdir(HOME))
        """,
    ),
    blocked(
        "E08", "the users of the machine", "reading", "print('ESCAPED', len(open('/etc/passwd').read()))"
    ),
    blocked(
        "E09",
        "a symbolic link in the scratch folder to a key",
        "reading",
        """
        import os
        if not os.path.lexists('way'):
            os.symlink(HOME + '/.ssh/id_x', 'way')
        print('ESCAPED' if MARK in open('way').read() else 'nothing')
        """,
    ),
    blocked(
        "E10",
        "a hard link in the scratch folder to a key",
        "reading",
        """
        import os
        os.link(HOME + '/.ssh/id_x', 'also')
        print('ESCAPED' if MARK in open('also').read() else 'nothing')
        """,
    ),
    blocked(
        "E11",
        "descriptors the parent may have left open, by trying them all",
        "reading",
        """
        import os
        for number in range(3, 256):
            for path in ('.ssh/id_x', HOME + '/.ssh/id_x'):
                try:
                    if MARK in os.readlink(f'/proc/self/fd/{number}'):
                        print('ESCAPED')
                    print('ESCAPED', os.open(path, os.O_RDONLY, dir_fd=number))
                except OSError:
                    pass
        """,
    ),
    blocked(
        "E12",
        "a key opened by the C library through ctypes",
        "reading",
        """
        import ctypes, os
        opened = ctypes.CDLL(None).open((HOME + '/.ssh/id_x').encode(), os.O_RDONLY)
        print('ESCAPED' if opened >= 0 and MARK.encode() in os.read(opened, 1000) else 'nothing')
        """,
    ),
    blocked(
        "E13",
        "a key read by numpy",
        "reading",
        """
        import numpy
        found = numpy.fromfile(HOME + '/.ssh/id_x', dtype='u1').tobytes()
        print('ESCAPED' if MARK.encode() in found else 'nothing')
        """,
    ),
    blocked(
        "E14",
        "credentials mapped into memory by pandas",
        "reading",
        """
        import pandas
        frame = pandas.read_csv(HOME + '/.aws/credentials', header=None, memory_map=True)
        print('ESCAPED' if MARK in frame.to_string() else 'nothing')
        """,
    ),
    blocked(
        "E15",
        "a ring of io_uring, which opens files without the usual system calls",
        "reading",
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        ring = libc.syscall(425, 8, ctypes.create_string_buffer(120))
        print('ESCAPED' if ring >= 0 else ctypes.get_errno())
        """,
        shown="root",
        why="its rings take locked memory, of which no level gives an ordinary user any",
    ),
    blocked(
        "E16",
        "a file opened by its handle, past all folders",
        "reading",
        r"""
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        handle = ctypes.create_string_buffer((120).to_bytes(4, 'little') + bytes(200))
        mount = ctypes.c_int()
        path = (HOME + '/.ssh/id_x').encode()
        if libc.name_to_handle_at(-100, path, handle, ctypes.byref(mount), 0) == 0:
            root = os.open('/', os.O_RDONLY)
            opened = libc.open_by_handle_at(root, handle, 0)
            print('ESCAPED' if opened >= 0 and MARK.encode() in os.read(opened, 1000) else 'nothing')
        """,
        shown="root",
        why="the kernel keeps this call for root",
    ),
    blocked(
        "E102",
        "metadata of a private file: its size and time",
        "metadata",
        """
        import os
        print('ESCAPED', os.stat(HOME + '/.ssh/id_x').st_size)
        """,
    ),
    blocked(
        "E103",
        "metadata: whether a private file exists",
        "metadata",
        """
        import os
        print('ESCAPED' if os.path.exists(HOME + '/.ssh/id_x') else 'nothing')
        """,
    ),
    blocked(
        "E104",
        "a thread that the lock may have missed reads a key",
        "reading",
        """
        import os, threading
        import numpy
        numpy.ones((300, 300)) @ numpy.ones((300, 300))
        def look():
            try:
                print('ESCAPED' if MARK in open(HOME + '/.ssh/id_x').read() else 'nothing')
            except OSError as error:
                print(type(error).__name__)
        reader = threading.Thread(target=look)
        reader.start(); reader.join()
        for task in os.listdir('/proc/self/task'):
            state = open(f'/proc/self/task/{task}/status').read().partition('Seccomp:')[2].split()[0]
            print('ESCAPED' if state == '0' else state)
        """,
    ),
    blocked(
        "E105",
        "a key read by pyarrow, whose files Python does not see",
        "reading",
        """
        import pyarrow
        found = pyarrow.OSFile(HOME + '/.ssh/id_x').read()
        print('ESCAPED' if MARK.encode() in found else 'nothing')
        """,
    ),
    blocked(
        "E108",
        "a database made by sqlite beside a key",
        "writing",
        """
        import sqlite3
        made = sqlite3.connect(HOME + '/.ssh/new.db')
        made.execute('create table if not exists t(x)')
        made.commit()
        print('ESCAPED')
        """,
    ),
    blocked(
        "E109",
        "a key read as a table by numpy",
        "reading",
        """
        import numpy
        print('ESCAPED' if MARK in str(numpy.genfromtxt(HOME + '/.ssh/id_x', dtype=str)) else 'nothing')
        """,
    ),
)
