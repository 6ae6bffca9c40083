"""Runs of two engines compared: what each records in its own way is no difference."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm_core import semconv as sc
from tests.support.command import ROOT
from tests.support.foreign_runs import write_foreign
from traces.diff import Diff, diff
from traces.home import Home
from traces.importers.foreign import ForeignRun, ForeignSpan
from traces.importers.importing import Imported, import_paths
from traces.reading import load_run

SAMPLES = ROOT / "tests" / "fixtures" / "logs" / "samples"
ASKED = "How many days was the pump down?"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def run(engine: str, question: str | None, inputs: str | None = None, code: str = "x = 1") -> ForeignRun:
    """A run of one turn; `inputs` are what its engine records of the documents."""
    texts = {sc.QUESTION: question, sc.CHILD_CONTEXT: inputs, sc.ANSWER: "6"}
    turn = ForeignSpan("iteration", children=[ForeignSpan("root_call"), ForeignSpan("cell")])
    turn.children[1].texts = {sc.CODE: code, sc.STDOUT: code}
    top = ForeignSpan("run", texts={name: text for name, text in texts.items() if text is not None})
    top.children = [turn]
    return ForeignRun("droste", engine, "0", top)


def compared(home: Home, a: ForeignRun, b: ForeignRun) -> Diff:
    first, second = (load_run(home, write_foreign(home, run).run_id) for run in (a, b))
    return diff(first, second)


@pytest.mark.parametrize("other", [ASKED, "How many days\n  was the pump down? "])
def test_the_same_question_is_the_same_whatever_each_engine_records_of_the_documents(
    home: Home, other: str
) -> None:
    found = compared(home, run("one", ASKED), run("other", other, '["The pump failed"]', "y = other"))
    assert found.rows[0].changed == () and found.rows[0].unknown == ()
    assert not any("different questions" in note for note in found.notes)
    assert found.plan is not None and found.plan.shown_same, "both roots were asked the same"


def test_another_question_and_one_that_is_not_on_record_are_told_apart(home: Home) -> None:
    other = compared(home, run("one", ASKED), run("other", "Who repaired it?"))
    assert other.rows[0].changed == ("prompt",)
    assert "The runs were asked different questions." in other.notes
    silent = compared(home, run("one", ASKED), run("third", None))
    assert silent.rows[0].changed == () and silent.rows[0].unknown == ("prompt",)


def test_logs_of_two_engines_that_were_asked_the_same_are_asked_the_same(home: Home) -> None:
    logs = [SAMPLES / "official_rlms_0.1.3.jsonl", SAMPLES / "recursive_flow_run_v0_4_2"]
    first, second = (one for one in import_paths(home, logs) if isinstance(one, Imported))
    row = diff(load_run(home, first.run_id), load_run(home, second.run_id)).rows[0]
    assert (row.kind, row.changed) == ("run", ("response",))


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A computer that has been taken elsewhere, at the end."""
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_log_of_local_times_is_known_again_in_another_time_zone(
    home: Home, monkeypatch: pytest.MonkeyPatch, moved: None
) -> None:
    said = []
    for zone in ("UTC", "FIVE+5"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        said += import_paths(home, [SAMPLES / "official_prerelease_2025-12.jsonl"])
    assert [one.new for one in said if isinstance(one, Imported)] == [True, False]
