"""Whatever happens to the record, a run still answers, and what is missing of it is said, with a count.

Through the command line. Kills at random moments are in `tests/chaos`.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlm_core import telemetry
from tests.support.command import ROOT, rlmscope
from tests.traces.records import RUN, fin, header, record_run, start, write_spool
from traces.home import Home
from traces.locks import is_held
from ui.cli import cli

ASK = ("ask", "How many?", "--root", "demo/root", "--sub", "demo/sub")
NOTE = "A short note.\n"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home whose rights are given back in the end, so that it can be removed."""
    made = Home.resolve(tmp_path / "home")
    yield made
    for folder in (made.root, made.spool, made.corpora):
        folder.chmod(0o700)


@pytest.fixture
def note(tmp_path: Path) -> str:
    path = tmp_path / "note.txt"
    path.write_text(NOTE)
    return str(path)


@pytest.fixture
def call(home: Home) -> Callable[..., Any]:
    """Call a command with --json that must succeed without a traceback; its document and stderr come back."""

    def run(*words: str) -> tuple[Any, str]:
        result = CliRunner().invoke(cli, [*words, "--json", "--home", str(home.root)])
        assert result.exit_code == 0, result.stderr
        assert "Traceback" not in result.stderr and result.exception is None
        return json.loads(result.stdout), result.stderr

    return run


def said_loss(err: str) -> int:
    """The count in the sentence about what is missing."""
    found = re.search(r"trace incomplete: ([\d,]+) records? could not be written", err)
    assert found is not None, err
    return int(found[1].replace(",", ""))


def fail_writes(monkeypatch: pytest.MonkeyPatch, folder: Path, strikes: Callable[[int], bool]) -> list[int]:
    """Let writes into files of a folder fail as on a full disk: `strikes` is asked with their ordinal."""
    real, ordinals = os.write, [0]

    def write(fd: int, data: bytes) -> int:
        try:
            ours = os.readlink(f"/proc/self/fd/{fd}").startswith(str(folder))
        except OSError:
            ours = False
        if ours:
            ordinals[0] += 1
            if strikes(ordinals[0] - 1):
                raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data)

    monkeypatch.setattr("traces.spool.os.write", write)
    return ordinals


# -- a full disk


