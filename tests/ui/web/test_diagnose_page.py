"""The Diagnose page: what it offers, what it starts, and what it shows of a diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from tests.support.pages import (
    HOSTILE,
    act_in_row,
    ask_page,
    badly_shown,
    open_row,
    problems,
    rows_of,
    shown,
    texts,
    use,
)
from tests.support.recorded_runs import recording
from tests.support.run_pages import press
from traces.diagnosis import Culprit, Diagnosis
from traces.diagnosis_log import ask_to_stop, log_file, open_diagnosis, stop_file
from traces.home import Home
from traces.lineage import ANSWER, Edge, Lineage
from traces.opinions import judge, opinions
from traces.reading import load_run
from traces.replay import Replayer
from traces.replay_runs import record_replay
from traces.trial import Budget, Difference, Patch, Replayability, Spent, Target, Trial
from ui.replaying import ensure_corpus
from ui.web import diagnose_jobs, diagnosis_report
from ui.web.diagnose_jobs import Job
from ui.web.lineage_view import proven_edges, way_back
from ui.web.samples import install_examples

BAD, GOOD = "20260105T091500-0000e002", "20260105T090000-0000e001"
FAILED = "63227c4d839a85d7"  # the sub-call that broke it: it has no reply
REFUSED = "8b78c8c211a75153"
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


def diagnose_page(run: str = BAD, **query: str) -> AppTest:
    page = ask_page().switch_page("pages/diagnose.py")
    for name, value in {"run": run, **query}.items():
        if value:
            page.query_params[name] = value
    page.run()
    assert not page.exception, page.exception
    return page


def trial(*span_ids: str, text: str = "billing", **more: Any) -> Trial:
    patches = tuple(Patch(span_id, text) for span_id in span_ids)
    made = Trial(patches, "strict", "fixed", "22", "21", "normalised", hits=200)
    return replace(made, **more)


def found(**more: Any) -> Diagnosis:
    """A diagnosis of the broken example, as the search makes it."""
    made = Diagnosis(
        "d", BAD, "sub_call", "Sub-call 1 of cell 1 broke the answer.", "fixed", "strict", GOOD,
        Target("22", origin="good run"), True, (Culprit(FAILED, "sub_call", "billing", "good run"),),
        (FAILED, REFUSED), Replayability("replayable", "It comes out as recorded."),
        assumed=("The code stays as it was.",), warnings=("numpy is another one now.",),
        spent=Spent(2, 0),
    )  # fmt: skip
    return replace(made, **more)


def logged(home: Home, diagnosis: Diagnosis | None, *trials: Trial, run_id: str = BAD, **options: Any) -> str:
    """A diagnosis that has ended, in the home; its id."""
    with open_diagnosis(home, run_id, good=GOOD, **options) as log:
        for one in trials:
            log.trial(one)
        log.end(diagnosis)
    return log.diagnosis_id


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


def test_a_run_whose_corpus_is_gone_is_said_to_be_not_replayable_everywhere(examples: Home) -> None:
    logged(examples, found(verdict="not_replayable", replayability=None, culprits=(), proven=False))
    assert "not replayable" in shown(diagnose_page())


def test_a_suspect_leads_to_the_test_of_its_reply(examples: Home) -> None:
    page = ask_page().switch_page("pages/run.py")
    page.query_params["run"], page.query_params["view"] = BAD, "findings"
    page.run()
    page = act_in_row(page, "suspects", 2, "Test")
    assert page.text_area(key=f"test-text-{BAD}-{REFUSED}").value == "I cannot help with this text."


# -- what came of it


def test_a_verdict_its_culprit_its_proof_and_what_it_rests_on_are_shown(examples: Home) -> None:
    trials = (trial(FAILED, REFUSED), trial(FAILED, influenced=("282dadd4b823f5d9",)))
    diagnosis = logged(examples, found(), *trials)
    page = diagnose_page(diagnosis=diagnosis)
    words = shown(page)
    assert "Sub-call 1 of cell 1 broke the answer." in texts(page)
    assert ":green-badge[proven]" in words and ":red-badge[culprit]" in words
    assert ":green-badge[replayable]" in words and "It should have said: as the good run has it" in words
    assert [row["Replaced"] for row in rows_of(page, "trials")] == [
        "llm_query 1 in cell 1, llm_query 14 in cell 1", "llm_query 1 in cell 1: “billing”",
    ]  # fmt: skip
    assert {"The code stays as it was.", "numpy is another one now."} <= set(texts(page))
    assert "2 replays, 0 model calls, $0" in texts(page)
    assert "the corpus of this run is not here (any more)" in texts(page)
    arrows = [one.value for one in page.markdown if "←" in one.value]
    assert {":green-badge[← proven]", ":gray-badge[← candidate]", ":gray-badge[← read]"} == set(arrows)
    press(page, "Try another text")
    assert page.query_params["span"] in (FAILED, [FAILED])


def test_a_cell_at_fault_is_shown_with_both_codes(examples: Home) -> None:
    cell = next(span for span in load_run(examples, BAD).spans if span.kind == "cell")
    culprit = Culprit(cell.span_id, "cell", "print(1)", "good run")
    page = diagnose_page(diagnosis=logged(examples, found(verdict="cell", culprits=(culprit,))))
    assert ":red-badge[Code]" in shown(page) and "The code of the cell on both sides" in shown(page)


def test_reports_hold_question_and_culprit(examples: Home) -> None:
    diagnosis = logged(examples, found(), trial(FAILED))
    page = diagnose_page(diagnosis=diagnosis)
    assert "diagnosis-report-html" in shown(page) and "diagnosis-report-md" in shown(page)
    progress = diagnose_jobs.look(examples, diagnosis)
    assert progress is not None and progress.state is not None
    for form, mark in (("html", "<!doctype html>"), ("md", "# ")):
        text = diagnosis_report.document(examples, progress.state, form)  # type: ignore[arg-type]
        assert text.lower().startswith(mark) and "How many tickets are about billing?" in text
        assert "billing" in text and GOOD in text


@pytest.mark.parametrize("verdict", ["suspects", "undecided", "plan_diverged", "not_replayable", "right"])
def test_other_verdicts_are_said_as_what_they_are(examples: Home, verdict: Any) -> None:
    suspect = {"span_id": REFUSED, "score": 0.5, "signals": [{"kind": "refusal", "words": "It declines."}]}
    state = Replayability("not_replayable", "It used the time.")
    diagnosis = found(
        verdict=verdict, words="In words.", proven=False, culprits=(), suspects=(suspect,),
        replayability=state, stopped="the replays are used up",
    )  # fmt: skip
    page = diagnose_page(diagnosis=logged(examples, diagnosis))
    assert "In words." in texts(page) and ":red-badge[culprit]" not in shown(page)
    assert ":red-badge[not replayable]" in shown(page)
    assert "It ended early: the replays are used up." in texts(page)
    assert [row["Evidence"] for row in rows_of(page, "diagnosis-suspects")] == ["It declines."]


def test_a_tested_reply_says_what_came_of_it(examples: Home) -> None:
    reached = Difference("shown", iteration=2, old="TOTAL 21", new="TOTAL 22")
    tried = trial(FAILED, outcome="reached_root", answer="21", reached=reached, run_id=GOOD)
    page = diagnose_page(diagnosis=logged(examples, None, tried, task="replay", span_id=FAILED))
    assert ":blue-badge[reached the root]" in shown(page)
    assert {"TOTAL 21", "TOTAL 22"} <= {code.value for code in page.code}
    assert any("only the root can tell" in text for text in texts(page))
    assert not any("not that the text is true" in text for text in texts(page))
    fixed = logged(examples, None, trial(FAILED), task="replay", span_id=FAILED)
    assert any("not that the text is true" in text for text in texts(diagnose_page(diagnosis=fixed)))
    twice = [trial(FAILED, outcome=word, mode="reask") for word in ("fixed", "moved")]
    page = diagnose_page(diagnosis=logged(examples, None, *twice, task="replay", span_id=FAILED))
    assert "The answer came out right in 1 of 2 replays, which proves nothing yet." in texts(page)


def test_a_replay_of_a_run_that_does_not_come_out_as_recorded_is_no_proof(examples: Home) -> None:
    with open_diagnosis(examples, BAD, task="replay", span_id=FAILED) as log:
        log.checked(Replayability("not_replayable", "The code asks for the time."))
        log.trial(trial(FAILED))
        log.end()
    page = diagnose_page(diagnosis=log.diagnosis_id)
    assert "The code asks for the time." in texts(page) and ":orange-badge[No proof]" in shown(page)
    assert ":red-badge[not replayable]" in shown(page)


def test_a_twin_can_be_taken_as_the_good_run(examples: Home) -> None:
    tried = trial(mode="live", outcome="moved", run_id=GOOD)
    page = diagnose_page(diagnosis=logged(examples, None, tried, task="replay", mode="live"))
    assert ":blue-badge[Twin]" in shown(page)
    press(page, "Take it as the good run")
    assert page.query_params["good"] in (GOOD, [GOOD]) and "diagnosis" not in page.query_params


def test_a_diagnosis_at_work_shows_its_trials_and_can_be_stopped(examples: Home) -> None:
    with open_diagnosis(examples, BAD, good=GOOD, budget=Budget(40)) as log:
        log.stage("searching for the culprits among 6 candidates")
        log.trial(trial(FAILED))
        page = diagnose_page(diagnosis=log.diagnosis_id)
        assert "Searching for the culprits among 6 candidates." in texts(page)
        assert len(rows_of(page, "trials-so-far")) == 1
        assert "1 replay so far; at most 40 replays, no model call" in shown(page)
        page.button(key="diagnosis-cancel").click().run()
        assert stop_file(examples, log.diagnosis_id).exists()
        assert "Stopping: what was found until now is kept." in texts(page)
        log.end(found(stopped="cancelled"))
    page = diagnose_page(diagnosis=log.diagnosis_id)
    assert "Sub-call 1 of cell 1 broke the answer." in texts(page)
    assert "It ended early: cancelled." in texts(page)


def test_what_broke_off_is_said(examples: Home) -> None:
    with pytest.raises(ZeroDivisionError), open_diagnosis(examples, BAD) as log:
        raise ZeroDivisionError
    assert (
        "broke off unexpectedly (ZeroDivisionError)" in problems(diagnose_page(diagnosis=log.diagnosis_id))[0]
    )
    with pytest.raises(KeyboardInterrupt), open_diagnosis(examples, BAD) as log:
        ask_to_stop(examples, log.diagnosis_id)
        raise KeyboardInterrupt
    assert "Nothing was tried." in texts(diagnose_page(diagnosis=log.diagnosis_id))


def test_a_lost_diagnosis_promises_only_what_it_found(examples: Home) -> None:
    with open_diagnosis(examples, BAD) as log:
        log.trial(trial(FAILED))
        log.end()
    path = log_file(examples, log.diagnosis_id)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))  # its process died before the end
    assert "what it found until then stands below" in shown(diagnose_page(diagnosis=log.diagnosis_id))
    path.write_bytes(lines[0])
    assert "it had found nothing yet" in shown(diagnose_page(diagnosis=log.diagnosis_id))


def test_a_diagnosis_of_another_run_or_none_is_said_and_can_be_closed(
    examples: Home, written: Callable[..., Any]
) -> None:
    written(WRITTEN)
    other = logged(examples, None, run_id=WRITTEN)
    for name in (other, "d2027", "../x" + HOSTILE):
        page = diagnose_page(diagnosis=name)
        assert "There is no diagnosis" in problems(page)[0] and not badly_shown(page, "HOSTILE")
    press(page, "Close this diagnosis")
    assert "diagnosis" not in page.query_params and not problems(page)


def test_earlier_diagnoses_are_listed_and_can_be_opened(examples: Home) -> None:
    diagnosis = logged(examples, found(), trial(FAILED))
    page = diagnose_page()
    (row,) = rows_of(page, "diagnoses")
    assert (row["What"], row["Status"], row["Found"]) == ("minimal cause", "done", "Sub-call")
    assert row["Took"] == "2 replays, 0 model calls, $0"
    page = open_row(page, "diagnoses", 0)
    assert page.query_params["diagnosis"] in (diagnosis, [diagnosis]) and not rows_of(page, "diagnoses")


def test_nothing_of_a_run_or_a_log_is_read_as_markdown(
    written: Callable[..., Any], script: Any, sub_call: Any
) -> None:
    home = Home.resolve()
    calls = [sub_call(prompt=HOSTILE, response=HOSTILE), sub_call(prompt=HOSTILE, error="server")]
    written(WRITTEN, script(question=HOSTILE, answer=HOSTILE, code=HOSTILE, calls=calls))
    written(OTHER, script(question=HOSTILE, answer=f"other {HOSTILE}", code=HOSTILE, calls=calls[:1]))
    judge(home, WRITTEN, verdict="wrong", expected=HOSTILE, note=HOSTILE)
    call = next(span for span in load_run(home, WRITTEN).spans if span.kind == "sub_call")
    culprit = Culprit(call.span_id, "sub_call", HOSTILE, "good run")
    suspect = {"span_id": HOSTILE, "score": HOSTILE, "signals": [HOSTILE, {"words": HOSTILE}]}
    bad = found(
        run_id=WRITTEN, words=HOSTILE, culprits=(culprit, Culprit(HOSTILE, "cell", HOSTILE, "user")),
        target=Target(HOSTILE), assumed=(HOSTILE,), warnings=(HOSTILE,), stopped=HOSTILE, verdict=HOSTILE,
        outcome=HOSTILE, mode=HOSTILE, suspects=(suspect,),
        reached=Difference("shown", old=HOSTILE, new=HOSTILE),
    )  # fmt: skip
    tried = trial(call.span_id, HOSTILE, text=HOSTILE, answer=HOSTILE, outcome=HOSTILE, mode=HOSTILE)
    diagnosis = logged(home, bad, tried, replace(tried, stopped=HOSTILE), run_id=WRITTEN)
    for page in (diagnose_page(WRITTEN, diagnosis=diagnosis, good=OTHER), diagnose_page(WRITTEN)):
        assert shown(page).count("HOSTILE") > 5 and not badly_shown(page, "HOSTILE")


# -- lineage


def test_steps_that_a_replay_has_shown_are_told_apart_from_candidates() -> None:
    candidates = Lineage(
        (Edge("call", "cell", "made in"), Edge("cell", "last", "read by"), Edge("last", ANSWER, "set by"))
    )
    assert way_back(candidates, "call") == [("last", False), ("cell", False), ("call", False)]
    proven = candidates.with_edges([Edge("call", ANSWER, "changed", True)])
    assert way_back(proven, "call") == [("last", True), ("cell", False), ("call", False)]
    assert way_back(Lineage(()).with_edges(proven.edges[:1]), "call") == [("call", True)]


def test_only_a_trial_of_one_span_proves_what_came_out_differently(examples: Home) -> None:
    view = load_run(examples, BAD)
    cell = next(span.span_id for span in view.spans if span.kind == "cell")
    alone = trial(FAILED, influenced=(cell, "gone")).to_json()
    both = trial(FAILED, REFUSED, influenced=(cell,)).to_json()
    assert proven_edges({"trials": [both, "no trial"], "culprits": [FAILED]}, view) == ()
    assert set(proven_edges({"trials": [alone]}, view)) == {
        Edge(FAILED, cell, "changed", True), Edge(FAILED, ANSWER, "changed", True),
    }  # fmt: skip
    assert proven_edges({"culprits": [REFUSED], "proven": True}, view) == (
        Edge(REFUSED, ANSWER, "changed", True),
    )
