"""What a lock takes away and what it leaves, at the levels that have one."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ELSEWHERE
from tests.support.workers import Worker

pytestmark = pytest.mark.needs("linux", "lock", "bwrap")
LEVELS = ("standard", "strict")
_LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"


@pytest.fixture(scope="module")
def workers() -> Iterator[dict[str, Worker]]:
    """One worker of each level, for cells that leave nothing behind."""
    with Worker(level="standard") as standard, Worker(level="strict") as strict, Worker(level="none") as none:
        yield {"standard": standard, "strict": strict, "none": none}


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A file of the user that no worker has to see."""
    folder = tmp_path / "private"
    folder.mkdir()
    file = folder / "private.txt"
    file.write_text("private words")
    return file


def refused(worker: Worker, code: str) -> str:
    """The name of the error that a cell ends in, which must be one of access or absence."""
    report = worker.run(code)
    assert report.exception_type in ("PermissionError", "FileNotFoundError", "OSError"), report
    return str(report.exception)


# -- files


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "code",
    [
        "open({path!r}).read()",
        "open({path!r}, 'a')",
        "open({folder!r} + '/new', 'w')",
        "import os\nos.listdir({folder!r})",
        "import os\nos.truncate({path!r}, 0)",
        "import os\nos.unlink({path!r})",
        "import os\nos.rename({path!r}, 'mine')",
        "import os\nos.link({path!r}, 'mine')",
        "import os\nos.symlink({path!r}, 'mine')\nopen('mine').read()",
        "import os\nos.open({path!r}, os.O_RDONLY | os.O_TRUNC)",
        "import os\nos.open({path!r}, 3 | os.O_TRUNC)",
        "import os\nos.mkfifo('pipe')",
        "import os\nos.setxattr({path!r}, 'user.mark', b'1')",
        "import sqlite3\nsqlite3.connect({folder!r} + '/new.db').execute('create table t (x)')",
        "open('/proc/self/environ').read()",
        "open('/proc/1/cmdline').read()",
        "open('/etc/passwd').read()",
    ],
)
def test_files_of_the_user_are_out_of_reach(
    workers: dict[str, Worker], private: Path, level: str, code: str
) -> None:
    report = workers[level].run(code.format(path=str(private), folder=str(private.parent)))
    assert report.exception_type in ("PermissionError", "FileNotFoundError", "OSError", "OperationalError")
    assert private.read_text() == "private words"
    assert os.listdir(private.parent) == [private.name]


@pytest.mark.parametrize("level", LEVELS)
def test_owners_modes_and_times_of_other_files_stay(
    workers: dict[str, Worker], private: Path, level: str
) -> None:
    before = private.stat()
    for change in (f"chmod({str(private)!r}, 0o777)", f"utime({str(private)!r}, (1, 1))"):
        assert workers[level].run(f"import os\nos.{change}").exception is None
    after = private.stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


@pytest.mark.parametrize("level", LEVELS)
def test_the_corpus_is_read_only(level: str, tmp_path: Path) -> None:
    with Worker(level=level, texts={"a.txt": "kept", "b.txt": "too"}) as worker:
        path = Path(worker.environment.documents[0]["path"])
        for code in (
            f"open({str(path)!r}, 'a')",
            f"import os\nos.open({str(path)!r}, os.O_TRUNC)",
            f"import mmap\nwith open({str(path)!r}) as f: mmap.mmap(f.fileno(), 0)",
        ):
            refused(worker, code)
        assert worker.out("print(documents[0])") == "kept"
        assert path.read_text() == "kept"


def test_names_of_other_files_are_visible_at_standard_and_not_at_strict(
    workers: dict[str, Worker], private: Path
) -> None:
    look = f"import os\nprint(os.path.exists({str(private)!r}))"
    assert workers["standard"].out(look) == "True"
    assert workers["strict"].out(look) == "False"


@pytest.mark.parametrize("level", ("none", *LEVELS))
def test_the_scratch_folder_can_be_used_freely(workers: dict[str, Worker], level: str) -> None:
    code = (
        "import os, shutil, tempfile, pathlib\n"
        "pathlib.Path('a/b').mkdir(parents=True)\npathlib.Path('a/b/c').write_text('text')\n"
        "os.rename('a/b/c', 'a/b/d')\nos.chmod('a/b/d', 0o600)\nshutil.copy('a/b/d', 'copy')\n"
        "shutil.copytree('a', 'tree')\nshutil.move('tree/b/d', 'moved')\n"
        "with open('moved', 'r+') as f: f.truncate(2)\n"
        "with tempfile.TemporaryFile() as f: f.write(b'x')\n"
        "with open(os.devnull, 'w') as f: f.write('gone')\n"
        "print(open('moved').read(), open('copy').read(), os.getcwd() == os.environ['HOME'])\n"
        "shutil.rmtree('a'); shutil.rmtree('tree'); os.remove('copy'); os.remove('moved')\n"
    )
    assert workers[level].out(code) == "te text True"


