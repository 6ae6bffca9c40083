"""Reaching the recursion tree with the tabulator key: its focus is seen, and stays when a span is chosen."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support import browser as ui
from tests.support.recorded_runs import wide_run
from traces.home import Home

pytestmark = pytest.mark.needs("chromium")

MOST_STOPS = 40  # of the tabulator before the tree
_FOCUSED = """() => {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return element?.getAttribute("role");
}"""


def test_the_tree_is_reached_by_tabulator_and_keeps_the_focus(
    page: Page, visit: ui.Visit, home: Home
) -> None:
    page.goto(f"{visit.url}/run?run={wide_run(home, 60)}")
    ui.tree_row(page, "llm_query").wait_for()
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        if page.evaluate(_FOCUSED) == "tree":
            break
    active = page.get_by_role("treeitem").and_(page.locator(".active"))
    expect(active).to_contain_text("run")
    assert outlined(active)
    for name in ("iteration 0", "root call", "cell 0"):
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator(".st-key-span-title")).to_have_text(name)
        expect(active).to_contain_text(name)
        assert re.search("span=[0-9a-f]{16}$", page.url)
        assert page.evaluate(_FOCUSED) == "tree" and outlined(active)


def outlined(row: Locator) -> bool:
    """Whether a row has the outline of what the keyboard is at."""
    style = row.evaluate(
        "e => [getComputedStyle(e).outlineStyle, parseFloat(getComputedStyle(e).outlineWidth)]"
    )
    return bool(style[0] == "solid" and style[1] >= 2)
