"""One event loop in one long-lived thread, on which the engine runs, and the work that others wait for.

Whoever gives up waiting cancels the work and stays until it has ended in order, for a few seconds: its spans
are closed then, and its record can be.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from rlm_core.errors import ConfigError, RunCancelled

GRACE: Final = 5.0  # seconds that work which is given up has to end in order
_WORK: Final = "rlm-work"  # name of the tasks that were submitted
_LOOK_UP_SECONDS: Final = 0.25
T = TypeVar("T")


class Work(Generic[T]):
    """Something that runs on the loop of another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: threading.Thread | None) -> None:
        self._loop = loop
        self._thread = thread
        self._task: asyncio.Task[T] | None = None
        self.future: Future[T] = Future()
        self.future.set_running_or_notify_cancel()  # from here on nobody can cancel it: it says what came

    def begin(self, work: Coroutine[Any, Any, T]) -> None:
        """Make the task; on the loop."""
        self._task = self._loop.create_task(work, name=_WORK)
        self._task.add_done_callback(self._ended)

    def cancel(self) -> None:
        """Ask the work to end; safe from every thread. What has ended stays as it is."""
        if not self.future.done():
            with suppress(RuntimeError):  # the loop was closed meanwhile, and ended all there was
                # in the turn after the task's first step: it is to end in its own way
                self._loop.call_soon_threadsafe(self._loop.call_soon, self._cancel)

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, or raise what the work raised. When waiting is broken off, as by Ctrl-C, the
        work is cancelled. Raises `TimeoutError` after `timeout` seconds, and the work goes on.

        Python runs signal handlers in the main thread, and a signal that comes as it begins to wait for good
        can stay unseen: so it looks up now and then. Raises `ConfigError` where waiting would never end.
        """
        if threading.current_thread() is self._thread:
            self.cancel()
            raise ConfigError("this would wait for itself on the engine's own thread; await aask there")
        try:
            if timeout is not None:
                wait([self.future], timeout)
            while timeout is None and not self.future.done():
                wait([self.future], _LOOK_UP_SECONDS)
        except BaseException:
            self.cancel()
            wait([self.future], GRACE)
            raise
        if not self.future.done():
            raise TimeoutError
        return self.future.result()

    async def awaited(self) -> T:
        """`result` for event loops; when the task that awaits is cancelled, the work is."""
        try:
            return await asyncio.shield(asyncio.wrap_future(self.future))
        except asyncio.CancelledError:
            self.cancel()
            await self.over()
            raise

    async def over(self) -> None:
        """Wait until it has ended, `GRACE` seconds at most."""
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def tell(_: Future[T]) -> None:
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                loop.call_soon_threadsafe(ended.set)

        self.future.add_done_callback(tell)
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), GRACE)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _ended(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.future.set_exception(RunCancelled("the engine was closed before this had ended"))
        elif (error := task.exception()) is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(task.result())


class BackgroundLoop:
    """One event loop in one long-lived daemon thread, started when first needed.

    Workers are started from this thread: on Linux they die with it.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def submit(self, work: Coroutine[Any, Any, T]) -> Work[T]:
        """Run a coroutine on the loop."""
        with self._lock:  # a loop that is being closed would leave it undone
            loop = self._started()
            submitted: Work[T] = Work(loop, self._thread)
            loop.call_soon_threadsafe(submitted.begin, work)
        return submitted

    def call(self, function: Callable[[], object]) -> None:
        """Call a function on the loop, if there is one; safe from other threads. All work that was submitted
        before has taken its first step then.
        """
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):  # it was closed meanwhile
                loop.call_soon_threadsafe(loop.call_soon, function)

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel what runs, await `last`, stop."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_cancel_others(last), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=_run_loop, args=(self._loop,), name="rlm-engine", daemon=True
            )
            self._thread.start()
        return self._loop


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()  # without waiting for threads: what they still read, such as a huge text, nobody wants


async def _cancel_others(last: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """First what was submitted, which ends the tasks that it made in order: that of a worker which is being
    started must not be cancelled, asyncio can wait for it without end. Then what is left.
    """
    for whole in (False, True):
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        chosen = [task for task in others if whole or task.get_name() == _WORK]
        for task in chosen:
            task.cancel()
        await asyncio.gather(*chosen, return_exceptions=True)
    await last()
