"""What a run returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

StopReason = Literal["final", "max_iterations", "budget", "timeout", "cancelled", "error"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one run.

    `text` is the answer as text (None when there is none), `value` the Python value the cell gave. `forced`
    says the answer was extracted after a limit by one extra root call. `confidence` is "low" when the program
    marked it so. `cache_hits` are sub-calls that an equal one had answered, `tool_calls` those of sub-models.
    `refused_sub_calls` are those that a limit refused: they are not among the `sub_calls`.
    `tokens` counts root and sub-calls once each; `cost_usd` is None when any price is unknown
    (`cost_status` says so: priced, free, unknown, demo or partial) and `known_usd` is then the least that was
    spent; `seconds` is wall time.
    """

    run_id: str
    text: str | None
    value: Any
    stop_reason: StopReason
    forced: bool = False
    confidence: str | None = None
    note: str | None = None
    mark: str | None = None
    best_partial: str | None = None
    iterations: int = 0
    sub_calls: int = 0
    failed_sub_calls: int = 0
    refused_sub_calls: int = 0
    cache_hits: int = 0
    tool_calls: int = 0
    tokens: dict[str, int] = field(default_factory=lambda: {"input": 0, "output": 0, "total": 0})
    cost_usd: Decimal | None = None
    cost_status: str = "unknown"
    known_usd: Decimal = Decimal(0)
    sandbox: str = "none"
    seconds: float = 0.0
    error: str | None = None
    notices: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text if self.text is not None else ""
