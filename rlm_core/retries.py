"""When a failed try of a model call is repeated, and after which wait.

Two kinds of failure are told apart. An *answered* one (429, 5xx, an answer that is no answer) says something
about this request: it is given up after `max_tries`. A *silent* one (timeout, no connection) says nothing
about it, so it is tried again for `silent_seconds` at least.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from rlm_core.errors import ModelError
from rlm_core.lm_handler import Completion

SILENT_KINDS: Final = frozenset({"timeout", "connection"})
_LAST_EXPONENT: Final = 16


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a call is worth trying; all times in seconds.

    Waits are drawn from [0, min(`cap`, `base` * 2^n)] (full jitter). Answered failures: at least two tries,
    at most `max_tries`, and no new try later than `total_seconds` after the first answered one, not counting
    the waits the server asked for. Silent failures: at least two tries, and none is the last before
    `silent_seconds`. A server that asks for more than `max_retry_after` is not waited for.
    """

    max_tries: int = 4
    base: float = 0.5
    cap: float = 4.0
    total_seconds: float = 20.0
    silent_seconds: float = 30.0
    max_retry_after: float = 120.0


async def with_retries(
    attempt: Callable[[int, float, float | None], Awaitable[Completion]],
    *,
    policy: RetryPolicy,
    rng: random.Random,
    before: Callable[[int], Awaitable[None]],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Completion:
    """Call `attempt(index, waited_seconds, retry_after)` until it succeeds, and return its completion.

    `index` counts from 0; `waited_seconds` is the wait before this try and `retry_after` what the server had
    asked for (None when it did not). `before(index)` runs before each try, the first included; what it raises
    ends the call. Raises the last `ModelError` when it is not retryable or the policy gives up; everything
    else that `attempt` raises passes through at once.
    """
    history = _History(policy, rng, clock())
    waited, asked = 0.0, None
    for index in itertools.count():
        await before(index)
        tried_at = clock()
        try:
            return await attempt(index, waited, asked)
        except ModelError as error:
            wait = history.wait_after(error, tried_at, clock())
            if wait is None:
                raise
            waited, asked = wait, error.retry_after
        await sleep(waited)
    raise AssertionError("unreachable")


class _History:
    """The failures of one call so far."""

    def __init__(self, policy: RetryPolicy, rng: random.Random, started: float) -> None:
        self._policy = policy
        self._rng = rng
        self._started = started
        self._silent = 0
        self._answered = 0
        # the start of the first answered try, moved on by the waits that servers asked for
        self._answered_from = started

    def wait_after(self, error: ModelError, tried_at: float, now: float) -> float | None:
        """The wait before the next try, or None to give up."""
        asked = error.retry_after or 0.0
        if not error.retryable or asked > self._policy.max_retry_after:
            return None
        if error.kind in SILENT_KINDS:
            self._silent += 1
        else:
            self._answered_from = self._answered_from if self._answered else tried_at
            self._answered += 1
        exponent = min(self._silent + self._answered - 1, _LAST_EXPONENT)
        jitter = self._rng.uniform(0.0, min(self._policy.cap, self._policy.base * 2**exponent))
        if self._is_over(error.kind in SILENT_KINDS, now, jitter):
            return None
        self._answered_from += asked
        return asked + jitter

    def _is_over(self, silent: bool, now: float, jitter: float) -> bool:
        if silent:
            return self._silent >= 2 and now - self._started >= self._policy.silent_seconds
        if self._answered >= self._policy.max_tries:
            return True
        return self._answered >= 2 and now + jitter - self._answered_from > self._policy.total_seconds
