"""The Runs page: the list, its filter and pages, opening and deleting, stores that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core.errors import RecordError
from tests.support.pages import HOSTILE, badly_shown, problems, runs_page, shown, texts, use
from traces import reading
from traces.home import Home
from traces.reading import RunSummary, list_runs
from ui.web import runs_table

FIRST, SECOND = "20270115T080000-00000001", "20270115T080000-00000002"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


@pytest.fixture
def summary(home: Home, written: Callable[..., Any], script: Any) -> RunSummary:
    """One run that is in the home."""
    written(FIRST, script(question="How many refunds?", answer="Seven"))
    (run,) = list_runs(home)
    return run


def rows(page: AppTest) -> list[dict[str, Any]]:
    """The rows of the table."""
    assert not page.exception, page.exception
    return [row for table in page.dataframe for row in table.value.to_dict("records")]


def questions(page: AppTest) -> list[str]:
    return [row["Question"] for row in rows(page)]


def ask_to_delete(page: AppTest, run_id: str) -> AppTest:
    """As after a click on the button in the run's row, which only a browser can make."""
    page.session_state["runs-delete"] = run_id
    return page.run()


# -- the list


def test_an_empty_home_says_what_to_do() -> None:
    page = runs_page()
    assert texts(page) == ["There are no runs yet. A run appears here as soon as a question is asked."]
    assert page.page_link[0].value == "Ask a question"


def test_runs_are_listed_with_what_they_are(summary: RunSummary, written: Callable[..., Any]) -> None:
    (row,) = rows(runs_page())
    assert row == {
        "Open": "Open",
        "Status": ["ok"],
        "Question": "How many refunds?",
        "Answer": "Seven",
        "Models": "openai/big / openai/small",
        "Sub-calls": 1,
        "Failed": 0,
        "Cost": "$0.0101",
        "Time": row["Time"],
        "Started": "2027-01-15 08:00",
        "Delete": "Delete",
    }


def test_the_newest_run_stands_first_and_a_running_one_is_at_work(
    summary: RunSummary, written: Callable[..., Any], script: Any
) -> None:
    with written(SECOND, script(), close=False):
        page = runs_page()
        assert [row["Status"] for row in rows(page)] == [["running"], ["ok"]]
        assert "2 runs, 1 at work" in [caption.value for caption in page.caption]


def test_what_is_not_known_is_called_unknown(
    home: Home, written: Callable[..., Any], script: Any, sub_call: Any
) -> None:
    written(FIRST, script(answer=None, calls=[sub_call(cost=None), sub_call(error="timeout", cost=None)]))
    (row,) = rows(runs_page())
    assert (row["Status"], row["Answer"], row["Cost"]) == (["error"], "(no answer)", "at least $0.01")
    assert (row["Sub-calls"], row["Failed"]) == (2, 1)


def test_hostile_text_stands_only_in_cells(written: Callable[..., Any], script: Any) -> None:
    written(FIRST, script(question=HOSTILE, answer=HOSTILE, model="openai/" + HOSTILE))
    page = runs_page()
    (row,) = rows(page)
    assert all("HOSTILE" in row[name] for name in ("Question", "Answer", "Models"))
    assert not any(mark in str(row) for mark in "\x1b\u202e") and badly_shown(page, "HOSTILE") == []
    assert badly_shown(ask_to_delete(page, FIRST), "HOSTILE") == []


# -- filter and pages


def test_the_filter_looks_for_words_and_a_status(
    summary: RunSummary, written: Callable[..., Any], script: Any
) -> None:
    written(SECOND, script(question="Which contract is dearest?", answer=None))
    page = runs_page()
    page.text_input(key="runs-text").set_value("DEAREST contract").run()
    assert questions(page) == ["Which contract is dearest?"]
    assert "1 of 2 runs" in [caption.value for caption in page.caption]
    page.text_input(key="runs-text").set_value("").run()
    page.selectbox(key="runs-status").select("ok").run()
    assert questions(page) == ["How many refunds?"]
    page.text_input(key="runs-text").set_value("nothing like it").run()
    assert texts(page) == ["No run fits this filter."]


