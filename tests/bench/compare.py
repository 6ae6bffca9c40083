"""What a comparison of two runs costs, by their size: trees aligned, frontier found, texts read as needed."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.bench.rows import Row, cpu
from tests.support.recorded_runs import wide_run
from traces.diff import diff
from traces.home import Home
from traces.reading import load_run

REPEATS = 3
SIZES = (200, 2_000, 20_000)


def compare_figures() -> list[Row]:
    """A row per size; the second run has a batch more, so that there is something to align."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home.resolve(Path(folder) / "home")
        return [_figure(home, number, spans) for number, spans in enumerate(SIZES)]


def _figure(home: Home, number: int, spans: int) -> Row:
    pair = [
        wide_run(home, spans + more, f"20270115T08000{number}-0000bb0{side}")
        for side, more in enumerate((0, 60))
    ]
    values = []
    for _ in range(REPEATS):
        views = [load_run(home, run_id) for run_id in pair]
        used = cpu()
        found = diff(views[0], views[1])
        values.append((cpu() - used) * 1000)
        assert not found.frontier and found.counts["added"]
    name = f"two runs of {spans:,} spans compared"
    return name, "ms CPU", values, 2_000.0 if spans == SIZES[-1] else None
