"""From a wrong answer to the sub-call that looks wrong, in a browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from tests.support import browser as ui
from tests.support.command import ROOT, rlmscope
from tests.support.expecting import expect
from traces.home import Home
from traces.opinions import opinions
from traces.reading import list_runs, load_run

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def broken(home: Home) -> str:
    """A run whose answer is off, because faults struck some of its sub-calls."""
    tickets = ROOT / "sample_data" / "tickets"
    faults = ("--fault-rate", "0.05", "--fault-seed", "1")
    rlmscope("ask", "How many tickets are about billing?", tickets, "--home", home.root, *faults)
    return list_runs(home)[0].run_id


def test_from_a_wrong_answer_to_the_broken_sub_call_and_its_verdict(
    page: Page, visit: ui.Visit, home: Home, broken: str
) -> None:
    page.goto(f"{visit.url}/run?run={broken}")
    page.get_by_role("radio", name="Findings").click()
    suspects = page.get_by_role("table", name="Suspects")
    refusal = suspects.get_by_role("row").filter(has_text="The reply declines")
    refusal.get_by_role("link").first.click()
    expect(page.locator(".st-key-span-title")).to_have_text(re.compile(r"llm_query \d+"))
    expect(page).to_have_url(re.compile(rf"run={broken}&span=\w+$"))
    expect(page.get_by_text("Suspect", exact=True)).to_be_visible()
    page.locator(".st-key-span-verdict-verdict").get_by_role("radio", name="wrong").click()
    while not (said := opinions(home).spans(broken)):  # the click is shown before the app has heard of it
        page.wait_for_timeout(50)
    assert [opinion.verdict for opinion in said.values()] == ["wrong"]
    assert all(load_run(home, broken).by_id[span_id].kind == "sub_call" for span_id in said)


def test_the_head_narrows_the_tree_to_what_it_counts(page: Page, visit: ui.Visit, broken: str) -> None:
    page.goto(f"{visit.url}/run?run={broken}&view=overview")
    chip = page.get_by_role("button", name=re.compile(r"^\d+ failed"))
    failed = chip.inner_text().split()[0]
    chip.click()
    expect(page).to_have_url(re.compile(r"status=error"))
    expect(page.get_by_text(re.compile(rf"{failed} of \d+ rows fit: {failed} sub-calls;"))).to_be_visible()
    ui.back(page)
    expect(page.get_by_role("table", name="The calls that cost most")).to_be_visible()
