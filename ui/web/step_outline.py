"""All steps of a run as a list, a page of them at a time, each a way to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import streamlit as st

from traces.steps import Replay, Step
from traces.tree import outcome
from ui.figures import counted
from ui.web.notices import Colour
from ui.web.places import href
from ui.web.rows_view import Column, Item, rows_view
from ui.web.span_tables import taken

STEP: Final = "step"  # in the address of a step, beside the run and the view
CHILD: Final = "child"
_PAGE: Final = 100
COLOURS: Final[dict[str, Colour]] = {
    "ok": "green",
    "running": "blue",
    "cancelled": "orange",
    "empty": "orange",
}
_COLUMNS: Final = (
    Column("Step", 95),
    Column("Iteration", 70, right=True),
    Column("Cell", 60, right=True),
    Column("Outcome", 90),
    Column("Phase", 110),
    Column("Calls", 240),
    Column("Time", 80, right=True),
    Column("Text"),
)


def step_query(step: Step) -> dict[str, str]:
    """What stands in the address of a step, beside the run and the view."""
    child = step.run is not None and step.run.parent_id is not None
    return {STEP: str(step.number)} | ({CHILD: step.run.span_id} if step.run is not None and child else {})


def outline(replay: Replay, steps: Sequence[Step], at: Step, go: Callable[[int], None]) -> None:
    """The list, closed at first: nothing is drawn before it is opened."""
    box = st.expander(f"All {counted(len(steps), 'step')}", key="step-outline", on_change="rerun")
    if not box.open:
        return
    pages = -(-len(steps) // _PAGE)
    with box:
        page = 1
        if pages > 1:
            page = st.pagination(pages, default=(at.number - 1) // _PAGE + 1, key=f"step-page-{at.number}")
        shown = steps[(page - 1) * _PAGE : page * _PAGE]
        rows_view(
            [_item(replay, step, at) for step in shown],
            _COLUMNS,
            key="step-list",
            label="Steps of the run",
            on_open=lambda key: go(int(key)),
        )


def _item(replay: Replay, step: Step, at: Step) -> Item:
    span = step.span
    word = outcome(span)
    calls = "; ".join(
        f"{len(each.members):,} x {each.called}" + (f", {bad:,} not ok" if (bad := _bad(each.counts)) else "")
        for each in replay.calls(step)
    )
    number = f"{step.number:,}" + (" (shown)" if step.number == at.number else "")
    iteration = "" if span.iteration is None else f"{span.iteration:,}"
    cell = "none" if step.cell is None or span.cell is None else f"{span.cell:,}"
    phases = "" if step.cell is None else ", ".join(span.phases)
    preview = (step.root_call or span) if step.cell is None else span
    text = preview.preview or ""
    cells = (number, iteration, cell, (word, COLOURS.get(word, "red")), phases, calls, taken(span), text)
    link = ("pages/run.py", {"run": replay.view.run_id, "view": "steps", **step_query(step)})
    return Item(str(step.number), cells, href=href(link))


def _bad(counts: dict[str, int]) -> int:
    return sum(count for word, count in counts.items() if word not in ("ok", "running"))
