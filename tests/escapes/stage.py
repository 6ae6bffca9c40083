"""The process in which attempts run, as the parent of their workers: `python -m tests.escapes.stage LEVEL`.

Orders come on standard input, one JSON object a line: `{"id": "E05", "naked": false}`. Each is answered by a
line on standard output: `{"id", "found": [what must not have happened], "broken": [what the run lost],
"output", "died", "layers"}`. It may be killed by an attempt; who gave the order sees that.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import rlm_core.worker_watch
from rlm_core.environment import Environment
from rlm_core.errors import RLMScopeError, WorkerDied
from rlm_core.limits import Limits
from rlm_core.sandbox import Level, checked_level
from rlm_core.wire import OpenCall
from tests.escapes.attempts import BY_ID, Attempt
from tests.escapes.theatre import MARK_VARIABLE, Theatre

SPARE_SECONDS: Final = 12.0  # how much later than its limit a contained attempt must have been reported
_MEMORY: Final = 1 << 30
_NAKED_MEMORY: Final = 128 << 20  # what a plain interpreter takes three times of, to show that it can
_ALIVE: Final = "print(x, llm_query('a', 'b'), len([1]), Exception)"
_AS_ALIVE: Final = "41 ab 1 <class 'Exception'>"
_MOST_CALLS: Final = 1_000
_MOST_OUTPUT: Final = 500_000  # characters: the cap of a run's output, twice, and a traceback
_PR_SET_CHILD_SUBREAPER: Final = 36


class Host:
    """Answers a sub-call with what it was sent, as long as there are not too many."""

    def __init__(self) -> None:
        self.calls = 0

    async def sub_calls(self, call: OpenCall) -> list[dict[str, Any]]:
        """One reply per slot."""
        self.calls += call.size
        if self.calls > _MOST_CALLS:
            return [{"err": "budget", "msg": "no calls are left"}] * call.size
        return [{"ok": "".join(map(str, slot.prompt + slot.snippet))} for slot in call.slots]

    def budget(self) -> dict[str, Any]:
        """Nothing to tell."""
        return {"calls": None}


class Stage:
    """Runs attempts at one level; those that need no worker of their own share one."""

    def __init__(self, level: Level, folder: Path) -> None:
        self.level = level
        self.theatre = Theatre(folder, os.environ[MARK_VARIABLE])
        self._shared: Environment | None = None
        self._cells = 0

    async def perform(self, attempt: Attempt) -> dict[str, Any]:
        """Run one attempt and look at what it did."""
        environment = None if attempt.fresh else self._shared
        if environment is None:
            environment = await self._raise_curtain(attempt)
        if not attempt.fresh:
            self._shared = environment
        result = await self._attempt(environment, attempt)
        result["found"] += self.theatre.look(_processes(environment) | _processes(self._shared))
        if result["died"]:
            await self._drop(environment)
            environment = await self._raise_curtain(attempt)
        result["broken"] += await self._next_cell(environment)
        if environment is not self._shared or result["found"] or result["broken"]:
            await self._drop(environment)
            result["found"] += self.theatre.look(_processes(self._shared))
        result["layers"] = list(environment.sandbox.layers) if environment.sandbox is not None else []
        return result

    def naked(self, attempt: Attempt) -> dict[str, Any]:
        """The same code in a plain interpreter that was started as programs usually are."""
        code = self._names(_NAKED_MEMORY) + attempt.code
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        found = ["it said so"] if "ESCAPED" in done.stdout else []
        found += self.theatre.look(_processes(self._shared))
        output = (done.stdout + done.stderr)[-2000:]
        return {"id": attempt.id, "found": found, "broken": [], "output": output, "died": "", "layers": []}

    async def close(self) -> None:
        """End the shared worker."""
        if self._shared is not None:
            await self._drop(self._shared)

    async def _drop(self, environment: Environment) -> None:
        if environment is self._shared:
            self._shared = None
        await environment.close()

    async def _raise_curtain(self, attempt: Attempt) -> Environment:
        limits = replace(Limits(memory_bytes=_MEMORY), **attempt.limits)
        environment = Environment(self.theatre.documents, limits, 7, self.level, minimum="none")
        await environment.start()
        report = await self._cell(environment, self._names(limits.memory_bytes) + "x = 41")
        assert report.exception is None, report.exception
        return environment

    def _names(self, memory: int) -> str:
        return "".join(f"{name} = {value!r}\n" for name, value in self.theatre.names(memory).items())

    async def _cell(self, environment: Environment, code: str) -> Any:
        self._cells += 1
        report = await environment.run_cell(self._cells, code, Host())
        await environment.settle()
        return report

    async def _attempt(self, environment: Environment, attempt: Attempt) -> dict[str, Any]:
        environment.limits = replace(
            environment.limits, cell_seconds=attempt.seconds, cell_cpu_seconds=attempt.seconds
        )
        broken, said, output, died = [], "", "", ""
        code = f"CELL = {self._cells + 1}\n{attempt.code}"
        try:
            async with asyncio.timeout(attempt.seconds + SPARE_SECONDS):
                report = await self._cell(environment, code)
            said = report.stdout  # not the traceback, which shows lines of the attempt
            output = f"{said}\n{report.exception or ''}\n{report.native_output}"
        except WorkerDied as death:
            output = died = str(death)
            if attempt.state == "keep":
                broken.append(f"the worker was lost: {death}")
        except TimeoutError:
            died = "it never came back"
            broken.append(died)
        if len(output) > _MOST_OUTPUT:
            broken.append(f"{len(output):,} characters of output")
        return {
            "id": attempt.id,
            "found": ["it said so"] if "ESCAPED" in said else [],
            "broken": broken,
            "output": output[-2000:],
            "died": died,
        }

    async def _next_cell(self, environment: Environment) -> list[str]:
        environment.limits = replace(environment.limits, cell_seconds=20.0, cell_cpu_seconds=20.0)
        try:
            async with asyncio.timeout(40):
                report = await self._cell(environment, _ALIVE)
        except (WorkerDied, TimeoutError) as error:
            return [f"the next cell did not run: {error}"]
        said = report.stdout.strip()
        return [] if said == _AS_ALIVE else [f"the next cell said {said!r} {report.exception or ''}"]


def _processes(environment: Environment | None) -> set[int]:
    """The worker, and what it is wrapped in."""
    if environment is None or environment.pid is None or environment._process is None:
        return set()
    return {environment.pid, environment._process.pid}


async def _serve(level: str, folder: Path) -> None:
    stage = Stage(checked_level(level), folder)
    loop = asyncio.get_running_loop()
    orders = sys.stdin
    while line := await loop.run_in_executor(None, orders.readline):
        order = json.loads(line)
        attempt = BY_ID[order["id"]]
        try:
            result = stage.naked(attempt) if order.get("naked") else await stage.perform(attempt)
        except RLMScopeError as error:
            result = {"id": attempt.id, "error": str(error)}
        print(json.dumps(result), flush=True)
    await stage.close()


def main() -> None:
    """Serve until standard input ends."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    rlm_core.worker_watch.POLL_SECONDS = 0.05  # type: ignore[misc]
    rlm_core.worker_watch.GRACE_SECONDS = 0.5  # type: ignore[misc]
    with (
        tempfile.TemporaryDirectory(prefix="rlmscope-stage-") as folder,
        contextlib.suppress(BrokenPipeError),
    ):
        asyncio.run(_serve(sys.argv[1], Path(folder)))


if __name__ == "__main__":
    main()
