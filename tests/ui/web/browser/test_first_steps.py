"""What README describes, in the browser: ask a sample, open its run, find a sub-call, come back; uploads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support import browser as ui
from tests.support.app import Server, running_app
from tests.support.expecting import expect
from traces.home import Home
from traces.reading import list_runs

pytestmark = pytest.mark.needs("chromium")

QUESTION = "How many tickets are about billing?"
RIGHT, WRONG = "22", "21"  # what the recorded examples answer; one is broken by seeded faults


@pytest.mark.full
def test_from_the_first_start_to_a_sub_call_and_back(browser: Browser, tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    with running_app(home) as first, ui.visiting(browser, f"http://127.0.0.1:{first.port}") as visit:
        page = visit.tab()
        for answer in (RIGHT, WRONG):
            expect(page.get_by_text(answer, exact=True)).to_be_visible()
        ui.choose_sample(page, "tickets", QUESTION)
        ui.start(page)
        ui.outcome(page).wait_for()
        expect(page.get_by_text(RIGHT, exact=True)).to_be_visible()
        expect(page.get_by_text("no language model is involved").first).to_be_visible()
        ui.outcome(page).click()

        row = ui.tree_row(page, "llm_query 137")
        expect(row).not_to_be_visible()
        ui.toggle(ui.tree_row(page, "200 x llm_query"))
        page.get_by_role("tree").press("End")
        while not row.is_visible():
            page.get_by_role("tree").press("PageUp")
        row.click()
        place = the_sub_call_is_shown(page)
        page.reload()
        the_sub_call_is_shown(page, place)
        first.process.terminate()
        first.process.wait()
        with running_app(home, "--port", str(first.port)):
            page.reload()
            the_sub_call_is_shown(page, place)
    assert len(list_runs(home)) == 3


def the_sub_call_is_shown(page: Page, place: str | None = None) -> str:
    """Sub-call 137 with prompt and response, chosen in the tree, at that place; returns its place."""
    expect(page.locator(".st-key-span-title")).to_have_text("llm_query 137")
    chosen = page.get_by_role("treeitem", selected=True)
    expect(chosen).to_contain_text("llm_query 137")
    expect(chosen).to_be_in_viewport()
    shown = page.url.split("/")[-1]
    run, span = re.fullmatch(r"run\?run=([0-9]{8}T[0-9]{6}-[0-9a-f]{8})&span=([0-9a-f]{16})", shown).groups()  # type: ignore[union-attr]
    expect(page.locator(".st-key-run-id")).to_have_text(run)
    expect(page.locator(".st-key-span-id")).to_have_text(span)
    assert place in (None, shown)
    ui.settle(page)
    panel = page.get_by_role("tabpanel")
    page.get_by_role("tab", name="Prompt").click()
    expect(panel).to_contain_text("id: T-0138")
    page.get_by_role("tab", name="Response").click()
    expect(panel).to_have_text(re.compile(r"^(UNSURE: )?[a-z]+$"))
    return shown


GOOD = {
    f"note {n}.txt": f"Note {n}.\nIt mentions a refund.\n" if n % 2 else f"Note {n}.\n" for n in range(1, 9)
}


@pytest.mark.full
def test_uploads_with_two_bad_ones_among_ten(page: Page, visit: ui.Visit, app: Server, home: Home) -> None:
    files = [{"name": n, "mimeType": "text/plain", "buffer": t.encode()} for n, t in GOOD.items()]
    files.insert(
        2,
        {
            "name": "picture.png",
            "mimeType": "image/png",
            "buffer": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8,
        },
    )
    files.insert(7, {"name": "empty.txt", "mimeType": "text/plain", "buffer": b""})
    page.goto(visit.url)
    ui.choose_source(page, "Upload")
    page.locator("input[type=file]").set_input_files(files)  # type: ignore[arg-type]
    expect(page.get_by_text("8 documents")).to_be_visible()
    expect(page.get_by_text("2 files left out", exact=True)).to_be_visible()
    for name in ("picture.png", "empty.txt"):
        expect(page.get_by_text(re.compile(rf"{re.escape(name)}: \w+"))).to_be_visible()
    ui.fill(page, "Question", "How many documents mention a refund?")
    ui.start(page)
    ui.outcome(page).wait_for()
    run = list_runs(home)[0]
    assert (run.answer, run.status) == ("4", "ok")
    expect(page.get_by_text("4", exact=True)).to_be_visible()
