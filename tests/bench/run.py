"""`make bench`: what the engine and its record cost and how long the app lets wait, beside the targets.

CPU time first: it counts user and system time of this process and of every worker it waited for. Wall time is
shown only as a ratio to what the sleeping model alone would need, and for pages in a browser. Every figure is
the median of several runs in this one process, with the spread; compare figures of one run of this command
only, machines differ.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from rlm_core import RLM, FunctionLMHandler, Limits, Request
from rlm_core.sandbox import worker_environment
from traces.home import Home
from traces.ingest import ingest
from traces.reading import list_runs, load_run
from traces.recording import open_recording

REPEATS = 5
CALLS = 200
TURNS = 30
SMALL = "A small corpus. " * 50
LINES = "".join(f"{number:06} {number * 7919 % 999_983:06} a small corpus\n" for number in range(5_500))


@dataclass
class Figure:
    """One line of the table; `values` are of the repeats, `target` is an upper bound."""

    name: str
    unit: str
    values: list[float]
    target: float | None = None

    def line(self) -> str:
        middle = statistics.median(self.values)
        spread = f"{min(self.values):.3g} - {max(self.values):.3g}"
        if self.target is None:
            return f"{self.name:<66} {middle:>9.3g} {self.unit:<10} ({spread})"
        word = "met" if middle <= self.target else f"missed by {middle / self.target:.2f}x"
        return f"{self.name:<66} {middle:>9.3g} {self.unit:<10} ({spread}); target {self.target:g}: {word}"


class Measured(NamedTuple):
    """One run: CPU in milliseconds, wall time in seconds, kilobytes sent to the root."""

    cpu: float
    wall: float
    sent_kb: float


Sub = Callable[[Request], Any]


def cpu() -> float:
    """CPU seconds of this process and of the children it waited for."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def cell(code: str) -> str:
    return f"```repl\n{code}\n```"


def ask(
    home: Home, replies: list[str], sub: Sub, serial: list[int], *, corpus: str = SMALL, **limits: int
) -> int:
    """One recorded run; returns the bytes that were sent to the root."""
    sent = 0

    async def model(request: Request) -> Any:
        nonlocal sent
        if request.role == "root":
            sent += sum(len(message.content.encode()) for message in request.messages)
            return replies[sum(message.role == "assistant" for message in request.messages)]
        result = sub(request)
        return await result if hasattr(result, "__await__") else result

    serial[0] += 1
    run_id, settings = f"20260101T000000-{serial[0]:08x}", replace(Limits(), **limits)
    with (
        open_recording(home, run_id, {}) as recording,
        RLM("bench/root", "bench/sub", handler=FunctionLMHandler(model), limits=settings) as rlm,
    ):
        answer = rlm.ask("What?", corpus, recorder=recording.recorder, run_id=run_id)
    assert answer.stop_reason == "final" and recording.problems == 0, answer
    return sent


def engine_figures(home: Home) -> list[Figure]:
    """Sub-calls, iterations and prompt bytes with a function as the model."""
    serial = [0]
    batch = [cell(f"r = llm_batch([f'question {{i}}' for i in range({CALLS})])"), cell("FINAL(len(r))")]
    slices = f"p = [context[700 * i : 700 * i + 2000] for i in range({CALLS})]\n"
    references = [cell(slices + "r = llm_batch(['Which?'] * len(p), p)"), cell("FINAL(len(r))")]
    built = [cell(slices + "r = llm_batch([f'Which? <{text}>' for text in p])"), cell("FINAL(len(r))")]
    alone = [cell("r = 0"), cell("FINAL(r)")]
    turns, many = several(TURNS), several(3 * TURNS)

    async def slow(_: Request) -> str:
        await asyncio.sleep(0.2)
        return "ok"

    def measured(replies: list[str], sub: Sub = lambda _: "ok", **limits: Any) -> Measured:
        used, began = cpu(), time.perf_counter()
        sent = ask(home, replies, sub, serial, **limits)
        return Measured((cpu() - used) * 1000, time.perf_counter() - began, sent / 1000)

    measured(batch)  # warm-up: imports, price table
    # what a run costs in any case, taken off below: the median, so that no single slow one distorts a figure
    bases = [measured(alone) for _ in range(REPEATS)]
    base = Measured(*(statistics.median(values) for values in zip(*bases, strict=True)))
    calls = [measured(batch) for _ in range(REPEATS)]
    referring = [measured(references, corpus=LINES) for _ in range(REPEATS)]
    measured(built, corpus=LINES)  # warm-up: numpy
    located = [measured(built, corpus=LINES) for _ in range(REPEATS)]
    waits = [measured(batch, slow) for _ in range(REPEATS)]
    short = [measured(turns) for _ in range(REPEATS)]
    long = [measured(many, max_iterations=3 * TURNS) for _ in range(REPEATS)]
    middle = statistics.median(run.cpu for run in short)
    per_call = [(run.cpu - base.cpu) / CALLS for run in calls]
    per_reference = [(run.cpu - base.cpu) / CALLS for run in referring]
    per_located = [(run.cpu - base.cpu) / CALLS for run in located]
    ratios = [(run.wall - base.wall) / 1.4 for run in waits]
    first = [(run.cpu - base.cpu) / (TURNS - 2) for run in short]
    later = [(run.cpu - middle) / (2 * TURNS) for run in long]
    sent_kb = [run.sent_kb for run in short]
    return [
        Figure("engine + record per sub-call (200-call batch, function handler)", "ms CPU", per_call, 1.5),
        Figure("  the same with 2 KB of the corpus each, given as slices", "ms CPU", per_reference, 1.5),
        Figure("  the same built into f-strings: searched for in the corpus", "ms CPU", per_located),
        Figure("200 calls of 200 ms at concurrency 32, wall / ideal 1.4 s", "x", ratios, 1.2),
        Figure("engine + record per iteration, the first 30 tiny ones", "ms CPU", first, 2.5),
        Figure("  the same, iterations 31 to 90", "ms CPU", later, 2.5),
        Figure("bytes sent to the root over 30 tiny iterations", "KB", sent_kb, 100),
    ]


