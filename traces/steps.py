"""A run step by step, out of its record: what the root was told, what it replied, what its cells did.

A step is one cell; an iteration without a cell (no code in the reply, or none yet) is a step too. Steps count
from 1 within their (child) run and keep their numbers while a run goes on. Records are untrusted: parents may
be missing or lead round in a circle, and every cell and iteration is a step of exactly one run all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rlm_core import semconv as sc
from traces.detail import added_messages
from traces.refused import refused
from traces.rows import SpanRow
from traces.step_variables import Delta, Variables, read_deltas, variables_after
from traces.summing import CALL_KINDS, Spend
from traces.tree import outcome
from traces.view import RunView

_CALLED: Final = {"sub_call": "llm_query", "run": "rlm_query", "tool": "tool"}
_FINE: Final = ("ok", "running")


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `position`: its place in its iteration, from 0; `of`: how many steps that has."""

    number: int
    run: SpanRow | None
    iteration: SpanRow | None
    root_call: SpanRow | None
    cell: SpanRow | None
    position: int
    of: int

    @property
    def span(self) -> SpanRow:
        """The span that stands for the step: its cell, else its iteration."""
        found = self.cell or self.iteration
        assert found is not None  # a step is made of one or the other
        return found

    @property
    def failed(self) -> bool:
        """Whether its cell did not end well; without one, its root call or iteration."""
        spans = (self.root_call, self.iteration) if self.cell is None else (self.cell,)
        return any(span is not None and span.status not in _FINE for span in spans)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a root call was sent beyond what the one before was. `earlier` counts the messages before; texts
    are None where the record does not hold them.
    """

    earlier: int | None
    messages: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls that a cell made side by side: those of a batch, or neighbours of one kind without one.

    `span` is the batch or the first of them, `bad` the first that did not go well, `spend` includes all that
    was asked below them.
    """

    span: SpanRow
    called: str
    members: tuple[SpanRow, ...]
    counts: dict[str, int]
    bad: SpanRow | None
    spend: Spend


