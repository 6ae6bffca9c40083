"""The Diagnose page: what it shows of a diagnosis, at work or ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.diagnose_pages import BAD, FAILED, GOOD, REFUSED, diagnose_page, found, logged, trial
from tests.support.pages import (
    HOSTILE,
    badly_shown,
    open_row,
    problems,
    rows_of,
    shown,
    texts,
    use,
)
from tests.support.run_pages import press
from traces.diagnosis import Culprit
from traces.diagnosis_log import ask_to_stop, log_file, open_diagnosis, stop_file
from traces.home import Home
from traces.opinions import judge
from traces.reading import load_run, span_detail
from traces.trial import Budget, Difference, Replayability, Target
from ui.web import diagnose_jobs, diagnosis_report
from ui.web.samples import install_examples

WRITTEN, OTHER = "20270115T080000-00000001", "20270115T080000-00000002"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


@pytest.fixture
def examples(home: Home) -> Home:
    install_examples(home)
    return home


def test_a_run_whose_corpus_is_gone_is_said_to_be_not_replayable_everywhere(examples: Home) -> None:
    logged(examples, found(verdict="not_replayable", replayability=None, culprits=(), proven=False))
    assert "not replayable" in shown(diagnose_page())


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


def test_a_trial_of_other_code_shows_the_lines_that_it_changed(examples: Home) -> None:
    cell = [span for span in load_run(examples, BAD).spans if span.kind == "cell"][-1]
    code = span_detail(load_run(examples, BAD), cell)["code"]
    first, *rest = code.splitlines()
    tried = trial(cell.span_id, text="\n".join([first, "extra = 1", *rest]))
    page = diagnose_page(diagnosis=logged(examples, None, tried, task="replay", span_id=cell.span_id))
    (row,) = rows_of(page, "trials")
    assert row["Replaced"].endswith(": “+ extra = 1”")


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
