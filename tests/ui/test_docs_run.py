"""What ui/docs/run.md says of the address is what the page reads; its fan-out is what a row says."""

from __future__ import annotations

import re

from tests.support.command import ROOT
from traces.suspects import WEIGHTS
from traces.tree import GROUP_FROM, OUTCOMES, Group, Totals
from ui.web import run_filters, run_tree
from ui.web.tree_rows import ORDERS

PAGE = (ROOT / "ui" / "docs" / "run.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| (`.*?) \| (.*) \|$", PAGE, re.M))


def words(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_the_panes_and_the_orders_are_those_of_the_page() -> None:
    panes = [word for name in ROWS for word in words(name) if word in run_tree.PANES]
    assert panes == list(run_tree.PANES)
    assert tuple(words(ROWS["`sort`"])) == ORDERS


def test_the_words_of_the_status_are_all_that_the_page_takes() -> None:
    assert words(ROWS["`status`"]) == list(run_filters.STATUSES)
    assert set(words(ROWS["`status`"])) == {*OUTCOMES, "suspect", *WEIGHTS}


def test_every_filter_of_the_page_is_named() -> None:
    named = {word for name in ROWS for word in words(name)}
    assert {*run_filters.TITLES, "over", "sort", "q", "regex"} <= named


def test_the_example_of_a_fan_out_is_what_a_row_says() -> None:
    group = Group("llm_query", [], {"ok": 196, "empty": 3, "error": 1}, Totals(), 0)
    assert f"200{group.headline[1:]}" in PAGE
    assert GROUP_FROM == 8 and "Eight or more" in PAGE
