"""Logs that other engines really wrote, taken in and looked at through the command line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.outlines import LOGS

Call = Callable[..., Any]
#: Log -> format, answer, iterations of the top run, sub-calls and child runs, tokens in and out.
TAKEN = {
    "recursive_flow/run": ("recursive-flow", "6 days", 6, 0, 4, 49_837, 275),
    "dspy/prediction.json": ("dspy", '{"answer":"6 days","days":6}', 7, 0, 0, None, None),
    "fast_rlm/run.jsonl": ("fast-rlm", '{"days": 6}', 7, 0, 3, 64_752, 151),
    "predict_rlm/prediction.json": ("predict-rlm", "6 days", 4, 0, 0, 19_927, 105),
    "droste/run.jsonl": ("droste", "6 days", 3, 3, 0, 5_511, 109),
}


@pytest.mark.parametrize("log", TAKEN)
def test_a_log_opens_with_the_numbers_that_were_read_off_it(call: Call, log: str) -> None:
    format, answer, iterations, calls, children, used, made = TAKEN[log]
    (done,) = call("import", str(LOGS / log), "--json").json
    assert (done["format"], done["problems"]) == (format, [])
    document = call("show", done["run_id"], "--json").json
    run = document["run"]
    assert (run["answer"], run["iterations"], run["sub_calls"]) == (answer, iterations, calls)
    spans = document["spans"]
    assert sum(span["kind"] == "run" for span in spans) == 1 + children
    told = [span["tokens"] for span in spans if span["kind"] in ("root_call", "sub_call") and span["tokens"]]
    sums = [sum(tokens[side] for tokens in told) if told else None for side in ("input", "output")]
    assert sums == [used, made]
    assert call("cost", done["run_id"], "--json").code == 0
    assert "it cannot be played again" in call("replay", done["run_id"]).out


def test_runs_of_two_engines_can_be_compared(call: Call) -> None:
    logs = (str(LOGS / "dspy" / "prediction.json"), str(LOGS / "predict_rlm" / "trace.json"))
    ids = [one["run_id"] for one in call("import", *logs, "--json").json]
    compared = call("diff", *ids, "--json")
    assert compared.code in (0, 1)
    matched = [row for row in compared.json["rows"] if row["kind"] == "cell" and row["a"] and row["b"]]
    assert len(matched) == 4  # each cell of the shorter run has its place in the other
    assert compared.json["answers"]["same"] is False


def test_a_folder_of_logs_of_all_engines_comes_in_at_once(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for log in TAKEN:
        copy = shutil.copytree if (LOGS / log).is_dir() else shutil.copy
        copy(LOGS / log, folder / log.replace("/", "_"))
    done = call("import", str(folder), "--json").json
    assert sorted(one["format"] for one in done) == sorted(format for format, *_ in TAKEN.values())
    assert call("import", str(folder), "--json").json == [one | {"new": False} for one in done]


@pytest.mark.parametrize("log", ["dspy/prediction.json", "predict_rlm/trace.json", "droste/run.jsonl"])
def test_half_a_file_gives_what_can_be_had(call: Call, tmp_path: Path, log: str) -> None:
    data = (LOGS / log).read_bytes()
    half = tmp_path / Path(log).name
    half.write_bytes(data[: len(data) // 2])
    (done,) = call("import", str(half), "--json").json
    assert done["problems"]
    assert call("show", done["run_id"], "--json").json["run"]["status"] == "interrupted"
