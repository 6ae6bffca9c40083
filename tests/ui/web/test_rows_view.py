"""The table of rows: what it is given to draw, and what it tells the page."""

from __future__ import annotations

from typing import Any

from streamlit.testing.v1 import AppTest

from tests.support.pages import (
    HOSTILE,
    act_in_row,
    badly_shown,
    choose_rows,
    open_row,
    rows_of,
    shown,
    sort_rows,
)
from ui.web.rows_view import Column, Item, rows_view

COLUMNS = [Column("Name", sortable=True), Column("State", 90), Column("Size", 80, right=True, sortable=True)]
ITEMS = [
    Item("a", ["First", ("ok", "green"), "1"], href="run?run=a"),
    Item("b", ["Second", ("error", "red"), None], href="run?run=b", note="beware"),
]


def script() -> None:
    import streamlit as st

    st.session_state["draw"]()


def drawn(items: list[Item] = ITEMS, **options: Any) -> AppTest:
    page = AppTest.from_function(script, default_timeout=60)
    page.session_state["draw"] = lambda: rows_view(items, COLUMNS, key="t", label="Things", **options)
    return page.run()


def test_the_rows_are_told_by_the_names_of_their_columns() -> None:
    assert rows_of(drawn(), "t") == [
        {"Name": "First", "State": "ok", "Size": "1"},
        {"Name": "Second", "State": "error", "Size": ""},
    ]


def test_opening_and_acting_name_the_row() -> None:
    told: list[Any] = []
    page = drawn(
        on_open=told.append, actions=("Delete",), on_action=lambda word, key: told.append((word, key))
    )
    open_row(page, "t", 1)
    act_in_row(page, "t", 0, "Delete")
    assert told == ["b", ("Delete", "a")]


def test_a_browser_cannot_name_a_row_or_a_word_that_is_not_there() -> None:
    told: list[Any] = []
    page = drawn(
        [Item("a", ["x", None, None])], on_action=lambda *given: told.append(given), actions=("Delete",)
    )
    act_in_row(page, "t", 0, "Format the disk")
    sort_rows(page, "t", "State")
    assert told == []


def test_what_is_chosen_on_other_pages_stays_chosen() -> None:
    told: list[Any] = []
    page = drawn(chosen=("z", "a"), on_choose=told.append)
    choose_rows(page, "t", 1)
    choose_rows(page, "t", 1, 0)
    choose_rows(page, "t")
    assert told == [("z", "b"), ("z", "a", "b"), ("z",)]


def test_a_head_asks_for_its_order_and_then_for_the_other_way_round() -> None:
    told: list[Any] = []
    page = drawn(sort=("Name", False), on_sort=lambda *given: told.append(given))
    sort_rows(page, "t", "Name")
    sort_rows(page, "t", "Size")
    assert told == [("Name", True), ("Size", True)]


def test_hostile_text_reaches_the_table_as_visible_text_only() -> None:
    page = drawn([Item("a", [HOSTILE, (HOSTILE, "red"), "x" * 1_000], note=HOSTILE)])
    (row,) = rows_of(page, "t")
    assert "HOSTILE" in row["Name"] and "HOSTILE" in row["State"] and len(row["Size"]) == 400
    assert not any(mark in shown(page) for mark in "\x1b\u202e") and badly_shown(page, "HOSTILE") == []
