"""The register of what pictures are made of, with what the states have in common.

A state is a function that brings an empty tab there; `shot` registers it. Modules that hold states:
`ask_shots`, `run_shots`, `site_shots`; `screenshots` imports them all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from playwright.sync_api import Page

from tests.support import browser as ui
from traces.home import Home
from traces.reading import list_runs, load_run

QUESTION: Final = "How many tickets are about billing?"
LONG: Final = " ".join(["Which of the customers that wrote more than once are still waiting?"] * 6)
BIG: Final = "20270115T080000-00002000"
Shot = Callable[[Page, str, Home], None]
SHOTS: Final[dict[str, Shot]] = {}


def shot(make: Shot) -> Shot:
    """Register a state: a function that brings an empty tab there, given the app's address and home."""
    SHOTS[make.__name__] = make
    return make


def run_of(home: Home, question: str) -> str:
    """The newest run of a question."""
    return next(run.run_id for run in list_runs(home) if run.question == question)


def faulty(home: Home) -> str:
    """The newest run with a failed sub-call of the demo model."""
    return next(run.run_id for run in list_runs(home) if run.failed_sub_calls and run.demo and not run.forced)


def cut_short(home: Home) -> str:
    """The newest run that a limit stopped."""
    return next(run.run_id for run in list_runs(home) if run.stop_reason == "budget")


def go_to(page: Page, url: str, home: Home, run_id: str, kind: str, number: int, tab: str) -> None:
    """A tab of the n-th span of a kind."""
    spans = [span for span in load_run(home, run_id).spans if span.kind == kind]
    page.goto(f"{url}/run?run={run_id}&span={spans[number].span_id}")
    page.get_by_role("tab", name=tab).click()
    ui.settle(page)
