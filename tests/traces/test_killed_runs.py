"""kill -9: whatever was acknowledged is in the record."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rlm_core import semconv as sc
from tests.traces.records import ROOT, home_in
from traces.home import Home
from traces.ingest import ingest
from traces.reading import list_runs, load_run

WRITER = """
import os, sys, time
from rlm_core import semconv as sc
from traces.home import Home
from traces.recording import open_recording
def say(word, number):
    os.write(1, f"{word} {number}\\n".encode())
home, run_id = Home.resolve(sys.argv[1]), sys.argv[2]
made = open_recording(home, run_id, {})
recorder = made.recorder
run = recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0})
cell = recorder.start("cell", sc.NAME_CELL, run, {sc.CELL: 0})
for number in range(int(sys.argv[3])):
    call = recorder.start("sub_call", "chat s", cell, {sc.CALL_INDEX: number})
    say("started", number)
    call.text(sc.RESPONSE, f"answer {number} " + "x" * 2000)
    call.end()
    say("ended", number)
time.sleep(60)
"""


def run_and_kill(home: Home, run_id: str, after: int) -> dict[str, set[int]]:
    """What the process had said when it was killed, `after` lines later."""
    command = [sys.executable, "-c", WRITER, str(home.root), run_id, "1000000"]
    said: dict[str, set[int]] = {"started": set(), "ended": set()}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if line.endswith("\n"):  # the kill may tear the last one
                word, number = line.split()
                said[word].add(int(number))
            if len(said["started"]) + len(said["ended"]) == after:
                writer.kill()
    return said


@pytest.mark.parametrize("after", [1, 40, 401])
def test_everything_acknowledged_is_there(tmp_path: Path, after: int) -> None:
    home = home_in(tmp_path)
    said = run_and_kill(home, "killed", after)
    view = load_run(home, "killed")
    assert (view.live, view.summary.status, view.summary.complete) == (False, "interrupted", False)
    calls = {span.call_index: span for span in view.spans if span.kind == "sub_call"}
    assert said["started"] <= calls.keys()
    for number in said["ended"]:
        assert calls[number].status == "ok"
        text = view.payload(calls[number].attributes[sc.RESPONSE + ".sha256"])
        assert text == f"answer {number} " + "x" * 2000
    open_ones = [span for span in view.spans if span.end_ns is None]
    assert {span.status for span in open_ones} == {"lost"}
    assert {"run", "cell"} <= {span.kind for span in open_ones}
    assert [call.status for call in list(calls.values())[:-1]] == ["ok"] * (len(calls) - 1)


def test_a_killed_run_leaves_no_lock_behind_once_it_is_stored(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    run_and_kill(home, "killed", 3)
    assert ingest(home).runs == ("killed",)
    assert sorted(path.name for path in home.spool.iterdir()) == ["killed.jsonl"]
    assert [run.status for run in list_runs(home)] == ["interrupted"]


def test_six_writers_at_once_do_not_mix(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    command = [sys.executable, "-c", WRITER, str(home.root)]
    writers = [
        subprocess.Popen([*command, f"run-{number}", "60"], stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for number in range(6)
    ]
    for writer in writers:
        assert writer.stdout is not None
        while writer.stdout.readline().split() != ["ended", "20"]:
            pass
    assert [(run.status, run.problems) for run in list_runs(home)] == [("running", 0)] * 6
    for writer in writers:
        writer.kill()
        writer.communicate()
    assert sorted(ingest(home).runs) == [f"run-{number}" for number in range(6)]
    for number in range(6):
        view = load_run(home, f"run-{number}")
        assert view.summary.status == "interrupted"
        texts = {view.payload(s.attributes[sc.RESPONSE + ".sha256"]) for s in view.spans if s.status == "ok"}
        assert {f"answer {index} " + "x" * 2000 for index in range(21)} <= texts
