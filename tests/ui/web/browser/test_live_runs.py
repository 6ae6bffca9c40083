"""Runs at work, in the browser: what is shown meanwhile, starting once, going on unwatched, stopping."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page

from tests.support import browser as ui
from tests.support.expecting import expect
from tests.support.gated import ANSWER, open_gate, processes
from tests.support.gated import surroundings as gated
from traces.home import Home
from traces.reading import list_runs

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the model of these tests waits for its gate."""
    return tmp_path_factory.mktemp("gated")


@pytest.fixture(scope="module")
def surroundings(folder: Path) -> dict[str, str]:
    """A model whose sub-calls wait: two of the three of each run."""
    models = {"RLMSCOPE_ROOT_MODEL": "openai/root", "RLMSCOPE_SUB_MODEL": "openai/sub"}
    return {**gated(folder), **models, "OPENAI_API_KEY": "sk-none"}


@pytest.fixture
def gate(folder: Path) -> Iterator[Path]:
    """The gate, closed; open when the test ends, so that no run is left waiting."""
    (folder / "gate").unlink(missing_ok=True)
    yield folder
    open_gate(folder)


def ask(page: Page, question: str, times: int = 1) -> None:
    """Fill the form and press Start so many times at once."""
    ui.fill(page, "Question", question)
    page.get_by_role("button", name="Start", exact=True).click(click_count=times)
    expect(cancel(page)).to_be_visible()


def cancel(page: Page) -> Locator:
    return page.get_by_role("button", name="Cancel the run")


def is_at_work(page: Page, question: str) -> None:
    """The page shows a run with one sub-call done and two that wait."""
    expect(page.get_by_text("Running a cell: cell 0.")).to_be_visible()
    ui.expect_figure(page, "Running", "2")
    ui.expect_figure(page, "Sub-calls done", "1")
    expect(page.get_by_text("llm_batch(").first).to_be_visible()
    expect(page.get_by_test_id("stText").filter(has_text=question)).to_be_visible()


def test_a_run_is_watched_through_a_reload_to_its_answer(page: Page, visit: ui.Visit, gate: Path) -> None:
    page.goto(visit.url)
    ask(page, "What do you watch?")
    is_at_work(page, "What do you watch?")
    page.reload()
    is_at_work(page, "What do you watch?")
    expect(page.get_by_label("Question", exact=True)).to_have_value("What do you watch?")
    expect(page).to_have_url(re.compile(r"\?run="))
    tree = visit.tab(page.url.split("/")[-1].replace("?", "run?"))
    expect(ui.tree_row(tree, "llm_query 1")).to_contain_text("running")
    open_gate(gate)
    expect(page.get_by_text(ANSWER, exact=True)).to_be_visible()
    expect(ui.tree_row(tree, "llm_query 1")).to_contain_text("ok")
    expect(cancel(page)).not_to_be_visible()
    assert len(processes(gate)) == 1


def test_a_double_click_and_a_second_tab_start_one_run_each(visit: ui.Visit, gate: Path, home: Home) -> None:
    known, asked = len(list_runs(home)), len(processes(gate))
    first, second = visit.tab(), visit.tab()
    ask(first, "The same question?", times=2)
    ask(second, "The same question?", times=2)
    for page in (first, second):
        expect(page).to_have_url(re.compile("run="))
    assert first.url != second.url
    open_gate(gate)
    for page in (first, second):
        ui.outcome(page).wait_for()
        page.reload()
        ui.outcome(page).wait_for()
    assert len(list_runs(home)) == known + 2
    assert len(processes(gate)) == asked + 2


def test_a_run_is_cancelled_from_its_panel(page: Page, visit: ui.Visit, gate: Path, home: Home) -> None:
    page.goto(visit.url)
    ask(page, "Who stops this?")
    is_at_work(page, "Who stops this?")
    cancel(page).click()
    expect(page.get_by_text("The run was cancelled.")).to_be_visible()
    run = list_runs(home)[0]
    assert (run.question, run.status, run.stop_reason) == ("Who stops this?", "cancelled", "cancelled")
