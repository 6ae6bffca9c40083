"""Two runs compared in a browser: keys from difference to difference, and a list of thousands of rows."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page

from tests.support import browser as ui
from tests.support.expecting import expect
from tests.traces.diff_runs import Call, Cell, run_of
from traces.home import Home

pytestmark = pytest.mark.needs("chromium")

MANY = 2_500
WRONG = (7, 1_900)
IN_SIGHT = 60  # rows drawn at most on a screen of this size
LARGEST_CLICK = 30_000  # bytes; the rows of those runs are hundreds of thousands
RUNS = "a=20260102T030405-0000abca&b=20260102T030405-0000abcb"


@pytest.fixture(scope="module", autouse=True)
def _runs(home: Home) -> None:
    """A bad and a good run of thousands of calls, two of which were answered wrongly in the bad one."""
    for name, wrong, answer in (("a", WRONG, "41"), ("b", (), "42")):
        calls = [Call(f"Text {n}", f"no {n}" if n in wrong else f"yes {n}") for n in range(MANY)]
        run_of(home.root.parent, name, [Cell("replies = llm_batch(prompts)", calls)], answer=answer)


def opened(page: Page, visit: ui.Visit, query: str = "") -> Locator:
    """The list of both runs."""
    page.goto(f"{visit.url}/compare?{RUNS}&{query}")
    page.get_by_role("treeitem").first.wait_for()
    ui.settle(page)
    return page.get_by_role("tree")


def place(page: Page) -> Locator:
    """Where the row that is shown stands among the differences."""
    return page.get_by_text(re.compile(r"^Difference \d+ of \d+$"))


def test_keys_lead_from_difference_to_difference_and_the_list_follows(page: Page, visit: ui.Visit) -> None:
    opened(page, visit, "all=1")
    chosen = page.get_by_role("treeitem", selected=True)
    expect(chosen).to_contain_text("no 7")
    expect(place(page)).to_have_text("Difference 2 of 3")
    page.keyboard.press("n")
    expect(place(page)).to_have_text("Difference 3 of 3")
    expect(chosen).to_contain_text("no 1900")
    expect(chosen).to_be_in_viewport()
    expect(page.get_by_role("table", name="Response of A and B")).to_contain_text("no 1900")
    ui.settle(page)
    page.keyboard.press("p")
    expect(place(page)).to_have_text("Difference 2 of 3")
    expect(chosen).to_contain_text("no 7")


def test_a_list_of_thousands_of_rows_draws_what_is_in_sight_and_sends_it_once(
    page: Page, visit: ui.Visit
) -> None:
    received: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: received.append(len(data))))
    tree = opened(page, visit, "all=1")
    assert 5 < page.get_by_role("treeitem").count() < IN_SIGHT
    assert sum(received) > 5 * LARGEST_CLICK
    received.clear()
    tree.focus()
    tree.press("End")
    last = page.get_by_role("treeitem").filter(has_text=f"llm_query {MANY - 1}")
    expect(last).to_be_visible()
    tree.press("Enter")
    expect(last).to_have_attribute("aria-selected", "true")
    expect(page.locator(".st-key-compare-row-title")).to_have_text(f"llm_query {MANY - 1}")
    ui.settle(page)
    assert sum(received) < LARGEST_CLICK


def test_the_differences_are_listed_at_first_and_the_rest_on_demand(page: Page, visit: ui.Visit) -> None:
    tree = opened(page, visit)
    expect(tree).to_contain_text("1,892 rows the same")
    assert page.get_by_role("treeitem").count() < 12
    page.get_by_text("Only differences").click()
    expect(page.get_by_role("treeitem").filter(has_text="llm_query 8")).to_be_visible()
    expect(page).to_have_url(re.compile("all=1"))
    page.get_by_role("button", name="Find the minimal cause").click()
    expect(page).to_have_url(re.compile(rf"/diagnose\?(?=.*run={RUNS[2:26]})(?=.*good={RUNS[-24:]})"))
