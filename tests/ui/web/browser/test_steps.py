"""Steps and spans in a browser: walked with keys, opened again by address, judged, led to a document."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.telemetry import as_json
from tests.support import browser as ui
from tests.support.expecting import expect
from tests.support.recorded_runs import recording
from tests.support.step_runs import many_steps, nested_run
from traces.home import Home
from traces.opinions import opinions

pytestmark = pytest.mark.needs("chromium")


def shown(page: Page, words: str) -> None:
    """A step is shown, and the address says so."""
    expect(page.locator(".st-key-step-title")).to_have_text(words)
    ui.settle(page)


@pytest.mark.full
def test_a_run_is_walked_with_keys(page: Page, visit: ui.Visit, home: Home) -> None:
    page.goto(f"{visit.url}/run?run={nested_run(home)}&view=steps")
    shown(page, "Step 1: iteration 0, cell 0")
    for key, words in (
        ("j", "Step 2: iteration 1, cell 1"),
        ("j", "Step 3: iteration 1, cell 2"),
        ("k", "Step 2: iteration 1, cell 1"),
        ("Shift+j", "Step 4: iteration 2, cell 3"),
        ("Shift+k", "Step 2: iteration 1, cell 1"),
        ("e", "Step 3: iteration 1, cell 2"),
    ):
        page.keyboard.press(key)
        shown(page, words)
    expect(page).to_have_url(re.compile("step=3$"))
    page.reload()
    shown(page, "Step 3: iteration 1, cell 2")
    page.get_by_role("slider", name="Step").press("ArrowLeft")
    shown(page, "Step 2: iteration 1, cell 1")
    page.get_by_role("button", name="Step into rlm_query 0").press("Enter")
    shown(page, "Step 1: iteration 0, cell 0")
    page.keyboard.press("u")
    shown(page, "Step 2: iteration 1, cell 1")
    ui.back(page)
    shown(page, "Step 1: iteration 0, cell 0")


@pytest.mark.full
def test_the_keys_of_a_step_are_letters_in_a_field(page: Page, visit: ui.Visit, home: Home) -> None:
    page.goto(f"{visit.url}/run?run={many_steps(home, steps=150)}&view=steps&step=2")
    shown(page, "Step 2: iteration 1, cell 1")
    field = page.get_by_role("spinbutton", name="Go to step")
    field.press("j")
    field.fill("140")
    field.press("Enter")
    shown(page, "Step 140: iteration 139, cell 139")
    ui.back(page)
    shown(page, "Step 2: iteration 1, cell 1")  # the letter had led nowhere
    page.get_by_text("All 150 steps").click()
    expect(page.get_by_role("link", name="55", exact=True)).to_be_visible()
    ui.settle(page)  # a click on what is just being drawn can be lost
    page.get_by_role("link", name="55", exact=True).click()
    shown(page, "Step 55: iteration 54, cell 54")


def test_a_span_is_judged_and_its_passage_opened(page: Page, visit: ui.Visit, home: Home) -> None:
    corpus = Corpus.from_texts({"letter.txt": "Dear Sir,\nthe crane fell over."}, home.corpora)
    with recording(home, "20270115T080000-0000c009") as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.CORPUS_ID: corpus.corpus_id})
        run.text(sc.CORPUS, corpus.record_json())
        call = made.recorder.start("sub_call", "chat s", run, {sc.REQUEST_MODEL: "s"})
        ranges = {"how": "reference", "ranges": [[0, 10, 24]], "places": [None]}
        call.end("ok", {sc.SOURCE_RANGES: as_json(ranges)})
        run.end()
        made.close("ok")
    page.goto(f"{visit.url}/run?run={made.run_id}&span={call.span_id}")
    said = page.locator(".st-key-span-verdict-verdict")
    said.get_by_role("radio", name="wrong").click()
    while not opinions(home).spans(made.run_id):  # the click is shown before the app has heard of it
        page.wait_for_timeout(50)
    page.reload()
    expect(said.get_by_role("radio", name="wrong")).to_be_checked()
    page.get_by_role("tab", name="Sources").click()
    page.get_by_role("link", name="Open 1").click()
    expect(page).to_have_url(re.compile(f"/corpora.*{corpus.corpus_id}"))
    expect(page.locator("mark")).to_have_text("the crane fell")
