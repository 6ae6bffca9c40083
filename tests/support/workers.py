"""Real workers for tests: cells go in, reports come out, a scripted host answers their calls."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from rlm_core.corpus import Corpus
from rlm_core.environment import Environment
from rlm_core.limits import Limits
from rlm_core.sandbox import Level
from rlm_core.values import from_form
from rlm_core.wire import CellReport, OpenCall, Part, Slot

T = TypeVar("T")
TEXTS = {"a.txt": "alpha\nbeta\ngamma\n", "b.txt": "zwei Wörter\n"}


def shown(parts: list[Part]) -> str:
    """Parts as text; a place in the corpus as `<document:start-end>`."""
    return "".join(part if isinstance(part, str) else "<{}:{}-{}>".format(*part) for part in parts)


class Host:
    """Answers each slot with `reply(slot)`, by default with what it was sent; keeps every call."""

    def __init__(self, reply: Callable[[Slot], Any] | None = None) -> None:
        self.reply = reply or (lambda slot: shown(slot.prompt) + shown(slot.snippet))
        self.calls: list[OpenCall] = []
        self.budgets = 0

    async def sub_calls(self, call: OpenCall) -> list[dict[str, Any]]:
        """All slots at once."""
        self.calls.append(call)
        return list(await asyncio.gather(*map(self._one, call.slots)))

    def budget(self) -> dict[str, Any]:
        """A number that grows, so that a reply meant for another call would show."""
        self.budgets += 1
        return {"calls": self.budgets, "tokens": None}

    async def _one(self, slot: Slot) -> dict[str, Any]:
        reply = self.reply(slot)
        if isinstance(reply, Awaitable):
            reply = await reply
        return reply if isinstance(reply, dict) else {"ok": reply}


class Worker:
    """A worker and the event loop it lives on; use it in a `with`."""

    def __init__(
        self,
        *,
        host: Host | None = None,
        texts: dict[str, str] | None = None,
        seed: int = 5,
        level: Level | None = None,
        **limits: Any,
    ) -> None:
        limits = {"cell_seconds": 30.0, "cell_cpu_seconds": 30.0, "memory_bytes": 1 << 30, **limits}
        self.host = host or Host()
        self._folder = tempfile.TemporaryDirectory(prefix="rlmscope-test-")
        corpus = Corpus.from_texts(texts or TEXTS, Path(self._folder.name))
        self.environment = Environment(corpus.worker_documents(), Limits(**limits), seed, level=level)
        self._runner = asyncio.Runner()
        self._number = 0

    def __enter__(self) -> Worker:
        try:
            self.wait(self.environment.start())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.wait(self.environment.close())
        self._runner.close()
        self._folder.cleanup()

    def wait(self, work: Coroutine[Any, Any, T], seconds: float = 60) -> T:
        """Run a coroutine; one that hangs fails."""
        return self._runner.run(_bounded(work, seconds))

    async def cell(self, code: str) -> CellReport:
        """Run one cell and wait until its calls are answered."""
        number, self._number = self._number, self._number + 1
        try:
            return await self.environment.run_cell(number, code, self.host)
        finally:
            await self.environment.settle()

    def run(self, code: str, **limits: Any) -> CellReport:
        """`cell`, from outside the loop; `limits` hold for this cell only."""
        usual = self.environment.limits
        self.environment.limits = replace(usual, **limits)
        try:
            return self.wait(self.cell(code))
        finally:
            self.environment.limits = usual

    def out(self, code: str) -> str:
        """What a cell prints, which must not fail."""
        report = self.run(code)
        assert report.exception is None, report.exception
        return report.stdout.strip()

    def value(self, expression: str) -> Any:
        """A JSON value from inside the worker."""
        return json.loads(self.out(f"import json\nprint(json.dumps({expression}))"))

    def restart(self) -> None:
        """A new process, after the last one was lost."""
        self.wait(self.environment.close())
        self.wait(self.environment.start())


def answer_value(report: CellReport) -> Any:
    """The value of the answer in a report."""
    assert report.answer is not None
    return from_form(report.answer["form"])


async def _bounded(work: Coroutine[Any, Any, T], seconds: float) -> T:
    async with asyncio.timeout(seconds):
        return await work
