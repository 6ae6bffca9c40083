"""A live picture of a run, for whoever watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal


@dataclass(slots=True)
class Progress:
    """Where a run stands. `phase` is one of starting, asking the root, running a cell, finishing; counts are
    of the tree. `calls_refused` are those that a limit refused: they are in no other count.
    """

    run_id: str = ""
    phase: str = "starting"
    iteration: int = 0
    max_iterations: int = 0
    cell: int = 0
    depth: int = 0
    calls_done: int = 0
    calls_running: int = 0
    calls_failed: int = 0
    calls_refused: int = 0
    tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    cost_known: bool = True
    seconds: float = 0.0


Watcher = Callable[[Progress], None]