# -- processes, network, memory


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.fork()",
        "import subprocess\nsubprocess.run(['true'])",
        "import os\nos.posix_spawn('/bin/true', ['true'], {})",
        "import os\nos.execv('/bin/true', ['true'])",
        "import multiprocessing\nmultiprocessing.Process(target=print).start()",
        "import os\nos.kill(os.getppid() or 2, 0)",
        "import os, signal\nos.killpg(0, signal.SIGCONT)",
        "import os\nos.setsid()",
        "import os\nos.nice(5)",
        "import socket\nsocket.socket()",
        "import socket\nsocket.socket(socket.AF_UNIX)",
        "import socket\nsocket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "import socket\na, b = socket.socketpair()\na.sendto(b'x', '/run/log')",
        "import socket\na, b = socket.socketpair()\na.sendmsg([b'x'])",
        "import fcntl, os\nr, w = os.pipe()\nfcntl.fcntl(r, fcntl.F_SETOWN, os.getppid() or 1)",
        "import fcntl, os\nr, w = os.pipe()\nfcntl.fcntl(r, fcntl.F_SETSIG, 9)",
        "import mmap\nmmap.mmap(-1, 4096)",
        "import mmap\nmmap.mmap(-1, 4096, prot=mmap.PROT_READ)",
        "import mmap\nf = open('s', 'wb+')\nf.write(bytes(4096))\nf.flush()\nmmap.mmap(f.fileno(), 4096)",
        "import os\nos.memfd_create('x')",
    ],
)
def test_other_processes_sockets_and_shared_memory_are_refused(
    workers: dict[str, Worker], level: str, code: str
) -> None:
    refused(workers[level], code)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "call",
    [
        "prctl(1, 0, 0, 0, 0)",  # the signal with which the worker dies when the engine does
        "unshare(0x10000000)",
        "ptrace(16, os.getppid() or 1, 0, 0)",
        "syscall(435, 0, 0)",  # clone3
        "syscall(425, 1, 0)",  # io_uring_setup
        "syscall(200, os.getpid(), 0)",  # tkill takes any thread of the machine
        "syscall(57 + 0x40000000)",  # fork as the x32 interface knows it
        "syscall(160, 2, 0)",  # setrlimit
        "mount(b'none', b'/tmp', b'tmpfs', 0, None)",
        "chroot(b'/tmp')",
    ],
)
def test_system_calls_made_by_hand_fail_too(workers: dict[str, Worker], level: str, call: str) -> None:
    assert workers[level].out(f"{_LIBC}print(libc.{call})") == "-1"


@pytest.mark.parametrize("level", LEVELS)
def test_limits_cannot_be_raised_but_read(workers: dict[str, Worker], level: str) -> None:
    code = "import resource\nprint(resource.getrlimit(resource.RLIMIT_DATA)[0] == {})\n"
    memory = workers[level].environment.limits.memory_bytes
    assert workers[level].out(code.format(memory)) == "True"
    report = workers[level].run("resource.setrlimit(resource.RLIMIT_DATA, (1 << 40, 1 << 40))")
    assert report.exception_type in ("ValueError", "PermissionError")


@pytest.mark.parametrize("level", LEVELS)
def test_code_of_another_architecture_is_killed(level: str) -> None:
    """`int 0x80` reaches the calls of 32-bit programs, whose numbers a filter would read as other ones."""
    code = (
        "import ctypes, mmap\n"
        "m = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)\n"
        "m.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))\n"
        "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()\n"
    )
    from rlm_core.errors import WorkerDied

    with Worker(level=level) as worker, pytest.raises(WorkerDied, match="SIGSYS"):
        worker.run(code)


@pytest.mark.parametrize("level", LEVELS)
def test_what_the_engine_listens_on_is_never_reached(workers: dict[str, Worker], level: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        port = listener.getsockname()[1]
        connect = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 1).close()"
        refused(workers[level], connect)
        with pytest.raises(TimeoutError):
            listener.accept()
        assert workers["none"].run(connect).exception is None  # so the attempt is a real one
        listener.accept()[0].close()


# -- what must go on


