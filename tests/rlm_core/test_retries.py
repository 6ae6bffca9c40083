"""The retry policy, under a clock that only moves when the policy sleeps or a try takes time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core.errors import LimitReached, ModelError
from rlm_core.lm_handler import Completion
from rlm_core.retries import RetryPolicy, with_retries


class Play:
    """One call played in virtual time: what was tried, when, and how it ended."""

    def __init__(
        self,
        outcome: Callable[[int], ModelError | None],
        *,
        takes: float = 0.0,
        seed: int = 0,
        policy: RetryPolicy | None = None,
    ) -> None:
        self.now = 0.0
        self.tries: list[tuple[int, float, float | None]] = []
        self.starts: list[float] = []
        self.checks: list[int] = []
        self.error: ModelError | None = None
        self.completion: Completion | None = None
        self._outcome = outcome
        self._takes = takes
        self._policy = policy or RetryPolicy()
        self._rng = random.Random(seed)

    async def _attempt(self, index: int, waited: float, asked: float | None) -> Completion:
        self.tries.append((index, waited, asked))
        self.starts.append(self.now)
        self.now += self._takes
        error = self._outcome(index)
        if error is not None:
            raise error
        return Completion("fine")

    async def _before(self, index: int) -> None:
        self.checks.append(index)

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def run(self) -> Play:
        call = with_retries(
            self._attempt,
            policy=self._policy,
            rng=self._rng,
            before=self._before,
            sleep=self._sleep,
            clock=lambda: self.now,
        )
        try:
            self.completion = asyncio.run(call)
        except ModelError as error:
            self.error = error
        return self


def server_error() -> ModelError:
    return ModelError("server", "HTTP 500", retryable=True, status=500)


def rate_limit(seconds: float | None) -> ModelError:
    return ModelError("rate_limit", "HTTP 429", retryable=True, retry_after=seconds, status=429)


def timeout() -> ModelError:
    return ModelError("timeout", "no answer", retryable=True)


def test_first_try_that_succeeds_waits_for_nothing() -> None:
    play = Play(lambda _: None).run()
    assert play.completion is not None and play.completion.text == "fine"
    assert play.tries == [(0, 0.0, None)] and play.checks == [0] and play.now == 0.0


def test_success_after_failures_of_both_kinds() -> None:
    script = [timeout(), server_error(), None]
    play = Play(lambda i: script[i]).run()
    assert play.completion is not None and [i for i, _, _ in play.tries] == [0, 1, 2] == play.checks


def test_failure_that_cannot_get_better_is_not_repeated() -> None:
    error = ModelError("length", "the reply was cut before any text")
    play = Play(lambda _: error).run()
    assert play.error is error and len(play.tries) == 1


@given(st.integers(0, 2**32), st.floats(0.0, 3.0))
def test_always_500_is_given_up_after_2_to_5_tries_and_within_20_s(seed: int, takes: float) -> None:
    play = Play(lambda _: server_error(), seed=seed, takes=takes).run()
    assert play.error is not None and play.error.status == 500
    assert 2 <= len(play.tries) <= 5 and play.now <= 20.0


@given(st.integers(0, 2**32), st.floats(0.01, 90.0), st.sampled_from(["timeout", "connection"]))
def test_silence_is_not_given_up_before_30_s(seed: int, takes: float, kind: str) -> None:
    play = Play(lambda _: ModelError(kind, "silence", retryable=True), seed=seed, takes=takes).run()
    assert play.error is not None and play.now >= 30.0 and len(play.tries) >= 2
    assert play.starts[-1] < 30.0 or len(play.tries) == 2 or play.starts[-2] < 30.0


@given(st.integers(0, 2**32), st.lists(st.none() | st.floats(0.0, 100.0), min_size=1, max_size=3))
def test_retry_after_is_a_lower_bound_and_told_to_the_next_try(seed: int, asked: list[float | None]) -> None:
    play = Play(lambda i: rate_limit(asked[i]) if i < len(asked) else None, seed=seed).run()
    assert play.completion is not None
    assert [a for _, _, a in play.tries] == [None, *asked]
    for (_, waited, told), start, previous in zip(play.tries[1:], play.starts[1:], play.starts, strict=False):
        assert waited >= (told or 0.0) and start - previous == pytest.approx(waited)
        assert waited <= (told or 0.0) + RetryPolicy().cap


def test_waits_asked_by_the_server_do_not_use_up_the_time_for_tries() -> None:
    play = Play(lambda i: rate_limit(60.0) if i < 3 else None).run()
    assert play.completion is not None and play.now >= 180.0


def test_a_server_that_asks_for_hours_is_not_waited_for() -> None:
    play = Play(lambda _: rate_limit(7200.0)).run()
    assert play.error is not None and len(play.tries) == 1 and play.now == 0.0


@given(st.integers(0, 2**32), st.lists(st.sampled_from([timeout, server_error]), min_size=200, max_size=200))
def test_every_mixture_of_failures_ends(seed: int, kinds: list[Callable[[], ModelError]]) -> None:
    play = Play(lambda i: kinds[i](), seed=seed, takes=0.5).run()
    answered = [kind for kind in kinds[: len(play.tries)] if kind is server_error]
    assert play.error is not None and len(answered) <= RetryPolicy().max_tries
    assert play.error.kind == kinds[len(play.tries) - 1]().kind, "the last failure is the one that is told"


@given(st.integers(0, 2**32))
def test_waits_are_full_jitter_with_a_growing_bound(seed: int) -> None:
    policy = RetryPolicy(max_tries=5, base=1.0, cap=3.0, total_seconds=1000.0)
    play = Play(lambda _: server_error(), seed=seed, policy=policy).run()
    waits = [waited for _, waited, _ in play.tries[1:]]
    assert len(waits) == 4
    assert all(0.0 <= wait <= bound for wait, bound in zip(waits, [1.0, 2.0, 3.0, 3.0], strict=True))


def test_same_seed_same_waits_other_seed_other_waits() -> None:
    first, again, other = (Play(lambda _: server_error(), seed=s).run().tries for s in (1, 1, 2))
    assert first == again != other


def test_what_the_check_before_a_try_raises_ends_the_call() -> None:
    async def before(index: int) -> None:
        if index == 1:
            raise LimitReached("seconds", "the run's time is used up")

    async def attempt(index: int, waited: float, asked: float | None) -> Completion:
        tried.append(index)
        raise server_error()

    async def sleep(_seconds: float) -> None:
        return None

    tried: list[int] = []
    with pytest.raises(LimitReached):
        asyncio.run(
            with_retries(attempt, policy=RetryPolicy(), rng=random.Random(0), before=before, sleep=sleep)
        )
    assert tried == [0]


def test_cancellation_during_a_wait_ends_the_call() -> None:
    async def attempt(index: int, waited: float, asked: float | None) -> Completion:
        raise rate_limit(60.0)

    async def before(index: int) -> None:
        return None

    async def scenario() -> None:
        call = with_retries(attempt, policy=RetryPolicy(), rng=random.Random(0), before=before)
        task = asyncio.create_task(call)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
