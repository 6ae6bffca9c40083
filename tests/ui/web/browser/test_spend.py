"""What runs cost, in a browser: charts under the policy of the pages, what-if, the way to a dear call."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.support import browser as ui
from tests.support.expecting import expect
from tests.support.spend_runs import DAY, FIRST, one_run, run_id, spend_runs
from tests.ui.web.browser.test_hostile_text import hostile, nothing_got_in
from traces.home import Home

pytestmark = pytest.mark.needs("chromium")

ELSEWHERE = f'<a href="http://127.0.0.1:9/model">![m](http://127.0.0.1:9/m.png)</a><b>{hostile("model")}</b>'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Runs that cost something, with hostile texts and the hostile name of a model and of a corpus."""
    home = Home.resolve(tmp_path_factory.mktemp("spend") / "home")
    spend_runs(home, text=hostile("question"))
    one_run(home, run_id(6), hostile("corpus"), f"openai/{ELSEWHERE}", "Q", FIRST + 6 * DAY, calls=2)
    return home


def a_chart(page: Page) -> None:
    """A chart has drawn something."""
    expect(page.locator(".js-plotly-plot .points path").first).to_be_attached()


def test_from_the_total_to_the_span_of_a_dear_call_and_what_other_models_would_cost(
    page: Page, visit: ui.Visit
) -> None:
    page.goto(visit.url)
    page.get_by_role("link", name="Spend", exact=True).click()
    expect(page.get_by_text("Total, at least")).to_be_visible()
    page.get_by_text("Dear calls", exact=True).click()
    dear = page.get_by_role("table", name="The dearest sub-calls")
    expect(dear.get_by_role("row")).to_have_count(11)
    dear.get_by_role("link").first.click()
    page.wait_for_url(re.compile(r"/run\?run=20261106.*&span="))
    expect(page.locator(".st-key-span-title")).to_have_text("llm_query 23")
    ui.back(page)
    page.get_by_text("Other models", exact=True).click()
    box = page.get_by_role("combobox", name="Sub-model")
    box.fill("openai/gpt-5-nano")
    box.press("Enter")
    page.get_by_role("button", name="Price again").click()
    expect(page.get_by_text("With these models")).to_be_visible()
    page.wait_for_url(re.compile("sub=openai"))
    ui.settle(page)
    told = page.get_by_test_id("stMetricValue").all_inner_texts()
    assert told
    page.reload()
    expect(page.get_by_text("With these models")).to_be_visible()
    expect(page.get_by_test_id("stMetricValue")).to_have_text(told)
    a_chart(page)


@pytest.mark.full
def test_hostile_names_are_only_text_in_tables_and_charts(page: Page, visit: ui.Visit) -> None:
    for view in ("on&by=model,corpus,day", "calls", "limits", "models&sub=openai/gpt-5"):
        page.goto(f"{visit.url}/spend?view={view}")
        page.get_by_role("table").first.wait_for()
        if view != "limits":
            a_chart(page)
        ui.settle(page)
        nothing_got_in(page)
        assert page.locator(".js-plotly-plot a, .js-plotly-plot image").count() == 0


@pytest.mark.full
def test_a_table_as_a_file(page: Page, visit: ui.Visit, tmp_path: Path) -> None:
    page.goto(f"{visit.url}/spend?by=model")
    with page.expect_download() as file:
        page.get_by_role("button", name="CSV").click()
    file.value.save_as(tmp_path / "spend.csv")
    lines = (tmp_path / "spend.csv").read_text("utf-8").splitlines()
    assert file.value.suggested_filename == "spend-by-model.csv"
    assert lines[0].startswith("model,cost_usd,known_usd") and any(
        one.startswith("openai/gpt-5,") for one in lines
    )
