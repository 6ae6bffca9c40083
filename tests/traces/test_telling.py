"""The output that tells a root the right answer is the measure of what a patch does, not the rest of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traces.telling import does_the_same, right_answers, telling
from traces.trial import Difference, Target, Trial


def shown(cell: int, old: str, new: str) -> Difference:
    return Difference("shown", "0", cell, cell, f"c{cell}", old, new)


def replay(*differences: Difference) -> Trial:
    return Trial((), "strict", "reached_root", "5", "5", differences=differences)


@pytest.mark.parametrize(
    ("right", "wrong", "old", "new"),
    [
        ("17", "5", "answer: 5", "answer: 17"),
        ("Elm Road, Oak Lane.", "Elm Road", "found elm road", "found:  ELM ROAD,  Oak Lane"),
        (
            "There are 17 refunds in 2 shops", "There are 5 refunds in 2 shops",
            "{'refunds': 5, 'shops': 2}", "{'refunds': 17, 'shops': 2}",
        ),
        ("It is Elm Road and Oak Lane", "It is Elm Road", "['Elm Road']", "['Elm Road', 'Oak Lane']"),
        ("It is Elm Road", "It is Elm Road and Ash Road", "['Elm Road', 'Ash Road']", "['Elm Road']"),
        ("apples, pears", "apples", "{'apples'}", "{'apples', 'pears'}"),
    ],
)  # fmt: skip
def test_an_output_tells_an_answer_in_its_words_or_by_its_values(
    right: str, wrong: str, old: str, new: str
) -> None:
    trial = replay(shown(0, "replies: ['Five!']", "replies: ['five']"), shown(1, old, new))
    places = [telling(trial, answers) for answers in right_answers(Target(right), wrong)]
    assert frozenset({("0", 1, 0)}) in places and all(("0", 0, 0) not in found for found in places)


@pytest.mark.parametrize(
    ("old", "new"), [("answer: 5", "answer: 175"), ("17", "17 of 6"), ("5", "17.5"), ("5", "x17"), ("5", "6")]
)
def test_other_numbers_and_what_was_told_before_tell_nothing(old: str, new: str) -> None:
    trial = replay(shown(0, old, new))
    assert not any(telling(trial, answers) for answers in right_answers(Target("17"), "5"))


def test_a_longer_list_does_not_tell_the_right_one() -> None:
    trial = replay(shown(0, "answer: A, B, C, D", "answer: A, B, C"))
    answers = right_answers(Target("A, B"), "A, B, C, D")
    assert not any(telling(trial, one) for one in answers)


def test_an_answer_among_other_things_is_told_less_well_than_without_those_of_the_wrong_one() -> None:
    answers = right_answers(Target("8 at elm 9 at ash"), "8 at elm 9 at ash 7 at oak")
    longer = replay(shown(0, "6 at fir", "8 at elm 9 at ash 7 at oak"))
    exact = replay(shown(0, "6 at fir", "8 at elm 9 at ash"))
    assert [len(telling(longer, one)) for one in answers] == [0, 0, 1, 0]
    assert [len(telling(exact, one)) for one in answers] == [1, 0, 1, 0]


def test_a_pattern_is_told_by_no_output() -> None:
    assert not any(right_answers(Target("1.", how="regex"), "5"))


def test_a_child_run_is_told_its_own_right_answer() -> None:
    children = [("0.1", "A, B, C", "A, B"), ("0.2", "D", "D")]
    answers = right_answers(Target("Ash Road, Oak Lane"), "Elm Road, Oak Lane", children)
    inner = Difference("shown", "0.1", 0, 0, "c", "answer: A, B, C", "answer: A, B")
    assert [len(telling(replay(inner), one)) for one in answers] == [0, 0, 0, 1]
    assert not any(telling(replay(shown(0, "A, B, C", "A, B")), one) for one in answers)


def test_a_list_that_hid_behind_the_wrong_answer_is_told_whole_or_not_at_all() -> None:
    """The wrong answer lacks what the longer list has too much: only the whole list tells the two apart."""
    right = right_answers(Target("They say: Elm, Oak, Ash."), "They say: Elm.")
    joint = replay(shown(1, "answer: Elm", "answer: Elm, Oak, Ash"))
    half = replay(shown(1, "answer: Elm", "answer: Elm, Fir, Oak, Ash"))
    assert does_the_same(joint, joint, right) == "yes"
    assert does_the_same(half, joint, right) == "no"


def test_a_child_run_whose_output_tells_nothing_has_to_be_shown_what_it_would_be_shown() -> None:
    children = [("0.1", "A, B, C", "A, B"), ("0.2", "E, F, G", "E, G")]
    right = right_answers(None, None, children)
    first = Difference("shown", "0.1", 0, 0, "c", "answer: A, B, C", "answer: A, B")
    second = Difference("shown", "0.2", 0, 0, "c", "['yes: F'] E, F, G", "['no: F'] E, G")
    before = (("0.1", 0, "answer: A, B, C"), ("0.2", 0, "['yes: F'] E, F, G"))
    after = (("0.1", 0, "answer: A, B"), ("0.2", 0, "['no: F'] E, G"))
    joint = replace(replay(first, second), shown=after)
    half = replace(replay(first), shown=(after[0], before[1]))
    assert does_the_same(joint, joint, right) == "yes"
    assert does_the_same(half, joint, right) == "no"
