"""Pictures of two runs side by side: where they part, both sides of a row, other code, what is the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from playwright.sync_api import Page

from tests.support import browser as ui
from tests.support.expecting import expect
from tests.support.shots import shot
from tests.support.trees import CONDITIONS, Condition, plan, record
from traces.home import Home
from traces.reading import list_runs


def tree_pair(
    home: Home, condition: Condition = "layers", culprits: int = 2, *, cell: bool = False
) -> tuple[str, str]:
    """A bad and a good run of about two hundred calls, by their ids; recorded at the first time."""
    day = f"202601{culprits:02}T0{CONDITIONS.index(condition)}{int(cell):02}00-0000c0"
    good, bad = f"{day}aa", f"{day}bb"
    if bad not in {run.run_id for run in list_runs(home)}:
        tree = plan(7, condition, culprits, cell=cell)
        with ThreadPoolExecutor(1) as pool:  # the browser's event loop is in this thread
            pool.submit(record, home, tree, "good", good).result()
            pool.submit(record, home, tree, "bad", bad).result()
    return bad, good


def opened(page: Page, url: str, home: Home, condition: Condition = "layers", query: str = "") -> None:
    """Two of those runs on the Compare page."""
    cell = query == "kind=cell"
    bad, good = tree_pair(home, condition, 1 if cell else 2, cell=cell)
    page.goto(f"{url}/compare?a={bad}&b={good}&{query}")
    expect(page.get_by_role("treeitem").first).to_be_visible()
    ui.settle(page)


@shot
def compare_trees(page: Page, url: str, home: Home) -> None:
    opened(page, url, home)
    page.get_by_text("Where they part").scroll_into_view_if_needed()


@shot
def compare_all(page: Page, url: str, home: Home) -> None:
    opened(page, url, home, query="all=1")
    page.get_by_role("button", name="Next difference").click()
    ui.settle(page)
    page.get_by_text("Open in A").scroll_into_view_if_needed()


@shot
def compare_code(page: Page, url: str, home: Home) -> None:
    opened(page, url, home, "format", "kind=cell")
    page.get_by_text("Open in A").scroll_into_view_if_needed()


@shot
def compare_many(page: Page, url: str, home: Home) -> None:
    opened(page, url, home, "paraphrase", "kind=sub_call")
    page.get_by_text("Open in A").scroll_into_view_if_needed()


@shot
def compare_plans(page: Page, url: str, home: Home) -> None:
    bad, good = tree_pair(home, "format", 2), tree_pair(home, "children", 2)
    page.goto(f"{url}/compare?a={bad[0]}&b={good[1]}")
    expect(page.get_by_role("treeitem").first).to_be_visible()
    ui.settle(page)
    page.get_by_text("Where they part").scroll_into_view_if_needed()
