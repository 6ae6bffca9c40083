"""The Runs page: the list, its filter and pages, opening and deleting, stores that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core.errors import RecordError
from tests.support.pages import (
    HOSTILE,
    badly_shown,
    choose_rows,
    open_row,
    problems,
    rows_of,
    runs_page,
    shown,
    sort_rows,
    texts,
    use,
)
from traces import reading
from traces.home import Home
from traces.opinions import Opinions, judge, opinions, tag
from traces.questions import questions
from traces.reading import RunSummary, list_runs
from traces.upkeep import delete_run
from ui.web import runs_table
from ui.web.runs_table import Wanted, in_order, matching

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


def rows(page: AppTest) -> list[dict[str, str]]:
    """The rows of the table of runs."""
    return rows_of(page, "runs-table")


def questions_of(page: AppTest) -> list[str]:
    return [row["Question"] for row in rows(page)]


def ask_to_delete(page: AppTest, run_id: str) -> AppTest:
    """Choose a run and press the button."""
    place = [run.run_id for run in list_runs(Home.resolve())].index(run_id)
    choose_rows(page, "runs-table", place)
    return page.button(key="runs-delete-button").click().run()


# -- the list


def test_an_empty_home_says_what_to_do() -> None:
    page = runs_page()
    assert texts(page) == ["There are no runs yet. A run appears here as soon as a question is asked."]
    assert page.page_link[0].value == "Ask a question"


def test_runs_are_listed_with_what_they_are(summary: RunSummary, written: Callable[..., Any]) -> None:
    (row,) = rows(runs_page())
    assert row == {
        "Status": "ok",
        "Verdict": "",
        "Tags": "",
        "Question": "How many refunds?",
        "Answer": "Seven",
        "Models": "openai/big / openai/small",
        "Sub-calls": "1",
        "Failed": "0",
        "Cost": "$0.0101",
        "Time": row["Time"],
        "Started": "2027-01-15 08:00",
    }


def test_the_newest_run_stands_first_and_a_running_one_is_at_work(
    summary: RunSummary, written: Callable[..., Any], script: Any
) -> None:
    with written(SECOND, script(), close=False):
        page = runs_page()
        assert [row["Status"] for row in rows(page)] == ["running", "ok"]
        assert "2 runs, 1 at work" in [caption.value for caption in page.caption]


def test_what_is_not_known_is_called_unknown(
    home: Home, written: Callable[..., Any], script: Any, sub_call: Any
) -> None:
    written(FIRST, script(answer=None, calls=[sub_call(cost=None), sub_call(error="timeout", cost=None)]))
    (row,) = rows(runs_page())
    assert (row["Status"], row["Answer"], row["Cost"]) == ("error", "(no answer)", "at least $0.01")
    assert (row["Sub-calls"], row["Failed"]) == ("2", "1")


def test_hostile_text_stands_only_in_cells(written: Callable[..., Any], script: Any) -> None:
    written(FIRST, script(question=HOSTILE, answer=HOSTILE, model="openai/" + HOSTILE))
    page = runs_page()
    (row,) = rows(page)
    assert all("HOSTILE" in row[name] for name in ("Question", "Answer", "Models"))
    assert not any(mark in str(row) for mark in "\x1b\u202e") and badly_shown(page, "HOSTILE") == []
    (model,) = (one for one in page.selectbox(key="runs-model").options if "HOSTILE" in one)
    assert not any(mark in model for mark in "\x1b\u202e")
    assert badly_shown(ask_to_delete(page, FIRST), "HOSTILE") == []


# -- filter and pages


def test_the_filter_looks_for_words_and_a_status(
    summary: RunSummary, written: Callable[..., Any], script: Any
) -> None:
    written(SECOND, script(question="Which contract is dearest?", answer=None))
    page = runs_page()
    page.text_input(key="runs-q").set_value("DEAREST contract").run()
    assert questions_of(page) == ["Which contract is dearest?"]
    assert "1 of 2 runs" in [caption.value for caption in page.caption]
    page.text_input(key="runs-q").set_value("").run()
    page.selectbox(key="runs-status").select("ok").run()
    assert questions_of(page) == ["How many refunds?"]
    page.text_input(key="runs-q").set_value("nothing like it").run()
    assert texts(page) == ["No run fits these filters."]


@pytest.mark.parametrize("text", ["refund", "SEVEN", "openai/big", FIRST[-6:], "many seven"])
def test_any_of_the_texts_of_a_run_is_found(summary: RunSummary, text: str) -> None:
    assert matching([summary], Wanted(text), Opinions()) == [summary]
    assert matching([summary], Wanted(text + " else"), Opinions()) == []


def test_thousands_of_runs_come_in_pages(summary: RunSummary, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [replace(summary, run_id=f"r{n}", question=f"Question {n}") for n in range(2_345)]
    monkeypatch.setattr(reading, "list_runs", lambda *_, **__: many)
    page = runs_page()
    assert questions_of(page) == [f"Question {n}" for n in range(50)]
    assert page.pagination[0].num_pages == 47
    page.pagination[0].set_value(47).run()
    assert questions_of(page) == [f"Question {n}" for n in range(2_300, 2_345)]
    assert page.query_params["page"] == "47"
    assert questions_of(runs_page(page="47"))[0] == "Question 2300"  # in another tab
    page.text_input(key="runs-q").set_value("question 1").run()  # fewer pages than the one that was shown
    assert questions_of(page)[0] == "Question 1" and len(rows(page)) == 50
    page.text_input(key="runs-q").set_value("2344").run()
    assert questions_of(page) == ["Question 2344"] and len(page.pagination) == 0
    assert "page" not in page.query_params


@pytest.mark.parametrize("number", ["0", "48", "-1", "x", "٣"])
def test_a_page_of_the_list_that_is_not_there_is_said(
    summary: RunSummary, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    many = [replace(summary, run_id=f"r{n}", question=f"Question {n}") for n in range(2_345)]
    monkeypatch.setattr(reading, "list_runs", lambda *_, **__: many)
    page = runs_page(page=number)
    assert questions_of(page)[0] == "Question 0"
    assert f"There is no page “{number}” of this list." in texts(page)


def test_the_time_zone_of_the_browser_counts(summary: RunSummary) -> None:
    assert runs_table.started(summary, "Asia/Kolkata") == "2027-01-15 13:30"
    assert runs_table.started(summary, "No/Where") == runs_table.started(summary, None) == "2027-01-15 08:00"
    assert runs_table.started(replace(summary, started_ns=0), None) == "unknown"


# -- what people said, and the address


def test_verdicts_and_tags_stand_in_the_list_and_can_be_asked_for(
    home: Home, summary: RunSummary, written: Callable[..., Any], script: Any
) -> None:
    written(SECOND, script(question="Which contract is dearest?", answer="K-7"))
    judge(home, FIRST, verdict="wrong", expected="Eight", note="misses the annex")
    tag(home, FIRST, ["billing"])
    page = runs_page()
    assert [(row["Verdict"], row["Tags"]) for row in rows(page)] == [("", ""), ("wrong", "billing")]
    for name, value in (("verdict", "wrong"), ("tag", "billing"), ("model", "openai/big"), ("kind", "model")):
        page.selectbox(key=f"runs-{name}").select(value).run()
        assert page.query_params[name] in (value, [value])
    assert questions_of(page) == ["How many refunds?"]
    page.selectbox(key="runs-verdict").select("none").run()
    assert texts(page) == ["No run fits these filters."]
    page.text_input(key="runs-q").set_value("annex").run()
    page.selectbox(key="runs-verdict").select("").run()
    assert questions_of(page) == ["How many refunds?"]


def test_the_address_says_what_is_shown(
    summary: RunSummary, written: Callable[..., Any], script: Any
) -> None:
    written(SECOND, script(question="Which contract is dearest?", answer=None))
    page = runs_page(status="ok", q="refunds", sort="question", chosen=FIRST)
    assert questions_of(page) == ["How many refunds?"]
    assert (
        page.selectbox(key="runs-status").value == "ok" and page.text_input(key="runs-q").value == "refunds"
    )
    assert "1 chosen (one more to compare)" in [caption.value for caption in page.caption]
    page.text_input(key="runs-q").set_value("nothing").run()
    assert "1 chosen (1 not in this list; one more to compare)" in [caption.value for caption in page.caption]
    (show_all,) = (button for button in page.button if button.label == "Show all runs")
    show_all.click().run()
    assert len(rows(page)) == 2 and not page.query_params.get("status")


def test_the_list_is_as_it_was_left_when_a_person_comes_back(summary: RunSummary) -> None:
    page = choose_rows(runs_page(q="refunds", sort="cost"), "runs-table", 0)
    open_row(page, "runs-table", 0)
    page.switch_page("pages/runs.py").run()
    assert page.text_input(key="runs-q").value == "refunds" and "run" not in page.query_params
    assert "1 chosen (one more to compare)" in [caption.value for caption in page.caption]
    page.switch_page("pages/ask.py").run().switch_page("pages/runs.py")
    page.query_params.clear()  # as a link to another filter has it
    page.query_params["status"] = "error"
    assert texts(page.run())[0] == "No run fits these filters." and page.text_input(key="runs-q").value == ""


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("status", "splendid", "No run has the status 'splendid' of the address: that filter is left out."),
        ("tag", HOSTILE, "No run has the tag"),
        ("group", "2", "The address groups by '2', which means nothing here: runs are shown one by one."),
        ("sort", "beauty", "There is no column 'beauty' to sort by: the newest run stands first."),
        (
            "same",
            "nobody",
            "The address asks for runs like 'nobody', and there is no such run: all are shown.",
        ),
    ],
)
def test_what_the_address_cannot_mean_is_one_sentence(
    summary: RunSummary, name: str, value: str, sentence: str
) -> None:
    page = runs_page(**{name: value})
    assert len(rows(page)) == 1 and any(text.startswith(sentence) for text in texts(page))
    assert badly_shown(page, "HOSTILE") == []


def test_any_column_sorts_over_all_pages_and_unknown_stands_last(
    summary: RunSummary, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [replace(summary, run_id=f"r{n:03}", question=f"Q{n:03}", sub_calls=n % 100) for n in range(120)]
    monkeypatch.setattr(reading, "list_runs", lambda *_, **__: many)
    page = sort_rows(runs_page(), "runs-table", "Sub-calls")
    assert [row["Sub-calls"] for row in rows(page)][:3] == ["99", "98", "97"]
    assert page.query_params["sort"] in ("-sub-calls", ["-sub-calls"])
    page = sort_rows(page, "runs-table", "Sub-calls")
    assert [row["Question"] for row in rows(page)][:2] == ["Q000", "Q100"]
    unknown = replace(summary, run_id="u", cost_usd=None, known_usd=Decimal(0))
    for descending in (True, False):
        assert in_order([unknown, summary], "Cost", descending, Opinions()) == [summary, unknown]


@pytest.mark.parametrize("column", [column.name for column in runs_table.COLUMNS if column.sortable])
def test_every_column_that_can_be_sorted_has_an_order(home: Home, summary: RunSummary, column: str) -> None:
    bare = replace(
        summary, run_id=SECOND, question=None, answer=None, root_model=None, cost_usd=None, started_ns=0
    )
    assert len(in_order([bare, summary], column, True, opinions(home))) == 2


# -- the same question


def test_runs_of_one_question_are_one_line_that_leads_to_them(
    home: Home, written: Callable[..., Any], script: Any
) -> None:
    for number, answer in enumerate(["Seven", "seven.", "Eight", None]):
        written(f"20270115T080000-0000000{number}", script(question="How many  refunds?", answer=answer))
    written("20270115T080000-0000000f", script(question="Which?", answer="K-7"))
    judge(home, "20270115T080000-00000000", verdict="right")
    page = runs_page(group="1")
    assert "5 runs in 2 questions" in [caption.value for caption in page.caption]
    (row,) = (row for row in rows_of(page, "questions-table") if row["Runs"] == "4")
    assert row["Answers"] == "2 × “seven.”; 1 × (no answer); 1 × “Eight”"
    assert (row["Question"], row["Verdicts"], row["Cost"]) == ("How many refunds?", "1 right", "$0.0101")
    open_row(page, "questions-table", 1)
    assert len(rows(page)) == 4 and "How many  refunds?" in texts(page)
    page.button(key="runs-all-questions").click().run()
    assert len(rows(page)) == 5


def test_the_same_words_over_another_corpus_are_another_question(summary: RunSummary) -> None:
    other = replace(summary, run_id=SECOND, corpus_id="c2")
    unknown = [replace(summary, run_id=name, question=None) for name in "ab"]
    assert [len(one.runs) for one in questions([summary, other, summary, *unknown])] == [2, 1, 1, 1]
    dear = replace(summary, cost_usd=None), replace(summary, cost_usd=Decimal("0.5"))
    (both,) = questions([summary, *dear])
    assert both.known_usd == (Decimal("0.0101"), Decimal("0.5")) and both.unknown_costs == 1


# -- opening and deleting


def test_opening_goes_to_the_run(summary: RunSummary) -> None:
    page = runs_page()
    open_row(page, "runs-table", 0)
    assert page.query_params["run"] == FIRST and rows(page) == []


def test_a_run_is_deleted_only_after_a_second_step(home: Home, summary: RunSummary) -> None:
    page = ask_to_delete(runs_page(), FIRST)
    assert f"{FIRST}  How many refunds?" in texts(page) and "Delete this run for good?" in shown(page)
    page.button(key="runs-delete-keep").click().run()
    assert questions_of(page) == ["How many refunds?"] and "for good?" not in shown(page)
    ask_to_delete(page, FIRST).button(key="runs-delete-sure").click().run()
    assert list_runs(home) == [] and FIRST in texts(page) and ":green-badge[Deleted]" in shown(page)


def test_several_runs_are_deleted_at_once(home: Home, written: Callable[..., Any], script: Any) -> None:
    for number in range(3):
        written(f"20270115T080000-0000000{number}", script(question=f"Question {number}"))
    page = choose_rows(runs_page(), "runs-table", 0, 2)
    page.button(key="runs-delete-button").click().run()
    assert "Delete these 2 runs for good?" in shown(page) and len(list_runs(home)) == 3
    page.button(key="runs-delete-sure").click().run()
    assert questions_of(page) == ["Question 1"] and "2 runs" in texts(page)
    assert "none chosen" in [caption.value for caption in page.caption]


def test_two_chosen_runs_go_side_by_side(summary: RunSummary, written: Callable[..., Any]) -> None:
    written(SECOND)
    page = choose_rows(runs_page(), "runs-table", 0)
    assert page.button(key="runs-compare-button").disabled
    choose_rows(page, "runs-table", 0, 1)
    page.button(key="runs-compare-button").click().run()
    assert (page.query_params["a"], page.query_params["b"]) == (SECOND, FIRST)


def test_runs_in_the_address_that_are_not_there_or_too_many_are_counted(summary: RunSummary) -> None:
    page = runs_page(chosen=f"{FIRST},{FIRST},nobody")
    words = "1 chosen (1 more in the address that is of no run; one more to compare)"
    assert words in [one.value for one in page.caption]
    assert page.button(key="runs-compare-button").disabled
    page = runs_page(chosen=",".join([FIRST, *map(str, range(199))]))
    assert any("no more can be chosen at once" in one.value for one in page.caption)


def test_a_running_run_is_not_deleted(home: Home, written: Callable[..., Any], script: Any) -> None:
    with written(FIRST, script(), close=False):
        page = ask_to_delete(runs_page(), FIRST)
        page.button(key="runs-delete-sure").click().run()
        (sentence,) = problems(page)
        assert "is still going on" in sentence and len(list_runs(home)) == 1


def test_a_run_that_another_deleted_first_is_said(home: Home, summary: RunSummary) -> None:
    page = ask_to_delete(runs_page(), FIRST)
    delete_run(home, FIRST)
    page.button(key="runs-delete-sure").click().run()
    assert problems(page) == ["There is no run '20270115T080000-00000001'."]


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
    assert questions_of(page) == ["How many refunds?"]
