"""Answers of several runs in groups of equal ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core.errors import InputError
from traces.agreement import agreement


def test_equal_answers_are_one_group_and_the_largest_comes_first() -> None:
    found = agreement([("a", "41"), ("b", "Forty two."), ("c", "forty  two"), ("d", None)])
    assert [(group.answer, group.run_ids) for group in found.groups] == [
        ("Forty two.", ["b", "c"]),
        ("41", ["a"]),
    ]
    assert (found.runs, found.unanswered, found.share) == (4, 1, 0.5)


def test_of_groups_of_one_size_the_one_that_began_first_comes_first() -> None:
    found = agreement([("a", "1"), ("b", "2"), ("c", "2"), ("d", "1")])
    assert [group.answer for group in found.groups] == ["1", "2"]


def test_without_any_answer_there_is_no_group_and_nothing_agrees() -> None:
    found = agreement([("a", None), ("b", None)])
    assert (found.groups, found.share, found.unanswered) == ((), 0.0, 2)


@pytest.mark.parametrize(
    ("how", "one", "other", "same"),
    [
        ("number", "46", "The answer is 46.", True),
        ("number", "46", "46 of 200", False),  # in one direction only
        ("number", "yes", "Yes.", True),
        ("number", "yes", "46", False),
        ("number±1", "46", "about 47", True),
        ("set", "a, b", "b; a", True),
        ("exact", "46", "46.", False),
    ],
)
def test_answers_are_compared_in_both_directions(how: str, one: str, other: str, same: bool) -> None:
    assert len(agreement([("a", one), ("b", other)], how).groups) == (1 if same else 2)
    assert len(agreement([("a", other), ("b", one)], how).groups) == (1 if same else 2)


@pytest.mark.parametrize("how", ["contains", "regex", "judge"])
def test_a_comparison_that_needs_an_expected_answer_is_refused(how: str) -> None:
    with pytest.raises(InputError, match="normalised, exact, number, set"):
        agreement([("a", "x")], how)


@given(st.lists(st.one_of(st.none(), st.sampled_from(["1", "2", "3", "one"])), min_size=1))
def test_every_answer_is_in_one_group(answers: list[str | None]) -> None:
    runs = [(str(number), answer) for number, answer in enumerate(answers)]
    found = agreement(runs)
    assert sorted(run for group in found.groups for run in group.run_ids) == sorted(
        run for run, answer in runs if answer is not None
    )
    assert [group.count for group in found.groups] == sorted(
        (group.count for group in found.groups), reverse=True
    )
