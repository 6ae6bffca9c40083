"""The broken example is diagnosed in the app: from its page to the proof, and to a report for a colleague."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.support import browser as ui
from tests.support.expecting import expect
from traces.home import Home
from traces.reading import list_runs
from ui.web.first_steps import BROKEN

pytestmark = pytest.mark.needs("chromium")


def test_the_broken_example_is_diagnosed_in_two_clicks_and_reported_in_three(
    page: Page, visit: ui.Visit, home: Home
) -> None:
    page.goto(f"{visit.url}/run?run={BROKEN}")
    page.get_by_role("link", name="Diagnose").click()
    expect(page.get_by_text("Budget: at most 200 replays, no model call.")).to_be_visible()
    page.get_by_role("button", name="Find minimal cause").click()

    expect(page.get_by_text("proven", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile(r"^Sub-call 1 of cell 1 broke the answer"))).to_be_visible()
    culprit = page.locator(".st-key-culprit-0")
    expect(culprit.get_by_role("link", name="llm_query 1 in cell 1")).to_be_visible()
    expect(culprit.get_by_text("billing", exact=True)).to_be_visible()
    expect(culprit.get_by_text("You promised a refund").last).to_be_visible()
    expect(culprit.get_by_role("link", name="Open in the document")).to_be_visible()
    expect(page.get_by_role("table", name="Trials").get_by_text("fixed").first).to_be_visible()

    with page.expect_download() as asked:
        page.get_by_role("button", name="HTML", exact=True).click()
    report = Path(asked.value.path()).read_text("utf-8")
    assert "How many tickets are about billing?" in report and "You promised a refund" in report
    page.reload()  # the address is what is shown
    expect(culprit.get_by_text("billing", exact=True)).to_be_visible()
    page.get_by_role("link", name="Open the replay that decided it").click()
    expect(page).to_have_url(re.compile(rf"run\?run=(?!{BROKEN})"))
    assert [run.replay_of for run in list_runs(home, replays=True) if run.replay_of] == [BROKEN]


@pytest.mark.full
def test_a_reply_is_tested_from_the_page_of_its_call(page: Page, visit: ui.Visit) -> None:
    page.goto(f"{visit.url}/run?run={BROKEN}&span=8b78c8c211a75153")
    page.get_by_role("link", name="Test this sub-answer").click()
    field = page.get_by_label("It should have said")
    expect(field).to_have_value("I cannot help with this text.")
    ui.fill(page, "It should have said", "billing")
    page.get_by_role("button", name="Test this answer").click()
    expect(page.get_by_text("Answer now")).to_be_visible()
    expect(page.get_by_role("table", name="Trials").get_by_text("22", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Open the replay")).to_be_visible()