class Replay:
    """The steps of a run and of its child runs, each with what it needs to be shown.

    `earlier`, a replay of the same run as it stood before, spares reading again what had ended by then.
    """

    def __init__(self, view: RunView, earlier: Replay | None = None) -> None:
        self.view = view
        self._children: dict[str, list[SpanRow]] = {}
        for span in view.spans:
            if span.parent_id is not None:
                self._children.setdefault(span.parent_id, []).append(span)
        tops = (span.span_id for span in view.spans if span.kind == "run" and span.depth == 0)
        self._top = next(tops, "")
        self._refused = refused(view.spans)
        self._runs: dict[str, str] = {}  # span -> the run it belongs to
        self._deltas: dict[str, Delta] = {} if earlier is None else earlier._deltas
        self._steps = self._numbered()
        self._place = {
            span.span_id: step
            for steps in self._steps.values()
            for step in reversed(steps)  # an iteration leads to its first step
            for span in (step.cell, step.iteration)
            if span is not None
        }

    def runs(self) -> tuple[SpanRow | None, ...]:
        """The run and the child runs that have steps, in the order of the record; None stands for steps
        whose run is not in the record.
        """
        return tuple(steps[0].run for steps in self._steps.values())

    def steps(self, run: SpanRow | None) -> tuple[Step, ...]:
        """The steps of a run or child run; none where it has none."""
        return self._steps.get(run.span_id if run is not None else "", ())

    def step_of(self, span: SpanRow) -> Step | None:
        """The step that a span belongs to: its own, or that of the nearest cell or iteration above it."""
        above: SpanRow | None = span
        for _ in range(len(self.view.spans)):
            if above is None or above.span_id in self._place:
                break
            above = self.view.by_id.get(above.parent_id or "")
        return None if above is None else self._place.get(above.span_id)

    def heard(self, step: Step) -> Heard | None:
        """What the root was sent in this step; None where the record does not say."""
        added = None if step.root_call is None else added_messages(step.root_call)
        if step.root_call is None or added is None:
            return None
        texts = self.view.payloads({message["sha256"] for message in added})
        prior = step.root_call.attributes.get(sc.MESSAGES_PRIOR, 0)
        earlier = prior if type(prior) is int and prior >= 0 else None
        return Heard(earlier, tuple((each["role"], texts.get(each["sha256"])) for each in added))

    def calls(self, step: Step) -> list[Calls]:
        """The calls of the step's cell, in the order of the record."""
        if step.cell is None:
            return []
        found, row = [], list[SpanRow]()
        for child in self._children.get(step.cell.span_id, ()):
            if child.kind == "batch" or (row and row[0].kind != child.kind):
                found += self._side_by_side(row)
                row = []
            if child.kind == "batch":
                members = [each for each in self._children.get(child.span_id, ()) if each.kind in _CALLED]
                found.append(self._gathered(child, members))
            elif child.kind in _CALLED:
                row.append(child)
        return found + self._side_by_side(row)

    def variables(self, step: Step) -> Variables:
        """What was defined after the step, and what of it the step changed."""
        cells = [each.cell for each in self.steps(step.run)[: step.number]]
        read_deltas(self.view, [cell for cell in cells if cell is not None], self._deltas)
        deltas = [None if cell is None else self._deltas[cell.span_id] for cell in cells]
        return variables_after(deltas)

    def _side_by_side(self, row: Sequence[SpanRow]) -> list[Calls]:
        return [self._gathered(row[0], row)] if row else []

    def _gathered(self, span: SpanRow, members: Sequence[SpanRow]) -> Calls:
        ended = Counter(outcome(member, self._refused) for member in members)
        bad = next((member for member in members if outcome(member) not in _FINE), None)
        called = _CALLED[members[0].kind] if members else "llm_query"
        spend = Spend()
        for below in self._below(members):
            if below.kind in CALL_KINDS and below.span_id not in self._refused:
                spend.add_call(below)
        return Calls(span, called, tuple(members), dict(ended), bad, spend)

    def _below(self, tops: Sequence[SpanRow]) -> Iterator[SpanRow]:
        """Spans and all that hangs below them, each once."""
        waiting, seen = list(tops), set[str]()
        while waiting:
            span = waiting.pop()
            if span.span_id not in seen:
                seen.add(span.span_id)
                yield span
                waiting += self._children.get(span.span_id, ())

    def _numbered(self) -> dict[str, tuple[Step, ...]]:
        """Steps by the id of their run's span ("" where it has none on record)."""
        turns: dict[str, list[tuple[SpanRow | None, list[SpanRow]]]] = {}
        for span in self.view.spans:
            within = self.view.by_id.get(span.parent_id or "")
            if span.kind == "iteration":
                cells = [each for each in self._children.get(span.span_id, ()) if each.kind == "cell"]
                turns.setdefault(self._run_of(span), []).append((span, cells))
            elif span.kind == "cell" and (within is None or within.kind != "iteration"):
                turns.setdefault(self._run_of(span), []).append((None, [span]))
        return {run: tuple(self._in_order(run, each)) for run, each in turns.items()}

    def _in_order(self, run: str, turns: list[tuple[SpanRow | None, list[SpanRow]]]) -> Iterator[Step]:
        number, top = 0, self.view.by_id.get(run)
        for iteration, cells in turns:
            inner = () if iteration is None else self._children.get(iteration.span_id, ())
            root = _turn_call(inner)
            made: list[SpanRow | None] = [*cells] or [None]
            for position, cell in enumerate(made):
                number += 1
                yield Step(number, top, iteration, root, cell, position, len(made))

    def _run_of(self, span: SpanRow) -> str:
        """The id of the nearest run above; without one that of the topmost run, or "" when there is none."""
        path = []
        above: SpanRow | None = span
        while above is not None and above.kind != "run" and above.span_id not in self._runs:
            path.append(above.span_id)
            self._runs[above.span_id] = self._top  # stays so where the way leads to no run
            above = self.view.by_id.get(above.parent_id or "")
        if above is not None:
            found = above.span_id if above.kind == "run" else self._runs[above.span_id]
            self._runs.update(dict.fromkeys(path, found))
        return self._runs[span.span_id]


def _turn_call(below: Iterable[SpanRow]) -> SpanRow | None:
    """The root call that is an iteration's turn: the last one that does not sum up the turns before it (one
    that was refused as too long comes before that).
    """
    calls = [span for span in below if span.kind == "root_call"]
    turns = [span for span in calls if span.attributes.get(sc.COMPACTED) is not True]
    return next(reversed(turns or calls), None)
