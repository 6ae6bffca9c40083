"""The recorded example runs that everybody finds at the first start."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from sample_data.generators.examples import BROKEN, QUESTION, RIGHT, write_examples
from traces.home import Home
from traces.reading import load_run

SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"


def gold() -> str:
    questions = json.loads((SAMPLES / "questions.json").read_text(encoding="utf-8"))
    return next(str(entry["answer"]) for entry in questions if entry["question"] == QUESTION)


def read(spools: Path, folder: Path) -> dict[str, Any]:
    """Both runs, taken in from a folder of spools."""
    home = Home(folder)
    home.create()
    for path in spools.glob("*.jsonl"):
        shutil.copy(path, home.spool)
    return {run_id: load_run(home, run_id) for run_id in (RIGHT, BROKEN)}


def calls(view: Any) -> dict[int, Any]:
    return {span.call_index: span for span in view.spans if span.kind == "sub_call"}


@pytest.fixture
def shipped(tmp_path: Path) -> dict[str, Any]:
    return read(SAMPLES / "examples", tmp_path / "home")


def test_one_is_right_and_one_is_broken_by_few_sub_calls(shipped: dict[str, Any]) -> None:
    right, broken = shipped[RIGHT], shipped[BROKEN]
    assert right.summary.answer == gold() != broken.summary.answer
    assert all(
        view.summary.complete and view.summary.sub_calls == 200 and view.summary.demo
        for view in shipped.values()
    )
    good, bad = calls(right), calls(broken)
    response = sc.RESPONSE + ".sha256"
    differing = [n for n in good if good[n].attributes.get(response) != bad[n].attributes.get(response)]
    struck = [n for n, span in bad.items() if sc.DEMO_FAULT in span.attributes or span.status == "error"]
    assert differing == struck and 0 < len(struck) < 20


def test_they_name_no_machine(shipped: dict[str, Any]) -> None:
    for path in (SAMPLES / "examples").glob("*.jsonl"):
        header = json.loads(path.read_text(encoding="utf-8").partition("\n")[0])
        assert (header["pid"], header["host"]) == (0, "example")
    for view in shipped.values():
        assert json.loads(view.spans[0].attributes[sc.VERSIONS])["platform"] == "example"


def test_made_again_they_say_the_same(tmp_path: Path, shipped: dict[str, Any]) -> None:
    """A change of engine or demo model that changes the examples must come with new ones."""
    write_examples(SAMPLES, tmp_path / "again")
    made = read(tmp_path / "again", tmp_path / "other")
    for run_id, view in shipped.items():
        assert said(view) == said(made[run_id]), (
            "run `python sample_data/generate.py` and commit what it writes"
        )


def said(view: Any) -> list[tuple[Any, ...]]:
    keys = (sc.PROMPT, sc.RESPONSE, sc.CODE, sc.STDOUT_SHOWN, sc.ANSWER)
    rows = [
        (span.kind, span.iteration, span.call_index, *(span.attributes.get(k + ".sha256") for k in keys))
        for span in view.spans
    ]
    return sorted(rows, key=str)


def test_the_app_says_what_each_example_is_for() -> None:
    from ui.web.samples import example_note

    assert "right" in (example_note(RIGHT) or "") and "broken on purpose" in (example_note(BROKEN) or "")
    assert example_note("20260105T090000-0000e003") is None
