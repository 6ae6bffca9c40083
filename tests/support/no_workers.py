"""Runs without worker processes: cells are names of Python functions of the test, run on the engine's loop.

What is tested with it is who waits for whom, over trees of hundreds of child runs, and what a record of them
is good for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from rlm_core.environment import Environment, Host
from rlm_core.orchestrator import Orchestrator
from rlm_core.sandbox import SandboxReport
from rlm_core.wire import CellReport, OpenCall, Slot

Replies = list[dict[str, Any]]


@dataclass
class Repl:
    """What a cell of these runs may do. `printed` is what the root is shown of it."""

    host: Host
    numbers: Callable[[], int]
    printed: list[str] = field(default_factory=list)

    async def llm_batch(self, *prompts: str) -> Replies:
        """`llm_batch` of texts; replies as frames have them."""
        return await self._call("llm", prompts)

    async def rlm_batch(self, *questions: str, contexts: Sequence[str] | None = None) -> Replies:
        """`rlm_query_batched`, over the same corpus or a text each."""
        return await self._call("rlm", questions, contexts)

    def print(self, *values: object) -> None:
        """`print`."""
        self.printed.append(" ".join(map(str, values)))

    async def _call(self, op: str, texts: tuple[str, ...], contexts: Sequence[str] | None = None) -> Replies:
        call = OpenCall(self.numbers(), op, len(texts), True, 1, None, None, None)
        call.slots = [
            Slot([text], [], contexts=None if contexts is None else [[contexts[number]]])
            for number, text in enumerate(texts)
        ]
        return await self.host.sub_calls(call)


def said(replies: Replies) -> str:
    """Replies in one line: texts, and kinds of errors after a "!"."""
    return " ".join(reply.get("ok", f"!{reply.get('err')}") for reply in replies)


Cell = Callable[[Repl], Awaitable[Any]]


class _NoWorker:
    """Looks like an `Environment`."""

    known_names: frozenset[str] = frozenset()
    native_output = ""
    generation = 0

    def __init__(self, cells: dict[str, Cell]) -> None:
        self._cells = cells
        self._last = 0
        self._serving = set[asyncio.Future[Replies]]()
        self._reason: str | None = None

    async def start(self) -> SandboxReport:
        return SandboxReport("none", ())

    async def run_cell(self, number: int, code: str, host: Host) -> CellReport:
        await asyncio.sleep(0)
        self._reason = None
        repl = Repl(_Served(host, self._serving), self._number)
        value = await self._cells[code.strip()](repl)
        answer = None
        if value is not None:
            answer = {"via": "FINAL", "ready": True, "text": str(value), "form": str(value), "type": "str"}
        text = "\n".join(repl.printed)
        report = CellReport(text, len(text), None, None, False, answer, (), [])
        report.interrupted_by = self._reason
        return report

    def _number(self) -> int:
        self._last += 1
        return self._last

    def interrupt(self, reason: str) -> None:
        self._reason = reason

    def drop_calls(self) -> None:
        for call in list(self._serving):
            call.cancel()

    async def settle(self) -> None:
        while self._serving:
            await asyncio.gather(*self._serving, return_exceptions=True)

    async def close(self) -> None:
        self.drop_calls()
        await self.settle()


@dataclass
class _Served:
    """Calls of a cell under way; as with workers they outlive it, until they are given up."""

    host: Host
    serving: set[asyncio.Future[Replies]]

    async def sub_calls(self, call: OpenCall) -> Replies:
        served = asyncio.ensure_future(self.host.sub_calls(call))
        self.serving.add(served)
        served.add_done_callback(self.serving.discard)
        return await asyncio.shield(served)

    def budget(self) -> dict[str, Any]:
        return self.host.budget()


def without_workers(monkeypatch: pytest.MonkeyPatch, cells: dict[str, Cell]) -> None:
    """Have runs of this test run `cells` by their names; what a cell returns is the answer, None is none."""
    monkeypatch.setattr(
        Orchestrator, "_environment", lambda _: cast("Environment", _NoWorker(cells)), raising=True
    )
