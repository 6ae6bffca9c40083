"""Rows as a real HTML table: links, buttons and check boxes that a keyboard and a screen reader reach.

`st.dataframe` draws a picture, whose buttons only a mouse finds. Here texts become text nodes, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import streamlit as st

from ui.visible import line
from ui.web.notices import Colour

CELL_CHARS: Final = 400  # of a text in a cell; two lines of the widest column hold no more
_HERE: Final = Path(__file__).parent
Cell = str | tuple[str, Colour] | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `width` is its least width in pixels; with None it takes most of what is left. `right` is for
    figures."""

    name: str
    width: int | None = None
    right: bool = False
    sortable: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """A row. `cells` are texts, or (word, colour) drawn as a badge; `href` is an address inside the app such
    as `run?run=ID`, which makes a link of the first column; `note` is said when the pointer rests on the row.
    """

    key: str
    cells: Sequence[Cell]
    href: str | None = None
    note: str = ""


def _source(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


_view = st.components.v2.component("rlmscope.rows", css=_source("rows_view.css"), js=_source("rows_view.js"))


def rows_view(
    items: Sequence[Item],
    columns: Sequence[Column],
    *,
    key: str,
    label: str,
    on_open: Callable[[str], None] | None = None,
    actions: Sequence[str] = (),
    on_action: Callable[[str, str], None] | None = None,
    chosen: Collection[str] | None = None,
    on_choose: Callable[[tuple[str, ...]], None] | None = None,
    sort: tuple[str, bool] | None = None,
    on_sort: Callable[[str, bool], None] | None = None,
) -> None:
    """Draw the rows. Names of columns, `actions` and `label` are ours; all else may be any text.

    What a person does is told to the callbacks, before the page runs again: a plain click on a row's link
    calls `on_open(key)` (without it the browser follows the link; Ctrl or the middle button opens a tab);
    each of `actions` is a button at the end of each row, `on_action(word, key)`; with `on_choose` each row
    has a check box, and it is given all that is then chosen, keys of `chosen` that are not among the rows
    included; `on_sort(column, descending)` asks for another order. `sort` is the one that the rows have.
    """
    of_rows = {item.key for item in items}
    state = f"{key}-counted"  # how many choices of the browser have arrived: it may be ahead by some

    def did() -> None:
        told = getattr(st.session_state[key], "did", None)
        if not isinstance(told, dict):
            return
        what, row, word = (told.get(name) for name in ("what", "key", "word"))
        if what == "open" and on_open is not None and row in of_rows:
            on_open(str(row))
        elif what == "act" and on_action is not None and row in of_rows and word in actions:
            on_action(str(word), str(row))
        elif what == "sort" and on_sort is not None and (order := _order(columns, sort, word)):
            on_sort(*order)
        elif what == "choose" and on_choose is not None:
            st.session_state[state] = told.get("count", 0)
            elsewhere = tuple(one for one in chosen or () if one not in of_rows)
            here = told.get("keys", ())
            on_choose(elsewhere + tuple(item.key for item in items if item.key in here))

    data: dict[str, Any] = {
        "label": label,
        "columns": [_column(column, sort) for column in columns],
        "rows": [_row(item) for item in items],
        "actions": list(actions),
        "opens": on_open is not None,
        "chosen": None if on_choose is None else [one for one in chosen or () if one in of_rows],
        "count": st.session_state.get(state, 0),
    }
    _view(key=key, data=data, on_did_change=did)


def _order(columns: Sequence[Column], sort: tuple[str, bool] | None, name: object) -> tuple[str, bool] | None:
    """The order a click on a head asks for: the other way round, or at first large figures, early words."""
    column = next((column for column in columns if column.sortable and column.name == name), None)
    if column is None:
        return None
    return column.name, (not sort[1] if sort is not None and sort[0] == column.name else column.right)


def _column(column: Column, sort: tuple[str, bool] | None) -> dict[str, Any]:
    order = None
    if sort is not None and sort[0] == column.name:
        order = "descending" if sort[1] else "ascending"
    return {
        "name": column.name,
        "width": column.width,
        "right": column.right,
        "sortable": column.sortable,
        "order": order,
    }


def _row(item: Item) -> dict[str, Any]:
    return {
        "key": item.key,
        "href": item.href,
        "note": line(item.note),
        "cells": [_cell(cell) for cell in item.cells],
    }


def _cell(cell: Cell) -> str | list[str]:
    """A text, or the word and colour of a badge."""
    if cell is None:
        return ""
    if isinstance(cell, tuple):
        return [line(cell[0]), cell[1]]
    shown = line(cell[: CELL_CHARS * 2])
    return shown if len(shown) <= CELL_CHARS else shown[: CELL_CHARS - 1] + "…"
