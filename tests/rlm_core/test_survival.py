"""Cells that try to end the run, through the whole engine at its default level.

The run goes on; the root is told what happened and what was lost; the record says so; what completed cells
made comes back without a new model call.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rlm_core import Limits
from rlm_core import semconv as sc
from rlm_core.sandbox import probe
from tests.escapes.theatre import descendants
from tests.support.command import ROOT, rlmscope
from tests.support.scripted import Script, cell, run
from traces.home import Home
from traces.reading import load_run
from traces.recording import open_recording

SETUP = "kept = llm_query('before')\nnumbers = list(range(5))\ndef double(n): return 2 * n"
FINAL = "FINAL([kept, double(sum(numbers)), llm_query('after')])"
ANSWER = ["before", 20, "after"]
SMALL = Limits(cell_seconds=20, cell_cpu_seconds=20, memory_bytes=300 << 20)
QUICK = Limits(cell_seconds=2, cell_cpu_seconds=0.5)  # the cells that end must do so on a busy machine


@pytest.fixture(autouse=True)
def _quick_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_core.worker_watch.POLL_SECONDS", 0.05)
    monkeypatch.setattr("rlm_core.worker_watch.GRACE_SECONDS", 0.3)


class Survivor:
    """A run of these cells, its record and what its root was shown."""

    def __init__(self, folder: Path, *codes: str, limits: Limits = SMALL) -> None:
        self.script = Script([cell(code) for code in codes], lambda request: request.prompt)
        home = Home(folder / "home")
        with open_recording(home, "20260101T000000-0000005a", {}) as recording:
            self.answer = run(
                self.script, limits=limits, recorder=recording.recorder, run_id=recording.run_id
            )
        assert recording.problems == 0
        self.view = load_run(home, recording.run_id)
        self.cells = [span for span in self.view.spans if span.kind == "cell"]
        self.asked = [request.prompt for request in self.script.sub_requests]

    def shown_after(self, number: int) -> str:
        """What the root model read after this cell."""
        return self.script.outputs[number]

    def events(self, number: int) -> list[str]:
        """Names of the events of this cell's span."""
        return [event["name"] for event in self.view.events(self.cells[number].span_id)]


def survive(folder: Path, trouble: str, limits: Limits) -> Survivor:
    """A completed cell, the trouble, and an answer that needs what the completed cell made."""
    seen = Survivor(folder, SETUP, trouble, FINAL, limits=limits)
    assert seen.answer.value == ANSWER and seen.answer.stop_reason == "final"
    assert seen.asked == ["before", "after"]  # nothing was asked again
    assert [span.status for span in seen.cells] == ["ok", seen.cells[1].status, "ok"]
    return seen


@pytest.mark.parametrize(
    ("trouble", "limits", "told", "recorded"),
    [
        ("also = 1\nwhile True: pass", QUICK, "interrupted: over ", "KeyboardInterrupt"),
        ("import time\ntime.sleep(600)", QUICK, "interrupted: over ", "KeyboardInterrupt"),
        ("import sys\nsys.exit(3)", SMALL, "SystemExit: 3", "SystemExit"),
        ("name = input('who? ')", SMALL, "input() has nobody to answer it", "RuntimeError"),
        (
            "def eat():\n    eaten = []\n    while True: eaten.append(b'x' * 10**7)\neat()",
            SMALL,
            "MemoryError",
            "MemoryError",
        ),
        ("def down(n): return down(n + 1)\ndown(0)", SMALL, "RecursionError", "RecursionError"),
        (
            "import builtins\nfor name in list(vars(builtins)):\n    del builtins.__dict__[name]\nprint(1)",
            SMALL,
            "NameError",
            "NameError",
        ),
    ],
)
def test_trouble_that_ends_a_cell_is_told_and_costs_no_state(
    tmp_path: Path, trouble: str, limits: Limits, told: str, recorded: str
) -> None:
    seen = survive(tmp_path, trouble, limits)
    assert told in seen.shown_after(1)
    assert (seen.cells[1].status, seen.cells[1].attributes[sc.EXCEPTION_TYPE]) == ("error", recorded)
    assert sc.EV_WORKER_DIED not in seen.events(1)


