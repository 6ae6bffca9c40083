"""The Diagnose page: what it offers, and what it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import streamlit as st

from rlm_core import semconv as sc
from tests.support.diagnose_pages import BAD, FAILED, GOOD, REFUSED, diagnose_page
from tests.support.pages import (
    act_in_row,
    ask_page,
    problems,
    shown,
    texts,
    use,
)
from tests.support.recorded_runs import recording
from tests.support.run_pages import press
from traces.home import Home
from traces.opinions import judge, opinions
from traces.reading import load_run
from traces.replay import Replayer
from traces.replay_runs import record_replay
from traces.trial import Budget, Patch
from ui.replaying import ensure_corpus
from ui.web import diagnose_jobs
from ui.web.diagnose_jobs import Job
from ui.web.samples import install_examples

WRITTEN, OTHER = "20270115T080000-00000001", "20270115T080000-00000002"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


@pytest.fixture
def examples(home: Home) -> Home:
    install_examples(home)
    return home


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs that the page starts, which do not begin."""
    made: list[Job] = []

    def start(_home: Home, job: Job, ticket: str | None = None) -> str:
        job.check()
        made.append(job)
        return "d20270115T080000-00000009"

    monkeypatch.setattr(diagnose_jobs, "start", start)
    return made


# -- which run, which good run, which answer


@pytest.mark.parametrize(("run", "sentence"), [("", "No run was chosen."), ("nowhere", "no run")])
def test_without_a_run_one_sentence_is_said(run: str, sentence: str) -> None:
    (said,) = problems(diagnose_page(run))
    assert sentence in said


def test_a_run_that_goes_on_is_not_diagnosed(written: Callable[..., Any]) -> None:
    recording = written(WRITTEN, close=False)
    page = diagnose_page(WRITTEN)
    assert "This run goes on. What broke its answer can be looked for when it has ended." in texts(page)
    assert not [button for button in page.button if button.label == "Find minimal cause"]
    recording.close("ok")


def test_a_run_of_the_same_code_with_another_answer_is_the_good_run_to_begin_with(examples: Home) -> None:
    page = diagnose_page()
    assert page.selectbox(key="way-good").value == GOOD
    assert "Wanted: the answer of the good run, “22”." in texts(page)
    assert any(text.startswith("The difference begins in 6 calls asked the same") for text in texts(page))
    assert "Nobody has said that its answer is right; here it is taken to be." in texts(page)
    page.selectbox(key="way-good").select("none").run()
    assert page.query_params["good"] == "none" or page.query_params["good"] == ["none"]
    assert any(text.startswith("Wanted: no answer is known.") for text in texts(page))


def test_a_run_that_ends_meanwhile_does_not_take_the_place_of_the_good_run_that_is_shown(
    examples: Home, jobs: list[Job]
) -> None:
    page = diagnose_page()
    assert page.selectbox(key="way-good").value == GOOD
    bad = load_run(examples, BAD)
    ensure_corpus(examples, bad)
    with Replayer(examples, bad, budget=Budget(9, 500), root="demo/root", sub="demo/sub") as player:
        twin = record_replay(examples, player, mode="live")
    assert twin.answer == "22"
    press(page, "Find minimal cause")
    assert jobs[0].good == GOOD and page.selectbox(key="way-good").value == GOOD
    assert diagnose_page().selectbox(key="way-good").value == twin.run_id


def test_a_good_run_that_asks_something_else_is_refused(
    examples: Home, written: Callable[..., Any], script: Any
) -> None:
    written(OTHER, script(question="Which?"))
    assert "does not ask the same as this one" in problems(diagnose_page(good=OTHER))[0]


def typed_run(home: Home, run_id: str, reply: str, **replayed: str) -> None:
    """A run whose root typed 42 after it saw the reply of its one sub-call."""
    with recording(home, run_id) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0, **replayed})
        run.text(sc.QUESTION, "How many?")
        cell = made.recorder.start("cell", sc.NAME_CELL, run, {sc.CELL: 0})
        cell.text(sc.CODE, "print(llm_query('?')); FINAL('42')")
        call = made.recorder.start("sub_call", "chat x", cell, {sc.CALL_INDEX: 0})
        call.text(sc.PROMPT, "?")
        call.text(sc.RESPONSE, reply)
        call.end("ok")
        cell.end()
        run.text(sc.ANSWER, "42")
        run.end("ok", {sc.STOP_REASON: "final"})
        if (outcome := replayed.get(sc.REPLAY_OUTCOME)) is not None:
            made.recorder.event(run, sc.EV_REPLAY, {sc.REPLAY_OUTCOME: outcome})


