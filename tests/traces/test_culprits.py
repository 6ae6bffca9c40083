"""The search for a minimal set, against oracles whose sets are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traces.culprits import Answer, OutOfBudget, minimal

Test = Callable[[Sequence[int]], Answer]
SETTINGS = settings(max_examples=150, deadline=None)


class Oracle:
    """Asks a function, and notes what it was asked; `most` tests may be made."""

    def __init__(self, answer: Test, most: int = 10**9) -> None:
        self._answer = answer
        self._most = most
        self.asked: list[tuple[int, ...]] = []

    def __call__(self, chosen: Sequence[int]) -> Answer:
        if len(self.asked) == self._most:
            raise OutOfBudget
        self.asked.append(tuple(chosen))
        return self._answer(chosen)


def holds(members: frozenset[int]) -> Test:
    return lambda chosen: "yes" if members <= set(chosen) else "no"


@st.composite
def planted(draw: st.DrawFn) -> tuple[int, frozenset[int]]:
    n = draw(st.integers(1, 300))
    return n, draw(st.frozensets(st.integers(0, n - 1), min_size=1, max_size=min(n, 5)))


@SETTINGS
@given(planted())
def test_the_one_minimal_set_is_found_in_few_tests(case: tuple[int, frozenset[int]]) -> None:
    n, members = case
    oracle = Oracle(holds(members))
    found = minimal(range(n), oracle)
    k = len(members)
    assert set(found.members) == members and found.ended == "minimal" and found.monotone
    assert len(oracle.asked) == found.tests <= k * math.ceil(math.log2(n + 1)) + 2 * k
    assert len(set(oracle.asked)) == len(oracle.asked)
    assert all(list(asked) == sorted(asked) and 0 < len(asked) < n for asked in oracle.asked)


@SETTINGS
@given(planted(), st.data())
def test_weights_change_the_number_of_tests_and_never_the_set(
    case: tuple[int, frozenset[int]], data: st.DataObject
) -> None:
    n, members = case
    weights = data.draw(st.lists(st.floats(0.001, 1.0), min_size=n, max_size=n))
    assert set(minimal(range(n), Oracle(holds(members)), weights).members) == members


def test_a_suspicious_member_is_found_at_once() -> None:
    weights = [0.01] * 200
    weights[77] = 5.0
    oracle = Oracle(holds(frozenset({77})))
    assert minimal(range(200), oracle, weights).members == (77,)
    assert len(oracle.asked) <= 3


@SETTINGS
@given(st.integers(1, 12), st.randoms(use_true_random=False))
def test_whatever_the_oracle_says_the_set_is_one_that_it_grants_and_no_member_can_go(
    n: int, random: object
) -> None:
    answers: dict[tuple[int, ...], Answer] = {}

    def erratic(chosen: Sequence[int]) -> Answer:
        return answers.setdefault(tuple(chosen), random.choice(("yes", "no", "no")))  # type: ignore[attr-defined]

    found = minimal(range(n), Oracle(erratic))
    assert found.ended == "minimal"
    if len(found.members) < n:
        assert answers[found.members] == "yes"
    for fewer in combinations(found.members, len(found.members) - 1):
        assert not fewer or answers[fewer] == "no"


def test_a_cause_that_others_undo_is_found_and_called_not_monotone() -> None:
    # 3 alone does it; with 0 it needs 9 as well
    def answer(chosen: Sequence[int]) -> Answer:
        return "yes" if 3 in chosen and (0 not in chosen or 9 in chosen) else "no"

    found = minimal(range(10), Oracle(answer))
    assert answer(found.members) == "yes" and found.ended == "minimal" and not found.monotone
    assert all(answer([one for one in found.members if one != left]) == "no" for left in found.members)


@SETTINGS
@given(planted(), st.integers(2, 20))
def test_what_cannot_be_told_apart_stays_together_and_is_said(
    case: tuple[int, frozenset[int]], size: int
) -> None:
    """As in a strict replay of two layers: a summary of replies old and new was never asked for."""
    n, members = case

    def answer(chosen: Sequence[int]) -> Answer:
        groups = {one // size for one in chosen}
        whole = sum(min(size, n - group * size) for group in groups)
        return "unknown" if whole != len(chosen) else holds(members)(chosen)

    found = minimal(range(n), Oracle(answer))
    groups = {one // size for one in members}
    assert set(found.members) == {one for one in range(n) if one // size in groups}
    alone = all(sum(one // size == group for one in range(n)) == 1 for group in groups)
    assert found.ended == ("minimal" if alone or len(found.members) == 1 else "unknown")


@SETTINGS
@given(planted(), st.integers(0, 12))
def test_no_test_is_made_past_the_budget_and_the_best_set_so_far_is_told(
    case: tuple[int, frozenset[int]], most: int
) -> None:
    n, members = case
    oracle = Oracle(holds(members), most)
    found = minimal(range(n), oracle)
    assert len(oracle.asked) <= most and members <= set(found.members)
    assert found.ended in ("minimal", "out of budget")
    assert found.ended == "minimal" or len(oracle.asked) == most
    assert found.members in [*oracle.asked, tuple(range(n))]


def test_nothing_but_unknown_answers_ends_soon() -> None:
    oracle = Oracle(lambda _: "unknown")
    found = minimal(range(2_000), oracle)
    assert (len(found.members), found.ended) == (2_000, "unknown")
    assert len(oracle.asked) < 10_000


@pytest.mark.parametrize("n", [1, 2])
def test_one_candidate_needs_no_test(n: int) -> None:
    oracle = Oracle(holds(frozenset(range(n))))
    assert len(minimal(range(n), oracle).members) == n
    assert len(oracle.asked) == (0 if n == 1 else 2)
