"""From files on a person's machine to the passage that carries the answer, with a reload in the middle."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from tests.support import browser as ui
from tests.support.command import ROOT
from tests.support.expecting import expect
from traces.home import Home
from traces.reading import list_runs

pytestmark = pytest.mark.needs("chromium")

QUESTION = "What is the annual fee of contract K-013?"
FEE = "EUR 32,000"
NAMES = ("k-012.md", "k-013.md", "k-014.md")


def test_upload_with_a_broken_pdf_ask_reload_and_open_the_passage(
    page: Page, visit: ui.Visit, home: Home
) -> None:
    contracts = ROOT / "sample_data" / "contracts"
    files = [
        {"name": name, "mimeType": "text/markdown", "buffer": (contracts / name).read_bytes()}
        for name in NAMES
    ]
    files.insert(1, {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7\n%%EOF"})
    page.goto(visit.url)
    ui.choose_source(page, "Upload")
    page.locator("input[type=file]").set_input_files(files)  # type: ignore[arg-type]
    preview_names_the_broken_one(page)
    question = page.get_by_label("Question", exact=True)
    question.fill(QUESTION)
    question.blur()  # nothing tells the app of it yet
    expect(page).to_have_url(re.compile("ask-question=What"))
    page.reload()
    expect(question).to_have_value(QUESTION)
    preview_names_the_broken_one(page)

    page.set_viewport_size({"width": 1280, "height": 600})
    ui.start(page)  # which stands far below
    expect(page.get_by_role("heading", name="This run")).to_be_in_viewport()
    ui.outcome(page).wait_for()
    expect(page.get_by_text(FEE, exact=True).first).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="What it may rest on")).to_be_visible()
    run = list_runs(home)[0]
    assert (run.answer, run.status) == (FEE, "ok")
    with page.expect_download() as taken:
        page.get_by_role("button", name="Download with sources").click()
    saved = taken.value.path().read_text("utf-8")
    assert taken.value.suggested_filename == f"answer-{run.run_id}.md" and QUESTION in saved and FEE in saved

    page.get_by_role("link", name="Open passage 1.1").click()
    expect(page.get_by_text("The passage is marked")).to_be_visible()
    expect(page.locator("mark")).to_contain_text(FEE)
    expect(page.locator("mark")).to_be_in_viewport()
    expect(page.locator(".st-key-document-name")).to_have_text("k-013.md")
    page.reload()
    expect(page.locator("mark")).to_contain_text(FEE)
    ui.back(page)
    expect(page.get_by_role("heading", name="What it may rest on")).to_be_visible()


def preview_names_the_broken_one(page: Page) -> None:
    expect(page.get_by_text("3 documents")).to_be_visible()
    expect(page.get_by_text("1 file left out", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile(r"^broken\.pdf: \w"))).to_be_visible()
    for name in NAMES:
        expect(page.get_by_role("link", name=name)).to_be_visible()


def test_back_leaves_a_run_and_forward_shows_it_again(page: Page, visit: ui.Visit) -> None:
    page.goto(visit.url)
    ui.choose_sample(page, "contracts", "How many documents contain audit?")
    ui.start(page)
    ui.outcome(page).wait_for()
    expect(page).not_to_have_url(re.compile("ask-question"))  # beside a run its question is in the record
    ui.back(page)  # to the address that had both
    ui.settle(page)
    ui.back(page)
    expect(page.get_by_text("Last runs")).to_be_visible()
    page.go_forward()
    ui.outcome(page).wait_for()
