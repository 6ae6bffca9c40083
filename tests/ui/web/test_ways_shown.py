"""What the Run page and the Runs page say of runs that went about their question in other ways."""

from __future__ import annotations

import pytest

from tests.support.pages import HOSTILE, badly_shown, problems, rows_of, runs_page, shown, texts, use
from tests.support.run_pages import facts, open_tab, press, run_page, tabs
from tests.support.way_runs import asked_by, many_ways
from traces.home import Home
from traces.reading import load_run
from ui.web.tree_rows import Shape, tree_rows

DEAD, RUN = "20270115T080000-00000001", "20270115T080000-00000002"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


def test_the_head_of_a_run_says_how_it_went_about_its_question(home: Home) -> None:
    asked_by(home, DEAD, None, None)
    many_ways(home, RUN, HOSTILE, DEAD)
    page = run_page(RUN)
    said = facts(page)
    assert said["Models from depth 1"] == "root test/small"
    assert said["Models from depth 2"] == "sub test/tiny"
    assert (said["Tool calls"], said["From the cache"], said["Summaries of turns"]) == (
        "1",
        "1 sub-call",
        "1",
    )
    assert "strategy retrieve+rlm" in shown(page) and badly_shown(page, "HOSTILE") == []
    sentences = texts(page)
    assert f"This run continues the run {DEAD}: what that one had is not paid again." in sentences
    assert "The answer is marked “schema”: it does not fit the schema that was asked for." in sentences
    assert press(page, "The run that it continues").query_params["run"] in (DEAD, [DEAD])


def test_the_page_of_a_dead_run_leads_to_the_run_that_continues_it(home: Home) -> None:
    asked_by(home, DEAD, None, None)
    many_ways(home, RUN, HOSTILE, DEAD)
    page = run_page(DEAD)
    assert "1 run went on from where this one ended." in texts(page)
    assert press(page, RUN).query_params["run"] in (RUN, [RUN])


def test_a_usual_run_says_nothing_of_ways(home: Home) -> None:
    page = run_page(asked_by(home, RUN, "rlm", "four"))
    assert not {"Tool calls", "From the cache", "Summaries of turns"} & set(facts(page))
    assert "strategy" not in shown(page) and "Resume" not in shown(page)


def test_a_tool_call_shows_its_arguments_and_what_it_told_the_model(home: Home) -> None:
    spans = many_ways(home, RUN, HOSTILE, DEAD)
    page = run_page(RUN, spans["tool"].span_id)
    assert tabs(page)[:2] == ["Result", "Arguments"]
    assert any(block.value.startswith("Nothing. ![HOSTILE]") for block in page.code)
    assert facts(page)["Round"] == "1" and badly_shown(page, "HOSTILE") == []
    page = open_tab(run_page(RUN, spans["call"].span_id), "Tool calls")
    (table,) = page.dataframe
    assert table.value.iloc[0]["result"].startswith("Nothing.") and badly_shown(page, "HOSTILE") == []


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("summary", "The root was asked to sum up 3 turns; its reply took their place."),
        ("iteration", "An answer did not fit the schema asked for: count is no number: "),
        ("hit", "an equal call of this run"),
    ],
)
def test_a_span_says_what_is_special_about_it(home: Home, name: str, sentence: str) -> None:
    spans = many_ways(home, RUN, HOSTILE, DEAD)
    page = run_page(RUN, spans[name].span_id)
    assert any(text.startswith(sentence) for text in texts(page)) and badly_shown(page, "HOSTILE") == []


def test_the_tree_names_tools_and_summaries(home: Home) -> None:
    many_ways(home, RUN, "x", DEAD)
    labels = [row.label for row in tree_rows(load_run(home, RUN), Shape()).rows]
    assert {"tool look_up x", "root call, a summary"} <= set(labels)


def test_runs_are_listed_and_filtered_by_strategy(home: Home) -> None:
    asked_by(home, DEAD, None, "three")
    many_ways(home, RUN, "x", DEAD)
    page = runs_page()
    assert [row["Tags"] for row in rows_of(page, "runs-table")] == ["retrieve+rlm, resumed", ""]
    assert [row["Answer"] for row in rows_of(runs_page(strategy="rlm"), "runs-table")] == ["three"]
    assert [row["Answer"] for row in rows_of(runs_page(kind="resumed"), "runs-table")] == ["four"]


def test_the_field_of_strategies_is_there_for_several(home: Home) -> None:
    asked_by(home, RUN, "direct", "three")
    assert "runs-strategy" not in shown(runs_page()) and problems(runs_page()) == []
