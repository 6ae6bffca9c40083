"""The variables of a run's code after each of its cells, put together from what every cell reported.

A cell reports what is new, changed or gone. When the process of the code dies, a new one runs the completed
cells again: names that a cell had set which did not end well are gone then, all others are as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rlm_core import semconv as sc
from traces.detail import decoded
from traces.rows import SpanRow
from traces.view import RunView

MOST_REPORTED: Final = 200  # rows a cell reports at most
_CHANGES: Final = ("new", "changed", "deleted")


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value; fields that were not recorded are None."""

    type: str | None
    size: int | None
    preview: str | None


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable after a step. `change` is new, changed, same, deleted or lost (with its process);
    `before` is its value before the step, `since` the step that set its present value.
    """

    name: str
    change: str
    value: Value | None
    before: Value | None
    since: int


@dataclass(frozen=True, slots=True)
class Delta:
    """What one cell reported. `known`: whether there is a report; `lost`: names lost with the process;
    `open`: the cell was still at work.
    """

    rows: tuple[tuple[str, str, Value], ...] = ()
    known: bool = False
    lost: tuple[str, ...] = ()
    well: bool = True
    unusable: int = 0
    open: bool = False


@dataclass(frozen=True, slots=True)
class Variables:
    """All variables after a step, those that it changed first. `known` is false when its cell reported none;
    `gaps` counts the steps before it whose cells did not; `unusable` its entries that mean nothing; `full`:
    it reported as many as are reported at most, so there may be more.
    """

    rows: tuple[Variable, ...]
    known: bool
    gaps: int
    unusable: int
    full: bool


def read_deltas(view: RunView, cells: Sequence[SpanRow], into: dict[str, Delta]) -> None:
    """The reports of cells by span id. Those of cells that had ended are read once."""
    missing = [cell for cell in cells if cell.span_id not in into or into[cell.span_id].open]
    named = {cell.span_id: cell.attributes.get(sc.VARIABLES + ".sha256") for cell in missing}
    texts = view.payloads({sha256 for sha256 in named.values() if isinstance(sha256, str)})
    for cell in missing:
        sha256 = named[cell.span_id]
        text = texts.get(sha256) if isinstance(sha256, str) else None
        into[cell.span_id] = _delta(cell, decoded(text))


def variables_after(deltas: Sequence[Delta | None]) -> Variables:
    """The state after the last of the steps; None stands for a step without a cell."""
    state: dict[str, tuple[Value, int, bool]] = {}  # value, step that set it, whether that ended well
    touched: dict[str, Variable] = {}
    gaps = 0
    for number, delta in enumerate(deltas, 1):
        touched = {}
        if delta is None:
            continue
        gaps += not delta.known and number < len(deltas)
        for name, change, value in delta.rows:
            _apply(state, touched, (name, change, value), number, delta.well)
        for name in delta.lost:
            if name in state and not state[name][2]:
                touched[name] = Variable(name, "lost", None, state.pop(name)[0], number)
    last = deltas[-1] if deltas and deltas[-1] is not None else Delta(known=True)
    same = (
        Variable(name, "same", value, value, since)
        for name, (value, since, _) in state.items()
        if name not in touched
    )
    full = len(last.rows) >= MOST_REPORTED
    return Variables((*touched.values(), *same), last.known, gaps, last.unusable, full)


def _apply(
    state: dict[str, tuple[Value, int, bool]],
    touched: dict[str, Variable],
    row: tuple[str, str, Value],
    number: int,
    well: bool,
) -> None:
    name, change, value = row
    old = state.pop(name, None)
    before = None if old is None else old[0]
    if change == "deleted":
        touched[name] = Variable(name, change, None, before, number)
    else:
        state[name] = (value, number, well)
        touched[name] = Variable(name, change, value, before, number)


def _delta(cell: SpanRow, table: Any) -> Delta:
    listed = table if isinstance(table, list) else []
    rows = tuple(row for item in listed if (row := _row(item)) is not None)
    lost = decoded(cell.attributes.get(sc.LOST_NAMES))
    names = tuple(name for name in lost if isinstance(name, str)) if isinstance(lost, list) else ()
    unusable = len(listed) - len(rows) + (table is not None and not isinstance(table, list))
    well, running = cell.status == "ok", cell.status == "running"
    return Delta(rows, isinstance(table, list), names, well, unusable, running)


def _row(item: Any) -> tuple[str, str, Value] | None:
    if (
        not isinstance(item, dict)
        or item.get("change") not in _CHANGES
        or not isinstance(item.get("name"), str)
    ):
        return None
    size, kind, preview = item.get("size"), item.get("type"), item.get("preview")
    value = Value(
        kind if isinstance(kind, str) else None,
        size if type(size) is int else None,
        preview if isinstance(preview, str) else None,
    )
    return item["name"], item["change"], value
