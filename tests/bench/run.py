"""`make bench`: what the engine and its record cost, beside the targets of the design.

CPU time first: it counts user and system time of this process and of every worker it waited for. Wall time is
shown only as a ratio to what the sleeping model alone would need. Every figure is the median of several runs
in this one process, with the spread; compare figures of one run of this command only, machines differ.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rlm_core import RLM, FunctionLMHandler, Limits, Request
from traces.home import Home
from traces.ingest import ingest
from traces.reading import list_runs, load_run
from traces.recording import open_recording

REPEATS = 5
CALLS = 200
TURNS = 30


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


def cpu() -> float:
    """CPU seconds of this process and of the children it waited for."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def cell(code: str) -> str:
    return f"```repl\n{code}\n```"


def ask(
    home: Home, replies: list[str], sub: Callable[[Request], object], serial: list[int], **limits: int
) -> RLM:
    """One recorded run over a small corpus; returns the RLM, closed."""

    async def model(request: Request) -> object:
        if request.role == "root":
            sent[0] += sum(len(message.content.encode()) for message in request.messages)
            return replies[sum(message.role == "assistant" for message in request.messages)]
        result = sub(request)
        return await result if hasattr(result, "__await__") else result

    sent = [0]
    serial[0] += 1
    with (
        open_recording(home, f"20260101T000000-{serial[0]:08x}", {}) as recording,
        RLM("bench/root", "bench/sub", handler=FunctionLMHandler(model), limits=Limits(**limits)) as rlm,  # type: ignore[arg-type]
    ):
        answer = rlm.ask(
            "What?", "A small corpus. " * 50, recorder=recording.recorder, run_id=recording.run_id
        )
    assert answer.stop_reason == "final" and recording.problems == 0, answer
    rlm.sent = sent[0]  # type: ignore[attr-defined]
    return rlm


def engine_figures(home: Home) -> list[Figure]:
    """Sub-calls, iterations and prompt bytes with a function as the model."""
    import asyncio

    serial = [0]
    batch = [cell(f"r = llm_batch([f'question {{i}}' for i in range({CALLS})])"), cell("FINAL(len(r))")]
    alone = [cell("r = 0"), cell("FINAL(r)")]
    turns = [cell(f"print({n})") for n in range(TURNS - 1)] + [cell("FINAL(1)")]
    half = turns[: TURNS // 2 - 1] + [cell("FINAL(1)")]

    async def slow(_: Request) -> str:
        await asyncio.sleep(0.2)
        return "ok"

    def measured(
        replies: list[str], sub: Callable[[Request], object] = lambda _: "ok", **limits: int
    ) -> tuple[float, float, int]:
        used, began = cpu(), time.perf_counter()
        rlm = ask(home, replies, sub, serial, **limits)
        return cpu() - used, time.perf_counter() - began, rlm.sent  # type: ignore[attr-defined]

    measured(batch)  # warm-up: imports, price table
    per_call, per_turn, late, early, ratio, bytes_sent = [], [], [], [], [], []
    for _ in range(REPEATS):
        base, whole = measured(alone)[0], measured(batch)[0]
        per_call.append((whole - base) / CALLS * 1000)
        long_cpu, _, sent = measured(turns)
        half_cpu = measured(half)[0]
        per_turn.append((long_cpu - base) / (TURNS - 2) * 1000)
        early.append((half_cpu - base) / (TURNS // 2 - 2) * 1000)
        late.append((long_cpu - half_cpu) / (TURNS - TURNS // 2) * 1000)
        bytes_sent.append(sent / 1000)
        waited = measured(batch, slow)[1] - measured(alone)[1]
        ratio.append(waited / 1.4)
    return [
        Figure("engine + record per sub-call (200-call batch, function handler)", "ms CPU", per_call, 1.5),
        Figure("200 calls of 200 ms at concurrency 32, wall / ideal 1.4 s", "x", ratio, 1.2),
        Figure("engine + record per iteration (30 tiny ones)", "ms CPU", per_turn, 2.5),
        Figure(
            "  the later half of them / the earlier half",
            "x",
            [a / b for a, b in zip(late, early, strict=True)],
        ),
        Figure("bytes sent to the root over 30 tiny iterations", "KB", bytes_sent, 100),
    ]


def boot_figures() -> list[Figure]:
    """A worker's whole life in CPU time against `python -c pass` and against the imports alone."""

    def seconds(*command: str) -> float:
        used = cpu()
        subprocess.run(command, check=True, capture_output=True)
        return cpu() - used

    def worker(code: str) -> float:
        used = cpu()
        handler = FunctionLMHandler(lambda _: cell(code))
        with RLM("bench/root", "bench/sub", handler=handler) as rlm:
            rlm.ask("What?", "x")
        return cpu() - used

    worker("FINAL(1)")
    bare, boot, heavy = [], [], []
    for _ in range(REPEATS):
        nothing = seconds(sys.executable, "-c", "pass")
        bare.append(nothing * 1000)
        boot.append(worker("FINAL(1)") / nothing)
        imports = seconds(sys.executable, "-c", "import numpy, pandas")
        heavy.append(worker("import numpy, pandas\nFINAL(1)") / imports)
    return [
        Figure("python -c pass", "ms CPU", bare),
        Figure("a run of one cell, worker started and ended / python -c pass", "x", boot, 8),
        Figure("the same importing numpy and pandas / importing them alone", "x", heavy, 1.3),
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


def main() -> None:
    """Print the table; with a file name as argument also write the medians there as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        figures = [*boot_figures(), *engine_figures(home), *record_figures(home)]
    for figure in figures:
        print(figure.line())
    if len(sys.argv) > 1:
        medians = {figure.name.strip(): statistics.median(figure.values) for figure in figures}
        Path(sys.argv[1]).write_text(json.dumps(medians, indent=2) + "\n")


if __name__ == "__main__":
    main()
