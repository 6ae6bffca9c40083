"""Cells that do not end, eat the machine, or attack their worker and the engine behind it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_core.errors import WorkerDied
from rlm_core.wire import CellReport, Slot
from tests.support.processes import lives
from tests.support.workers import Host, Worker, shown

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _quick_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_core.worker_watch.POLL_SECONDS", 0.05)


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker() as fresh:
        yield fresh


@pytest.fixture
def bare() -> Iterator[Worker]:
    """Not the first process of a namespace, which ignores what it sends to itself."""
    with Worker(level="standard" if sys.platform == "linux" else "none") as fresh:
        yield fresh


def death(worker: Worker, code: str, **limits: Any) -> WorkerDied:
    with pytest.raises(WorkerDied) as caught:
        worker.run(code, **limits)
    return caught.value


def alive_after(worker: Worker) -> None:
    """The engine can go on with a new process."""
    worker.restart()
    assert worker.out("print(llm_query('again'))") == "again"


# -- interrupts


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time\ntime.sleep(60)",
        "x = [n for n in iter(int, 1)]",
        "while True: print('flood')",
        "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
        "import threading\nthreading.Event().wait()",
        "import asyncio\nasyncio.run(asyncio.sleep(60))",
        "class H:\n    def __repr__(self):\n        while True: pass\nH()",
        "class H:\n    def __repr__(self):\n        while True: pass\nFINAL(H())",
        "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E",
        "class F:\n    def __bool__(self):\n        while True: pass\nanswer['ready'] = F()",
    ],
)
def test_an_endless_cell_is_interrupted_and_its_state_stays(worker: Worker, code: str) -> None:
    worker.run("kept = 1")
    report = worker.run(f"also = 2\n{code}", cell_seconds=0.3)
    assert report.interrupted_by is not None and "wall time" in report.interrupted_by
    assert report.exception_type is not None
    assert worker.out("print(kept, also, llm_query('x'))") == "1 2 x"


def test_processor_time_counts_while_sub_calls_are_out() -> None:
    host = Host(lambda slot: asyncio.sleep(20, "late"))
    with Worker(host=host, cell_seconds=20, cell_cpu_seconds=0.3) as worker:
        code = (
            "import threading\nt = threading.Thread(target=llm_query, args=('x',), daemon=True)\nt.start()\n"
        )
        code += "while True: pass"

        async def work() -> CellReport:
            try:
                return await worker.environment.run_cell(0, code, host)
            finally:
                worker.environment.drop_calls()

        report = worker.wait(work())
    assert report.interrupted_by is not None and "CPU" in report.interrupted_by
    assert report.cpu_seconds is not None and report.cpu_seconds > 0.2


def test_wall_time_stands_still_while_sub_calls_are_out() -> None:
    with Worker(host=Host(lambda slot: asyncio.sleep(1.8, "late")), cell_seconds=1.5) as worker:
        report = worker.run("print(llm_query('x'))")
        assert report.stdout == "late\n" and report.interrupted_by is None


def test_a_cell_that_waits_for_a_reply_can_be_interrupted() -> None:
    """From the engine (a budget that is used up); what was asked before is answered into the void."""
    gate = asyncio.Event()

    async def never(slot: Slot) -> str:
        if shown(slot.prompt).startswith("slow"):
            await gate.wait()
        return shown(slot.prompt)

    with Worker(host=Host(lambda slot: never(slot))) as worker:

        async def interrupted(number: int, code: str) -> CellReport:
            worker.host.calls.clear()
            gate.clear()
            running = asyncio.create_task(worker.environment.run_cell(number, code, worker.host))
            while not worker.host.calls:
                await asyncio.sleep(0.01)
            worker.environment.interrupt("enough")
            report = await running
            gate.set()  # and left open: a thread of the cell may begin its call only now
            await worker.environment.settle()
            return report

        for number, code in enumerate(["llm_query('slow')", "llm_batch(['slow 1', 'slow 2'])"]):
            report = worker.wait(interrupted(100 + number, code))
            assert report.exception_type == "KeyboardInterrupt" and report.interrupted_by == "enough"
            assert worker.out("print(llm_query('next'), llm_batch(['a', 'b']))") == "next ['a', 'b']"
        pool = "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(4)\n"
        report = worker.wait(interrupted(200, pool + "list(pool.map(llm_query, ['slow'] * 4))"))
        assert report.exception_type == "KeyboardInterrupt"
        assert worker.out("print(llm_query('next'))") == "next"


def test_interrupts_at_any_moment_of_sub_calls_tear_nothing() -> None:
    """A cell makes calls as fast as it can, from its own thread and from others, and is struck meanwhile."""
    spin = (
        "import threading\n"
        "def side():\n"
        "    while not halt.is_set():\n        llm_batch([str(n) for n in range(5)])\n"
        "threads, halt = [], threading.Event()\n"
        "try:\n    threads += [threading.Thread(target=side) for _ in range({threads})]\n"
        "    for t in threads: t.start()\n"
        "    n = 0\n    while True:\n        n += 1\n        assert llm_query(f'{{n}}') == f'{{n}}'\n"
        "finally:\n    halt.set()"
    )
    # the strike may come before a thread is started, or before the list is made
    join = "[t.join() for t in threads if t.is_alive()]\n"
    rng = random.Random(11)
    with Worker() as worker:
        worker.run("threads = []")

        async def struck(number: int, threads: int) -> CellReport:
            running = asyncio.create_task(
                worker.environment.run_cell(number, spin.format(threads=threads), worker.host)
            )
            await asyncio.sleep(0.02 + rng.random() * 0.03)
            worker.environment.interrupt("struck")
            report = await running
            await worker.environment.settle()
            return report

        for number in range(40):
            report = worker.wait(struck(1_000 + number, number % 3))
            assert report.exception_type == "KeyboardInterrupt", report.exception
            assert worker.out(f"{join}print(llm_query('x'), len(llm_batch(['a'] * 3)))") == "x 3"


@pytest.mark.parametrize(
    "code",
    [
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        "def stay():\n    while True:\n        try:\n            while True: print(end='')\n"
        "        except BaseException: pass\nwhile True:\n    try: stay()\n    except BaseException: pass",
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nwhile True: pass",
    ],
)
def test_a_cell_that_ignores_its_interrupt_is_killed(
    worker: Worker, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_core.worker_watch.GRACE_SECONDS", 0.2)
    died = death(worker, code, cell_seconds=0.3)
    assert died.cause == "limit" and "wall time" in str(died)
    alive_after(worker)


def test_a_worker_that_stops_itself_is_killed(bare: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_core.worker_watch.GRACE_SECONDS", 0.2)
    died = death(bare, "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", cell_seconds=0.3)
    assert died.cause == "limit"
    alive_after(bare)


# -- deaths


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os\nos._exit(7)", "code 7"),
        ("import ctypes\nctypes.string_at(0)", "SIGSEGV"),
        ("import os\nos.closerange(0, 256)", ""),
    ],
)
def test_a_worker_that_ends_is_reported(worker: Worker, code: str, said: str) -> None:
    died = death(worker, code)
    assert died.cause in ("exit", "pipe") and said in str(died)
    alive_after(worker)


@pytest.mark.parametrize("signal", ["SIGABRT", "SIGKILL"])
def test_a_worker_that_ends_itself_by_a_signal_is_reported(bare: Worker, signal: str) -> None:
    assert signal in str(death(bare, f"import os, signal\nos.kill(os.getpid(), signal.{signal})"))
    alive_after(bare)


def test_recursion_without_end(worker: Worker) -> None:
    assert worker.run("def f(): return f()\nf()").exception_type == "RecursionError"
    worker.run("x = []\nfor _ in range(200_000): x = [x]")
    assert worker.run("repr(x)").exception_type == "RecursionError"
    try:
        worker.run(
            "import sys\nsys.setrecursionlimit(10**9)\n"
            "def g(n): return repr([G()])\nclass G:\n    __repr__ = g\ng(0)"
        )
    except WorkerDied:
        worker.restart()
    assert worker.out("print('on')") == "on"


@pytest.mark.needs("linux")
@pytest.mark.parametrize(
    "code",
    [
        "x = bytearray(10**10)",
        "x = []\nwhile True: x.append(bytearray(10**7))",
        "x = 'a'\nwhile True: x += x",
        "x = [0]\nwhile True: x.extend(x)",
    ],
)
def test_a_cell_that_eats_memory_gets_an_error_or_dies(code: str) -> None:
    with Worker(memory_bytes=200 << 20) as worker:
        try:
            report = worker.run(code)
            assert report.exception_type in ("MemoryError", "KeyboardInterrupt")
        except WorkerDied:
            worker.restart()
        try:
            worker.run("del x")
        except WorkerDied:
            worker.restart()
        assert worker.out("print('on')") == "on"


@pytest.mark.needs("linux")
def test_scratch_is_limited_in_files_and_bytes() -> None:
    with Worker(scratch_files=200, scratch_bytes=4 << 20) as worker:
        make = "import os, time\nn = 0\nwhile True:\n    n += 1\n    {}\n    if n > 250: time.sleep(1)"
        report = worker.run(make.format("open(f'{n}', 'w').close()"))
        assert report.interrupted_by is not None and "scratch" in report.interrupted_by
        worker.run("for name in os.listdir('.'): os.remove(name)")
        report = worker.run(make.format("os.mkdir(f'{n}')"))
        assert report.interrupted_by is not None and "scratch" in report.interrupted_by
        report = worker.run("with open('big', 'wb') as f:\n    f.write(bytes(8 << 20))")
        assert report.exception_type == "OSError"


@pytest.mark.needs("posix")
def test_what_a_worker_started_does_not_outlive_it() -> None:
    with Worker(level="none") as worker:
        code = "import subprocess\np = subprocess.Popen(['sleep', '300'])\nprint(p.pid)"
        child = int(worker.out(code))
        assert lives(child)
        worker.out("q = subprocess.Popen(['sleep', '300'], start_new_session=True)")
        far = int(worker.out("print(q.pid)"))
    try:
        _wait_for_end(child)
    finally:
        os.kill(far, signal.SIGKILL)  # left its group: nothing but a lock stops that


# -- attacks on the protocol

_WRITE = "import os, json, struct\nfd = llm_query.__self__._channel._writer\n"
_SEND = (
    _WRITE + "def send(m):\n    b = json.dumps(m).encode()\n    os.write(fd, struct.pack('<I', len(b)) + b)\n"
)
_OPEN = "dict(t='open', id=99, op='llm', n=1, batch=False, line=1{})"


@pytest.mark.parametrize(
    "code",
    [
        _WRITE + "os.write(fd, b'\\xff' * 64)",
        _WRITE + "os.write(fd, struct.pack('<I', 5) + b'hello')",
        _WRITE + "os.write(fd, struct.pack('<I', 2) + b'[]')",
        _WRITE + "os.write(fd, struct.pack('<I', 2**31))",
        _SEND + "send(dict(t='exec', code='x'))",
        _SEND + "send(dict(t='ready'))",
        _SEND + f"send({_OPEN.format(', api_base=1')})",
        _SEND + f"send({_OPEN.format(', api_key=None')})",
        _SEND + f"m = {_OPEN.format('')}\nm['n'] = 10**9\nm['batch'] = True\nsend(m)",
        _SEND + "send(dict(t='items', id=5, items=[]))",
        _SEND + "send(dict(t='items', id=[], items=[]))",
        _SEND + "send(dict(t='close', id=5))",
        _SEND + f"send({_OPEN.format('')})\nsend(dict(t='close', id=99))",
        _SEND + f"send({_OPEN.format('')})\nsend(dict(t='items', id=99, items=[dict(p=[5])]))",
        _SEND + f"send({_OPEN.format('')})\nsend({_OPEN.format('')})",
        _SEND + "send(dict(t='budget', id='x'))",
    ],
)
def test_a_forged_message_ends_the_worker_and_nothing_else(worker: Worker, code: str) -> None:
    died = death(worker, code + "\nimport time\ntime.sleep(30)")
    assert died.cause == "protocol", died
    alive_after(worker)


def test_a_message_that_never_ends_is_cut_off(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_core.worker_watch.TORN_FRAME_SECONDS", 0.2)
    died = death(
        worker, _WRITE + "os.write(fd, struct.pack('<I', 1000) + b'half')\nos.close(fd)\nllm_query('x')"
    )
    assert died.cause in ("limit", "exit")
    alive_after(worker)


def test_a_forged_call_is_a_call_like_any_other(worker: Worker) -> None:
    code = (
        f"{_SEND}send({_OPEN.format('')})\nsend(dict(t='items', id=99, items=[dict(p=['forged'])]))\n"
        "send(dict(t='close', id=99))\nprint(llm_query('mine'))"
    )
    assert worker.out(code) == "mine"
    assert [shown(call.slots[0].prompt) for call in worker.host.calls] == ["forged", "mine"]


# -- the parent


@pytest.mark.needs("linux")
def test_a_worker_dies_with_its_parent_even_while_it_spins(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys, tempfile\nfrom pathlib import Path\n"
        "from tests.support.workers import Worker\n"
        "with Worker(level='none', cell_seconds=600, cell_cpu_seconds=600) as worker:\n"
        '    worker.run("import os\\nfork = os.fork()\\nif not fork:\\n    while True: pass")\n'
        "    print(worker.environment._process.pid, worker.out('print(fork)'), flush=True)\n"
        "    worker.run('while True: pass')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT, env=environment, text=True
    )
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2 and all(map(lives, pids))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for pid in pids:
        _wait_for_end(pid)


def _wait_for_end(pid: int) -> None:
    ends = time.monotonic() + 90
    while lives(pid):
        assert time.monotonic() < ends, f"process {pid} did not end"
        time.sleep(0.05)
