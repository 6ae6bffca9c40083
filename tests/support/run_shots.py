"""States of the Run page."""

from __future__ import annotations

import re

from playwright.sync_api import Page

from tests.support import browser as ui
from tests.support.expecting import expect
from tests.support.patchy_run import PATCHY
from tests.support.shots import BIG, QUESTION, faulty, go_to, run_of, shot
from tests.support.step_runs import LONG as LONG_TEXT
from tests.support.step_runs import NESTED
from traces.home import Home
from traces.reading import list_runs
from ui.web.first_steps import BROKEN


@shot
def run_top(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={run_of(home, QUESTION)}")
    ui.tree_row(page, "llm_query").wait_for()


@shot
def run_export(page: Page, url: str, home: Home) -> None:
    run_top(page, url, home)
    page.get_by_role("button", name="Export").click()
    page.get_by_role("button", name="html", exact=True).click()
    page.get_by_role("button", name="Download").wait_for()
    ui.settle(page)


@shot
def run_sub_call(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, run_of(home, QUESTION), "sub_call", 7, "Prompt")


@shot
def run_cell(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, run_of(home, QUESTION), "cell", 2, "Code")


@shot
def run_variables(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, run_of(home, QUESTION), "cell", 2, "Variables")


@shot
def run_messages(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, run_of(home, QUESTION), "root_call", 2, "Messages")


@shot
def run_failed_call(page: Page, url: str, home: Home) -> None:
    run_id = faulty(home)
    page.goto(f"{url}/run?run={run_id}")
    page.get_by_role("button", name="Next failed").click()
    page.get_by_role("tab", name="Attempts").click()
    ui.settle(page)


@shot
def run_table(page: Page, url: str, home: Home) -> None:
    run_top(page, url, home)
    page.get_by_text("Table", exact=True).click()
    page.locator("[role=gridcell]").first.wait_for(state="attached")


@shot
def run_big(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={BIG}")
    page.get_by_role("button", name="Expand all").click()
    ui.tree_row(page, "llm_query 3").click()
    expect(page.locator(".st-key-span-title")).to_have_text("llm_query 3")


@shot
def run_flame(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={faulty(home)}&pane=flame")
    page.get_by_role("application").press("ArrowDown")


@shot
def run_flame_big(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={BIG}&pane=flame")
    page.get_by_role("application").press("ArrowDown")


@shot
def run_search(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={run_of(home, QUESTION)}&q=refund")
    page.get_by_role("button", name="Next hit").click()
    ui.settle(page)


@shot
def run_filtered(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={BIG}&status=error&status=empty&sort=cost")
    page.get_by_role("button", name="Filters").click()
    expect(page.get_by_label("Cost over ($)", exact=True)).to_be_visible()


@shot
def run_nothing_fits(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={BIG}&status=cancelled&depth=7&q=nowhere")
    expect(page.get_by_text("No span of this run fits")).to_be_visible()


@shot
def run_steps(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={run_of(home, QUESTION)}&view=steps&step=3")
    expect(page.locator(".st-key-step-title")).to_have_text("Step 3: iteration 2, cell 2")


@shot
def run_steps_calls(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={run_of(home, QUESTION)}&view=steps&step=2")
    expect(page.get_by_role("button", name="200 x llm_query")).to_be_visible()
    page.get_by_text("All 4 steps").click()
    page.get_by_role("table", name="Steps of the run").scroll_into_view_if_needed()


@shot
def run_steps_child(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={NESTED}&view=steps&step=2")
    page.get_by_role("button", name="Step into").first.scroll_into_view_if_needed()


@shot
def run_cost(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, BIG, "sub_call", 3, "Cost")


@shot
def run_sources(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, run_of(home, QUESTION), "sub_call", 7, "Sources")


@shot
def run_facts(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, run_of(home, QUESTION), "cell", 2, "Facts")


@shot
def run_find_in_text(page: Page, url: str, home: Home) -> None:
    go_to(page, url, home, LONG_TEXT, "sub_call", 0, "Prompt")
    ui.fill(page, "Find in this text", "refund of order 999")
    expect(page.get_by_text("Place 1 of")).to_be_visible()


@shot
def run_overview(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={faulty(home)}&view=overview")
    page.get_by_role("table", name="The calls that cost most").wait_for()
    ui.settle(page)


@shot
def run_overview_big(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={BIG}&view=overview")
    page.get_by_role("table", name="The calls that cost most").wait_for()
    ui.settle(page)


@shot
def run_findings(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={faulty(home)}&view=findings")
    page.get_by_role("table", name="Suspects").wait_for()
    ui.settle(page)


@shot
def run_no_findings(page: Page, url: str, home: Home) -> None:
    run_id = next(run.run_id for run in list_runs(home) if not run.failed_sub_calls and run.sub_calls)
    page.goto(f"{url}/run?run={run_id}&view=findings")
    page.get_by_text("Nothing was found").wait_for()
    ui.settle(page)


@shot
def run_coverage(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={PATCHY}&view=coverage")
    page.get_by_role("table", name="Documents and what became of their parts").wait_for()


@shot
def run_coverage_part(page: Page, url: str, home: Home) -> None:
    run_coverage(page, url, home)
    ui.fill(page, "Filter", "long_text")
    page.get_by_text(re.compile("^1 of .* documents")).wait_for()
    page.get_by_role("button", name="long_text.txt").click()
    page.get_by_role("table", name="Parts of the document").get_by_role("link").nth(5).click()
    page.get_by_role("link", name="Open the document at this part").wait_for()
    page.get_by_role("table", name="Spans that read this part").wait_for()


@shot
def run_coverage_unanswered(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={BROKEN}&view=coverage&docs=unanswered&document=1")
    page.get_by_role("table", name="Parts of the document").wait_for()


@shot
def run_none(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run")
    expect(page.get_by_text("Problem")).to_be_visible()


@shot
def run_unknown_span(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={run_of(home, QUESTION)}&span=0123456789abcdef")
    page.get_by_role("treeitem").first.wait_for()
