"""The Runs page in the browser: runs of others while they work, opening one, deleting one."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from tests.support import browser as ui
from tests.support.command import ROOT, finish, start
from traces.home import Home
from traces.reading import list_runs, load_run

pytestmark = pytest.mark.needs("chromium")

ASKED = 6
EXAMPLES = 2


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


def test_a_run_is_opened_and_one_is_deleted_for_good(page: Page, visit: ui.Visit, home: Home) -> None:
    page.goto(f"{visit.url}/runs")
    runs = [run.run_id for run in list_runs(home)]
    ui.wait_for_table(page, len(runs))
    ui.press_in_row(page, 0, "Delete")
    page.get_by_role("button", name="Keep it").click()
    expect(page.get_by_role("button", name="Delete for good")).not_to_be_visible()

    page.reload()
    ui.wait_for_table(page, len(runs))
    ui.press_in_row(page, 1, "Open")
    expect(page.locator(".st-key-run-id")).to_have_text(runs[1])
    page.go_back()
    ui.wait_for_table(page, len(runs))
    ui.press_in_row(page, 0, "Delete")
    expect(page.get_by_text(runs[0])).to_be_visible()
    assert [run.run_id for run in list_runs(home)] == runs
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text(f"{len(runs) - 1} run")).to_be_visible()
    assert [run.run_id for run in list_runs(home)] == runs[1:]
    page.goto(f"{visit.url}/run?run={runs[0]}")
    expect(page.get_by_text("Problem", exact=True)).to_be_visible()
