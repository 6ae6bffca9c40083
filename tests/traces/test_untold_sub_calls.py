"""Sub-calls that a record does not tell of are unknown; 0 stands where it says that there were none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.support.foreign_runs import no_times, write_foreign
from tests.support.outlines import LOGS, taken
from traces.home import Home
from traces.imported import asked_words, failed_sub_calls_told, sub_calls_told
from traces.ingest import ingest
from traces.migrations import MIGRATIONS
from traces.reading import list_runs
from traces.rows import RunSummary
from traces.tables import run_row


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home.resolve(tmp_path / "home")


def log_of_rlms(folder: Path, code: str) -> Path:
    """A log of one cell that asks nobody, as far as the log says."""
    block = {"code": code, "result": {"stdout": "3\n", "stderr": "", "locals": {}, "rlm_calls": []}}
    turn: dict[str, Any] = {"type": "iteration", "iteration": 1, "timestamp": "2026-11-30T14:33:44"}
    turn |= {"prompt": [{"role": "user", "content": "?"}], "response": code, "code_blocks": [block]}
    settings = {"type": "metadata", "root_model": "root-m", "max_iterations": 4, "environment_type": "local"}
    lines = [settings, turn | {"final_answer": "3", "iteration_time": 1.0}]
    (path := folder / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return path


def run_of(home: Home, path: Path) -> RunSummary:
    """The one run of a file."""
    ((_, view),) = taken(home, path)
    return view.summary


def test_a_run_of_rlms_that_asked_nobody_has_0_sub_calls(home: Home, tmp_path: Path) -> None:
    run = run_of(home, log_of_rlms(tmp_path, "print(len(context))"))
    assert (sub_calls_told(run), failed_sub_calls_told(run)) == (0, 0) and not run.untold_sub_calls


def test_a_run_of_rlms_whose_calls_are_not_in_the_log_has_unknown_ones(home: Home, tmp_path: Path) -> None:
    run = run_of(home, log_of_rlms(tmp_path, "print(llm_query('How many?'))"))
    assert (run.sub_calls, sub_calls_told(run), failed_sub_calls_told(run)) == (0, None, None)


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("dspy/prediction.json", None),
        ("recursive_flow/run", None),
        ("fast_rlm/run.jsonl", 0),  # whatever its code asks is a child run
        ("predict_rlm/prediction.json", None),  # its code calls predict, and no such call is on record
        ("droste/run.jsonl", 3),
    ],
)
def test_sub_calls_are_told_where_the_engine_records_them(home: Home, log: str, told: int | None) -> None:
    assert sub_calls_told(run_of(home, LOGS / log)) == told


def test_tables_hold_null_for_sub_calls_that_are_not_told(home: Home, tmp_path: Path) -> None:
    untold = run_row(run_of(home, LOGS / "dspy" / "prediction.json"))
    assert (untold["sub_calls"], untold["failed_sub_calls"]) == (None, None)
    assert (untold["untold_sub_calls"], untold["imported_file"]) == (True, "prediction.json")
    assert run_row(run_of(home, log_of_rlms(tmp_path, "1")))["sub_calls"] == 0


def test_a_run_without_a_question_is_called_by_its_file_and_engine(home: Home) -> None:
    nameless = run_of(home, LOGS / "dspy" / "prediction.json")
    assert nameless.question is None
    assert asked_words(nameless) == "(prediction.json of dspy.RLM: no question on record)"
    written = write_foreign(home, no_times())
    (named,) = [run for run in list_runs(home) if run.run_id == written.run_id]
    assert asked_words(named) == "How many?"


def test_a_store_from_before_says_the_same_of_imported_runs(home: Home, tmp_path: Path) -> None:
    for log in ("dspy/prediction.json", "fast_rlm/run.jsonl", "predict_rlm/prediction.json"):
        taken(home, LOGS / log)
    taken(home, log_of_rlms(tmp_path, "print(llm_query('How many?'))"))
    taken(home, log_of_rlms(tmp_path, "print(len(context))"))
    ingest(home)
    today = list_runs(home)
    assert {run.untold_sub_calls for run in today} == {True, False} and len(today) == 5
    with duckdb.connect(str(home.store)) as con:
        for column in ("imported_file", "untold_sub_calls", "refused_sub_calls"):
            con.execute(f"ALTER TABLE run DROP COLUMN {column}").fetchall()
        (number,) = [n for n, (name, _) in MIGRATIONS.items() if "whether they tell of sub-calls" in name]
        con.execute("DELETE FROM migration WHERE number >= ?", [number]).fetchall()
    assert list_runs(home) == today
