"""`rlmscope import` through the command line: what it prints, its exit codes, and what can be done then."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traces.home import Home

Call = Callable[..., Any]
SAMPLES = Path(__file__).parent.parent / "fixtures" / "logs" / "samples"


def test_every_sample_is_known_by_its_content_and_opens(call: Call, tmp_path: Path) -> None:
    done = call("import", str(SAMPLES), "--json")
    assert done.code == 0
    assert done.err == "samples: of no known format: samples/README.md\n"
    formats = {one["format"] for one in done.json}
    assert formats == {"rlms", "recursive-flow", "dspy", "fast-rlm", "predict-rlm", "droste"}
    listed = {run["run_id"]: run for run in call("runs", "--json").json}
    assert set(listed) == {one["run_id"] for one in done.json}
    for one in done.json:
        assert listed[one["run_id"]]["imported_from"] == one["format"]
        shown = call("show", one["run_id"], "--json").json
        assert shown["spans"]
        assert all(span["trust"] for span in shown["spans"])
        assert "it cannot be played again" in call("replay", one["run_id"]).out
    assert call("cost", *listed, "--json").code == 0
    assert [one["new"] for one in call("import", str(SAMPLES), "--json").json] == [False] * len(listed)


def test_exit_codes_say_how_much_came_in(call: Call, tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.txt", SAMPLES / "official_rlms_0.1.3.jsonl"
    bad.write_text("no record")
    both, none = call("import", str(bad), str(good), "--json"), call("import", str(bad), "--json")
    assert (both.code, len(both.json)) == (1, 1)
    assert (none.code, none.json) == (2, [])
    assert "bad.txt: it is no record of a known format (rlmscope, otlp, rlms," in none.error
    assert "Traceback" not in both.err
    missing = call("import", str(tmp_path / "gone"))
    said = f"rlmscope: {tmp_path / 'gone'}: there is no file or folder of that name"
    assert (missing.code, missing.err.splitlines()) == (2, [said])
    assert call("import").code == 2
    assert call("import", str(good), "--format", "nothing").code == 2
    assert call("import", str(good), "--format", "dspy").code == 2


def test_a_run_that_a_file_holds_many_times_is_said_once(call: Call, tmp_path: Path) -> None:
    whole = (SAMPLES / "official_rlms_0.1.3.jsonl").read_text(encoding="utf-8")
    (tmp_path / "log.jsonl").write_text(whole * 3, encoding="utf-8")
    first, again = (call("import", str(tmp_path / "log.jsonl")).out.splitlines() for _ in range(2))
    assert first[0].endswith("(met 3 times)") and again[0].endswith("(it was here already, met 3 times)")
    assert len([text for text in first + again if not text.startswith(" ")]) == 2
    assert len(call("import", str(tmp_path / "log.jsonl"), "--json").json) == 3, "scripts get every one"


def test_what_is_left_out_of_a_run_that_came_in_is_no_failure(call: Call, tmp_path: Path) -> None:
    """As of the log of a run that still goes on: its last line is half written."""
    whole = (SAMPLES / "official_rlms_0.1.3.jsonl").read_text(encoding="utf-8")
    (tmp_path / "log.jsonl").write_text(whole + whole.splitlines()[-1][:40], encoding="utf-8")
    done = call("import", str(tmp_path / "log.jsonl"), "--json")
    (run,) = done.json
    assert done.code == 0 and len(run["problems"]) == 1
    assert done.err.splitlines() == [
        "1 problem of 1 run on record: what could not be read of a file is not in its runs"
    ]
    listed = next(one for one in call("runs", "--json").json if one["run_id"] == run["run_id"])
    assert (listed["problems"], listed["complete"]) == (1, False)


def test_an_export_comes_back_through_the_command_line(
    call: Call, written: Callable[..., Any], home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = ["20270115T080000-00000001", "20270115T080000-00000002"]
    for run_id in ids:
        written(run_id)
    call("mark", ids[0], "--verdict", "right", "--tag", "gold")
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    assert call("export", *ids, "--format", "jsonl", "--out", str(files[0]), "--json").json["runs"] == ids
    before = call("runs", "--json").json
    call("delete", *ids, "--yes")
    home.user_log.unlink()  # as in another home
    assert [one["run_id"] for one in call("import", str(files[0]), "--json").json] == ids
    call("export", *ids, "--format", "jsonl", "--out", str(files[1]))
    assert files[0].read_bytes() == files[1].read_bytes()
    after = call("runs", "--json").json
    origin = ("imported_from", "imported_file")
    assert [[run.pop(name) for name in origin] for run in after] == [["rlmscope", "a.jsonl"]] * 2
    assert [[run.pop(name) for name in origin] for run in before] == [[None, None]] * 2
    assert json.dumps(after) == json.dumps(before)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that nobody can read, on Linux")
def test_a_file_that_cannot_be_read_is_not_called_one_of_no_known_format(call: Call, tmp_path: Path) -> None:
    (tmp_path / "none.json").write_bytes(b"")
    (tmp_path / "pipe").symlink_to("/dev/null")
    done = call("import", "/proc/self/mem", str(tmp_path / "none.json"), str(tmp_path / "pipe"))
    assert done.code == 2
    assert done.err.splitlines() == [
        "rlmscope: mem: it cannot be read: Input/output error.",
        "rlmscope: none.json: it is empty",
        "rlmscope: pipe: it is neither a file nor a folder",
    ]


def test_a_folder_that_cannot_be_opened_costs_nothing_beside_it(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, scandir = tmp_path / "logs" / "a", os.scandir
    closed.mkdir(parents=True)
    shutil.copy(SAMPLES / "official_rlms_0.1.3.jsonl", tmp_path / "logs" / "b.jsonl")

    def guarded(path: Any = ".") -> Any:
        if path == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    done = call("import", str(tmp_path / "logs"), "--json")
    assert (done.code, len(done.json)) == (1, 1)
    assert done.error == "rlmscope: logs/a: it cannot be read: Permission denied.\n"


def test_a_file_is_named_once_and_what_runs_lack_alike_is_said_once(call: Call) -> None:
    forced = call("import", str(SAMPLES / "dspy_rlm_prediction_3.4.1.json"), "--format", "rlms")
    assert forced.error.count("dspy_rlm_prediction_3.4.1.json") == 1
    logs = sorted((SAMPLES.parent / "rlms").glob("rlms_0.1.[12].jsonl"))
    lines = call("import", *map(str, logs)).out.splitlines()
    runs = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert len(runs) == 4
    assert [line for line in lines if "the same as of" in line] == [
        f"  not in the record: the same as of {run}" for run in runs[:2]
    ]
    assert sum("rlms logs no usage of its root calls" in line for line in lines) == 2


def test_a_run_without_a_question_is_named_by_its_file(call: Call) -> None:
    out = call("import", str(SAMPLES / "dspy_rlm_prediction_3.4.1.json")).out
    assert "  (dspy_rlm_prediction_3.4.1.json of dspy.RLM: no question on record)\n" in out
