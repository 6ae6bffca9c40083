"""Runs without worker processes: cells are names of Python functions of the test, run on the engine's loop.

What is tested with it is who waits for whom, over trees of hundreds of child runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest

from rlm_core.environment import Environment, Host
from rlm_core.orchestrator import Orchestrator
from rlm_core.sandbox import SandboxReport
from rlm_core.wire import CellReport, OpenCall, Slot

Replies = list[dict[str, Any]]


@dataclass
class Repl:
    """What a cell of these runs may do."""

    host: Host
    numbers: Callable[[], int]

    async def llm_batch(self, *prompts: str) -> Replies:
        """`llm_batch` of texts; replies as frames have them."""
        return await self._call("llm", prompts)

    async def rlm_batch(self, *questions: str) -> Replies:
        """`rlm_query_batched` over the same corpus."""
        return await self._call("rlm", questions)

    async def _call(self, op: str, texts: tuple[str, ...]) -> Replies:
        call = OpenCall(self.numbers(), op, len(texts), True, 1, None, None, None)
        call.slots = [Slot([text], []) for text in texts]
        return await self.host.sub_calls(call)


Cell = Callable[[Repl], Awaitable[Any]]


class _NoWorker:
    """Looks like an `Environment`."""

    known_names: frozenset[str] = frozenset()
    native_output = ""
    generation = 0

    def __init__(self, cells: dict[str, Cell]) -> None:
        self._cells = cells
        self._last = 0

    async def start(self) -> SandboxReport:
        return SandboxReport("none", ())

    async def run_cell(self, number: int, code: str, host: Host) -> CellReport:
        await asyncio.sleep(0)
        value = await self._cells[code.strip()](Repl(host, self._number))
        answer = None
        if value is not None:
            answer = {"via": "FINAL", "ready": True, "text": str(value), "form": str(value), "type": "str"}
        return CellReport("", 0, None, None, False, answer, (), [])

    def _number(self) -> int:
        self._last += 1
        return self._last

    def interrupt(self, reason: str) -> None: ...

    def drop_calls(self) -> None: ...

    async def settle(self) -> None: ...

    async def close(self) -> None: ...


def without_workers(monkeypatch: pytest.MonkeyPatch, cells: dict[str, Cell]) -> None:
    """Have runs of this test run `cells` by their names; what a cell returns is the answer, None is none."""
    monkeypatch.setattr(
        Orchestrator, "_environment", lambda _: cast("Environment", _NoWorker(cells)), raising=True
    )
