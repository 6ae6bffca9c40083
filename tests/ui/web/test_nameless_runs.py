"""Runs whose record holds no question and no sub-call are called by their file; 0 is nowhere said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.foreign_runs import silent, some_times, write_foreign
from tests.support.outlines import LOGS, taken
from tests.support.pages import problems, rows_of, runs_page, texts, use
from tests.support.run_pages import facts, run_page
from tests.ui.web.test_imported_runs import page_of
from traces.exporters.html import export
from traces.home import Home
from traces.reading import load_run
from traces.strategies import strategy_rows
from ui.answer_text import answer_markdown
from ui.web.spend_limits import for_csv

NAME = "(kept.json of dspy.RLM: no question on record)"


@pytest.fixture
def run_id(home: Home, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run of which neither question nor sub-calls are told."""
    use(home, monkeypatch)
    return write_foreign(home, silent(), "kept.json").run_id


def test_lists_name_the_file_and_engine_and_count_no_sub_calls(run_id: str) -> None:
    (row,) = rows_of(runs_page(), "runs-table")
    assert (row["Question"], row["Sub-calls"], row["Failed"]) == (NAME, "?", "?")
    assert len(rows_of(runs_page(q="kept.json"), "runs-table")) == 1


def test_the_page_of_the_run_names_its_file_and_engine(run_id: str) -> None:
    page = run_page(run_id)
    assert problems(page) == [] and NAME in texts(page)
    assert facts(page)["Sub-calls"] == "none on record"


def test_a_comparison_says_none_on_record_and_knows_no_difference(home: Home, run_id: str) -> None:
    other = write_foreign(home, some_times()).run_id
    page = page_of("compare", a=other, b=run_id)
    assert problems(page) == [] and NAME in texts(page)
    rows = {next(iter(row.values())): [*row.values()][1:] for row in rows_of(page, "compare-figures")}
    for counted in ("Sub-calls", "Failed sub-calls"):
        assert rows[counted] == ["4" if counted == "Sub-calls" else "0", "none on record", "unknown"]
    assert rows["Child runs"] == ["0", "none on record", "unknown"]
    assert rows["Cost of sub-calls"][1:] == rows["Cost of the root model"][1:] == ["unknown", "unknown"]


def test_the_choice_of_a_run_to_compare_with_names_its_file(home: Home, run_id: str) -> None:
    page = page_of("compare", a=write_foreign(home, some_times()).run_id)
    (offered,) = page.selectbox[0].options
    assert NAME in offered


def test_strategies_count_no_sub_calls_that_are_not_told(home: Home, run_id: str) -> None:
    page = page_of("strategies", runs=run_id)
    (row,) = rows_of(page, "strategies-rows")
    assert "1 + ?" in row.values() and NAME in texts(page)
    (told,) = strategy_rows(home, [run_id])
    assert (told.asked, told.to_json()["untold_sub_calls"]) == ((1, None), True)


def test_whether_a_run_without_a_question_asks_the_same_is_unknown(home: Home, run_id: str) -> None:
    other = write_foreign(home, some_times()).run_id
    said = texts(page_of("strategies", runs=f"{run_id},{other}"))
    assert "How many?" in said and NAME not in said
    assert "Whether these runs all ask the same question over the same corpus is not on record." in said


def test_the_overview_of_child_runs_counts_no_sub_calls_that_are_not_told(home: Home, run_id: str) -> None:
    ((done, _),) = taken(home, LOGS / "recursive_flow" / "run")
    page = page_of("run", run=done.run_id, view="overview")
    said = "The run itself started 3 child runs. Child runs of depth 1 started 1 child run."
    assert problems(page) == [] and said in texts(page)
    assert {row["Sub-calls"] for row in rows_of(page, "fan-outs")} == {"?"}


def test_a_csv_file_of_runs_has_no_number_of_sub_calls_that_are_not_told(home: Home, run_id: str) -> None:
    row = for_csv(load_run(home, run_id).summary)
    assert [row[name] for name in ("question", "sub_calls", "cost_usd")] == [None, None, None]
    assert row["imported_file"] == "kept.json"
    assert for_csv(load_run(home, write_foreign(home, some_times()).run_id).summary)["sub_calls"] == 4


def test_the_answer_as_a_file_counts_no_sub_calls_that_are_not_told(home: Home, run_id: str) -> None:
    run = load_run(home, run_id).summary
    said = answer_markdown(run, stopped="s", cost="unknown", trust=[], basis="b", cited=[])
    assert NAME in said and "1 iteration, no sub-calls on record" in said


def test_the_page_of_a_run_as_html_bears_the_name_and_counts_no_sub_calls(
    home: Home, run_id: str, tmp_path: Path
) -> None:
    export(home, [run_id], out := tmp_path / "run.html")
    page = out.read_text()
    assert f"<title>{NAME}</title>" in page and f"<h1 dir=auto>{NAME}</h1>" in page
    assert "<dt>Sub-calls</dt><dd>none on record</dd>" in page
    (row,) = (line for line in page.splitlines() if "<td>0</td>" in line)
    assert "<td class=number>?</td>" in row
