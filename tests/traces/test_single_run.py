"""One run alone: the planted fault of a tree is among the first suspects, kind by kind."""

from __future__ import annotations

import pytest

from tests.bench.single_run import DETECTABLE, TARGET, measured
from tests.support.tree_models import Kind
from tests.support.trees import CONDITIONS, Condition


@pytest.mark.parametrize("kind", DETECTABLE)
def test_a_planted_fault_of_a_kind_that_shows_is_among_the_first_suspects(kind: Kind) -> None:
    conditions: tuple[Condition, ...] = ("paraphrase", "layers")
    found = [measured(kind, condition, 1, size=45) for condition in conditions]
    assert all(one.share == 1 for one in found), [one.line() for one in found]


def test_a_wrong_number_that_stands_in_the_prompt_does_not_show() -> None:
    found = measured("present", "format", 2, size=45)
    assert found.places == [None, None] and found.suspects == 0


@pytest.mark.full
@pytest.mark.parametrize("kind", DETECTABLE)
def test_whole_trees_meet_the_target_under_every_condition(kind: Kind) -> None:
    assert all(measured(kind, condition, 5).share >= TARGET for condition in CONDITIONS)
