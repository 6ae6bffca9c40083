"""Equal sub-calls of one run, answered once: the first one asks, all others wait for its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

Reply = dict[str, Any]


class SharedAnswers:
    """What was answered, by request hash. One for the whole tree of a run, on one event loop."""

    def __init__(self) -> None:
        self._known: dict[str, asyncio.Future[Reply]] = {}

    def keep(self, key: str, reply: Reply) -> None:
        """An answer that was not asked for by `get`, or after a failure: later equal calls need not ask."""
        if key not in self._known and "err" not in reply:
            self._known[key] = asyncio.get_running_loop().create_future()
            self._known[key].set_result(reply)

    async def get(self, key: str, ask: Callable[[], Awaitable[Reply]]) -> tuple[Reply, bool]:
        """The answer, and whether it was asked for by an equal call before.

        A failure is nobody else's: who waited for a call that failed, or was cancelled, asks for itself.
        """
        if (first := self._known.get(key)) is not None:
            await asyncio.wait({first})
            if not first.cancelled() and "err" not in first.result():
                return first.result(), True
            reply = await ask()
            self.keep(key, reply)
            return reply, False
        mine = self._known[key] = asyncio.get_running_loop().create_future()
        try:
            reply = await ask()
            mine.set_result(reply)
            if "err" in reply:
                del self._known[key]
            return reply, False
        except BaseException:
            del self._known[key]
            mine.cancel()
            raise
