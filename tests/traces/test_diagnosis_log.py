"""The log of a diagnosis: what was written is read, by anybody, at any time, also after its process died."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from rlm_core.errors import InputError, RecordError
from tests.traces.records import record_run
from traces.backup import backup
from traces.diagnosis import Culprit, Diagnosis
from traces.diagnosis_log import (
    ask_to_stop,
    delete_diagnoses,
    diagnoses,
    folder,
    log_file,
    open_diagnosis,
    read_diagnosis,
    stop_file,
)
from traces.home import Home
from traces.trial import Budget, Patch, Spent, Target, Trial
from traces.upkeep import delete_run

RUN, GOOD = "20260102T030405-0000abcd", "20260102T030405-0000abce"
PATCH = Patch("00000000000000aa", "what \ud800 it \x1b[31m should have said")
TRIAL = Trial((PATCH,), "strict", "fixed", "42", "41", "normalised", hits=3)
FOUND = Diagnosis(
    "d20260102T030405-00000001", RUN, "sub_call", "One sub-call broke the answer.", "fixed", "strict",
    target=Target("42"), proven=True, culprits=(Culprit(PATCH.span_id, "sub_call", PATCH.text, "good run"),),
    trials=(TRIAL,), spent=Spent(1),
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(tmp_path / "home")


def test_a_finished_diagnosis_is_read_as_it_was_told(home: Home) -> None:
    target, budget = Target("42", "number±0.5", "good run"), Budget(9, 3, Decimal("0.25"))
    with open_diagnosis(home, RUN, good=GOOD, target=target, budget=budget, mode="recompute") as log:
        log.trial(TRIAL)
        log.trial(replace(TRIAL, patches=(PATCH, Patch("bb", "other"))))
        log.end(FOUND)
    state = read_diagnosis(home, log.diagnosis_id)
    assert (state.run_id, state.good_run_id, state.status, state.reason) == (RUN, GOOD, "done", None)
    assert (state.target, state.budget, state.mode, state.task) == (target, budget, "recompute", "diagnose")
    assert state.trials[0] == TRIAL.to_json()
    assert [patch["text"] for patch in state.trials[1]["patches"]] == [PATCH.text, "other"]
    assert state.diagnosis == {**FOUND.to_json(), "trials": list(state.trials)}


def test_a_diagnosis_at_work_is_seen_running_with_its_trials_and_its_stage(home: Home) -> None:
    assert diagnoses(home) == []
    with open_diagnosis(home, RUN) as log:
        log.stage("playing the run without a patch")
        log.trial(TRIAL)
        (state,) = diagnoses(home, RUN)
        assert (state.status, state.stage) == ("running", "playing the run without a patch")
        assert [trial["outcome"] for trial in state.trials] == ["fixed"] and state.diagnosis is None
        assert diagnoses(home, GOOD) == []
        log.end(FOUND)
    assert [state.status for state in diagnoses(home)] == ["done"]


def test_a_wish_to_stop_is_seen_and_ends_it_as_cancelled_with_what_was_found(home: Home) -> None:
    with open_diagnosis(home, RUN) as log:
        assert not log.cancelled()
        ask_to_stop(home, log.diagnosis_id)
        assert log.cancelled()
        log.end(FOUND)
    state = read_diagnosis(home, log.diagnosis_id)
    assert state.status == "cancelled" and state.diagnosis is not None
    assert not stop_file(home, log.diagnosis_id).exists()


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (RecordError("The corpus is gone."), "failed", "The corpus is gone."),
        (ValueError("x"), "failed", "It broke off unexpectedly (ValueError)."),
        (KeyboardInterrupt(), "cancelled", None),
    ],
)
def test_what_breaks_off_says_why(home: Home, error: BaseException, status: str, words: str | None) -> None:
    with pytest.raises(type(error)), open_diagnosis(home, RUN) as log:
        raise error
    state = read_diagnosis(home, log.diagnosis_id)
    assert (state.status, state.reason, state.diagnosis) == (status, words, None)


def test_a_process_that_died_leaves_its_trials_and_is_called_lost(home: Home) -> None:
    code = (
        "import os, sys; from pathlib import Path; from traces.home import Home\n"
        "from traces.diagnosis_log import open_diagnosis; from tests.traces.test_diagnosis_log import TRIAL\n"
        "log = open_diagnosis(Home(Path(sys.argv[1])), sys.argv[2]); log.trial(TRIAL); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(home.root), RUN], check=False, timeout=60)
    (state,) = diagnoses(home, RUN)
    assert state.status == "lost" and len(state.trials) == 1


def test_torn_and_foreign_lines_are_passed_over(home: Home) -> None:
    with open_diagnosis(home, RUN) as log:
        log.end(FOUND)
    path = log_file(home, log.diagnosis_id)
    hostile = (
        b'[1]\n{"kind":["x"]}\n\xff\n' + b"[" * 100_000 + b'\n{"kind":"trial","patches":[7,true,-1]}\n{"ki'
    )
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n" + hostile + b"\n", 1))
    state = read_diagnosis(home, log.diagnosis_id)
    assert state.status == "done" and state.trials == ({"patches": []},)
    path.write_bytes(hostile)
    assert diagnoses(home) == []
    with pytest.raises(RecordError, match="does not begin"):
        read_diagnosis(home, log.diagnosis_id)


def test_ids_cannot_leave_the_folder_and_an_unknown_one_is_said(home: Home) -> None:
    for act in (read_diagnosis, ask_to_stop, log_file):
        with pytest.raises(InputError, match="is not the id of a diagnosis"):
            act(home, "../user")
    with pytest.raises(InputError, match="There is no diagnosis"):
        read_diagnosis(home, "d1")
    with open_diagnosis(home, RUN, diagnosis_id="d1") as log:
        log.end(FOUND)
    with pytest.raises(RecordError, match="File exists"):
        open_diagnosis(home, RUN, diagnosis_id="d1")


def test_a_backup_holds_the_diagnoses_also_one_at_work(home: Home, tmp_path: Path) -> None:
    with open_diagnosis(home, RUN) as done:
        done.end(FOUND)
    with open_diagnosis(home, RUN) as log:
        log.trial(TRIAL)
        made = backup(home, tmp_path / "copy")
    states = {state.diagnosis_id: state for state in diagnoses(Home(made.path))}
    assert states[done.diagnosis_id] == read_diagnosis(home, done.diagnosis_id)
    assert (states[log.diagnosis_id].status, len(states[log.diagnosis_id].trials)) == ("lost", 1)


def test_deleting_a_run_deletes_its_diagnoses_and_those_that_quote_it(home: Home) -> None:
    run = record_run(home, "20260102T030405-00000001")
    for about, good in ((run, None), (RUN, run), (RUN, GOOD)):
        with open_diagnosis(home, about, good=good) as log:
            log.end(FOUND)
    delete_run(home, run)
    assert [(state.run_id, state.good_run_id) for state in diagnoses(home)] == [(RUN, GOOD)]
    assert delete_diagnoses(home, [GOOD]) == 1 and os.listdir(folder(home)) == []
