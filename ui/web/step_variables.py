"""The variables of a step as a table: what it changed, before and after, and what stayed as it was."""

from __future__ import annotations

from typing import Final

import streamlit as st

from traces.step_variables import Value, Variable
from traces.steps import Replay, Step
from ui.figures import counted
from ui.web.notices import Colour, note
from ui.web.rows_view import Column, Item, rows_view

_MOST: Final = 200  # rows drawn
_COLOURS: Final[dict[str, Colour]] = {
    "new": "green", "changed": "blue", "deleted": "orange", "lost": "red", "same": "gray",
}  # fmt: skip
_COLUMNS: Final = (
    Column("Variable", 120),
    Column("Change", 90),
    Column("Type", 90),
    Column("Size", 80, right=True),
    Column("Before"),
    Column("After"),
    Column("Set in step", 90, right=True),
)


def variables(replay: Replay, step: Step) -> None:
    """The table, with what is not known about it."""
    found = replay.variables(step)
    changed = [each for each in found.rows if each.change != "same"]
    same = len(found.rows) - len(changed)
    if not found.known:
        running = step.cell is not None and step.cell.status == "running"
        note(
            "The cell is still at work: what it changes is not known yet."
            if running
            else "This cell reported no variables: what it changed is not on record."
        )
    if found.gaps:
        note(
            f"{counted(found.gaps, 'step')} before it reported no variables; what those changed is not shown."
        )
    if found.full:
        note("The cell reported as many variables as are reported at most; it may have changed more.")
    if found.unusable:
        note(f"{counted(found.unusable, 'entry', 'entries')} of the record cannot be used.")
    wanted = changed
    if same and st.toggle(f"Also those it left as they were ({same:,})", key="step-variables-all"):
        wanted = list(found.rows)
    if not wanted:
        st.caption("No variable was changed." if found.known else "None are known.")
        return
    columns = [
        column for column in _COLUMNS if column.name != "Before" or any(each.before for each in changed)
    ]
    rows_view(
        [_item(each, len(columns) == len(_COLUMNS)) for each in wanted[:_MOST]],
        columns,
        key="step-variables",
        label="Variables after the step",
    )
    if len(wanted) > _MOST:
        st.caption(f"The first {_MOST} of {len(wanted):,} variables.")


def _item(each: Variable, with_before: bool) -> Item:
    value = each.value or each.before
    size = "" if value is None or value.size is None else f"{value.size:,}"
    kind = "" if value is None or value.type is None else value.type
    before = (_shown(each.before) if each.change != "same" else "",) if with_before else ()
    word = (each.change, _COLOURS[each.change])
    cells = (each.name, word, kind, size, *before, _shown(each.value), f"{each.since:,}")
    return Item(each.name, cells)


def _shown(value: Value | None) -> str:
    if value is None:
        return ""
    return value.preview if value.preview is not None else "(no preview)"
