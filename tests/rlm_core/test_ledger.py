"""The ledger: nothing is granted that does not fit, nothing waits for ever, a forced answer has its place."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from decimal import Decimal
from typing import Any, Literal, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core.errors import LimitReached
from rlm_core.limits import FIRST_GUESS_OUTPUT, Amount, Ledger, Limits

T = TypeVar("T")
Role = Literal["root", "sub"]


def tokens(number: int) -> Amount:
    return Amount(tokens=number)


def run(work: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(60):  # a lost wake-up would hang
            return await work

    return asyncio.run(bounded())


async def turns(number: int = 5) -> None:
    """Let other tasks run as far as they can."""
    for _ in range(number):
        await asyncio.sleep(0)


# -- calls


def test_calls_are_counted_and_then_refused() -> None:
    ledger = Ledger(Limits(max_calls=2))
    ledger.admit_call()
    ledger.admit_call()
    with pytest.raises(LimitReached) as caught:
        ledger.admit_call()
    assert caught.value.dimension == "calls"
    assert ledger.calls == 2 and ledger.refusals == 1 and ledger.left(0)["calls"] == 0


def test_no_limit_on_calls() -> None:
    ledger = Ledger(Limits(max_calls=None))
    for _ in range(10_000):
        ledger.admit_call()
    assert ledger.left(0)["calls"] is None


# -- reserving


def test_reserve_and_settle() -> None:
    async def work() -> None:
        ledger = Ledger(Limits(max_tokens=100, max_cost_usd=Decimal("1")))
        amount = Amount(60, Decimal("0.5"))
        await ledger.reserve(amount, "sub")
        assert (ledger.in_flight, ledger.reserved.tokens, ledger.spent.tokens) == (1, 60, 0)
        assert ledger.left(0)["tokens"] == 40 and ledger.left(0)["usd"] == "0.5"
        ledger.settle(amount, Amount(10, Decimal("0.1")), 5, "sub")
        assert (ledger.in_flight, ledger.reserved.tokens, ledger.spent.tokens) == (0, 0, 10)
        assert ledger.left(0)["tokens"] == 90 and ledger.left(0)["usd"] == "0.9"

    run(work())


@pytest.mark.parametrize(
    ("limits", "amount", "dimension"),
    [
        (Limits(max_tokens=10), Amount(11), "tokens"),
        (Limits(max_cost_usd=Decimal("0.10")), Amount(1, Decimal("0.11")), "cost"),
    ],
)
def test_what_does_not_fit_is_refused_when_nothing_is_in_flight(
    limits: Limits, amount: Amount, dimension: str
) -> None:
    async def work() -> None:
        ledger = Ledger(limits)
        with pytest.raises(LimitReached) as caught:
            await ledger.reserve(amount, "sub")
        assert caught.value.dimension == dimension
        assert (ledger.refusals, ledger.in_flight, ledger.reserved.tokens) == (1, 0, 0)

    run(work())


def test_what_does_not_fit_waits_while_others_are_in_flight() -> None:
    async def work() -> None:
        ledger = Ledger(Limits(max_tokens=100))
        await ledger.reserve(tokens(80), "sub")
        second = asyncio.create_task(ledger.reserve(tokens(50), "sub"))
        await turns()
        assert not second.done() and ledger.refusals == 0
        ledger.settle(tokens(80), tokens(20), 1, "sub")
        await second
        assert ledger.in_flight == 1

    run(work())


def test_a_waiter_is_refused_when_the_last_one_in_flight_leaves_no_room() -> None:
    async def work() -> None:
        ledger = Ledger(Limits(max_tokens=100))
        await ledger.reserve(tokens(80), "sub")
        waiting = [asyncio.create_task(ledger.reserve(tokens(50), "sub")) for _ in range(3)]
        await turns()
        ledger.settle(tokens(80), tokens(90), 1, "sub")
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(outcome, LimitReached) for outcome in outcomes)
        assert ledger.refusals == 3

    run(work())


def test_a_waiter_that_is_cancelled_leaves_nothing_behind() -> None:
    async def work() -> None:
        ledger = Ledger(Limits(max_tokens=100))
        await ledger.reserve(tokens(80), "sub")
        waiting = asyncio.create_task(ledger.reserve(tokens(50), "sub"))
        await turns()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        ledger.settle(tokens(80), tokens(0), None, "sub")
        assert (ledger.in_flight, ledger.reserved.tokens, ledger.spent.tokens) == (0, 0, 0)

    run(work())


# -- the forced answer


def test_a_forced_answer_is_held_back_from_all_other_calls() -> None:
    async def work() -> None:
        ledger = Ledger(Limits(max_tokens=100))
        await ledger.reserve(tokens(20), "root")
        ledger.settle(tokens(20), tokens(20), 5, "root")
        await ledger.reserve(tokens(55), "sub")  # 20 spent, 25 held back
        ledger.settle(tokens(55), tokens(55), 5, "sub")
        for claim, size in (("sub", 1), ("root", 20)):
            with pytest.raises(LimitReached):
                await ledger.reserve(tokens(size), claim)
        await ledger.reserve(tokens(25), "forced")

    run(work())


def test_calls_of_child_runs_count_as_sub_calls_and_hold_nothing_back() -> None:
    async def work() -> None:
        ledger = Ledger(Limits(max_tokens=100))
        await ledger.reserve(tokens(40), "sub")
        ledger.settle(tokens(40), tokens(40), 5, "root")  # whose reply it was, not whose budget
        await ledger.reserve(tokens(60), "sub")

    run(work())


# -- what a reply is expected to have


def test_expected_output() -> None:
    ledger = Ledger(Limits())
    assert ledger.expected_output(None, "sub") == FIRST_GUESS_OUTPUT
    assert ledger.expected_output(200, "sub") == 200
    for number in range(1, 101):
        ledger.in_flight += 1
        ledger.settle(tokens(0), tokens(0), number * 100, "sub")
    assert ledger.expected_output(None, "sub") == 9_500, "the 95th percentile"
    assert ledger.expected_output(4_096, "sub") == 4_096
    assert ledger.expected_output(None, "root") == FIRST_GUESS_OUTPUT, "each role for itself"


def test_attempts_without_a_reply_say_nothing_about_replies() -> None:
    ledger = Ledger(Limits())
    ledger.in_flight += 1
    ledger.settle(tokens(0), tokens(0), None, "sub")
    assert ledger.expected_output(None, "sub") == FIRST_GUESS_OUTPUT


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=60))
def test_at_most_one_in_twenty_exceeds_the_expectation(outputs: list[int]) -> None:
    ledger = Ledger(Limits())
    for output in outputs:
        ledger.in_flight += 1
        ledger.settle(tokens(0), tokens(0), output, "sub")
    expected = ledger.expected_output(None, "sub")
    assert expected in outputs
    assert sum(output > expected for output in outputs) <= len(outputs) / 20


# -- any schedule

_ATTEMPTS = st.lists(
    st.tuples(st.sampled_from(["root", "sub"]), st.integers(0, 60), st.integers(0, 90), st.integers(0, 6)),
    min_size=1,
    max_size=25,
)


@given(_ATTEMPTS, st.integers(0, 200))
def test_any_schedule_ends_and_overshoots_at_most_what_was_in_flight(
    attempts: list[tuple[Role, int, int, int]], limit: int
) -> None:
    """`attempts`: role, tokens reserved, tokens then used, turns of the loop it takes."""

    async def work() -> None:
        ledger = Ledger(Limits(max_tokens=limit))
        flying: dict[int, int] = {}
        granted = refused = highest = 0

        async def attempt(number: int, role: Role, wanted: int, used: int, takes: int) -> None:
            nonlocal granted, refused, highest
            try:
                await ledger.reserve(tokens(wanted), role)
            except LimitReached:
                refused += 1
                return
            granted += 1
            assert ledger.spent.tokens + ledger.reserved.tokens <= limit
            flying[number] = used
            highest = max(highest, sum(flying.values()))
            await turns(takes)
            ledger.settle(tokens(wanted), tokens(used), used, role)
            del flying[number]

        await asyncio.gather(*(attempt(number, *facts) for number, facts in enumerate(attempts)))
        assert granted + refused == len(attempts) and refused == ledger.refusals
        assert (ledger.in_flight, ledger.reserved.tokens) == (0, 0)
        assert ledger.spent.tokens <= limit + highest
        if all(used <= wanted for _, wanted, used, _ in attempts):
            assert ledger.spent.tokens <= limit

    run(work())


# -- what is said about it


def test_the_statement_holds_every_dimension() -> None:
    ledger = Ledger(
        Limits(max_tokens=5, max_cost_usd=Decimal("2.50"), max_seconds=9), clock=iter([1, 4]).__next__
    )
    ledger.spent.add(Amount(3, Decimal("0.25"), usd_known=False))
    assert ledger.statement() == {
        "calls": {"spent": 0, "limit": 5_000},
        "tool_calls": {"spent": 0, "limit": 5_000},
        "tokens": {"spent": 3, "limit": 5},
        "usd": {"spent": "0.25", "known": False, "limit": "2.5"},
        "seconds": {"spent": 3, "limit": 9},
        "depth": {"spent": 0, "limit": 1},
        "width": {"concurrency": 32, "workers": 8, "most_in_flight": 0, "most_workers": 0},
        "refusals": 0,
    }


def test_what_is_left_never_goes_below_nothing() -> None:
    clock = iter([0.0, 100.0]).__next__
    ledger = Ledger(
        Limits(max_tokens=5, max_cost_usd=Decimal(1), max_seconds=9, max_iterations=3), clock=clock
    )
    ledger.spent.add(Amount(50, Decimal(3)))
    left = ledger.left(7)
    assert left == {"iterations": 0, "calls": 5_000, "tokens": 0, "usd": "0", "seconds": 0.0}
    assert Ledger(Limits(max_calls=None)).left(0) == {
        "iterations": 29,
        "calls": None,
        "tokens": None,
        "usd": None,
        "seconds": None,
    }