@pytest.mark.parametrize("text", ["refund", "SEVEN", "openai/big", FIRST[-6:], "many seven"])
def test_any_of_the_texts_of_a_run_is_found(summary: RunSummary, text: str) -> None:
    assert runs_table.matching([summary], text, None) == [summary]
    assert runs_table.matching([summary], text + " else", None) == []


def test_thousands_of_runs_come_in_pages(summary: RunSummary, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [replace(summary, run_id=f"r{n}", question=f"Question {n}") for n in range(2_345)]
    monkeypatch.setattr(reading, "list_runs", lambda *_, **__: many)
    page = runs_page()
    assert questions(page) == [f"Question {n}" for n in range(50)]
    assert page.pagination[0].num_pages == 47
    page.pagination[0].set_value(47).run()
    assert questions(page) == [f"Question {n}" for n in range(2_300, 2_345)]
    page.text_input(key="runs-text").set_value("question 1").run()  # fewer pages than the one that was shown
    assert questions(page)[0] == "Question 1" and len(rows(page)) == 50
    page.text_input(key="runs-text").set_value("2344").run()
    assert questions(page) == ["Question 2344"] and len(page.pagination) == 0


def test_the_time_zone_of_the_browser_counts(summary: RunSummary) -> None:
    assert runs_table.started(summary, "Asia/Kolkata") == "2027-01-15 13:30"
    assert runs_table.started(summary, "No/Where") == runs_table.started(summary, None) == "2027-01-15 08:00"
    assert runs_table.started(replace(summary, started_ns=0), None) == "unknown"


# -- opening and deleting


def test_opening_goes_to_the_run(summary: RunSummary) -> None:
    page = runs_page()
    page.session_state["runs-open"] = FIRST  # as after a click on the button in the row
    page.run()
    assert page.query_params["run"] == FIRST and rows(page) == []


def test_a_run_is_deleted_only_after_a_second_step(home: Home, summary: RunSummary) -> None:
    page = ask_to_delete(runs_page(), FIRST)
    assert {"How many refunds?", FIRST} <= set(texts(page)) and "Delete this run for good?" in shown(page)
    page.button(key="runs-delete-keep").click().run()
    assert questions(page) == ["How many refunds?"] and "for good?" not in shown(page)
    ask_to_delete(page, FIRST).button(key="runs-delete-sure").click().run()
    assert list_runs(home) == [] and FIRST in texts(page) and ":green-badge[Deleted]" in shown(page)


def test_a_running_run_is_not_deleted(home: Home, written: Callable[..., Any], script: Any) -> None:
    with written(FIRST, script(), close=False):
        page = ask_to_delete(runs_page(), FIRST)
        page.button(key="runs-delete-sure").click().run()
        (sentence,) = problems(page)
        assert "is still going on" in sentence and len(list_runs(home)) == 1


def test_a_run_that_another_deleted_first_is_said(home: Home, summary: RunSummary) -> None:
    page = ask_to_delete(runs_page(), "20270115T080000-0000dead")
    page.button(key="runs-delete-sure").click().run()
    assert problems(page) == ["There is no run '20270115T080000-0000dead'."]


# -- stores that cannot be read


def test_a_store_that_cannot_be_read_is_one_sentence(home: Home, written: Callable[..., Any]) -> None:
    written(FIRST)
    home.store.write_bytes(b"something else")
    page = runs_page()
    assert len(problems(page)) == 1 and rows(page) == []


def test_a_newer_store_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def newer(*_: Any, **__: Any) -> list[RunSummary]:
        raise RecordError("The store was written by a newer version (schema 99, this program knows 1).")

    monkeypatch.setattr(reading, "list_runs", newer)
    assert problems(runs_page()) == [
        "The store was written by a newer version (schema 99, this program knows 1)."
    ]


def test_a_busy_store_is_said_above_the_runs(summary: RunSummary, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: Any, warn: Callable[[str], None], **__: Any) -> list[RunSummary]:
        warn("The store is in use. Runs are read from their spools instead.")
        return [summary]

    monkeypatch.setattr(reading, "list_runs", busy)
    page = runs_page()
    assert "The store is in use. Runs are read from their spools instead." in texts(page)
    assert questions(page) == ["How many refunds?"]
