"""Jobs of the Diagnose page: what is refused, that a ticket begins one job, and what their process leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm_core.errors import InputError
from tests.support.pages import use
from traces.diagnosis_log import open_diagnosis, read_diagnosis
from traces.home import Home
from traces.reading import list_runs, load_run
from traces.replay_facts import replay_facts
from traces.trial import Patch
from ui.web import diagnose_jobs, diagnose_process
from ui.web.diagnose_jobs import Job, JobFiles, look
from ui.web.samples import install_examples

BAD, GOOD = "20260105T091500-0000e002", "20260105T090000-0000e001"
FAILED = "63227c4d839a85d7"  # the sub-call that broke it
TICKET = "d20270115T080000-00000001"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    install_examples(use(home, monkeypatch))


def done(home: Home, job: Job, ticket: str = TICKET) -> int:
    """Carry out a job in this process, as the process of its own does."""
    files = JobFiles(home, ticket)
    files.request.parent.mkdir(exist_ok=True)
    assert files.write_job(job)
    return diagnose_process.run(home, ticket, {})


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"replays": -1}, "the number of replays must be a whole number from 0"),
        ({"live_calls": 1.5}, "the number of model calls must be a whole number"),
        ({"usd": "-1"}, "the budget in dollars must be an amount like 0.50"),
        ({"usd": "nan"}, "the budget in dollars must be an amount like 0.50"),
        ({"how": "vibes"}, "answers are compared by"),
        ({"how": "regex", "expected": "("}, "no regular expression"),
        ({"how": "contains", "expected": "."}, "contains needs a text to look for"),
        ({"mode": "wild"}, "there is no mode 'wild'"),
        ({"good": BAD}, "a run cannot be its own good run"),
        ({"repeat": 0}, "at least once"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_starts(
    home: Home, more: dict[str, object], sentence: str
) -> None:
    job = replace(Job("diagnose", BAD), **more)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=sentence):
        diagnose_jobs.start(home, job, TICKET)
    assert look(home, TICKET) is None


def test_a_ticket_begins_one_job(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    monkeypatch.setattr(diagnose_jobs, "start_process", lambda *given: begun.append(given[1][1]))
    for _ in range(2):
        assert diagnose_jobs.start(home, Job("diagnose", BAD), TICKET) == TICKET
    assert begun == [TICKET]
    now = look(home, TICKET)
    assert now is not None and now.word in ("starting", "failed")
    assert look(home, "d20270115T080000-00000002") is None and look(home, "../x") is None


def test_a_diagnosis_finds_the_culprit_and_keeps_the_replay_that_proves_it(home: Home) -> None:
    assert done(home, Job("diagnose", BAD, good=GOOD)) == 0
    state = read_diagnosis(home, TICKET)
    assert state.diagnosis is not None and state.status == "done"
    assert (state.diagnosis["verdict"], state.diagnosis["culprits"]) == ("sub_call", [FAILED])
    assert state.diagnosis["proven"] is True and state.diagnosis["live_calls"] == 0
    assert not JobFiles(home, TICKET).request.exists()
    (kept,) = [run for run in list_runs(home, replays=True) if run.replay_of == BAD]
    assert kept.answer == "22" and kept.run_id in [trial["run_id"] for trial in state.trials]


def test_a_tested_reply_is_recorded_as_a_run_with_its_text(home: Home) -> None:
    text = "billing \n"
    assert done(home, Job("test", BAD, expected="22", patches=((FAILED, text),))) == 0
    state = read_diagnosis(home, TICKET)
    (trial,) = state.trials
    assert (state.task, state.span_id, trial["outcome"]) == ("replay", FAILED, "fixed")
    assert state.replayability is not None and state.replayability["status"] == "replayable"
    replay = replay_facts(load_run(home, trial["run_id"]))
    assert replay is not None and replay.patches == (Patch(FAILED, text),)


def test_a_twin_asks_every_sub_call_again(home: Home) -> None:
    assert done(home, Job("twin", BAD, mode="live", sub="demo/sub", live_calls=410)) == 0
    (trial,) = read_diagnosis(home, TICKET).trials
    assert (trial["live_calls"], trial["answer"], trial["misses"]) == (200, "22", 0)


def test_why_a_job_broke_off_is_left_as_one_sentence(home: Home) -> None:
    assert done(home, Job("diagnose", "20270115T080000-00000009")) != 0
    now = look(home, TICKET)
    assert now is not None and now.word == "failed" and not now.working
    assert "20270115T080000-00000009" in str(now.error)
    other = "d20270115T080000-00000002"
    assert done(home, Job("twin", BAD, mode="live", sub="nobody/knows", live_calls=1), other) != 0
    now = look(home, other)
    assert now is not None and now.state is not None and now.state.status == "failed"
    assert "nobody" in str(now.error)


def test_a_job_that_was_asked_to_stop_before_it_began_stops(home: Home) -> None:
    diagnose_jobs.cancel(home, TICKET)
    assert done(home, Job("diagnose", BAD, good=GOOD)) == 0
    state = read_diagnosis(home, TICKET)
    assert state.status == "cancelled" and state.diagnosis is not None
    assert state.diagnosis["proven"] is False


def test_a_log_of_the_command_line_is_looked_at_like_any_other(home: Home) -> None:
    with open_diagnosis(home, BAD) as log:
        now = look(home, log.diagnosis_id)
        assert now is not None and now.working
        log.end(None)
    now = look(home, log.diagnosis_id)
    assert now is not None and now.word == "logged" and not now.working
