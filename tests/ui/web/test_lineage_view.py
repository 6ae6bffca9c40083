"""The way from the answer back to a call on the Diagnose page, and the proof of its edges."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.diagnose_pages import BAD, FAILED, REFUSED, diagnose_page, found, logged, trial
from tests.support.pages import (
    rows_of,
    shown,
    texts,
    use,
)
from tests.support.replays import recorded, span_of
from tests.support.run_pages import press
from traces.diagnosis import Culprit
from traces.diagnosis_log import open_diagnosis, read_diagnosis
from traces.home import Home
from traces.lineage import ANSWER, Edge, Lineage
from traces.proving import kept_edges, proven_edges, tried_spans
from traces.reading import load_run
from traces.trial import Budget, Replayability
from ui.web import diagnose_jobs, diagnose_process
from ui.web.diagnose_jobs import Job
from ui.web.lineage_view import way_back
from ui.web.samples import install_examples

TICKET = "d20270115T080000-00000001"


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


def arrows(page: AppTest) -> list[str]:
    """The steps of the way that is shown, from the answer back."""
    return [one.value for one in page.markdown if "←" in one.value]


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


def test_the_edges_of_a_culprit_are_proven_by_a_job_and_stay_so(home: Home) -> None:
    ask = "notes = llm_batch([f'item {n}: how many crates?' for n in range(3)])"
    tell = "best = max(notes)\nprint('best', best)"
    view = recorded(
        home, ask, tell, "FINAL_VAR('best')", sub=lambda request: f"7{request.prompt[5]}01 crates"
    )
    largest = span_of(view, "sub_call", 2)
    culprit = Culprit(largest, "sub_call", "9", "good run")
    made = found(run_id=view.run_id, culprits=(culprit,), proven=False)
    diagnosis = logged(home, made, trial(largest, outcome="undecided", stopped="no"), run_id=view.run_id)
    page = diagnose_page(view.run_id, diagnosis=diagnosis)
    assert arrows(page) == [":gray-badge[← candidate]"]
    order = Job("prove", view.run_id, mode="frozen", replays=1, spans=(largest,), about=diagnosis)
    files = diagnose_jobs.JobFiles(home, TICKET)
    files.request.parent.mkdir(mode=0o700, exist_ok=True)
    assert files.write_job(order) and diagnose_process.run(home, TICKET, {}) == 0
    for ticket in (TICKET, diagnosis):
        page = diagnose_page(view.run_id, diagnosis=ticket)
        assert arrows(page) == [":green-badge[← proven]"]
        assert not [button for button in page.button if button.key == "lineage-prove"]
    (row,) = [
        row for row in rows_of(diagnose_page(view.run_id), "diagnoses") if row["What"] != "minimal cause"
    ]
    assert (row["What"], row["Status"], row["Found"]) == ("proof of edges", "done", "1 move the answer")


def test_the_button_says_how_many_replays_and_the_proof_leads_back(examples: Home, jobs: list[Job]) -> None:
    diagnosis = logged(examples, found(proven=False, culprits=(Culprit(REFUSED, "sub_call", "x", "user"),)))
    press(diagnose_page(diagnosis=diagnosis), "Prove these edges (1 replay, no model call)")
    (job,) = jobs
    assert (job.task, job.mode, list(job.spans), job.about) == ("prove", "frozen", [REFUSED], diagnosis)
    assert job.budget == Budget(1, 0)
    with open_diagnosis(examples, BAD, task="prove", mode="frozen", about=diagnosis) as log:
        log.checked(Replayability("not_replayable", "The code asks for the time."))
        log.end()
    page = diagnose_page(diagnosis=log.diagnosis_id)
    assert ":orange-badge[No proof]" in shown(page) and "The code asks for the time." in texts(page)
    press(page, "Open the diagnosis that it belongs to")
    assert page.query_params["diagnosis"] in (diagnosis, [diagnosis])


def test_what_a_log_says_proves_nothing_unless_the_run_comes_out_as_recorded(examples: Home) -> None:
    view = load_run(examples, BAD)
    tried = trial(FAILED, mode="frozen")
    ids = [logged(examples, None, tried, task="prove")]
    for state in (Replayability("replayable", "yes"), Replayability("seed_dependent", "no")):
        with open_diagnosis(examples, BAD, task="prove") as log:
            log.checked(state)
            for one in (tried, trial(REFUSED, mode="live"), trial(REFUSED, mode="frozen", stopped="there")):
                log.trial(one)
            log.end()
        ids.append(log.diagnosis_id)
    unsaid, sound, unsound = (read_diagnosis(examples, one) for one in ids)
    assert kept_edges([unsaid, unsound], view) == () and not tried_spans([unsaid, unsound])
    assert kept_edges([sound], view) == (Edge(FAILED, ANSWER, "changed", True),)
    assert tried_spans([sound]) == {FAILED}
