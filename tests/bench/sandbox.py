"""What the lock costs: the life of a worker, a cell and a sub-call at every level this machine has."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rlm_core.corpus import Corpus
from rlm_core.environment import Environment
from rlm_core.limits import Limits
from rlm_core.sandbox import LEVELS, Level, probe, worker_environment
from rlm_core.wire import OpenCall
from tests.bench.rows import Row, cpu

REPEATS = 5
ROUNDS = 500
# Inside the worker, so that the time of the engine's loop between two cells is not in it.
CALLS = f"""
import time
began = time.perf_counter()
for number in range({ROUNDS}):
    llm_query("a")
print((time.perf_counter() - began) / {ROUNDS} * 1e6)
"""


class Echo:
    """A host that answers at once."""

    async def sub_calls(self, call: OpenCall) -> list[dict[str, Any]]:
        return [{"ok": "ok"}] * call.size

    def budget(self) -> dict[str, Any]:
        return {}


def sandbox_figures() -> list[Row]:
    """Start against `python -c pass` (CPU), cell and call round trips (wall), by level."""
    best = LEVELS.index(probe().level)
    levels = LEVELS[: best + 1]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus.from_texts("A small corpus.", Path(folder))
        for level in levels:
            measured = [asyncio.run(_life(corpus, level, folder)) for _ in range(REPEATS)]
            lives, cells, calls = (list(values) for values in zip(*measured, strict=True))
            rows += [
                (f"worker at {level}: started, one cell, ended / python -c pass", "x CPU", lives, 8.0),
                (f"  one empty cell, there and back, at {level}", "us wall", cells, None),
                (f"  one sub-call, there and back, at {level}", "us wall", calls, None),
            ]
    for level in LEVELS[best + 1 :]:
        print(f"Level {level} was not measured: this machine gives {probe().level} at most.")
    return rows


def _bare(folder: str) -> float:
    used = cpu()
    subprocess.run([sys.executable, "-c", "pass"], check=True, env=worker_environment(folder, 0))
    return cpu() - used


async def _life(corpus: Corpus, level: Level, folder: str) -> tuple[float, float, float]:
    """CPU of a whole worker with one cell beside an idle Python; microseconds of a cell and of a call."""
    host, bare = Echo(), _bare(folder)
    used = cpu()
    short = Environment(corpus.worker_documents(), Limits(), 1, level=level)
    await short.start()
    await short.run_cell(0, "1", host)
    await short.close()
    life = (cpu() - used) / bare
    environment = Environment(corpus.worker_documents(), Limits(), 1, level=level)
    await environment.start()
    try:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(ROUNDS):
            await environment.run_cell(number, "1", host)
        cell = (loop.time() - began) / ROUNDS * 1e6
        report = await environment.run_cell(ROUNDS, CALLS, host)
        return life, cell, float(report.stdout)
    finally:
        await environment.close()
