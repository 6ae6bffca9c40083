"""Changing what is not the run's: files outside the scratch folder, the corpus, the program itself."""

from __future__ import annotations

from typing import Final

from tests.escapes.attempts.model import Attempt, blocked, contained

ATTEMPTS: Final[tuple[Attempt, ...]] = (
    blocked(
        "E41", "a new file outside the scratch folder", "writing", "open(CANARIES + '/new', 'w').write('x')"
    ),
    blocked("E42", "a file outside overwritten", "writing", "open(CANARIES + '/canary', 'w').write('x')"),
    blocked(
        "E43", "a file outside cut by its path", "writing", "import os\nos.truncate(CANARIES + '/canary', 0)"
    ),
    blocked(
        "E44",
        "the mode of a file outside changed",
        "writing",
        "import os\nos.chmod(CANARIES + '/canary', 0o777)",
    ),
    blocked("E45", "a file outside removed", "writing", "import os\nos.unlink(CANARIES + '/canary')"),
    blocked(
        "E46",
        "a file outside made through a symbolic link",
        "writing",
        """
        import os
        if not os.path.lexists('door'):
            os.symlink(CANARIES, 'door')
        open('door/new', 'w').write('x')
        """,
    ),
    blocked("E47", "the corpus opened for writing", "writing", "open(CORPUS, 'r+b').write(b'X')"),
    blocked(
        "E48",
        "the corpus mapped for writing from a descriptor that reads",
        "writing",
        """
        import mmap
        source = open(CORPUS, 'rb')
        mapped = mmap.mmap(source.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        mapped[0:1] = b'X'
        """,
        shown="no",
        why="the kernel maps a file for writing only from a descriptor that may write",
    ),
    blocked(
        "E49",
        "the corpus opened again for writing, through /proc",
        "writing",
        """
        source = open(CORPUS, 'rb')
        open(f'/proc/self/fd/{source.fileno()}', 'r+b').write(b'X')
        """,
    ),
    blocked(
        "E50",
        "code planted among the installed packages, which the parent would run one day",
        "writing",
        """
        import numpy, os
        place = os.path.dirname(os.path.dirname(numpy.__file__))
        open(place + '/' + PLANT, 'w').write('')
        """,
        shown="root",
        why="the packages belong to another user",
    ),
    blocked(
        "E51",
        "code planted beside the sources of the worker",
        "writing",
        "open(HERE + '/' + PLANT, 'w').write('')",
        shown="root",
        why="the sources belong to another user",
    ),
    blocked(
        "E52",
        "a device of its own",
        "writing",
        """
        import os
        os.mknod('device', 0o600 | 0o20000, os.makedev(1, 3))
        print('ESCAPED')
        """,
        shown="root",
        why="the kernel lets root alone make devices",
    ),
    blocked(
        "E53",
        "a user namespace and a mount of its own",
        "processes",
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        apart = libc.unshare(0x10000000 | 0x20000)  # user and mount namespaces
        os.makedirs('over', exist_ok=True)
        mounted = libc.mount(b'none', b'over', b'tmpfs', 0, None)
        print('ESCAPED' if apart == 0 or mounted == 0 else ctypes.get_errno())
        """,
        fresh=True,
    ),
    contained(
        "E54",
        "large files until the disk is full (bounded)",
        """
        import time
        block = bytes(1 << 20)
        for number in range(8):
            with open(f'large{number}', 'wb') as out:
                for _ in range(24):
                    out.write(block)
            time.sleep(0.25)
        """,
        limits={"scratch_bytes": 32 << 20},
        heavy=True,
    ),
    contained(
        "E55",
        "20,000 small files",
        """
        for number in range(20_000):
            open(f'small{number}', 'w').close()
        """,
        limits={"scratch_files": 2_000},
        heavy=True,
    ),
    contained(
        "E56",
        "a file that exists in memory only, of 8 GB",
        """
        import os
        hidden = os.memfd_create('hidden')
        os.ftruncate(hidden, 8 << 30)
        """,
        state="keep",
        fresh=True,
    ),
    blocked(
        "E100",
        "the times of a file outside changed",
        "writing",
        "import os\nos.utime(CANARIES + '/canary', (1, 1))",
    ),
    blocked(
        "E101",
        "owner and extended attributes of a file outside changed",
        "writing",
        """
        import os
        for change in (
            lambda: os.setxattr(CANARIES + '/canary', 'user.seen', b'1'),
            lambda: os.chown(CANARIES + '/canary', os.getuid(), os.getgid()),
        ):
            try:
                change()
            except OSError as error:
                print(error)
        """,
    ),
    blocked(
        "E106",
        "a file outside made by pyarrow, whose files Python does not see",
        "writing",
        """
        import pyarrow
        out = pyarrow.OSFile(CANARIES + '/by_arrow', 'wb')
        out.write(b'x')
        out.close()
        """,
    ),
    blocked(
        "E110",
        "the corpus emptied by opening it for reading, with the flag that truncates",
        "writing",
        "import os\nos.open(CORPUS, os.O_RDONLY | os.O_TRUNC)",
    ),
)
