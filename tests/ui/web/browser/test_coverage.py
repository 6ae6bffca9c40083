"""Coverage of a run in a browser: from a strip to the text of a part and to the span that read it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from tests.support import browser as ui
from tests.support.expecting import expect
from tests.support.patchy_run import PATCHY, patchy_run
from traces.coverage import coverage
from traces.home import Home
from traces.reading import load_run

pytestmark = pytest.mark.needs("chromium")

STRIPS = "Documents and what became of their parts"


@pytest.fixture(scope="module")
def number(home: Home) -> int:
    """The number of the long document of the run."""
    home.create()
    patchy_run(home)
    documents = coverage(load_run(home, PATCHY)).documents
    return next(document.number for document in documents if document.name == "long_text.txt")


def test_from_a_strip_to_the_text_and_the_call_that_read_it(page: Page, visit: ui.Visit, number: int) -> None:
    page.goto(f"{visit.url}/run?run={PATCHY}&view=coverage&name=long_text")
    expect(page.get_by_text(re.compile(r"^1 of \d+ documents"))).to_be_visible()
    page.get_by_title("given to code: bytes 0 to 20,000").click()
    expect(page.get_by_text("1 span read this part")).to_be_visible()
    page.get_by_role("table", name="Parts of the document").get_by_role("link").nth(1).click()
    expect(page.get_by_text("2 spans read this part")).to_be_visible()
    expect(page).to_have_url(re.compile(f"document={number}&from=20000&to=21500"))
    page.reload()
    readers = page.get_by_role("table", name="Spans that read this part")
    expect(readers.get_by_role("row")).to_have_count(3)
    expect(page.get_by_label("Text of the document with the passage marked").locator("mark")).to_be_visible()
    readers.get_by_role("link", name=re.compile("^llm_query")).click()
    expect(page.locator(".st-key-span-title")).to_have_text(re.compile("^llm_query"))
    ui.back(page)
    page.get_by_role("link", name="Open the document at this part").click()
    expect(page.get_by_text("The passage is marked: bytes 20,000 to 21,500")).to_be_visible()


@pytest.mark.full
def test_a_document_and_its_parts_are_reached_with_the_keyboard(
    page: Page, visit: ui.Visit, number: int
) -> None:
    page.goto(f"{visit.url}/run?run={PATCHY}&view=coverage&name=long_text")
    row = page.get_by_role("table", name=STRIPS).get_by_role("button", name="long_text.txt")
    row.focus()
    page.keyboard.press("Enter")
    parts = page.get_by_role("table", name="Parts of the document")
    parts.get_by_role("link", name="0 to 20,000").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("table", name="Spans that read this part")).to_be_visible()
    expect(page).to_have_url(re.compile(f"document={number}&from=20000&to=21500"))
