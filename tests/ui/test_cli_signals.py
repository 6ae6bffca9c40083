"""ask as a process: signals end the run, nothing is left behind, the record stands, the terminal is live."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.needs("posix")
ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 90.0  # seconds; only a hung test waits so long

# The program with a model of its own: the root writes CELL, a sub-call sleeps as long as its prompt says.
PROGRAM = """
import sys, time
sys.path.insert(0, {root!r})
import rlm_core.models
from rlm_core.lm_handler import FunctionLMHandler

async def answer(request):
    import asyncio
    if request.role == "root":
        return "```repl\\n" + {cell!r} + "\\n```"
    await asyncio.sleep(float(request.prompt))
    return "slept"

rlm_core.models.make_handler = lambda *_, **__: FunctionLMHandler(answer)
{more}
from ui.cli import main
main()
"""


@pytest.fixture
def start(tmp_path: Path, home: Any) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `ask --json` in a process group of its own, with a cell and options of Popen."""
    (tmp_path / "text.txt").write_text("a text\n")
    processes = []

    def run(cell: str, more: str = "", **options: Any) -> subprocess.Popen[str]:
        code = PROGRAM.format(root=str(ROOT), cell=cell, more=more)
        command = [sys.executable, "-c", code, "ask", "q", str(tmp_path / "text.txt")]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        process = subprocess.Popen(
            [*command, "--json", "--home", str(home.root)], text=True, start_new_session=True, **pipes
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def wait_in_flight(process: subprocess.Popen[str], call: Callable[..., Any]) -> None:
    """Wait until the run has a sub-call that is answered and one that is not."""

    def seen() -> bool:
        assert process.poll() is None, process.communicate()
        shown = call("show", "last", "--json")
        if shown.code != 0:
            return False
        return {"ok", "running"} <= {s["status"] for s in shown.json["spans"] if s["kind"] == "sub_call"}

    wait_for(seen)


def family(pid: int) -> set[int]:
    """A process and everything below it that still lives (the worker is in a session of its own)."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state not in "ZX":
            parents[int(entry.parent.name)] = int(parent)
    found = {pid} & parents.keys()
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def living(pids: set[int]) -> set[int]:
    """Those of some processes that still live."""
    return {pid for pid in pids if family(pid)}


SLEEPY = "llm_batch(['0.01', '600', '600'])"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_run(number: int, start: Callable[..., Any], call: Callable[..., Any]) -> None:
    process = start(SLEEPY)
    wait_in_flight(process, call)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    document = json.loads(out)
    assert (process.returncode, document["answer"], document["stop_reason"]) == (1, None, "cancelled")
    assert "cancelling the run" in err and "the run was cancelled" in err and "Traceback" not in err
    run = call("show", "last", "--json").json
    assert (run["run"]["status"], run["live"]) == ("cancelled", False)
    asked = [span["status"] for span in run["spans"] if span["kind"] == "sub_call"]
    assert sorted(asked) == ["cancelled", "cancelled", "ok"]


# a signal before the engine knows of the run, which then prepares for ever, as an import of LiteLLM may
EARLY = """
import asyncio, os, signal, threading
import rlm_core.rlm, ui.ask_run

class Preparing(FunctionLMHandler):
    async def prepare(self):
        await asyncio.sleep(600)

rlm_core.models.make_handler = lambda *_, **__: Preparing(answer)
asked, cancel, begin = threading.Event(), rlm_core.rlm.RLM.cancel, ui.ask_run._answer

def cancelling(rlm):
    cancel(rlm)
    asked.set()

def beginning(*given):
    os.kill(os.getpid(), signal.SIGINT)
    asked.wait(60)
    return begin(*given)

rlm_core.rlm.RLM.cancel, ui.ask_run._answer = cancelling, beginning
"""


def test_a_signal_just_before_the_engine_begins_cancels_the_run(
    start: Callable[..., Any], call: Callable[..., Any]
) -> None:
    out, err = start("", EARLY).communicate(timeout=PATIENCE)
    assert json.loads(out)["stop_reason"] == "cancelled" and "did not end in time" not in err
    assert call("runs", "--json").json[0]["status"] == "cancelled"


def test_a_second_signal_stops_at_once_and_keeps_the_record(
    start: Callable[..., Any], call: Callable[..., Any]
) -> None:
    stubborn = "import rlm_core.rlm; rlm_core.rlm.RLM.cancel = lambda self: None"
    process = start(SLEEPY, stubborn)
    wait_in_flight(process, call)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while "cancelling" not in process.stderr.readline():
        pass
    time.sleep(0.5)  # two wishes of one moment count as one
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 1
    assert call("show", "last", "--json").json["run"]["status"] == "interrupted"


def test_a_run_that_does_not_end_is_ended(start: Callable[..., Any], call: Callable[..., Any]) -> None:
    stubborn = "import rlm_core.rlm; rlm_core.rlm.RLM.cancel = lambda self: None"
    process = start(SLEEPY, stubborn)
    wait_in_flight(process, call)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1 and "did not end in time" in err
    assert call("runs", "--json").json[0]["status"] == "interrupted"


@pytest.mark.needs("linux")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_killing_the_group_leaves_nothing(
    number: int, start: Callable[..., Any], call: Callable[..., Any]
) -> None:
    process = start("llm_batch(['0.01', '600'])\nwhile True: pass")
    wait_in_flight(process, call)
    pids = family(process.pid)
    assert len(pids) >= 2  # the program and its worker
    os.killpg(process.pid, number)
    process.communicate(timeout=PATIENCE)
    wait_for(lambda: not living(pids))
    spans = call("show", "last", "--json").json["spans"]
    assert next(span for span in spans if span["call_index"] == 0)["preview"] == "slept"
    assert "running" not in {span["status"] for span in spans}


@pytest.mark.needs("linux")
def test_killing_only_the_program_ends_its_worker(
    start: Callable[..., Any], call: Callable[..., Any]
) -> None:
    process = start(SLEEPY)
    wait_in_flight(process, call)
    pids = family(process.pid)
    process.kill()
    process.communicate(timeout=PATIENCE)
    wait_for(lambda: not living(pids))
    assert call("runs", "--json").json[0]["status"] == "interrupted"


def test_a_signal_that_is_ignored_on_purpose_stays_ignored(
    start: Callable[..., Any], call: Callable[..., Any]
) -> None:
    nohup = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    process = start("llm_batch(['0.01', '0.8'])\nFINAL('done')", nohup)
    wait_in_flight(process, call)
    process.send_signal(signal.SIGHUP)
    out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, json.loads(out)["answer"]) == (0, "done")


def test_a_closed_stderr_does_not_stop_the_run(start: Callable[..., Any], call: Callable[..., Any]) -> None:
    process = start("llm_query('0.3')\nFINAL('done')")
    assert process.stderr is not None
    process.stderr.close()
    assert process.stdout is not None
    assert json.loads(process.stdout.read())["answer"] == "done"
    assert process.wait(PATIENCE) == 0


def test_live_progress_on_a_terminal(start: Callable[..., Any], call: Callable[..., Any]) -> None:
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    process = start("llm_batch(['0.6'] * 5)\nFINAL('done')", stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # the other side is closed
        pass
    finally:
        os.close(ours)
    assert process.stdout is not None
    assert json.loads(process.stdout.read())["answer"] == "done"
    text = shown.decode()
    assert re.search(r"iteration 0 .*running a cell.* 5 running", text), text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h")  # the cursor comes back


def test_a_dumb_terminal_gets_plain_lines(start: Callable[..., Any]) -> None:
    ours, theirs = os.openpty()
    process = start("FINAL('done')", stderr=theirs, env={**os.environ, "TERM": "dumb"})
    os.close(theirs)
    assert process.wait(PATIENCE) == 0
    text = os.read(ours, 65536).decode()
    os.close(ours)
    assert "iteration 0" in text and "\x1b" not in text