def several(turns: int) -> list[str]:
    """Replies of that many tiny turns."""
    return [cell(f"print({number})") for number in range(turns - 1)] + [cell("FINAL(1)")]


def boot_figures() -> list[Figure]:
    """A worker's whole life in CPU time against `python -c pass` and against the imports alone."""
    same = worker_environment(tempfile.gettempdir(), 0)  # thread counts weigh on an import of numpy

    def seconds(*command: str) -> float:
        used = cpu()
        subprocess.run(command, check=True, capture_output=True, env=same)
        return cpu() - used

    def worker(code: str) -> float:
        used = cpu()
        handler = FunctionLMHandler(lambda _: cell(code))
        with RLM("bench/root", "bench/sub", handler=handler) as rlm:
            rlm.ask("What?", "x")
        return cpu() - used

    importing = "import numpy, pandas"
    worker(f"{importing}\nFINAL(1)")
    bare = [seconds(sys.executable, "-c", "pass") for _ in range(REPEATS)]
    imports = [seconds(sys.executable, "-c", importing) for _ in range(REPEATS)]
    nothing, heavy = statistics.median(bare), statistics.median(imports)
    boot = [worker("FINAL(1)") / nothing for _ in range(REPEATS)]
    loaded = [worker(f"{importing}\nFINAL(1)") / heavy for _ in range(REPEATS)]
    return [
        Figure("python -c pass", "ms CPU", [value * 1000 for value in bare]),
        Figure("python -c 'import numpy, pandas'", "ms CPU", [value * 1000 for value in imports]),
        Figure("a run of one cell, worker started and ended / python -c pass", "x", boot, 8),
        Figure("the same importing numpy and pandas / importing them alone", "x", loaded, 1.3),
    ]


def record_figures(home: Home) -> list[Figure]:
    """What the record takes on disk and what it costs to take in and read back."""
    runs = list((home.spool).glob("*.jsonl"))
    used = cpu()
    taken = len(ingest(home).runs)
    ingest_ms = (cpu() - used) / max(1, taken) * 1000
    run_id = next(run.run_id for run in list_runs(home) if run.sub_calls == CALLS)
    used = cpu()
    spans = len(load_run(home, run_id).spans)
    tree_ms = (cpu() - used) * 1000
    size = next(path for path in runs if path.stem == run_id).stat().st_size / spans
    return [
        Figure("taking in a run (mean over the runs above)", "ms CPU", [ingest_ms]),
        Figure(f"reading a {spans}-span run back, store opened and closed", "ms CPU", [tree_ms]),
        Figure("spool bytes per span", "bytes", [size]),
    ]


def app_figures() -> list[Figure]:
    """What a person waits for in the app; where there is no browser, a line says so."""
    from tests.bench.browser import browser_figures
    from tests.support.browser import PROGRAMS, program

    if program() is None:
        print(f"The app was not measured: none of {', '.join(PROGRAMS)} is on PATH.")
        return []
    return [Figure(*row) for row in browser_figures()]


def parts(home: Home) -> dict[str, Callable[[], list[Figure]]]:
    """Every part of the table; `record` reads back what `engine` left in `home`."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.bench.compare import compare_figures
    from tests.bench.corpora import corpora_figures
    from tests.bench.replay import replay_figures
    from tests.bench.sandbox import sandbox_figures
    from tests.bench.store import store_figures

    return {
        "boot": boot_figures,
        "sandbox": lambda: [Figure(*row) for row in sandbox_figures()],
        "engine": lambda: engine_figures(home),
        "record": lambda: record_figures(home),
        "corpora": lambda: [Figure(*row) for row in corpora_figures()],
        "replay": lambda: [Figure(*row) for row in replay_figures()],
        "store": lambda: [Figure(*row) for row in store_figures()],
        "compare": lambda: [Figure(*row) for row in compare_figures()],
        "app": app_figures,
    }


def main() -> None:
    """Print the table; `PART ...` for some of it only, `--json FILE` to keep the medians as well."""
    with tempfile.TemporaryDirectory() as folder:
        table = parts(Home(Path(folder) / "home"))
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("part", nargs="*", help=f"what to measure, of {', '.join(table)} (default: all)")
        parser.add_argument("--json", type=Path, help="a file for the medians")
        wanted = parser.parse_args()
        if unknown := set(wanted.part) - set(table):
            parser.error(f"there is no part {', '.join(sorted(unknown))}")
        medians: dict[str, float] = {}
        for name in [name for name in table if not wanted.part or name in wanted.part]:
            for figure in table[name]():
                print(figure.line(), flush=True)
                medians[figure.name.strip()] = statistics.median(figure.values)
    if wanted.json:
        wanted.json.write_text(json.dumps(medians, indent=2) + "\n")


if __name__ == "__main__":
    main()
