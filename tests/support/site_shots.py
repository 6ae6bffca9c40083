"""States of Corpora, Spend, Settings and the guide, of homes without runs and of runs at work."""

from __future__ import annotations

import re
from typing import Final

from playwright.sync_api import Page

from rlm_core.corpus import Corpus
from tests.support import browser as ui
from tests.support.ask_shots import ask_first, runs
from tests.support.checked_sets import checked, make_set
from tests.support.expecting import expect
from tests.support.shots import QUESTION, Shot, shot
from traces.home import Home
from traces.reading import list_runs
from traces.regression import set_sizes
from ui.web.first_steps import BROKEN

# -- Sets


@shot
def sets(page: Page, url: str, home: Home) -> None:
    a_set(home)
    page.goto(f"{url}/sets")
    page.get_by_role("table", name="Sets").wait_for()


@shot
def set_checked(page: Page, url: str, home: Home) -> None:
    a_set(home)
    page.goto(f"{url}/sets?set=tickets")
    page.get_by_role("table", name="Checks of the set, newest first").wait_for()


def a_set(home: Home) -> None:
    """A set of two runs, that was checked three times."""
    runs = [run for run in list_runs(home) if run.question == QUESTION][:2]
    if "tickets" not in set_sizes(home):
        make_set(home, "tickets", [(run.run_id, "22") for run in runs])
        for passed in ((True, True), (True, None), (True, False)):
            checked(home, "tickets", passed)


# -- Corpora


@shot
def corpora(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/corpora")
    ui.wait_for_table(page, len(Corpus.list(home.corpora)))


@shot
def corpora_add(page: Page, url: str, home: Home) -> None:
    corpora(page, url, home)
    page.get_by_text("Add documents").click()
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("Choose files, or give the path")).to_be_visible()


def corpora_reading(page: Page, url: str, home: Home) -> None:
    corpora(page, url, home)
    expect(page.get_by_text("1,234 of 50,000 files")).to_be_visible()


@shot
def corpus(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/corpora?corpus={Corpus.find(home.corpora, 'Mixed bag')}")
    page.get_by_role("tab", name="Documents").wait_for()
    ui.settle(page)


@shot
def corpus_left_out(page: Page, url: str, home: Home) -> None:
    corpus(page, url, home)
    page.get_by_role("tab", name="Left out").click()


@shot
def corpus_runs(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/corpora?corpus={Corpus.find(home.corpora, 'tickets')}")
    page.get_by_role("tab", name="Runs").click()


@shot
def corpus_remove(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/corpora?corpus={Corpus.find(home.corpora, 'tickets')}")
    page.get_by_role("button", name="Remove", exact=True).click()
    page.get_by_role("button", name="Keep it").wait_for()


@shot
def corpus_big(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/corpora?corpus={Corpus.find(home.corpora, 'Fifty thousand notes')}&document=40000")
    page.get_by_role("tab", name="Documents").wait_for()
    ui.settle(page)


@shot
def corpus_unknown(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/corpora?corpus=0123456789abcdef")
    expect(page.get_by_text("Problem")).to_be_visible()


@shot
def ask_known_corpus(page: Page, url: str, home: Home) -> None:
    ask_first(page, url, home)
    ui.choose_source(page, "Known corpus")


@shot
def ask_corpus_problems(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/?corpus={Corpus.find(home.corpora, 'Mixed bag')}")
    folded = page.get_by_text(re.compile(r"^\d+ more$"))
    expect(folded).to_have_count(1)  # while a page is drawn anew the old may stand beside the new
    folded.click()
    ui.settle(page)


# -- Spend


@shot
def spend(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend")
    page.get_by_role("table", name="Spend by").wait_for()
    page.locator(".js-plotly-plot .bars path").last.wait_for(state="attached")


@shot
def spend_days(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend?by=day,corpus&sort=day")
    page.get_by_role("table", name="Spend by").wait_for()
    page.locator(".js-plotly-plot .bars path").last.wait_for(state="attached")


@shot
def spend_calls(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend?view=calls")
    page.get_by_role("table", name="The dearest sub-calls").wait_for()
    page.locator(".js-plotly-plot .scatter path").first.wait_for(state="attached")


@shot
def spend_limits(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend?view=limits")
    page.get_by_role("table", name="Runs, the dearest first").wait_for()


@shot
def spend_models(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend?view=models&sub=openai/gpt-5")
    page.get_by_role("table", name="Recorded cost").wait_for()
    page.locator(".js-plotly-plot .bars path").last.wait_for(state="attached")


@shot
def spend_unknown(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend?from=yesterday")
    expect(page.get_by_text("Problem")).to_be_visible()


@shot
def spend_demo_only(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend?corpus={Corpus.find(home.corpora, 'tickets')}")
    expect(page.get_by_text("All of these runs are of the demo model")).to_be_visible()


def empty_spend(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/spend")
    expect(page.get_by_text("There are no runs yet")).to_be_visible()


# -- Settings and the guide


@shot
def settings_models(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/settings")
    expect(page.get_by_text("What a run uses now")).to_be_visible()


@shot
def settings_keys(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/settings?part=keys")
    page.get_by_role("table").wait_for()


@shot
def settings_defaults(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/settings?part=defaults")
    expect(page.get_by_text("This machine gives")).to_be_visible()


@shot
def settings_prices(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/settings?part=prices&model=openai/of-our-own")
    page.get_by_role("table").wait_for()
    expect(page.get_by_role("button", name="Set the price")).to_be_visible()


@shot
def settings_home(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/settings?part=home")
    page.get_by_role("table").wait_for()


@shot
def guide(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={BROKEN}&guide=4")
    expect(page.get_by_text("(4 of 6)")).to_be_visible()
    page.get_by_role("treeitem").first.wait_for()


# -- a home where nothing was asked yet, and runs at work


def empty_corpora(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/corpora")
    expect(page.get_by_text("There are no corpora yet")).to_be_visible()


def empty(page: Page, url: str, home: Home) -> None:
    page.goto(url)
    expect(page.get_by_text("There are no runs yet")).to_be_visible()


def empty_runs(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/runs")
    expect(page.get_by_text("There are no runs yet")).to_be_visible()


def live_ask(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/?run={list_runs(home)[0].run_id}")
    ui.expect_figure(page, "Sub-calls done", "1")


def live_run(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={list_runs(home)[0].run_id}")
    expect(ui.tree_row(page, "llm_query 1")).to_contain_text("running")


def live_runs(page: Page, url: str, home: Home) -> None:
    runs(page, url, home)


def killed_ask(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/?run={list_runs(home)[0].run_id}")
    ui.outcome(page).wait_for()


def killed_run(page: Page, url: str, home: Home) -> None:
    page.goto(f"{url}/run?run={list_runs(home)[0].run_id}")
    ui.tree_row(page, "llm_query 1").wait_for()


ADDING: Final[dict[str, Shot]] = {"corpora_reading": corpora_reading}
WITHOUT_RUNS: Final[dict[str, Shot]] = {
    "empty": empty,
    "empty_runs": empty_runs,
    "empty_corpora": empty_corpora,
    "empty_spend": empty_spend,
}
AT_WORK: Final[dict[str, Shot]] = {"live_ask": live_ask, "live_run": live_run, "live_runs": live_runs}
KILLED: Final[dict[str, Shot]] = {
    "killed_ask": killed_ask,
    "killed_run": killed_run,
    "killed_runs": live_runs,
}
