"""The Runs page in the browser: runs of others while they work, opening one, deleting one."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page

from tests.support import browser as ui
from tests.support.command import ROOT, finish, start
from tests.support.expecting import expect
from traces.home import Home
from traces.reading import list_runs, load_run

pytestmark = pytest.mark.needs("chromium")

ASKED = 6
EXAMPLES = 2


@pytest.mark.full
def test_six_processes_at_work_on_the_same_home(page: Page, visit: ui.Visit, home: Home) -> None:
    known = json.loads((ROOT / "sample_data" / "questions.json").read_text("utf-8"))
    asked = [entry for entry in known if entry["kind"] == "count_label"][:ASKED]
    assert len(asked) == ASKED
    page.goto(f"{visit.url}/runs")
    expect(page.get_by_text(f"{EXAMPLES} runs")).to_be_visible()
    tickets = ROOT / "sample_data" / "tickets"
    processes = [start("ask", entry["question"], tickets, "--home", home.root, "--json") for entry in asked]
    while any(process.poll() is None for process in processes):
        page.get_by_role("button", name="Refresh").click()
        ui.settle(page)
        assert not page.get_by_text("Problem", exact=True).count()
    answers = {entry["question"]: str(entry["answer"]) for entry in asked}
    for process in processes:
        said = finish(process)
        assert said["answer"] == answers[said["question"]]

    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_text(f"{ASKED + EXAMPLES} runs")).to_be_visible()
    ui.wait_for_table(page, ASKED + EXAMPLES)
    rows = ui.table_rows(page)[:ASKED]
    assert {row["Question"]: row["Answer"] for row in rows} == answers
    assert {(row["Status"], row["Sub-calls"], row["Failed"]) for row in rows} == {("ok", "200", "0")}
    for run in list_runs(home)[:ASKED]:
        view = load_run(home, run.run_id)
        assert sum(span.kind == "sub_call" for span in view.spans) == 200 == run.sub_calls
        assert len({span.span_id for span in view.spans}) == len(view.spans)


@pytest.mark.full  # a key that is pressed while a page is drawn anew is lost
def test_two_runs_are_compared_and_judged_with_the_keyboard(page: Page, visit: ui.Visit, home: Home) -> None:
    page.goto(f"{visit.url}/runs?kind=example")
    ui.wait_for_table(page, EXAMPLES)
    right, wrong = (run.run_id for run in sorted(list_runs(home), key=lambda run: run.run_id)[:EXAMPLES])
    first = ui.row_of(page, 0).get_by_role("checkbox")
    first.focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("1 chosen")).to_be_visible()
    page.keyboard.press("ArrowDown")  # the rows were drawn anew, and the place was kept
    page.keyboard.press("Space")
    expect(page.get_by_text("2 chosen")).to_be_visible()
    ui.settle(page)
    page.get_by_role("button", name="Compare").press("Enter")
    expect(page.get_by_text("Different answers")).to_be_visible()
    expect(page).to_have_url(re.compile(rf"(?=.*a={wrong})(?=.*b={right})"))
    side = page.locator(".st-key-compare-A")
    side.get_by_role("radio", name="wrong").press("Enter")
    expect(side.get_by_role("radio", name="wrong")).to_be_checked()
    ui.settle(page)
    side.get_by_text("Expected answer, note, tags").click()
    ui.fill(page, "Expected answer", "22")
    ui.settle(page)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("What a person expected of A, only B gives: 22")).to_be_visible()

    page.goto(f"{visit.url}/runs?verdict=wrong")
    ui.wait_for_table(page, 1)
    expect(ui.row_of(page, 0).get_by_role("link")).to_have_attribute("href", f"{visit.url}/run?run={wrong}")
    page.get_by_role("button", name="sub-calls").click()
    expect(page.get_by_role("columnheader", name="Sub-calls")).to_have_attribute("aria-sort", "descending")
    expect(page).to_have_url(re.compile("(?=.*sort=-sub-calls)(?=.*verdict=wrong)"))
    page.reload()
    expect(page.get_by_role("columnheader", name="Sub-calls")).to_have_attribute("aria-sort", "descending")


def test_a_run_is_opened_and_one_is_deleted_for_good(page: Page, visit: ui.Visit, home: Home) -> None:
    page.goto(f"{visit.url}/runs")
    runs = [run.run_id for run in list_runs(home)]
    ui.wait_for_table(page, len(runs))
    ask_to_delete(page, 0)
    page.get_by_role("button", name="Keep", exact=True).click()
    expect(page.get_by_role("button", name="Delete for good")).not_to_be_visible()

    page.reload()
    ui.wait_for_table(page, len(runs))
    expect(page.get_by_text("1 chosen")).to_be_visible()
    ui.row_of(page, 1).get_by_role("link").click()
    expect(page.locator(".st-key-run-id")).to_have_text(runs[1])
    ui.back(page)
    ui.wait_for_table(page, len(runs))
    page.get_by_role("button", name="Delete…").click()
    expect(page.get_by_text(runs[0])).to_be_visible()
    assert [run.run_id for run in list_runs(home)] == runs
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text(f"{len(runs) - 1} run")).to_be_visible()
    assert [run.run_id for run in list_runs(home)] == runs[1:]
    page.goto(f"{visit.url}/run?run={runs[0]}")
    expect(page.get_by_text("Problem", exact=True)).to_be_visible()


def ask_to_delete(page: Page, row: int) -> None:
    ui.row_of(page, row).get_by_role("checkbox").check()
    expect(page.get_by_text("1 chosen")).to_be_visible()
    page.get_by_role("button", name="Delete…").click()


def test_the_address_one_would_type_leads_to_the_page_of_questions(page: Page, visit: ui.Visit) -> None:
    page.goto(f"{visit.url}/ask")
    expect(page.get_by_role("textbox", name="Question")).to_be_visible()
    expect(page).to_have_url(f"{visit.url}/")
    expect(page.get_by_text("Page not found")).to_have_count(0)
