"""The Sets page: which sets there are, what a check found, starting one and following it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.support.checked_sets import checked, make_set
from tests.support.pages import HOSTILE, ask_page, badly_shown, problems, rows_with, shown, use
from tests.traces.records import record_run
from traces.check_log import checks, log_file
from traces.home import Home
from traces.opinions import tag
from traces.reading import list_runs
from ui.web import check_jobs
from ui.web.check_jobs import Job

RIGHT, WRONG, OTHER = (f"20260102T03040{n}-0000abcd" for n in range(3))


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


@pytest.fixture
def billing(home: Home) -> None:
    """A set of two runs, and a run that has its tag but no known answer."""
    for run_id in (RIGHT, WRONG, OTHER):
        record_run(home, run_id)
    make_set(home, "billing", [(RIGHT, "42"), (WRONG, "43")])
    tag(home, OTHER, ["billing"])


def sets_page(**query: str) -> AppTest:
    page = ask_page().switch_page("pages/sets.py")
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def found(home: Home, *passed: bool | None, status: str = "done", name: str = "billing") -> str:
    return checked(home, name, passed, status=status)


def test_without_a_set_the_page_says_how_to_make_one() -> None:
    assert "rlmscope mark RUN --tag billing --expected 22" in shown(sets_page())


@pytest.mark.usefixtures("billing")
def test_the_list_says_what_the_last_check_found_and_what_those_before_did(home: Home) -> None:
    assert "never" in shown(sets_page())
    found(home, True, True)
    found(home, True, False)
    (row,) = rows_with(sets_page(), "Set")
    assert (row["Set"], row["Runs"], row["Passed before"]) == ("billing", "2", "2 of 2")
    assert row["Result"] == "1 failed, 1 passed"


@pytest.mark.usefixtures("billing")
def test_a_set_shows_what_its_newest_check_found_of_every_run(home: Home) -> None:
    found(home, True, True)
    found(home, True, False)
    page = sets_page(set="billing")
    right, wrong = rows_with(page, "Should be")
    assert (right["Result"], right["Should be"], right["Before that"]) == ("passed", "42", "right in 1 of 1")
    assert (wrong["Result"], wrong["Moved by"]) == ("failed", "1 call (proven)")
    words = shown(page)
    assert f"run {OTHER} has the tag but is left out" in words and "The call that moved it" in words


@pytest.mark.usefixtures("billing")
def test_an_undecided_run_says_why_and_a_check_that_did_not_keep_it_says_so(home: Home) -> None:
    check_id = found(home, None, True)
    undecided, passed = rows_with(sets_page(set="billing"), "Should be")
    assert undecided["Undecided because"] == "the root typed the answer; only asking anew tells"
    assert passed["Undecided because"] == ""
    path = log_file(home, check_id)
    path.write_text(path.read_text().replace(',"why":"typed"', "").replace(',"why":null', ""))
    undecided, _ = rows_with(sets_page(set="billing"), "Should be")
    assert undecided["Undecided because"] == "this check did not keep it"
    found(home, True, True)
    assert "Undecided because" not in rows_with(sets_page(set="billing"), "Should be")[0]


@pytest.mark.usefixtures("billing")
@pytest.mark.parametrize(
    ("proven", "moved", "way"),
    [
        (False, "some of 2 calls", "The first of 2 calls that differ"),
        (True, "2 calls (proven)", "The first of 2 calls that moved it"),
    ],
)
def test_calls_of_which_only_some_may_have_moved_an_answer_are_not_said_to_have(
    home: Home, proven: bool, moved: str, way: str
) -> None:
    path = log_file(home, found(home, False, True))
    start, result, *rest = path.read_text().splitlines()
    facts = json.loads(result)
    facts |= {"moved_by_now": [*facts["moved_by_now"], "0123456789abcdef"], "proven": proven}
    path.write_text("\n".join([start, json.dumps(facts), *rest, ""]))
    page = sets_page(set="billing")
    assert rows_with(page, "Should be")[0]["Moved by"] == moved
    assert way in shown(page) and "The call that moved it" not in shown(page)


@pytest.mark.usefixtures("billing")
def test_the_address_names_an_older_check(home: Home) -> None:
    older = found(home, None, False)
    found(home, True, True)
    page = sets_page(set="billing", check=older)
    assert [row["Result"] for row in rows_with(page, "Should be")] == ["undecided", "failed"]
    assert "there is no check" in shown(sets_page(set="billing", check="cnothing")).lower()


@pytest.mark.usefixtures("billing")
def test_a_check_that_broke_off_says_why_and_one_that_was_stopped_what_is_missing(home: Home) -> None:
    found(home, True, status="failed")
    assert "It broke off" in " ".join(problems(sets_page(set="billing")))
    found(home, True, status="cancelled")
    rows = rows_with(sets_page(set="billing"), "Should be")
    assert [row["Result"] for row in rows] == ["passed", "not checked"]


def test_an_unknown_set_is_said(home: Home) -> None:
    assert "no run has this tag" in " ".join(problems(sets_page(set="nothing")))


@pytest.mark.usefixtures("billing")
def test_a_second_click_while_a_check_begins_starts_no_other(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Job] = []

    def start(_home: Home, job: Job, *_: object) -> None:
        begun.append(job)
        st.stop()  # as a second click ends the script, at its next word with the session

    monkeypatch.setattr(check_jobs, "start", start)
    page = sets_page(set="billing")
    page.button(key="set-check").click().run()
    page.button(key="set-check").click().run()
    assert len(begun) == 1 and checks(home) == []


@pytest.mark.usefixtures("billing")
def test_a_check_that_was_started_on_one_set_says_nothing_on_another(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_set(home, "other", [(OTHER, "42")])
    monkeypatch.setattr(check_jobs, "start", lambda _home, _job, check_id: check_id)
    page = sets_page(set="billing")
    page.button(key="set-check").click().run()
    assert "did not start" in " ".join(problems(page))
    page.query_params["set"] = "other"
    page.run()
    assert problems(page) == []


@pytest.mark.usefixtures("billing")
@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("set-sub", "nobody/knows", "nobody/knows"),
        ("set-cost", "a lot", "an amount in dollars"),
        ("set-cost", "1e999999", "an amount in dollars"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_starts(home: Home, key: str, value: str, said: str) -> None:
    page = sets_page(set="billing")
    page.text_input(key=key).set_value(value)
    page.button(key="set-check").click().run()
    assert said in " ".join(problems(page)) and checks(home) == []


def test_text_of_runs_and_people_is_only_text(home: Home) -> None:
    record_run(home, RIGHT, answer=HOSTILE)
    name = "![HOSTILE](x) <b>HOSTILE</b>"
    make_set(home, name, [(RIGHT, HOSTILE)])
    found(home, False, name=name)
    for page in (sets_page(), sets_page(set=name)):
        assert "HOSTILE" in shown(page) and badly_shown(page, "HOSTILE") == []


def until(page: AppTest, condition: Callable[[AppTest], bool]) -> AppTest:
    """Run the page again, as its fragments do in a browser, until a condition holds."""
    deadline = time.monotonic() + 120
    while not condition(page):
        assert time.monotonic() < deadline, shown(page)
        time.sleep(0.1)
        page.run()
    return page


@pytest.mark.usefixtures("billing")
def test_a_check_is_started_goes_on_by_itself_and_is_kept(home: Home) -> None:
    page = sets_page(set="billing")
    page.button(key="set-check").click().run()
    until(page, lambda _: [check.status for check in checks(home)] == ["done"])
    (check,) = checks(home)
    assert check.members == 2 and check.count(None) == 2  # these runs have no corpus to be played over
    page.run()
    assert [row["Result"] for row in rows_with(page, "Should be")] == ["undecided"] * 2
    assert {run.run_id for run in list_runs(home)} == {RIGHT, WRONG, OTHER}
