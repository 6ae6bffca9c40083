"""`rlmscope import` through the command line: what it prints, its exit codes, and what can be done then."""

from __future__ import annotations

import json
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
    assert (missing.code, "there is no file or folder" in missing.error) == (2, True)
    assert call("import").code == 2
    assert call("import", str(good), "--format", "nothing").code == 2
    assert call("import", str(good), "--format", "dspy").code == 2


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
    assert [run.pop("imported_from") for run in after] == ["rlmscope"] * 2
    assert [run.pop("imported_from") for run in before] == [None] * 2
    assert json.dumps(after) == json.dumps(before)
