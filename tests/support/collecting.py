"""A collector for tests: its home, its clock, and what it said; and a small trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlm_core import semconv as sc
from tests.support.otlp import TRACE, kind, llm
from traces.collecting import Collector
from traces.home import Home
from traces.importers.writing import write_run
from traces.otlp.spans import OtlpSpan
from traces.otlp.trace_run import run_of_trace, settle
from traces.reading import RunView, SpoolRun

AGENT = kind(0, "AGENT", name="agent", lasts=90.0, input__value="How many?", output__value="Two.")
TOOL = kind(2, "TOOL", 0, "python", lasts=3.0, input__value="ask()")
#: As they end: what is inside comes first.
SPANS = [llm(1, 0, "How many?", "ask()"), llm(3, 2, "a", "yes"), llm(4, 2, "b", "no"), TOOL,
         llm(6, 0, "How many?", "Two."), AGENT]  # fmt: skip


@dataclass
class Clock:
    """Seconds that pass when a test says so."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Rig:
    """A collector with a home, its clock, and what it said."""

    home: Home
    clock: Clock = field(default_factory=Clock)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.collector = Collector(self.home, quiet=5, patience=60, say=self.said.append, clock=self.clock)

    def runs(self) -> list[str]:
        return sorted(path.stem for path in self.home.spool.glob("*.jsonl"))


def shape(view: RunView) -> list[tuple[Any, ...]]:
    """What readers show of the spans of a run, in their order."""
    return [
        (row.span_id, row.parent_id, row.kind, row.name, row.status, row.depth, row.iteration, row.cell,
         row.call_index, row.phase, row.tokens, row.cost_usd, row.seconds, row.trust, row.preview,
         {key: value for key, value in row.attributes.items() if key not in OWN})
        for row in view.spans
    ]  # fmt: skip


#: Facts that are told of the run at its end where it is collected, and at its beginning where it is imported.
OWN = (sc.RUN_ID, sc.IMPORT_MISSING, sc.ROOT_MODEL, sc.SUB_MODEL)


def read_run(home: Home, run_id: str) -> RunView:
    return SpoolRun(home, run_id).poll()


def imported(home: Home, spans: list[OtlpSpan]) -> RunView:
    run = settle(run_of_trace(TRACE, spans))
    return read_run(home, write_run(home, run, "x.json", 0).run_id)
