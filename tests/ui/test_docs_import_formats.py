"""What ui/docs/import-formats.md says is run: its command, and its tables against imports of real logs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT
from tests.support.outlines import LOGS
from traces.importers import IMPORTERS

PAGE = (ROOT / "ui" / "docs" / "import-formats.md").read_text(encoding="utf-8")
((COMMAND, PRINTED),) = re.findall(r"^\$ rlmscope (.*)\n((?:(?!```).*\n)*)", PAGE, re.M)
LOG_OF = {
    "recursive-flow": "recursive_flow/run",
    "dspy": "dspy/prediction.json",
    "fast-rlm": "fast_rlm/run.jsonl",
    "predict-rlm": "predict_rlm/trace.json",
    "droste": "droste/run.jsonl",
}


def rows(heading: str) -> dict[str, list[str]]:
    """The table below a heading: the first cell of each line, and the others."""
    table = PAGE.split(heading)[1].strip().split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {line[0].strip("`"): line[1:] for line in cells if not line[0].startswith("---")}


def test_the_command_prints_what_the_page_shows(
    call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(LOGS / "dspy" / "prediction.json", tmp_path)
    os.utime(tmp_path / "prediction.json", (1_772_352_000, 1_772_352_000))  # 2026-03-01T08:00:00Z
    monkeypatch.chdir(tmp_path)
    assert call(*shlex.split(COMMAND)).out == PRINTED


def test_the_formats_named_are_those_that_exist() -> None:
    named = set(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.M))
    assert named == set(LOG_OF) == set(IMPORTERS) - {"rlmscope", "otlp", "rlms"}


@pytest.mark.parametrize("format", LOG_OF)
def test_what_the_table_says_of_a_format_is_what_its_log_holds(call: Callable[..., Any], format: str) -> None:
    table = rows("then the run says so.")
    column = table.pop("").index(format)
    said = {name: cells[column] for name, cells in table.items()}
    (done,) = call("import", str(LOGS / LOG_OF[format]), "--json").json
    document = call("show", done["run_id"], "--json").json
    spans = document["spans"]
    root = next(span for span in spans if span["kind"] == "root_call")
    detail = call("span", done["run_id"], root["span_id"], "--json").json
    marks = {name: root["trust"][name] for name in ("tokens", "start")}
    assert said["question"].startswith("reported") == (done["question"] is not None)
    assert said["tokens of root calls"] == marks["tokens"]
    assert said["times"].startswith("reported") == (marks["start"] == "reported")
    assert said["messages of the root"].startswith("missing") == (not detail["messages"])
    assert (said["reply of the root"] == "reported") == ("```" in (detail["response"] or ""))
    assert said["model"].startswith("reported") == (root["model"] is not None)
    kinds = {span["kind"] for span in spans}
    assert ("sub_call" in kinds) == (format == "droste")
    assert (sum(span["kind"] == "run" for span in spans) > 1) == (format in ("recursive-flow", "fast-rlm"))