@pytest.mark.needs("linux")
@pytest.mark.parametrize("after", [1, 20])
def test_a_disk_that_is_full_from_some_record_on(
    call: Callable[..., Any], home: Home, note: str, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    ordinals = fail_writes(monkeypatch, home.spool, lambda ordinal: ordinal >= after)
    said, err = call(*ASK, note)
    monkeypatch.undo()
    assert said["stop_reason"] == "final" and not said["record"]["complete"]
    assert said_loss(err) == said["record"]["problems"] == ordinals[0] - after
    (listed,), _ = call("runs")
    shown = call("show", "last")[0]["run"]
    for run in (listed, shown):  # how it ended and how much is missing, though the last record is missing too
        assert (run["status"], run["complete"], run["problems"]) == ("ok", False, ordinals[0] - after)
    before = call("show", "last")
    call("ingest", "--rebuild")
    assert call("show", "last") == before
    human = CliRunner().invoke(cli, ["show", "last", "--home", str(home.root)])
    assert f"trace incomplete: {ordinals[0] - after:,} records missing" in human.stdout
    assert "ok, incomplete" in CliRunner().invoke(cli, ["runs", "--home", str(home.root)]).stdout


@pytest.mark.needs("linux")
def test_a_disk_that_is_full_for_a_moment(
    call: Callable[..., Any], home: Home, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_writes(monkeypatch, home.spool, lambda ordinal: 5 <= ordinal < 9)
    said, err = call(*ASK, note)
    monkeypatch.undo()
    assert said_loss(err) == 4
    shown = call("show", "last")[0]["run"]
    assert (shown["status"], shown["answer"]) == ("ok", said["answer"])
    assert shown["problems"] >= 4  # ends whose starts are among the four count as well


@pytest.mark.needs("linux")
def test_a_disk_that_is_full_from_the_start(
    call: Callable[..., Any], home: Home, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinals = fail_writes(monkeypatch, home.spool, lambda _: True)
    said, err = call(*ASK, note)
    monkeypatch.undo()
    assert said["stop_reason"] == "final" and said_loss(err) == ordinals[0] > 20
    shown = call("show", said["run_id"])[0]["run"]
    assert (shown["status"], shown["complete"], shown["problems"]) == ("interrupted", False, 1)


LIMITED = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.argv[:] = ["rlmscope", *sys.argv[2:]]
runpy.run_module("ui", run_name="__main__")
"""


@pytest.mark.needs("linux")
def test_a_limit_on_the_size_of_files(home: Home, note: str) -> None:
    """A real refusal by the system, in the middle of a record. The store cannot be written either."""
    first = rlmscope(*ASK, note, "--home", home.root)
    command = [sys.executable, "-c", LIMITED, "6000", *ASK, note, "--json", "--home", str(home.root)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    said = json.loads(done.stdout)
    assert done.returncode == 0 and said["answer"] == first["answer"] and "Traceback" not in done.stderr
    lost = said_loss(done.stderr)
    assert lost == said["record"]["problems"] > 0
    assert "The store cannot be written" in done.stderr
    runs = {run["run_id"]: run for run in rlmscope("runs", "--home", home.root)}
    run = runs[said["run_id"]]
    assert (run["status"], run["complete"], run["problems"]) == ("ok", False, lost)
    assert runs[first["run_id"]]["complete"]


@pytest.mark.needs("linux")
def test_a_store_that_cannot_be_made_or_rebuilt_for_want_of_space(home: Home) -> None:
    """A full disk must not pass for a damaged store: spools are read, nothing is set aside."""
    record_run(home)

    def limited(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", LIMITED, "6000", *words, "--home", str(home.root)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)

    listed = limited("runs", "--json")
    assert listed.returncode == 0, listed.stderr
    assert [run["run_id"] for run in json.loads(listed.stdout)] == [RUN]
    assert "cannot be written" in listed.stderr and "read from their spools" in listed.stderr
    assert [run["run_id"] for run in rlmscope("runs", "--home", home.root)] == [RUN]  # there is room again
    rebuilt = limited("ingest", "--rebuild")
    assert rebuilt.returncode == 1 and rebuilt.stderr.startswith("rlmscope: The store cannot be written")
    assert "--rebuild" not in rebuilt.stderr and rebuilt.stderr.count("\n") == 1
    assert sorted(path.name for path in home.root.glob("*.duckdb*")) == ["traces.duckdb"]
    assert [run["run_id"] for run in rlmscope("runs", "--home", home.root)] == [RUN]


def test_what_a_kill_left_of_a_store_that_was_being_made_is_no_store(
    call: Callable[..., Any], home: Home
) -> None:
    half = home.store.with_name(home.store.name + ".new")
    half.write_bytes(b"\x00" * 6000)
    half.with_name(half.name + ".wal").write_bytes(b"half a log")
    record_run(home)
    assert [run["run_id"] for run in call("runs")[0]] == [RUN]
    assert sorted(path.name for path in home.root.glob("*.duckdb*")) == ["traces.duckdb"]


def test_a_process_killed_on_a_full_disk_leaves_the_count_so_far(
    call: Callable[..., Any], home: Home, tmp_path: Path
) -> None:
    """The record ends without a word about its end, as a kill leaves it."""
    made = header(lost={"records": 7, "status": None, "t": None})
    write_spool(home, [made, start("1", kind="run")])
    shown = call("show", RUN)[0]["run"]
    assert (shown["status"], shown["problems"]) == ("interrupted", 7)


@pytest.mark.parametrize("lost", [7, [], {"records": -1}, {"records": True}, {"records": 3, "status": "ok"}])
def test_a_count_that_makes_no_sense_breaks_nothing(call: Callable[..., Any], home: Home, lost: Any) -> None:
    write_spool(home, [header(lost=lost), start("1", kind="run"), fin()])
    shown = call("show", RUN)[0]["run"]
    assert (shown["status"], shown["spans"]) == ("ok", 1) and shown["problems"] > 0


# -- a folder that cannot be written


@pytest.mark.usefixtures("no_root_rights")
@pytest.mark.parametrize("whole", [False, True])
def test_a_record_that_cannot_be_begun(call: Callable[..., Any], home: Home, note: str, whole: bool) -> None:
    """Only the folder of spools is read-only, or all of the home, whose corpus then goes by its id."""
    first, _ = call(*ASK, note)
    source = first["corpus_id"] if whole else note
    for folder in (home.spool, home.corpora, home.root) if whole else (home.spool,):
        folder.chmod(0o500)
    said, err = call(*ASK, source)
    assert said["answer"] == first["answer"]
    assert "Nothing of this run can be recorded" in err and "Permission denied" in err
    assert err.index("Nothing of this run can be recorded") < err.index("iteration 0")  # before it is paid
    assert said_loss(err) == said["record"]["problems"] > 20 and not said["record"]["complete"]
    listed, _ = call("runs")
    assert [run["run_id"] for run in listed] == [first["run_id"]]
    assert not is_held(home.liveness_lock(said["run_id"]))


@pytest.mark.usefixtures("no_root_rights")
def test_documents_that_cannot_be_stored_are_one_sentence(home: Home, note: str) -> None:
    home.corpora.chmod(0o500)
    result = CliRunner().invoke(cli, [*ASK, note, "--home", str(home.root)])
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("rlmscope: the corpus cannot be stored in")


# -- a spool that is taken away, or was torn


def removing(monkeypatch: pytest.MonkeyPatch, home: Home, remove: Callable[[Path], None]) -> None:
    """Take the spool away when the first span of a cell ends."""
    end = telemetry.RunSpan.end

    def ended(self: telemetry.RunSpan, *args: Any, **kwargs: Any) -> None:
        end(self, *args, **kwargs)
        if self.kind == "cell":
            for path in home.spool.glob("*.jsonl"):
                remove(path)

    monkeypatch.setattr(telemetry.RunSpan, "end", ended)


@pytest.mark.needs("posix")
def test_a_spool_that_is_deleted_while_it_is_written(
    call: Callable[..., Any], home: Home, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    removing(monkeypatch, home, lambda path: path.unlink())
    said, err = call(*ASK, note)
    assert said["stop_reason"] == "final"
    assert said_loss(err) == said["record"]["problems"] > 20 and "was removed meanwhile" in err
    assert call("runs")[0] == []
    assert list(home.spool.iterdir()) == []


@pytest.mark.needs("posix")
def test_another_file_in_the_place_of_the_spool_is_not_touched(
    call: Callable[..., Any], home: Home, note: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a program that restores a backup leaves it."""
    other = tmp_path / "other.jsonl"
    other.write_bytes(b"something else\n")
    removing(monkeypatch, home, lambda path: os.replace(shutil.copy(other, tmp_path / "copy"), path))
    said, err = call(*ASK, note)
    assert said_loss(err) == said["record"]["problems"]
    assert home.spool_file(said["run_id"]).read_bytes() == b"something else\n"
    assert call("show", said["run_id"])[0]["run"]["problems"] == 1


def test_a_torn_last_line_is_counted_and_the_rest_is_there(
    call: Callable[..., Any], home: Home, note: str
) -> None:
    said, _ = call(*ASK, note)
    spool = home.spool_file(said["run_id"])
    whole = spool.read_bytes()
    torn = home.spool_file(RUN)
    torn.write_bytes(whole.replace(said["run_id"].encode(), RUN.encode())[:-20])
    shown, _ = call("show", RUN)
    assert (shown["run"]["status"], shown["run"]["problems"]) == ("interrupted", 1)
    assert shown["run"]["answer"] == said["answer"]
    assert len(shown["spans"]) == len(call("show", said["run_id"])[0]["spans"])


# -- a clock that jumps


@pytest.mark.parametrize("jump", [-7200, 7200])
def test_a_clock_that_jumps_during_a_run(
    call: Callable[..., Any], note: str, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    """By two hours, as when a laptop learns the time: order and durations stay those that were."""
    real_ns, real, jumps = time.time_ns, time.time, [0]
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + jumps[0] * 10**9)
    monkeypatch.setattr(time, "time", lambda: real() + jumps[0])
    end = telemetry.RunSpan.end

    def ended(self: telemetry.RunSpan, *args: Any, **kwargs: Any) -> None:
        end(self, *args, **kwargs)
        jumps[0] = jump

    monkeypatch.setattr(telemetry.RunSpan, "end", ended)
    began = time.monotonic()
    said, err = call(*ASK, note)
    took = time.monotonic() - began
    assert said["record"]["complete"] and said["stop_reason"] == "final" and said["seconds"] <= took
    later, _ = call(*ASK, note)
    shown, _ = call("show", said["run_id"])
    assert shown["run"]["problems"] == 0 and 0 < shown["run"]["seconds"] <= took
    starts = [span["start_ns"] for span in shown["spans"]]
    assert starts == sorted(starts)
    assert all(0 <= span["end_ns"] - span["start_ns"] <= took * 1e9 for span in shown["spans"])
    assert {run["run_id"] for run in call("runs")[0]} == {said["run_id"], later["run_id"]}


# -- an older program


def test_a_spool_of_a_newer_program_is_named_and_left_alone(
    call: Callable[..., Any], home: Home, note: str
) -> None:
    newer = write_spool(home, [header(v=99), start("1", kind="run"), fin()])
    before = newer.read_bytes()
    said, err = call(*ASK, note)
    assert said["stop_reason"] == "final" and "written by a newer version" in err
    listed, err = call("runs")
    assert [run["run_id"] for run in listed] == [said["run_id"]] and newer.name in err
    _, err = call("ingest", "--rebuild")
    assert newer.name in err and newer.read_bytes() == before
    result = CliRunner().invoke(cli, ["show", RUN, "--home", str(home.root)])
    assert result.exit_code == 1 and "Update the program" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
