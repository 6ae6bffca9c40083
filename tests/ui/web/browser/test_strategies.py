"""The Strategies page and repeats in the browser: clicks inside a part that draws itself anew lead on."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.support import browser as ui
from tests.support.expecting import expect
from tests.support.way_runs import asked_by
from traces.home import Home
from ui.web.order import series_ids

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.full]

QUESTION = "Under which reference is the copper aqueduct filed?"


def test_a_question_is_asked_in_several_ways_and_its_rows_lead_to_the_runs(
    page: Page, visit: ui.Visit, home: Home
) -> None:
    page.goto(f"{visit.url}/strategies")
    page.get_by_role("textbox", name="Question", exact=True).wait_for()
    ui.fill(page, "Question", QUESTION)
    page.get_by_role("button", name="Start", exact=True).click()
    table = page.get_by_role("table", name="Strategies")
    expect(table.get_by_text("ok", exact=True)).to_have_count(4, timeout=60_000)
    page.reload()
    table.get_by_role("link", name="direct").click()
    page.wait_for_url("**/run?run=*")
    ui.back(page)
    expect(table.get_by_role("link", name="direct")).to_be_visible()
    page.get_by_role("button", name="Close the table").click()
    expect(table).to_have_count(0)


def test_a_row_of_the_repeats_shows_its_run(page: Page, visit: ui.Visit, home: Home) -> None:
    runs = series_ids("20270116T080000-00000001", 2)
    for run_id, answer in zip(runs, ("four", "five"), strict=True):
        asked_by(home, run_id, None, answer)
    page.goto(f"{visit.url}/?run={runs[0]}&series={','.join(runs)}")
    page.get_by_role("link", name="2", exact=True).click()
    expect(page.get_by_role("link", name="2 (below)")).to_be_visible()