@pytest.mark.parametrize("expected", [None, "43"])
def test_a_twin_with_other_replies_is_the_good_run_of_a_root_that_typed_its_answer(
    home: Home, jobs: list[Job], expected: str | None
) -> None:
    typed_run(home, WRITTEN, "forty-two")
    twin = {sc.REPLAY_OF: WRITTEN, sc.REPLAY_MODE: "live", sc.REPLAY_OUTCOME: "reached_root"}
    typed_run(home, OTHER, "forty-three", **twin)
    if expected is not None:
        judge(home, WRITTEN, verdict="wrong", expected=expected)
    page = diagnose_page(WRITTEN)
    assert page.selectbox(key="way-good").value == OTHER
    assert any("the root had typed it" in text for text in texts(page))
    assert "The difference begins in 1 call asked the same and answered differently." in texts(page)
    wanted = "what the twin showed the root" if expected is None else "the expected answer, “43”"
    assert any(text.startswith(f"Wanted: {wanted}") for text in texts(page))
    press(page, "Find minimal cause")
    assert jobs[0].good == OTHER


@pytest.mark.parametrize(
    "replayed",
    [("live", "unchanged", WRITTEN), ("strict", "reached_root", WRITTEN), ("live", "reached_root", BAD)],
)
def test_no_other_replay_with_the_same_answer_is_taken_for_good(
    home: Home, replayed: tuple[str, str, str]
) -> None:
    typed_run(home, WRITTEN, "forty-two")
    mode, outcome, of = replayed
    twin = {sc.REPLAY_OF: of, sc.REPLAY_MODE: mode, sc.REPLAY_OUTCOME: outcome}
    typed_run(home, OTHER, "forty-two", **twin)
    assert diagnose_page(WRITTEN).selectbox(key="way-good").value == "none"


def test_other_code_is_said_and_a_twin_offered(
    written: Callable[..., Any], script: Any, sub_call: Any
) -> None:
    calls = [sub_call(), sub_call(prompt="Which one?", response="seven")]
    written(WRITTEN, script(answer="Seven", calls=calls))
    written(OTHER, script(answer="Eight", code="replies = None"))
    page = diagnose_page(WRITTEN)
    assert page.selectbox(key="way-good").value == "none"
    page = diagnose_page(WRITTEN, good=OTHER)
    assert any("make a twin of this run instead" in text for text in texts(page))
    recorded = load_run(Home.resolve(), WRITTEN).summary.sub_model
    assert recorded and not recorded.startswith("demo/")
    assert (
        page.text_input(key="twin-sub").value == recorded
    )  # no model is set, and the demo model is no judge
    page.text_input(key="twin-sub").set_value("demo/sub").run()
    assert "2 calls by the demo model, which costs nothing and answers by fixed rules." in texts(page)
    page.text_input(key="twin-sub").set_value("openai/gpt-4o-mini").run()
    assert any(text.startswith("2 calls, about $0.0") for text in texts(page))


def test_a_twin_asks_the_model_that_was_chosen(examples: Home, jobs: list[Job]) -> None:
    page = diagnose_page()
    page.text_input(key="twin-sub").set_value("demo/sub")
    press(page, "Make a twin")
    assert jobs == [Job("twin", BAD, mode="live", sub="demo/sub", live_calls=410)]


def test_the_expected_answer_is_kept_with_the_rest_of_what_is_said_of_the_run(examples: Home) -> None:
    judge(examples, BAD, verdict="wrong", note="look at refunds")
    page = diagnose_page()
    (field,) = (area for area in page.text_area if area.label == "Expected answer")
    field.set_value("23 ")
    press(page, "Save")
    kept = opinions(examples).of(BAD)
    assert kept is not None
    assert (kept.verdict, kept.expected, kept.how, kept.note) == (
        "wrong", "23", "normalised", "look at refunds",
    )  # fmt: skip
    assert any(text.startswith("Wanted: the expected answer, “23”") for text in texts(page))
    judge(examples, BAD, verdict="wrong", expected="21.")
    assert any(text.startswith("The answer is the expected one;") for text in texts(diagnose_page()))


# -- the offers


def test_a_reply_stands_in_the_field_byte_for_byte_and_what_is_typed_is_tested(
    written: Callable[..., Any], script: Any, sub_call: Any, jobs: list[Job]
) -> None:
    reply = "  two  \n\n\tlines “x” \n"
    written(WRITTEN, script(calls=[sub_call(response=reply), sub_call(response="seen \u202e\x1b[1m")]))
    first, second = (span for span in load_run(Home.resolve(), WRITTEN).spans if span.kind == "sub_call")
    page = diagnose_page(WRITTEN, span=first.span_id)
    field = page.text_area(key=f"test-text-{WRITTEN}-{first.span_id}")
    assert field.value == reply
    press(page, "Test this answer")
    assert problems(page) and not jobs
    field = page.text_area(key=f"test-text-{WRITTEN}-{first.span_id}")
    field.set_value(" three\n").run()
    press(page, "Test this answer")
    assert [job.replaced for job in jobs] == [(Patch(first.span_id, " three\n"),)]
    page = diagnose_page(WRITTEN, span=second.span_id)
    assert page.text_area(key=f"test-text-{WRITTEN}-{second.span_id}").value == ""
    assert any("marks that cannot be seen" in text for text in texts(page))


