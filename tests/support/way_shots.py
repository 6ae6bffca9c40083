"""States of pages that ask in other ways than the usual, and of what they say of such runs."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Page

from rlm_core import semconv as sc
from tests.support import browser as ui
from tests.support.shots import go_to, shot
from tests.support.way_runs import asked_by, many_ways
from traces.home import Home
from traces.reading import list_runs
from ui.web.order import series_ids

_RUNS: Final = series_ids("20270116T080000-00000001", 7)
_SPECIAL: Final = "20270116T090000-00000001"


def way_runs(home: Home) -> None:
    """Runs of several strategies, repeats, and one with everything that is not usual."""
    if any(run.run_id == _SPECIAL for run in list_runs(home)):
        return
    for run_id, strategy in zip(_RUNS, ("rlm", "rlm-no-subcalls", "retrieve"), strict=False):
        asked_by(home, run_id, strategy, "Twenty-two tickets are about billing.")
    no = "does not fit: about 1,048,576 tokens, the model takes 128,000"
    asked_by(home, _RUNS[3], "direct", None, **{sc.FITS: False, sc.ERROR_MESSAGE: no})
    for run_id, answer in zip(_RUNS[4:], ("four", "Four.", "five"), strict=True):
        asked_by(home, run_id, None, answer)
    many_ways(home, _SPECIAL, "billing", _RUNS[3])


@shot
def strategies(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/strategies")
    page.get_by_role("button", name="Start", exact=True).wait_for()
    ui.settle(page)


@shot
def strategies_beside(page: Page, url: str, home: Home) -> None:
    way_runs(home)
    page.goto(f"{url}/strategies?runs={','.join(_RUNS[:4])}&expected=Twenty-two tickets are about billing.")
    page.get_by_role("table", name="Strategies").wait_for()


@shot
def ask_options(page: Page, url: str, home: Home) -> None:
    page.goto(url)
    page.get_by_text("More options", exact=True).click()
    page.get_by_role("textbox", name="JSON schema of the answer").scroll_into_view_if_needed()


@shot
def ask_repeats(page: Page, url: str, home: Home) -> None:
    way_runs(home)
    page.goto(f"{url}/?run={_RUNS[4]}&series={','.join(_RUNS[4:])}")
    page.get_by_role("table", name="Repeats of the question").wait_for()


@shot
def run_other_ways(page: Page, url: str, home: Home) -> None:
    way_runs(home)
    page.goto(f"{url}/run?run={_SPECIAL}")
    page.get_by_text("Models from depth 1").wait_for()


@shot
def span_tools(page: Page, url: str, home: Home) -> None:
    way_runs(home)
    go_to(page, url, home, _SPECIAL, "sub_call", 0, "Tool calls")


@shot
def run_resume(page: Page, url: str, home: Home) -> None:
    way_runs(home)
    page.goto(f"{url}/run?run={_RUNS[3]}")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Resume the run").wait_for()


@shot
def runs_training(page: Page, url: str, home: Home) -> None:
    way_runs(home)
    page.goto(f"{url}/runs?chosen={','.join(_RUNS[:2])}")
    page.get_by_role("button", name="Training data…").click()
    page.get_by_role("button", name="Make the file").click()
    page.get_by_text("Left out", exact=True).wait_for()
