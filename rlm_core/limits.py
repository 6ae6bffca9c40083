"""What a run may use, and the one ledger that counts it for the whole tree."""

from __future__ import annotations

import asyncio
import time
from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from rlm_core.errors import LimitReached
from rlm_core.price_rows import decimal_text

if TYPE_CHECKING:
    from rlm_core.pricing import PriceTable

Claim = Literal["root", "forced", "sub"]  # a root call of the top run, its forced answer, all other calls
FIRST_GUESS_OUTPUT = 1000  # tokens expected of a reply before the run has seen any
_REMEMBERED_OUTPUTS = 1000


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run and all its children; None = no limit.

    `max_depth` 0 = no child runs; the top run's depth is 0. `max_calls` counts sub-calls (retries are
    attempts, not calls). `cell_seconds` is wall time without the time sub-calls are outstanding,
    `cell_cpu_seconds` is CPU time of the worker, which never pauses. Sizes are in characters or bytes as
    named, `request_timeout` is in seconds for one attempt, `max_tokens_*` is what one reply may have.
    `max_tool_rounds` is how often one sub-call may go on to call tools, `max_tool_calls` counts the calls of
    tools in the whole run, `tool_seconds` is wall time of one of them.
    """

    max_iterations: int = 30
    max_depth: int = 1
    max_calls: int | None = 5_000
    max_tokens: int | None = None
    max_cost_usd: Decimal | None = None
    max_seconds: float | None = None
    concurrency: int = 32
    cell_seconds: float = 60.0
    cell_cpu_seconds: float = 60.0
    max_workers: int = 8  # live workers per depth
    max_prompt_chars: int = 4_000_000
    memory_bytes: int = 2 << 30
    scratch_bytes: int = 1 << 30
    scratch_files: int = 10_000
    output_kept_chars: int = 200_000
    output_shown_chars: int = 10_000
    request_timeout: float = 60.0
    max_tokens_sub: int = 4096
    max_tokens_root: int = 8192
    max_tool_rounds: int = 8
    max_tool_calls: int | None = 5_000
    tool_seconds: float = 30.0


def unpriced(limits: Limits, models: Iterable[str], prices: PriceTable) -> list[str]:
    """The models whose unknown price keeps the cost limit from holding.

    There are none when no cost is limited, or when tokens or calls are limited by choice as well: they bound
    such a run (the default on calls was not made with any price in mind).
    """
    chosen = limits.max_tokens is not None or limits.max_calls != Limits().max_calls
    if limits.max_cost_usd is None or chosen:
        return []
    return [model for model in dict.fromkeys(models) if prices.upper_bound_usd(model, 1, 1) is None]


@dataclass(slots=True)
class Amount:
    """Tokens and dollars, spent or reserved. `usd_known` turns false when a price is unknown."""

    tokens: int = 0
    usd: Decimal = Decimal(0)
    usd_known: bool = True

    def add(self, other: Amount, sign: int = 1) -> None:
        """Add (or with sign -1 take back) another amount."""
        self.tokens += sign * other.tokens
        self.usd += sign * other.usd
        self.usd_known = self.usd_known and other.usd_known


@dataclass(frozen=True, slots=True)
class Before:
    """What a run that is continued had spent: calls, tokens, dollars (the known part) and wall seconds."""

    calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    usd: Decimal = Decimal(0)
    usd_known: bool = True
    seconds: float = 0.0


def forced_answer(amount: Amount) -> Amount:
    """What a forced answer may need after a root call of this amount: its messages are a turn longer."""
    return Amount(amount.tokens * 5 // 4, amount.usd * 5 / 4)


@dataclass(slots=True)
class Ledger:
    """Counts and grants what a run uses: reserve before each attempt, settle after it.

    One ledger serves the whole tree and lives on one event loop. An attempt that does not fit waits while
    others are in flight, since those may settle for less than they reserved, and is refused only when none
    are. What the largest root call so far reserved is held back from sub-calls, so that a forced answer is
    still possible. The overshoot is at most what was in flight.
    """

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    calls: int = 0
    tool_calls: int = 0
    spent: Amount = field(default_factory=Amount)
    reserved: Amount = field(default_factory=Amount)
    in_flight: int = 0
    most_in_flight: int = 0
    workers: int = 0
    most_workers: int = 0
    deepest: int = 0
    refusals: int = 0
    started: float = 0.0
    _outputs: dict[str, list[int]] = field(default_factory=lambda: {"root": [], "sub": []})
    _held_back: Amount = field(default_factory=Amount)
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def take_over(self, before: Before) -> None:
        """Count what was spent before the run began as if it had been spent in it."""
        self.calls += before.calls
        self.tool_calls += before.tool_calls
        self.spent.add(Amount(before.tokens, before.usd, before.usd_known))
        self.started -= before.seconds

    @property
    def seconds_left(self) -> float | None:
        """Wall time that is left to the run, None where it is not limited."""
        most = self.limits.max_seconds
        return None if most is None else max(0.0, most - self.seconds)

    @property
    def seconds(self) -> float:
        """Wall time of the run so far."""
        return self.clock() - self.started

    @contextmanager
    def worker(self, depth: int) -> Iterator[None]:
        """Count a live worker at a depth, for as long as the context is open."""
        self.workers += 1
        self.most_workers = max(self.most_workers, self.workers)
        self.deepest = max(self.deepest, depth)
        try:
            yield
        finally:
            self.workers -= 1

    def admit_call(self) -> None:
        """Count one sub-call; raises `LimitReached("calls")` when there is none left."""
        if self.limits.max_calls is not None and self.calls >= self.limits.max_calls:
            self.refusals += 1
            raise LimitReached("calls", f"the run's limit of {self.limits.max_calls:,} sub-calls is used up")
        self.calls += 1

    def admit_tool_call(self) -> None:
        """Count one call of a tool; raises `LimitReached("tool_calls")` when there is none left."""
        most = self.limits.max_tool_calls
        if most is not None and self.tool_calls >= most:
            raise LimitReached("tool_calls", f"the run's limit of {most:,} tool calls is used up")
        self.tool_calls += 1

    def expected_output(self, max_tokens: int | None, role: Literal["root", "sub"]) -> int:
        """Tokens a reply is expected to have, at most `max_tokens`: the 95th percentile (nearest rank) of the
        role's first 1,000 replies.
        """
        seen = self._outputs[role]
        expected = seen[-(-95 * len(seen) // 100) - 1] if seen else FIRST_GUESS_OUTPUT
        return expected if max_tokens is None else min(max_tokens, expected)

    async def reserve(self, amount: Amount, claim: Claim) -> None:
        """Set an amount aside for one attempt; raises `LimitReached` when it cannot fit."""
        while (dimension := self._lacks(amount, claim)) is not None:
            if self.in_flight == 0:
                self.refusals += 1
                raise LimitReached(dimension, f"the run's {dimension} limit leaves no room for this call")
            self._settled.clear()
            await self._settled.wait()
        self.reserved.add(amount)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        if claim == "root":
            self._held_back = forced_answer(amount)

    def settle(
        self, reservation: Amount, actual: Amount, output_tokens: int | None, role: Literal["root", "sub"]
    ) -> None:
        """Replace a reservation by what the attempt really used; `output_tokens` None = it had no reply."""
        self.reserved.add(reservation, -1)
        self.in_flight -= 1
        self.spent.add(actual)
        if output_tokens is not None and len(self._outputs[role]) < _REMEMBERED_OUTPUTS:
            insort(self._outputs[role], output_tokens)
        self._settled.set()

    def _lacks(self, amount: Amount, claim: Claim) -> str | None:
        """The first dimension in which an amount does not fit."""
        held = {"sub": self._held_back, "root": forced_answer(amount), "forced": Amount()}[claim]
        limits = self.limits
        tokens = self.spent.tokens + self.reserved.tokens + held.tokens + amount.tokens
        if limits.max_tokens is not None and tokens > limits.max_tokens:
            return "tokens"
        usd = self.spent.usd + self.reserved.usd + held.usd + amount.usd
        if limits.max_cost_usd is not None and usd > limits.max_cost_usd:
            return "cost"
        return None

    def left(self, iteration: int) -> dict[str, Any]:
        """What code sees from `budget()`: the rest of each limit, None where there is none."""
        limits = self.limits
        usd = (
            None if limits.max_cost_usd is None else limits.max_cost_usd - self.spent.usd - self.reserved.usd
        )
        used = self.spent.tokens + self.reserved.tokens
        return {
            "iterations": max(0, limits.max_iterations - iteration - 1),
            "calls": None if limits.max_calls is None else limits.max_calls - self.calls,
            "tokens": None if limits.max_tokens is None else max(0, limits.max_tokens - used),
            "usd": None if usd is None else decimal_text(max(Decimal(0), usd)),
            "seconds": None if limits.max_seconds is None else round(self.seconds_left or 0.0, 3),
        }

    def statement(self) -> dict[str, Any]:
        """Spent amounts and limits by dimension, for the record; of depth and width the most there was."""
        width = {"concurrency": self.limits.concurrency, "workers": self.limits.max_workers}
        return {
            "calls": {"spent": self.calls, "limit": self.limits.max_calls},
            "tool_calls": {"spent": self.tool_calls, "limit": self.limits.max_tool_calls},
            "tokens": {"spent": self.spent.tokens, "limit": self.limits.max_tokens},
            "usd": {
                "spent": decimal_text(self.spent.usd),
                "known": self.spent.usd_known,
                "limit": None if self.limits.max_cost_usd is None else decimal_text(self.limits.max_cost_usd),
            },
            "seconds": {"spent": round(self.seconds, 6), "limit": self.limits.max_seconds},
            "depth": {"spent": self.deepest, "limit": self.limits.max_depth},
            "width": {**width, "most_in_flight": self.most_in_flight, "most_workers": self.most_workers},
            "refusals": self.refusals,
        }