@pytest.mark.parametrize(
    ("trouble", "limits", "told"),
    [
        ("gone = 1\nimport os\nos._exit(3)", SMALL, "exited with code 3"),
        ("gone = 1\nimport ctypes\nctypes.string_at(0)", SMALL, "ended by signal SIGSEGV"),
        ("gone = 1\nimport os\nos.abort()", SMALL, "ended by signal SIG"),
        (
            "gone = 1\nimport signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
            QUICK,
            "stopped (over ",
        ),
        (
            "gone = 1\nimport signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [2])\nwhile True: pass",
            QUICK,
            "stopped (over ",
        ),
        ("gone = 1\nimport os\nfor n in range(3, 40):\n    try: os.write(n, b'\\xff' * 64)\n"
         "    except OSError: pass", SMALL, "broke the protocol"),
    ],
)  # fmt: skip
def test_a_lost_worker_is_told_with_what_was_lost_and_the_rest_comes_back(
    tmp_path: Path, trouble: str, limits: Limits, told: str
) -> None:
    seen = survive(tmp_path, trouble, limits)
    shown = seen.shown_after(1)
    assert told in shown and "has run your 1 earlier cells again" in shown and "gone" in shown
    assert "not everything came back" not in shown
    lost = seen.cells[1]
    assert (lost.status, lost.attributes[sc.EXCEPTION_TYPE]) == ("error", "WorkerDied")
    assert "gone" in json.loads(lost.attributes[sc.LOST_NAMES])
    assert seen.events(1) == [sc.EV_WORKER_DIED, sc.EV_REBUILT]
    assert len(seen.answer.notices) == 1 and told in seen.answer.notices[0]


def test_a_hundred_megabytes_of_output_are_counted_and_not_kept(tmp_path: Path) -> None:
    seen = survive(tmp_path, "for _ in range(1000): print('y' * 99_999)", SMALL)
    assert "of 100,000,000 characters left out" in seen.shown_after(1)
    assert len(seen.shown_after(1)) < 2 * SMALL.output_shown_chars
    assert seen.cells[1].attributes[sc.STDOUT_TRUE_CHARS] == 100_000_000


def test_output_of_c_code_without_end_is_drained_and_capped(tmp_path: Path) -> None:
    seen = survive(tmp_path, "import os\nwhile True: os.write(1, b'y' * 65536)", QUICK)
    assert "interrupted" in seen.shown_after(1) and len(seen.shown_after(1)) < 10_000
    notices = [event for event in seen.view.events(seen.cells[1].span_id) if event["name"] == sc.EV_NOTICE]
    assert len(notices) == 1


def test_more_threads_than_there_is_room_for(tmp_path: Path) -> None:
    bomb = (
        "import threading\ngate, started = threading.Event(), 0\ntry:\n    while started < 20_000:\n"
        "        threading.Thread(target=gate.wait, daemon=True).start()\n        started += 1\n"
        "finally:\n    gate.set()"
    )
    seen = survive(tmp_path, bomb, SMALL)
    assert seen.cells[1].status == "error"
    assert seen.cells[1].attributes[sc.EXCEPTION_TYPE] in ("RuntimeError", "MemoryError", "WorkerDied")


def test_text_that_is_no_text_is_shown_and_recorded(tmp_path: Path) -> None:
    seen = survive(tmp_path, r"odd = '\udcff\ud800\x00'" "\nprint(odd)", SMALL)
    assert "\x00" in seen.shown_after(1) and seen.cells[1].status == "ok"


def test_a_thread_that_outlives_its_cell_asks_nobody_and_blocks_nothing(tmp_path: Path) -> None:
    stray = (
        "import threading\nheard, halt = [], threading.Event()\ndef ask():\n    while not halt.is_set():\n"
        "        heard.append(llm_query('stray'))\n        halt.wait(0.005)\n"
        "threading.Thread(target=ask, daemon=True).start()"
    )
    end = "import time\ntime.sleep(0.2)\nhalt.set()\n" + FINAL

    def slow_root(request: Any) -> str:
        time.sleep(0.3)  # the thread calls while no cell runs
        return cell(end)

    script = Script([cell(SETUP), cell(stray), slow_root], lambda request: request.prompt)
    assert run(script, limits=SMALL).value == ANSWER
    asked = [request.prompt for request in script.sub_requests]
    assert (asked[0], asked.count("before"), asked.count("after")) == ("before", 1, 1)
    assert set(asked) <= {"before", "stray", "after"}


def test_one_trouble_after_another(tmp_path: Path) -> None:
    """Each loss is answered by the completed cells; one that ended in an exception is completed too."""
    troubles = ("import os\nos._exit(1)", "late = 5\n1 / 0", "import ctypes\nctypes.string_at(0)")
    seen = Survivor(tmp_path, SETUP, *troubles, f"assert late == 5\n{FINAL}")
    assert seen.answer.value == ANSWER and seen.asked == ["before", "after"]
    assert "your 1 earlier cells" in seen.shown_after(1) and "your 2 earlier cells" in seen.shown_after(3)
    assert len(seen.answer.notices) == 2