IMPORTS: dict[str, str] = {
    "numpy": "import numpy as np\nprint(int(np.linalg.inv(np.eye(9)).sum()))\n# 9",
    "pandas and parquet": (
        "import pandas as pd\npd.DataFrame({'a': [1, 2]}).to_parquet('t')\n"
        "print(len(pd.read_parquet('t')))\n# 2"
    ),
    "scipy": (
        "import scipy.stats, scipy.optimize\n"
        "print(scipy.stats.norm.cdf(0), scipy.optimize.brentq(lambda x: x - 1, 0, 3))\n# 0.5 1.0"
    ),
    "sympy": "import sympy\nx = sympy.Symbol('x')\nprint(sympy.integrate(2 * x, x))\n# x**2",
    "sqlite3": (
        "import sqlite3\nc = sqlite3.connect('db')\nc.execute('create table t (x)')\n"
        "c.execute('insert into t values (7)')\nc.commit()\n"
        "print(c.execute('select x from t').fetchall())\n# [(7,)]"
    ),
    "asyncio": (
        "import asyncio\nasync def f(): return await asyncio.to_thread(lambda: 7)\n"
        "print(asyncio.run(f()))\n# 7"
    ),
    "zoneinfo": (
        "import datetime, zoneinfo\nzone = zoneinfo.ZoneInfo('Europe/Berlin')\n"
        "print(datetime.datetime(2026, 7, 1, tzinfo=zone).utcoffset())\n# 2:00:00"
    ),
    "threads": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool: print(sum(pool.map(abs, range(-9, 0))))\n# 45"
    ),
    "compression": (
        "import bz2, gzip, lzma\nfor m in (bz2, gzip, lzma):\n"
        "    with m.open('z', 'wb') as f: f.write(b'x' * 9)\n"
        "    print(len(m.open('z').read()), end=' ')\n# 9 9 9"
    ),
    "random numbers": "import secrets, uuid\nprint(len(secrets.token_hex(4)), uuid.uuid4().version)\n# 8 4",
    "logging": (
        "import logging\nlogging.basicConfig(filename='l')\nlogging.error('said')\n"
        "print(open('l').read())\n# ERROR:root:said"
    ),
    "bm25s": (
        "import bm25s\nr = bm25s.BM25()\nr.index(bm25s.tokenize(['a cat', 'a dog'], show_progress=False), "
        "show_progress=False)\nprint(r.scores['num_docs'])\n# 2"
    ),
    "processors": "import os\nprint(os.cpu_count() >= len(os.sched_getaffinity(0)) >= 1)\n# True",
    "types of files": "import mimetypes\nprint(mimetypes.guess_type('a.html')[0])\n# text/html",
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("what", IMPORTS)
def test_libraries_work_under_the_lock(workers: dict[str, Worker], level: str, what: str) -> None:
    code, _, expected = IMPORTS[what].rpartition("\n# ")
    assert workers[level].out(code) == expected


def test_threads_of_libraries_are_under_the_lock_too(workers: dict[str, Worker], private: Path) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\nimport numpy\n"
        f"with ThreadPoolExecutor(1) as pool: pool.submit(open, {str(private)!r}).result()"
    )
    assert "PermissionError" in refused(workers["standard"], code)


def lock_in_a_process(code: str, *arguments: Any) -> tuple[int, str]:
    """Run code that locks itself in a Python of its own; its exit code and what it said."""
    import subprocess

    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.append({root!r})\n{code}", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).strip()


def test_a_process_with_other_threads_is_not_locked() -> None:
    code = (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n"
        "from rlm_core.worker.lock import lock_down\nlock_down([], [])"
    )
    status, said = lock_in_a_process(code)
    assert status == 1 and said.endswith(
        "SandboxError: the process has other threads, which a lock would not reach"
    )


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    code = "from rlm_core.worker.lock import lock_down\nlock_down([sys.argv[1]], [])"
    status, said = lock_in_a_process(code, tmp_path / "gone")
    assert status == 1 and f"the lock cannot reach {tmp_path / 'gone'}: No such file or directory" in said


def test_other_processes_can_lock_themselves_in_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("input")
    (tmp_path / "out").mkdir()
    code = (
        "from rlm_core.worker.lock import lock_down\nsource, folder, private = sys.argv[1:]\n"
        "print(lock_down([source], [folder], memory_bytes=1 << 30, file_bytes=1 << 20))\n"
        "open(folder + '/copy', 'w').write(open(source).read())\n"
        "try: open(private)\nexcept PermissionError: print('private')\n"
    )
    status, said = lock_in_a_process(code, tmp_path / "in", tmp_path / "out", __file__)
    assert status == 0, said
    assert "'seccomp'" in said and "'no capabilities'" in said and said.endswith("private")
    assert (tmp_path / "out" / "copy").read_text() == "input"


@pytest.mark.parametrize("abi", range(1, 8))
def test_every_version_of_landlock_keeps_other_files_as_they_are(private: Path, abi: int) -> None:
    """Older kernels are simulated by what they can forbid; what they cannot is seccomp's part."""
    from rlm_core.worker import landlock  # a module of Linux

    if (known := landlock.version()) < abi:
        pytest.skip(f"{ELSEWHERE}this kernel has Landlock up to version {known}")
    code = (
        "import os\nfrom rlm_core.worker import landlock\nfrom rlm_core.worker.lock import lock_down\n"
        "landlock.version = lambda: int(sys.argv[2])\n"
        "path = sys.argv[1]\nprint(lock_down([], []))\n"
        "attempts = [lambda: os.truncate(path, 0), lambda: os.unlink(path)]\n"
        "attempts.append(lambda: os.rename(path, path + 'x'))\n"
        "attempts += [lambda mode=mode: os.open(path, mode) for mode in\n"
        "    (os.O_RDONLY, os.O_WRONLY, os.O_TRUNC, os.O_TRUNC | 3, os.O_RDWR | os.O_TRUNC)]\n"
        "for attempt in attempts:\n"
        "    try: attempt()\n    except PermissionError: print('refused')\n    else: print('DONE')\n"
    )
    status, said = lock_in_a_process(code, private, abi)
    assert status == 0, said
    assert said.count("refused") == 8 and f"landlock abi {abi}" in said and "DONE" not in said
    assert private.read_text() == "private words"
