"""What users of the `rlms` package are told during a run, and of its usage after it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from rlm_core import events as ev

OnSubcall = Callable[[int, str, str], None]  # depth, model, start of the prompt
OnSubcallEnd = Callable[[int, str, float, str | None], None]  # depth, model, seconds, error
OnIteration = Callable[[int, int], None]  # depth, number from 1
OnIterationEnd = Callable[[int, int, float], None]  # depth, number from 1, seconds

_PREVIEW = 80


@dataclass
class ModelUsageSummary:
    """Calls and tokens of one model; `total_cost` is in dollars, None when it is unknown."""

    total_calls: int = 0
    total_input_tokens: int = 0
    total_output_tokens: int = 0
    total_cost: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; an unknown cost is left out."""
        shown = {
            "total_calls": self.total_calls,
            "total_input_tokens": self.total_input_tokens,
            "total_output_tokens": self.total_output_tokens,
        }
        return shown if self.total_cost is None else {**shown, "total_cost": self.total_cost}


@dataclass
class UsageSummary:
    """Usage by model id, child runs and failed calls included."""

    model_usage_summaries: dict[str, ModelUsageSummary] = field(default_factory=dict)

    @property
    def total_cost(self) -> float | None:
        """Dollars of all models together, None as soon as one cost is unknown."""
        costs = [one.total_cost for one in self.model_usage_summaries.values()]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    @property
    def total_input_tokens(self) -> int:
        """Input tokens of all models together."""
        return sum(one.total_input_tokens for one in self.model_usage_summaries.values())

    @property
    def total_output_tokens(self) -> int:
        """Output tokens of all models together."""
        return sum(one.total_output_tokens for one in self.model_usage_summaries.values())

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        models = {model: one.to_dict() for model, one in self.model_usage_summaries.items()}
        cost = self.total_cost
        return {"model_usage_summaries": models, **({} if cost is None else {"total_cost": cost})}


@dataclass
class _Spent:
    calls: int = 0
    input: int = 0
    output: int = 0
    usd: Decimal | None = Decimal(0)


class Callbacks:
    """Takes the events of one run: calls back, counts usage, and with `verbose` says on stderr, without any
    text of a model, what goes on. After a callback has raised none is called any more; `problems` says so.
    """

    def __init__(
        self,
        on_subcall: OnSubcall | None,
        on_subcall_end: OnSubcallEnd | None,
        on_iteration: OnIteration | None,
        on_iteration_end: OnIterationEnd | None,
        verbose: bool,
    ) -> None:
        self._on_subcall, self._on_subcall_end = on_subcall, on_subcall_end
        self._on_iteration, self._on_iteration_end = on_iteration, on_iteration_end
        self._verbose = verbose
        self._open: dict[str, ev.SpanEvent] = {}
        self._spent: dict[str, _Spent] = {}
        self.problems: list[str] = []

    def __call__(self, event: ev.Event) -> None:
        """Take one event."""
        if isinstance(event, ev.CallEnded):
            self._count(event)
        elif isinstance(event, ev.RunStarted | ev.IterationStarted):
            self._open[event.span_id] = event
            self._begun(event)
        elif isinstance(event, ev.RunEnded | ev.IterationEnded):
            self._over(self._open.pop(event.span_id), event)
        elif isinstance(event, ev.CellEnded):
            self._say(event, f"cell {event.status}")

    def usage(self) -> UsageSummary:
        """What was used so far."""
        return UsageSummary(
            {
                model: ModelUsageSummary(
                    one.calls, one.input, one.output, None if one.usd is None else float(one.usd)
                )
                for model, one in self._spent.items()
            }
        )

    def _begun(self, event: ev.RunStarted | ev.IterationStarted) -> None:
        if isinstance(event, ev.IterationStarted):
            self._say(event, f"turn {event.number + 1} begins")
            self._back(self._on_iteration, event.depth, event.number + 1)
        elif event.depth:
            self._back(self._on_subcall, event.depth, event.root_model, event.question[:_PREVIEW])

    def _over(self, begun: ev.SpanEvent, event: ev.RunEnded | ev.IterationEnded) -> None:
        seconds = event.seconds - begun.seconds
        if isinstance(begun, ev.IterationStarted):
            self._back(self._on_iteration_end, event.depth, begun.number + 1, seconds)
        elif isinstance(begun, ev.RunStarted):
            self._say(event, f"run {event.status}")
            if event.depth:
                self._back(self._on_subcall_end, event.depth, begun.root_model, seconds, event.error)

    def _back(self, callback: Callable[..., None] | None, *values: Any) -> None:
        if callback is None or self.problems:
            return
        try:
            callback(*values)
        except Exception as error:
            self.problems.append(
                f"a callback failed with {type(error).__name__}: {error}; none was called on"
            )

    def _count(self, event: ev.CallEnded) -> None:
        """Only what a model was asked: replies out of a record or cache cost nothing."""
        if event.served_from != "model":
            return
        spent = self._spent.setdefault(event.model, _Spent())
        spent.calls += 1
        spent.input += event.input_tokens or 0
        spent.output += event.output_tokens or 0
        spent.usd = None if spent.usd is None or event.cost_usd is None else spent.usd + event.cost_usd

    def _say(self, event: ev.SpanEvent, what: str) -> None:
        if self._verbose:
            print(f"[{event.seconds:.1f} s] run {event.path}: {what}", file=sys.stderr)
