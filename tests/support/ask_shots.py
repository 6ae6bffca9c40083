"""States of Ask, Runs and Compare."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.support import browser as ui
from tests.support.expecting import expect
from tests.support.shots import BIG, QUESTION, cut_short, run_of, shot
from traces.home import Home
from traces.opinions import judge, tag
from traces.reading import list_runs

# -- Ask


@shot
def ask_first(page: Page, url: str, home: Home) -> None:
    page.goto(url)
    expect(page.get_by_text("Last runs")).to_be_visible()


@shot
def ask_limits(page: Page, url: str, home: Home) -> None:
    ask_first(page, url, home)
    page.get_by_text("Limits, seeds and practice faults").click()
    expect(page.get_by_label("Fault rate")).to_be_visible()
    page.get_by_label("Fault rate").scroll_into_view_if_needed()


@shot
def ask_complaints(page: Page, url: str, home: Home) -> None:
    ask_first(page, url, home)
    ui.choose_source(page, "Path")
    ui.fill(page, "Root model", "gpt 5")
    ui.start(page)
    expect(page.get_by_text("Problem").nth(2)).to_be_visible()


@shot
def ask_uploaded(page: Page, url: str, home: Home) -> None:
    ask_first(page, url, home)
    ui.choose_source(page, "Upload")
    files = [
        {"name": f"note {n}.txt", "mimeType": "text/plain", "buffer": b"A note.\n" * n} for n in range(8)
    ]
    files.append(
        {"name": "picture.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n" + bytes(range(256))}
    )
    page.locator("input[type=file]").set_input_files(files)  # type: ignore[arg-type]
    expect(page.get_by_text("7 documents")).to_be_visible()


@shot
def ask_answer(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/?run={run_of(home, QUESTION)}")
    ui.outcome(page).wait_for()


@shot
def ask_passages(page: Page, url: str, home: Home) -> None:
    ask_answer(page, url, home)
    page.get_by_role("heading", name="What it may rest on").scroll_into_view_if_needed()
    expect(page.get_by_text("Open passage 1.1")).to_be_visible()


@shot
def ask_cut_short(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/?run={cut_short(home)}")
    ui.outcome(page).wait_for()


@shot
def document_passage(page: Page, url: str, home: Home) -> None:
    ask_passages(page, url, home)
    page.get_by_text("Open passage 1.1").click()
    page.get_by_text("The passage is marked").wait_for()


@shot
def ask_no_answer(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/?run={run_of(home, 'What is the meaning of it all?')}")
    ui.outcome(page).wait_for()


@shot
def ask_unknown(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/?run=20260101T000000-00000000")
    expect(page.get_by_text("Problem")).to_be_visible()


# -- Runs


@shot
def runs(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/runs")
    ui.wait_for_table(page, len(list_runs(home)))


@shot
def runs_delete(page: Page, url: str, home: Home) -> None:
    runs(page, url, home)
    for number in (0, 1):
        ui.row_of(page, number).get_by_role("checkbox").check()
    page.get_by_text("2 chosen").wait_for()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Keep", exact=True).wait_for()


@shot
def runs_by_question(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/runs?group=1")
    page.get_by_role("table", name="Questions").wait_for()


@shot
def runs_judged(page: Page, url: str, home: Home) -> None:
    wrong, right, *_ = (run.run_id for run in list_runs(home) if run.question == QUESTION)
    judge(home, wrong, verdict="wrong", expected="41", note="counts the refunds twice")
    judge(home, right, verdict="right")
    tag(home, wrong, ["billing", "to look at"])
    page.goto(f"{url}/runs?sort=verdict&chosen={wrong},{right}")
    page.get_by_text("2 chosen").wait_for()


@shot
def compare(page: Page, url: str, home: Home) -> None:
    right = run_of(home, QUESTION)
    judge(home, right, verdict="right", expected="22", note="counted by hand")
    page.goto(f"{url}/compare?a={right}&b={BIG}")
    page.get_by_role("table", name="What each run took").wait_for()


@shot
def compare_choice(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/compare?a={run_of(home, QUESTION)}")
    page.get_by_role("combobox").click()


@shot
def runs_filtered_empty(page: Page, url: str, home: Home) -> None:
    runs(page, url, home)
    page.get_by_label("Filter").fill("nothing has these words")
    expect(page.get_by_text("No run fits these filters.")).to_be_visible()
