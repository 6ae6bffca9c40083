"""A run that is followed: its events in order, through a bounded queue that never makes the engine wait."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from rlm_core.answer import Answer
from rlm_core.background_loop import Work
from rlm_core.errors import ConfigError
from rlm_core.events import Answered, Event, Missed

CAPACITY: Final = 10_000


class EventStream:
    """`async for event in stream` gives the events of one run, the last of which is `Answered`.

    The run has begun already. It is cancelled by `cancel`, by leaving `async with`, when the task that waits
    for the next event is cancelled, and when nobody holds the stream any more. At most `capacity` events wait
    to be taken; those that come then are dropped, and a `Missed` in their place counts them.
    """

    def __init__(
        self, run_id: str, begin: Callable[[Callable[[Event], None]], Work[Answer]], capacity: int = CAPACITY
    ) -> None:
        if capacity < 1:
            raise ConfigError(f"capacity must be at least 1 event, not {capacity}")
        self.run_id = run_id
        self._waiting = _Waiting(run_id, capacity)
        self._work = begin(self._waiting.put)
        self._work.future.add_done_callback(self._waiting.end)

    def cancel(self) -> None:
        """Cancel the run; its last events still come. Safe from every thread."""
        self._work.cancel()

    async def answer(self) -> Answer:
        """Wait for the answer, whether or not the events are taken. Raises as `RLM.aask`."""
        return await self._work.awaited()

    async def aclose(self) -> None:
        """Cancel the run if it is not over, and wait until it is, a few seconds at most."""
        if not self._work.future.done():
            self.cancel()
            await self._work.over()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while True:
            ended = self._waiting.ended  # first: what is put before the end is taken before it
            if (event := self._waiting.take()) is not None:
                return event
            if ended:
                raise self._waiting.last_error() or StopAsyncIteration
            try:
                await self._waiting.more()
            except asyncio.CancelledError:
                await self.aclose()
                raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if (work := getattr(self, "_work", None)) is not None:
            work.cancel()


class _Waiting:
    """Events between the engine's thread, which puts them, and the loop that takes them."""

    def __init__(self, run_id: str, capacity: int) -> None:
        self._run_id = run_id
        self._capacity = capacity
        self._events: deque[Event] = deque()
        self._missed = 0
        self._seconds = 0.0  # of the latest event
        self._lock = threading.Lock()
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self.ended = False
        self._error: BaseException | None = None

    def put(self, event: Event) -> None:
        """Add an event, or count it where there is no room."""
        with self._lock:
            self._seconds = event.seconds
            if len(self._events) >= self._capacity:
                self._missed += 1
                return
            self._say_missed()
            self._events.append(event)
        self._wake()

    def end(self, run: Future[Answer]) -> None:
        """Add the answer, for which there always is room."""
        with self._lock:
            self._say_missed()
            self._error = run.exception()
            if self._error is None:
                answer = run.result()
                seconds = max(answer.seconds, self._seconds)
                self._events.append(Answered(run_id=self._run_id, seconds=seconds, answer=answer))
            self.ended = True
        self._wake()

    def take(self) -> Event | None:
        """The next event, if there is one."""
        with self._lock:
            return self._events.popleft() if self._events else None

    async def more(self) -> None:
        """Wait until there is an event, or none will come any more."""
        with self._lock:
            if self._events or self.ended:
                return
            came = asyncio.Event()
            self._waiter = (asyncio.get_running_loop(), came)
        await came.wait()

    def last_error(self) -> BaseException | None:
        """What the run raised, once."""
        error, self._error = self._error, None
        return error

    def _say_missed(self) -> None:
        if self._missed:
            self._events.append(Missed(run_id=self._run_id, seconds=self._seconds, count=self._missed))
            self._missed = 0

    def _wake(self) -> None:
        with self._lock:
            waiter, self._waiter = self._waiter, None
        if waiter is not None:
            loop, came = waiter
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                loop.call_soon_threadsafe(came.set)
