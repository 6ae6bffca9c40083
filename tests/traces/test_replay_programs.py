"""Programs as root models write them are recorded, played again as they were, and played with a patch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.programs import PROGRAMS, patches, recorded
from tests.traces.records import home_in
from traces.replay import Replayer
from traces.trial import Budget, Target

CALLS = Budget(live_calls=20)
# those that others are much like
RARELY = (
    "answer by FINAL", "answer by SUBMIT", "dependent calls, all asked", "two layers, strict",
    "calls that failed", "a cell out of memory", "variables are shown", "code that is wrong, asking again",
    "equal child runs", "numbers drawn at random", "a name that is not there", "files of its own",
    "cells with prose around them", "answer by the answer variable", "an answer as JSON", "code that is none",
    "thread pool of child runs", "a forced answer of a child run", "a child run that types",
    "two layers, recomputed", "variables of a cell out of time", "a reply in a cell out of time",
    "random bytes of the system", "typed after reading, root asked again", "a turn without a cell",
    "output that is cut", "swallowed exceptions",
)  # fmt: skip
NAMES = [pytest.param(name, marks=pytest.mark.full if name in RARELY else ()) for name in PROGRAMS]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_replays_as_recorded_and_its_patch_has_its_outcome(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    home = home_in(tmp_path)
    answer, view = recorded(home, program)
    assert answer.text is not None and answer.error is None, answer
    with Replayer(home, view, handler=program.handler(honest=True), budget=CALLS) as replayer:
        found = replayer.check()
        assert found.status == program.status, found
        if found.status != "replayable":
            assert found.difference is not None and found.words.endswith(".")
            return
        patch = patches(view, program)
        trial = replayer.trial(patch, mode=program.mode, target=Target(program.right))
    assert trial.outcome == program.outcome, trial
    assert trial.patches == patch and trial.original_answer == answer.text
    if program.outcome == "fixed":
        assert trial.answer == program.right
    if program.outcome == "undecided":
        assert trial.stopped and trial.answer is None
    if program.outcome == "reached_root":
        assert trial.reached is not None and trial.reached.old != trial.reached.new
    if program.mode == "strict":
        assert trial.live_calls == 0


@pytest.mark.parametrize(
    "name", ["thread pool", "child runs of a child run", "a cell that fails in the middle of calls"]
)
def test_a_replay_without_a_patch_asks_nobody_and_changes_nothing(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    home = home_in(tmp_path)
    answer, view = recorded(home, program)
    with Replayer(home, view) as replayer:
        trial = replayer.trial()
    assert (trial.outcome, trial.answer, trial.flipped) == ("unchanged", answer.text, False)
    assert (trial.misses, trial.live_calls, trial.cost_usd) == (0, 0, 0)
    assert not (trial.differences or trial.influenced or trial.stopped or trial.assumed), trial


def test_equal_calls_answered_differently_are_called_ambiguous(tmp_path: Path) -> None:
    program = PROGRAMS["duplicates answered differently"]
    home = home_in(tmp_path)
    _, view = recorded(home, program)
    with Replayer(home, view) as replayer:
        trial = replayer.trial(patches(view, program))
    assert set(trial.ambiguous) == {span.span_id for span in view.spans if span.kind == "sub_call"}
