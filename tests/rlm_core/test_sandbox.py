"""Levels: found by trying, reported as found, refused below the minimum; what a level must leave alone."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_core import RLM, FunctionLMHandler, bubblewrap, sandbox
from rlm_core.corpus import Corpus
from rlm_core.environment import Environment
from rlm_core.errors import SandboxError, WorkerDied
from rlm_core.limits import Limits
from rlm_core.sandbox import LEVELS, Level, Probe, default_minimum, judged, level_words, probe, require
from rlm_core.worker import self_test
from tests.support.processes import lives
from tests.support.scripted import cell, play
from tests.support.workers import Worker

ROOT = Path(__file__).resolve().parents[2]
locked = pytest.mark.needs("linux", "lock", "bwrap")


@pytest.fixture
def fresh_probe() -> Iterator[None]:
    """The machine is looked at anew, before and after."""
    probe.cache_clear()
    yield
    probe.cache_clear()


class WithoutLayer(Environment):
    """A worker whose lock silently lacks layers, as on a kernel that says yes and does nothing."""

    lacking: tuple[str, ...] = ()

    def _start_frame(self, worker: Any) -> dict[str, Any]:
        frame = super()._start_frame(worker)
        return {**frame, "layers": [layer for layer in frame["layers"] if layer not in self.lacking]}


def report_without(tmp_path: Path, *layers: str, level: Level | None = None) -> Any:
    """What a worker finds when layers of its lock are not there."""

    async def look() -> Any:
        corpus = Corpus.from_texts("text", tmp_path)
        environment = WithoutLayer(corpus.worker_documents(), Limits(), 0)
        environment.lacking = layers
        environment.level = level
        try:
            return await environment.start()
        finally:
            await environment.close()

    return asyncio.run(look())


# -- levels


@locked
@pytest.mark.parametrize("level", LEVELS)
def test_a_level_can_be_asked_for_and_is_what_the_worker_finds(level: Level) -> None:
    with Worker(level=level) as worker:
        found = worker.environment.sandbox
        assert found is not None and found.level == level
        assert ("bwrap" in found.layers) == (level == "strict")
        assert any(layer.startswith("landlock abi") for layer in found.layers) == (
            level in ("standard", "strict")
        )
        assert worker.out("print(llm_query('still'), documents[0][:5])") == "still alpha"


@locked
def test_the_best_level_is_taken_without_being_asked_for() -> None:
    with Worker() as worker:
        assert worker.environment.sandbox is not None
        assert worker.environment.sandbox.level == "strict" == probe().level


@locked
@pytest.mark.parametrize(
    ("lacking", "level"),
    [
        (("seccomp",), "none"),
        (("landlock",), "weak"),
        (("landlock", "seccomp"), "none"),
    ],
)
def test_a_missing_layer_is_found_out_by_trying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: tuple[str, ...], level: str
) -> None:
    monkeypatch.setattr(bubblewrap, "program", lambda: None)
    found = report_without(tmp_path, *lacking)
    assert found.level == level
    assert "bubblewrap is not installed" in found.why or "could still reach" in found.why


@locked
def test_a_missing_layer_costs_the_level_inside_bubblewrap_too(tmp_path: Path) -> None:
    assert report_without(tmp_path, "seccomp").level == "none"
    assert report_without(tmp_path, "landlock").level == "strict"  # its mounts alone hide everything


@locked
def test_a_broken_layer_is_refused_where_its_level_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="a worker could still reach: processes"):
        report_without(tmp_path, "seccomp", level="standard")


def test_each_thing_within_reach_costs_its_level() -> None:
    def level(*reached: str) -> str:
        return judged(reached, ["landlock abi 7"], None).level

    assert level() == "strict"
    assert level("metadata") == "standard"
    assert [level(name, "metadata") for name in ("read", "write", "parent")] == ["weak"] * 3
    assert [level(name) for name in ("network", "processes", "signals")] == ["none"] * 3


@locked
def test_the_self_test_tells_open_from_closed(tmp_path: Path) -> None:
    """In a process without a lock everything is within reach that is there, and nothing is left behind."""
    canary = tmp_path / "canary"
    canary.write_text("kept")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        targets = {
            "canary": str(canary),
            "beside": str(tmp_path / "new"),
            "parent": os.getppid(),
            "port": listener.getsockname()[1],
        }
        everything = {"network", "processes", "signals", "parent", "read", "write", "metadata"}
        assert set(self_test.reachable(targets)) == everything
        listener.accept()[0].close()
    nothing = {"canary": str(tmp_path / "a"), "beside": str(tmp_path / "b/c"), "parent": os.getpid()}
    assert self_test.reachable({**targets, **nothing}) == ["processes"]
    assert canary.read_text() == "kept" and os.listdir(tmp_path) == ["canary"]


# -- refusals


@locked
def test_without_bubblewrap_strict_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, fresh_probe: None
) -> None:
    monkeypatch.setattr(bubblewrap, "program", lambda: None)
    assert probe().level == "standard" and require("standard").level == "standard"
    with pytest.raises(SandboxError) as refused:
        RLM(sandbox="strict")
    said = str(refused.value)
    assert "'standard', below the asked minimum 'strict'" in said
    assert "apt install bubblewrap" in said and "use --sandbox standard" in said


@locked
def test_a_bubblewrap_that_does_not_start_is_named_and_done_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fresh_probe: None
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "program", lambda: str(broken))
    assert probe().level == "standard"
    with pytest.raises(SandboxError, match="does not start here: .*setting up uid map: Permission denied"):
        require("strict")


@locked
def test_without_landlock_the_default_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, fresh_probe: None
) -> None:
    monkeypatch.setattr(bubblewrap, "program", lambda: None)
    monkeypatch.setattr("rlm_core.environment.layers_of", lambda _: ("limits", "capabilities", "seccomp"))
    with pytest.raises(SandboxError) as refused:
        RLM()
    assert "the kernel has no Landlock" in str(refused.value) and "--sandbox weak" in str(refused.value)
    answer, _ = play("FINAL(1)", sandbox="weak")
    assert answer.sandbox == "weak"
    assert [note for note in answer.notices if "can read and change your files" in note]


def test_a_system_without_a_lock_says_untested(monkeypatch: pytest.MonkeyPatch, fresh_probe: None) -> None:
    monkeypatch.setattr(sandbox, "untested", lambda: "untested: the lock was never run on plan9")
    monkeypatch.setattr(
        "rlm_core.environment.try_out", lambda: judged(["network"], ["limits"], bubblewrap.MISSING)
    )
    assert default_minimum() == "none" and require("none").level == "none"
    with pytest.raises(SandboxError, match="untested: the lock was never run on plan9: use Linux"):
        require("standard")


def test_a_machine_without_room_for_a_scratch_folder_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fresh_probe: None
) -> None:
    worker = Worker()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(SandboxError, match="no worker process could be started: No such file"), worker:
        pass
    with pytest.raises(SandboxError, match="no worker process could be started: No such file"):
        probe()


def test_an_unknown_level_is_named() -> None:
    with pytest.raises(SandboxError, match="one of none, weak, standard, strict"):
        require("total")


@locked
def test_a_run_whose_worker_comes_out_lower_ends_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = FunctionLMHandler(lambda _: cell("FINAL(1)"))
    with RLM("t/r", "t/s", handler=handler) as rlm:
        monkeypatch.setattr("rlm_core.environment.layers_of", lambda _: ("limits",))
        answer = rlm.ask("?", "text")
    assert answer.stop_reason == "error" and answer.text is None
    assert answer.error is not None and "below the asked minimum 'standard'" in answer.error


@locked
def test_no_notice_where_files_are_kept_from_the_code() -> None:
    answer, _ = play("FINAL(1)")
    assert answer.sandbox == probe().level and answer.notices == ()


def test_levels_have_words_for_people() -> None:
    assert level_words("strict") == "strict (no network, nothing of yours is visible)"
    assert level_words(None) == "unknown" and level_words("later") == "later"


def test_the_probe_means_what_it_says() -> None:
    assert isinstance(probe(), Probe) and probe() is probe()
    assert probe().level in LEVELS and probe().detail == sandbox.MEANING[probe().level]


# -- limits, interrupts and death under each level


@pytest.fixture(scope="module", params=["weak", "standard", "strict"])
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    patch = pytest.MonkeyPatch()
    patch.setattr("rlm_core.worker_watch.POLL_SECONDS", 0.05)
    with Worker(level=request.param) as fresh:
        yield fresh
    patch.undo()


@locked
def test_an_endless_loop_is_interrupted_and_state_stays(worker: Worker) -> None:
    worker.run("kept = 41")
    report = worker.run("while True: pass", cell_seconds=0.3)
    assert report.exception_type == "KeyboardInterrupt"
    assert worker.out("print(kept)") == "41"


@locked
def test_processor_time_is_that_of_the_worker(worker: Worker) -> None:
    report = worker.run("while True: pass", cell_cpu_seconds=0.3)
    assert report.interrupted_by is not None and "of CPU time" in report.interrupted_by
    assert report.cpu_seconds is not None and report.cpu_seconds > 0.2


@locked
def test_memory_is_capped_and_state_stays(worker: Worker) -> None:
    worker.run("kept = 42")
    assert worker.run("bytearray(8 << 30)").exception_type == "MemoryError"
    assert worker.out("print(kept)") == "42"


@locked
def test_memory_is_watched_from_outside(worker: Worker) -> None:
    code = "def hold():\n    b = b'x' * (200 << 20)\n    while True: pass\nhold()"
    report = worker.run(code, memory_bytes=100 << 20)
    assert report.interrupted_by == "over 100 MiB of memory"


@locked
def test_scratch_is_watched(worker: Worker) -> None:
    code = "import time\nfor n in range(40): open(f'f{n}', 'w').close()\ntime.sleep(20)"
    report = worker.run(code, scratch_files=20)
    assert report.interrupted_by is not None and "scratch" in report.interrupted_by
    worker.run("import os\nfor name in os.listdir('.'): os.remove(name)")


@locked
@pytest.mark.parametrize(
    "hide",
    [
        "f = open('f', 'wb')\nos.remove('f')\nf.write(bytes(8 << 20))\nf.flush()",
        "m = []\nfor n in range(2):\n    with open('f', 'wb+') as f:\n        f.write(bytes(4 << 20))\n"
        "        f.flush()\n        m.append(mmap.mmap(f.fileno(), 4096, access=mmap.ACCESS_READ))\n"
        "    os.remove('f')",
    ],
)
def test_removed_files_that_are_still_held_count(worker: Worker, hide: str) -> None:
    report = worker.run(f"import mmap, os, time\n{hide}\ntime.sleep(20)", scratch_bytes=6 << 20)
    assert report.interrupted_by is not None and "scratch" in report.interrupted_by
    worker.run("f = m = None")


@locked
def test_threads_are_counted(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_core.worker_watch.MOST_THREADS", 20)
    code = (
        "import threading\nend = threading.Event()\n"
        "for n in range(30): threading.Thread(target=end.wait).start()\n"
        "try: end.wait(20)\nfinally: end.set()"
    )
    assert worker.run(code).interrupted_by == "over 20 threads"


@locked
def test_what_a_cell_leaves_running_is_ended_at_the_limits_too(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_core.worker_watch.IDLE_SECONDS", 0.05)
    spin = "import threading\ndef spin():\n    while True: pass\n"
    worker.run(f"{spin}threading.Thread(target=spin, daemon=True).start()", cell_cpu_seconds=0.3)
    worker.wait(_until(lambda: not lives(worker.environment.pid or 0)))
    with pytest.raises(WorkerDied, match="what an earlier cell left running went over 0.3 s of CPU time"):
        worker.run("1")
    worker.restart()


async def _until(true: Any) -> None:
    while not true():
        await asyncio.sleep(0.05)


@locked
def test_native_output_is_drained(worker: Worker) -> None:
    report = worker.run("import os\nos.write(1, b'from below')")
    assert "from below" in report.native_output


@locked
def test_a_worker_that_is_killed_is_replaced_at_the_same_level(worker: Worker) -> None:
    before = worker.environment.sandbox
    with pytest.raises(WorkerDied):
        worker.run(
            "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", cell_seconds=0.2
        )
    worker.restart()
    assert worker.out("print(llm_query('again'))") == "again"
    assert worker.environment.sandbox == before


@locked
@pytest.mark.parametrize(
    ("code", "said"),
    [("import os\nos._exit(7)", "exited with code 7"), ("import ctypes\nctypes.string_at(0)", "SIGSEGV")],
)
def test_how_a_worker_ended_is_told(worker: Worker, code: str, said: str) -> None:
    with pytest.raises(WorkerDied, match=said):
        worker.run(code)
    worker.restart()


@locked
def test_the_worker_has_a_number_of_its_own_outside(worker: Worker) -> None:
    pid = worker.environment.pid
    assert pid is not None
    command = Path(f"/proc/{pid}/cmdline").read_bytes()
    assert b"rlm_core.worker.boot" in command and not command.startswith(b"bwrap")
    assert b"bwrap" not in os.readlink(f"/proc/{pid}/exe").encode()


@locked
@pytest.mark.parametrize("level", ["weak", "standard", "strict"])
def test_a_spinning_worker_dies_with_the_engine(level: str, tmp_path: Path) -> None:
    script = (
        "from tests.support.workers import Worker\n"
        f"with Worker(level={level!r}, cell_seconds=600, cell_cpu_seconds=600) as worker:\n"
        "    print(worker.environment.pid, flush=True)\n"
        "    worker.run('import signal\\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\\nwhile True: pass')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    engine = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT, env=environment, text=True
    )
    assert engine.stdout is not None
    pid = int(engine.stdout.readline())
    assert lives(pid)
    engine.kill()
    engine.wait()
    engine.stdout.close()
    for _ in range(400):
        if not lives(pid):
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    pytest.fail("the worker outlived the engine")


# -- a reported fault of other engines: all builtins, the key in the environment, the network open


@locked
def test_generated_code_finds_no_key_and_opens_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_SECRET", "sesame-7")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        port = listener.getsockname()[1]
        answer, script = play(
            "import os\nprint('sesame' in str(dict(os.environ)))",
            "import subprocess\nsubprocess.run(['env'])",
            f"open('/proc/{os.getpid()}/environ').read()",
            f"__builtins__.__import__('socket').create_connection(('127.0.0.1', {port}))",
            "FINAL('nothing found')",
        )
        with pytest.raises(TimeoutError):
            listener.accept()
    assert answer.text == "nothing found" and answer.sandbox == "strict"
    assert "False" in script.outputs[0]
    assert all("Error" in output and "sesame" not in output for output in script.outputs[1:4])


def test_limits_of_a_cell_hold_without_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_core.worker_watch.POLL_SECONDS", 0.05)
    with Worker(level="none") as worker:
        assert worker.run("while True: pass", cell_seconds=0.2).exception_type == "KeyboardInterrupt"
