"""export in formats for other programs: which runs, what is printed and refused, and no key in any."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import traces
from rlm_core import semconv as sc
from traces.exporters import FORMATS
from traces.home import Home
from traces.opinions import judge, tag

Call = Callable[..., Any]
Write = Callable[..., Any]
FIRST, SECOND = "20270115T080000-00000001", "20270115T080001-00000002"
KEY = "sk-proj-0123456789abcdefghijklmn"


@pytest.fixture
def runs(written: Write, script: Any, sub_call: Any, home: Home) -> None:
    """Two runs; the first one has a key in every text that a model or a person can write."""
    calls = [sub_call(prompt=f"use {KEY}"), sub_call(response=f"used {KEY}"), sub_call(error=f"Auth {KEY}")]
    texts = {"question": f"Is {KEY} right?", "answer": f"{KEY} is", "code": f"key = '{KEY}'"}
    written(FIRST, script(**texts, stdout=f"{KEY}\n", calls=calls))
    written(SECOND, script())
    judge(home, FIRST, verdict="wrong", expected=f"not {KEY}", note=f"{KEY} leaked")


def contents(path: Path) -> bytes:
    """All bytes of a file, or of the files of a folder, Parquet's packed pages as text."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    packed = [repr(pd.read_parquet(file).to_dict()) for file in files if file.suffix == ".parquet"]
    return b"".join(file.read_bytes() for file in files if file.is_file()) + "".join(packed).encode()


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_written_without_a_key(call: Call, tmp_path: Path, form: str) -> None:
    out = tmp_path / f"out{FORMATS[form].ending}"
    done = call("export", FIRST, "--format", form, "--out", str(out), "--json")
    assert done.code == 0, done.err
    assert {"path", "runs", "redacted", "notes"} <= done.json.keys()
    assert (done.json["path"], done.json["runs"]) == (str(out), [FIRST]) and done.json["redacted"] > 0
    written = contents(out)
    assert KEY.encode() not in written and b"[redacted]" in written
    taken = call("export", FIRST, "--format", form, "--out", str(out))
    assert taken.code == 2 and "exists" in taken.error and contents(out) == written


@pytest.mark.usefixtures("runs")
def test_runs_are_named_tagged_or_all_and_each_is_taken_once(call: Call, home: Home, tmp_path: Path) -> None:
    tag(home, SECOND, ["good"])
    choices = (
        ([FIRST, "last"], [FIRST, SECOND]),
        (["--tag", "good"], [SECOND]),
        (["--all", SECOND], [SECOND, FIRST]),
        ([FIRST, FIRST], [FIRST]),
    )
    for number, (chosen, taken) in enumerate(choices):
        out = tmp_path / f"{number}.csv"
        assert call("export", *chosen, "--format", "csv", "--out", str(out), "--json").json["runs"] == taken
        with out.open(encoding="utf-8-sig", newline="") as file:
            assert list(dict.fromkeys(row["run_id"] for row in csv.DictReader(file))) == taken


@pytest.mark.usefixtures("runs")
def test_what_was_done_is_said_in_lines(call: Call, tmp_path: Path) -> None:
    out = tmp_path / "calls.csv"
    done = call("export", SECOND, "--format", "csv", "--out", str(out))
    assert done.out.splitlines() == ["1 run written", f"written: {out}"]
    lines = call("export", "--all", "--format", "parquet", "--out", str(tmp_path / "p")).out.splitlines()
    assert lines[0] == "2 runs written" and lines[1].endswith("strings that look like keys replaced")


@pytest.mark.usefixtures("runs")
def test_what_cannot_be_is_one_sentence(call: Call, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "x"))
    for options, words in (
        ((FIRST, "--format", "csv", "--any-verdict"), "--any-verdict is for --format sft only, not for csv"),
        ((FIRST, "--format", "otlp", "--examples", "turns"), "--examples is for --format sft only"),
        ((FIRST, "--format", "xml"), "'xml' is not one of"),
        (("nosuch", "--format", "csv"), "There is no run whose id begins with 'nosuch'"),
        (("--tag", "nosuch", "--format", "jsonl"), "no run has the tag 'nosuch'"),
        (("--format", "parquet"), "name the runs to export"),
    ):
        refused = call("export", *options, *out)
        assert refused.code == 2 and words in refused.err and "Traceback" not in refused.err, options
    assert not (tmp_path / "x").exists()


def test_a_run_that_goes_on_is_said_to(call: Call, written: Write, tmp_path: Path) -> None:
    recording = written(FIRST, close=False)
    for form, one in FORMATS.items():
        out = tmp_path / f"{form}{one.ending}"
        done = call("export", FIRST, "--format", form, "--out", str(out), "--json")
        assert done.code == 0 and f"{FIRST} still goes on" in " ".join(done.json["notes"]), form
    recording.close("cancelled")


def test_a_run_of_another_engine_leaves_in_every_format_with_what_is_unknown(
    call: Call, home: Home, tmp_path: Path
) -> None:
    with traces.instrument("How many?", home=home.root, run_id=FIRST) as run, run.iteration() as turn:
        with turn.root_call([("user", "How many?")]) as asked:
            asked.reply("two")
        with turn.cell("x = 1") as cell, cell.sub_call("one?") as asked:
            asked.reply("2", input_tokens=3, output_tokens=1)
        run.answer("2")
    for form, one in FORMATS.items():
        out = tmp_path / f"{form}{one.ending}"
        done = call("export", FIRST, "--format", form, "--out", str(out))
        assert done.code == 0, (form, done.err)
    with (tmp_path / "csv.csv").open(encoding="utf-8-sig", newline="") as file:
        root, sub = csv.DictReader(file)
    assert (root["input_tokens"], root["tokens_trust"], root["cost_usd"]) == ("", "missing", "")
    assert (sub["input_tokens"], sub["tokens_trust"], sub["cost_status"]) == ("3", "reported", "unknown")
    (row,) = pd.read_parquet(tmp_path / "parquet" / "run.parquet").to_dict("records")
    assert (row["imported_from"], row["untold_calls"]) == ("instrument", 1)
    assert json.loads(row["facts"])[sc.IMPORT_ENGINE] == "another engine"


def test_the_place_is_named_as_it_was_given_and_a_dash_is_none(
    call: Call, written: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = "20270115T080000-00000001"
    written(run)
    monkeypatch.chdir(tmp_path)
    for form in ("jsonl", "csv", "html", "otlp", "rlms", "parquet"):
        done = call("export", run, "--format", form, "--out", f"out.{form}")
        assert done.out.splitlines()[-1] == f"written: out.{form}"
        again = call("export", run, "--format", form, "--out", f"again.{form}", "--json")
        assert again.json["path"] == str(tmp_path / f"again.{form}")
    dash = call("export", run, "--format", "jsonl", "--out", "-")
    assert (dash.code, Path("-").exists()) == (2, False)
    assert "--out is the path of a new file" in dash.error
