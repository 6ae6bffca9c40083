"""The Corpora page in a browser: a broken file among uploads, a question about them, hostile names, keys."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from rlm_core.corpus import Corpus
from tests.support import browser as ui
from tests.support.expecting import expect
from tests.support.pages import HOSTILE
from traces.home import Home
from traces.reading import list_runs

pytestmark = pytest.mark.needs("chromium")

GOOD = {f"note {n}.txt": "It mentions a refund.\n" if n % 2 else "Nothing.\n" for n in range(1, 5)}
BROKEN = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n"


@pytest.mark.full
def test_upload_with_a_broken_pdf_then_ask(page: Page, visit: ui.Visit, home: Home) -> None:
    page.goto(f"{visit.url}/corpora")
    files = [{"name": n, "mimeType": "text/plain", "buffer": t.encode()} for n, t in GOOD.items()]
    files.insert(2, {"name": "scan.pdf", "mimeType": "application/pdf", "buffer": BROKEN})
    page.locator("input[type=file]").set_input_files(files)  # type: ignore[arg-type]
    expect(page.get_by_text("note 4.txt")).to_be_visible()
    ui.fill(page, "Name", "My notes")
    page.get_by_role("button", name="Add", exact=True).click()

    expect(page.get_by_text("My notes: 4 documents, 62 characters, 1 file left out.")).to_be_visible()
    (info,) = Corpus.list(home.corpora)
    page.get_by_role("button", name="Open it").click()
    expect(page.locator(".st-key-corpus-name")).to_have_text("My notes")
    expect(page).to_have_url(f"{visit.url}/corpora?corpus={info.corpus_id}")
    expect(page.get_by_role("cell", name="note 4.txt")).to_be_visible()
    page.get_by_role("tab", name="Left out").click()
    expect(page.get_by_role("cell", name="scan.pdf")).to_be_visible()
    page.get_by_role("button", name="Ask about this corpus").click()
    expect(page.get_by_role("combobox", name="Known corpora, newest first")).to_have_value(
        f"My notes · 4 documents, 62 characters · {info.corpus_id[:8]}"
    )
    expect(page.get_by_text("1 file left out", exact=True)).to_be_visible()
    ui.fill(page, "Question", "How many documents mention a refund?")
    ui.start(page)
    ui.outcome(page).wait_for()
    run = list_runs(home)[0]
    assert (run.answer, run.corpus_id) == ("2", info.corpus_id)


def test_names_that_markdown_would_obey_load_nothing(page: Page, visit: ui.Visit, home: Home) -> None:
    corpus = Corpus.from_texts({HOSTILE: HOSTILE, "empty " + HOSTILE: ""}, home.corpora, name=HOSTILE)
    page.goto(f"{visit.url}/corpora?corpus={corpus.corpus_id}")
    expect(page.locator(".st-key-corpus-name")).to_contain_text("![HOSTILE](http://127.0.0.1:9/x)")
    page.get_by_role("button", name="Ask about this corpus").click()
    box = page.get_by_role("combobox", name="Known corpora, newest first")
    box.click()
    expect(page.get_by_role("option").filter(has_text="![HOSTILE](http://127.0.0.1:9/x)")).to_be_visible()
    assert not page.get_by_role("option").locator("img, a, script").count()


def test_a_document_is_chosen_and_read_with_the_keyboard(page: Page, visit: ui.Visit, home: Home) -> None:
    many = {f"notes/{number:04}.txt": f"Note {number}.\n" for number in range(400)}
    corpus = Corpus.from_texts(many, home.corpora, name="Many")
    page.goto(f"{visit.url}/corpora?corpus={corpus.corpus_id}")
    expect(page.locator(".st-key-document-name")).to_have_text("notes/0000.txt")
    page.get_by_label("Filter").fill("0321")
    expect(page.get_by_text("1 of 400 documents")).to_be_visible()
    field = page.get_by_label("Document, from 0 to 399")
    field.fill("321")
    field.press("Enter")
    expect(page.locator(".st-key-document-name")).to_have_text("notes/0321.txt")
    expect(page.get_by_text("Note 321.")).to_be_visible()
    expect(page).to_have_url(re.compile("document=321"))
    page.reload()
    expect(page.locator(".st-key-document-name")).to_have_text("notes/0321.txt")