def test_what_an_interrupted_cell_had_set_is_reported_when_it_is_lost_later(tmp_path: Path) -> None:
    """It stays as long as its worker lives; it is not run again, so the root must hear that it is gone."""
    seen = Survivor(
        tmp_path,
        SETUP,
        "half = 1\nnumbers = numbers + [5]\nwhile True: pass",
        "seen = half\nimport os\nos._exit(1)",
        "FINAL(['half' in dir(), len(numbers)])",
        limits=QUICK,
    )
    assert seen.answer.value == [False, 5]
    assert "what it had set before stays" in seen.shown_after(1)
    lost = json.loads(seen.cells[2].attributes[sc.LOST_NAMES])
    assert {"half", "numbers", "seen"} <= set(lost) and "half" in seen.shown_after(2)


# -- as a command

_SITE = """
import json, os
import rlm_core.models
from rlm_core.lm_handler import FunctionLMHandler

turns = iter(json.loads(os.environ["TEST_TURNS"]))

def answer(request):
    return request.prompt if request.role == "sub" else "```repl\\n" + next(turns) + "\\n```"

rlm_core.models.make_handler = lambda *_, **__: FunctionLMHandler(answer)
"""


def test_the_command_survives_its_cells_and_its_record_says_what_happened(tmp_path: Path) -> None:
    site, corpus = tmp_path / "site", tmp_path / "note.txt"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_SITE)
    corpus.write_text("one line\n")
    turns = [
        SETUP,
        "import os\nos._exit(3)",
        "import sys\nsys.exit(4)",
        "print('y' * 10_000_000)",
        "import ctypes\nctypes.string_at(0)",
        FINAL,
    ]
    env = {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]), "TEST_TURNS": json.dumps(turns)}
    home = ("--home", tmp_path / "home")
    models = ("--root", "openai/root", "--sub", "openai/sub")
    document = rlmscope("ask", "what?", corpus, *models, *home, env=env)
    assert (document["value"], document["stop_reason"]) == (ANSWER, "final")
    assert document["sandbox"] == probe().level  # the best there is, unasked
    assert len(document["notices"]) >= 2 and document["sub_calls"] == 2
    spans = rlmscope("show", document["run_id"], *home)["spans"]
    cells = [span["status"] for span in spans if span["kind"] == "cell"]
    assert cells == ["ok", "error", "error", "ok", "error", "ok"]


# -- the parent

_SPIN = """
import asyncio, sys, tempfile
from pathlib import Path
from rlm_core.corpus import Corpus
from rlm_core.environment import Environment
from rlm_core.limits import Limits
from tests.support.workers import Host

async def spin():
    documents = Corpus.from_texts({"a.txt": "a"}, Path(tempfile.mkdtemp())).worker_documents()
    limits = Limits(cell_seconds=600, cell_cpu_seconds=600)
    environment = Environment(documents, limits, 1, level=sys.argv[1], minimum="none")
    await environment.start()
    await environment.run_cell(0, "x = 1", Host())
    print("started", flush=True)
    await environment.run_cell(1, sys.argv[2], Host())

asyncio.run(spin())
"""
_SPINS = (
    "while True: pass",
    "import signal\nfor number in range(1, 32):\n    try: signal.signal(number, signal.SIG_IGN)\n"
    "    except (OSError, ValueError): pass\nwhile True: pass",
)


@pytest.mark.needs("linux")
@pytest.mark.parametrize("spin", _SPINS)
@pytest.mark.parametrize(
    "level",
    ["none", "weak", "standard", pytest.param("strict", marks=pytest.mark.needs("bwrap"))],
)
def test_a_spinning_worker_does_not_outlive_its_parent(tmp_path: Path, level: str, spin: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _SPIN, level, spin],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        text=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "started\n"
    below = descendants(parent.pid)
    ends = time.monotonic() + 90
    while max(map(_ticks, below)) < 20:  # it spins
        assert time.monotonic() < ends, "the worker does not spin"
        time.sleep(0.05)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    while left := [pid for pid in below if _ticks(pid) >= 0]:
        assert time.monotonic() < ends, f"processes {left} did not end"
        time.sleep(0.05)


def _ticks(pid: int) -> int:
    """Processor time of a process in clock ticks; -1 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return -1
    return -1 if fields[0] in "ZX" else int(fields[11]) + int(fields[12])