def test_code_of_a_cell_can_be_tested(written: Callable[..., Any], jobs: list[Job]) -> None:
    written(WRITTEN)
    cell = next(span for span in load_run(Home.resolve(), WRITTEN).spans if span.kind == "cell")
    page = diagnose_page(WRITTEN, span=cell.span_id)
    field = page.text_area(key=f"test-code-{WRITTEN}-{cell.span_id}")
    assert (field.label, field.value) == ("Code that should have run", "replies = llm_batch(prompts)")
    field.set_value("replies = []").run()
    press(page, "Test this code")
    assert jobs[0].patches == ((cell.span_id, "replies = []"),)


def test_a_reply_of_the_good_run_is_at_hand_and_the_root_can_be_asked_again(
    examples: Home, jobs: list[Job]
) -> None:
    page = diagnose_page(span=FAILED)
    press(page, "Take what the good run has")
    assert page.text_area(key=f"test-text-{BAD}-{FAILED}").value == "billing"
    page.selectbox(key="test-mode").select("reask").run()
    page.number_input(key="test-times").set_value(2).run()
    press(page, "Test this answer")
    (job,) = jobs
    assert (job.mode, job.repeat, job.live_calls, job.good) == ("reask", 2, 100, GOOD)


def test_texts_that_rules_propose_can_be_taken(examples: Home, jobs: list[Job]) -> None:
    page = diagnose_page(span=REFUSED, good="none")
    box = page.selectbox(key=f"test-proposed-{REFUSED}")
    assert box.options[0].endswith(
        (" · a value seen among its siblings", " · a value of the text it was given")
    )
    box.select_index(0).run()
    taken = page.text_area(key=f"test-text-{BAD}-{REFUSED}").value
    assert taken == box.options[0].split(" · ")[0]
    press(page, "Test this answer")
    assert jobs[0].patches == ((REFUSED, taken),)


def test_a_span_that_cannot_be_replaced_is_said(examples: Home) -> None:
    top = load_run(examples, BAD).spans[0].span_id
    assert "is no sub-call, child run or cell of this run" in problems(diagnose_page(span=top))[0]


def test_the_budget_is_said_before_and_goes_with_the_job(examples: Home, jobs: list[Job]) -> None:
    page = diagnose_page()
    assert "Budget: at most 200 replays, no model call. It costs nothing but time." in shown(page)
    page.number_input(key="way-replays").set_value(20)
    page.number_input(key="way-calls").set_value(3)
    page.text_input(key="way-usd").set_value("0.5").run()
    assert "Budget: at most 20 replays, 3 model calls, with the limit in dollars above." in shown(page)
    press(page, "Find minimal cause")
    (job,) = jobs
    assert (job.task, job.good, job.mode) == ("diagnose", GOOD, "recompute")
    assert job.budget == Budget(20, 3, job.budget.usd) and str(job.budget.usd) == "0.5"
    page = diagnose_page()
    page.text_input(key="way-usd").set_value("much").run()
    press(page, "Find minimal cause")
    assert problems(page) == ["The budget in dollars must be an amount like 0.50, not 'much'."]
    page.text_input(key="way-usd").set_value("1e999999").run()
    press(page, "Find minimal cause")
    assert problems(page) == ["The budget in dollars must be an amount like 0.50, not '1e999999'."]
    assert len(jobs) == 1


@pytest.mark.parametrize("button", ["Find minimal cause", "Make a twin"])
def test_a_second_click_while_a_job_begins_starts_no_other(
    examples: Home, monkeypatch: pytest.MonkeyPatch, button: str
) -> None:
    begun: list[Job] = []

    def start(_home: Home, job: Job, *_: object) -> None:
        begun.append(job)
        st.stop()  # as a second click ends the script, at its next word with the session

    monkeypatch.setattr(diagnose_jobs, "start", start)
    page = diagnose_page()
    press(page, button)
    press(page, button)
    assert len(begun) == 1


def test_a_suspect_leads_to_the_test_of_its_reply(examples: Home) -> None:
    page = ask_page().switch_page("pages/run.py")
    page.query_params["run"], page.query_params["view"] = BAD, "findings"
    page.run()
    page = act_in_row(page, "suspects", 2, "Test")
    assert page.text_area(key=f"test-text-{BAD}-{REFUSED}").value == "I cannot help with this text."
