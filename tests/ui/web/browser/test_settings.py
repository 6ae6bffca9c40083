"""Settings in the browser: from nothing to a model that answers; and the app itself is started anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support import browser as ui
from tests.support.app import running_app
from tests.support.expecting import expect
from tests.support.gated import ANSWER, open_gate, surroundings
from tests.support.loopback import Loopback, Script
from traces.home import Home
from ui.web.settings import load_settings
from ui.web.settings_keys import environment_with_keys

pytestmark = pytest.mark.needs("chromium")
KEY = "sk-typed-into-the-browser-0123456789"


@pytest.fixture(scope="module")
def model() -> Iterator[Loopback]:
    """A model server."""
    with Loopback(Script(sub=lambda _prompt: "ready ![x](http://127.0.0.1:9/x)")) as server:
        yield server


def part(page: Page, name: str) -> None:
    page.get_by_role("radiogroup", name="Part of the settings").get_by_text(name, exact=True).click()
    ui.settle(page)


def keep(page: Page, variable: str, value: str) -> None:
    """Choose a variable and type its value."""
    box = page.get_by_role("combobox", name="Variable")
    box.click()
    box.fill(variable)
    page.get_by_role("option", name=variable, exact=True).click()
    ui.fill(page, "Key or address", value)
    page.get_by_role("button", name="Keep it").click()
    expect(page.get_by_text(f"{variable} is kept; the next run uses it.")).to_be_visible()


def test_a_key_is_kept_with_the_keyboard_alone(page: Page, visit: ui.Visit, home: Home) -> None:
    page.goto(f"{visit.url}/settings?part=keys")
    page.get_by_label("Key or address", exact=True).focus()
    page.keyboard.type(KEY)
    while page.evaluate("document.activeElement.innerText") != "Keep it":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("OPENAI_API_KEY is kept; the next run uses it.")).to_be_visible()
    assert environment_with_keys(home, {})["OPENAI_API_KEY"] == KEY


@pytest.mark.full  # each step in test_settings_page, the call in test_settings
def test_a_key_and_a_model_are_entered_tried_and_not_shown_again(
    page: Page, visit: ui.Visit, home: Home, model: Loopback
) -> None:
    page.goto(f"{visit.url}/settings")
    part(page, "Keys")
    expect(page).to_have_url(f"{visit.url}/settings?part=keys")
    keep(page, "OPENAI_API_KEY", KEY)
    keep(page, "OPENAI_BASE_URL", model.base_url)
    assert environment_with_keys(home, {})["OPENAI_API_KEY"] == KEY
    page.reload()
    row = page.get_by_role("row").filter(has_text="OPENAI_API_KEY")
    expect(row).to_contain_text("kept here")
    assert KEY not in page.content() and page.get_by_label("Key or address", exact=True).input_value() == ""

    part(page, "Models")
    page.get_by_label("Root model", exact=True).fill("nonsense")
    page.get_by_label("Sub-model", exact=True).fill("openai/sub-x")
    page.get_by_role("button", name="Save models").click()
    expect(page.get_by_text("The root model 'nonsense' names no provider that LiteLLM knows")).to_be_visible()
    page.get_by_label("Root model", exact=True).fill("")
    page.get_by_role("button", name="Save models").click()
    expect(page.get_by_text("Root model: openai/sub-x")).to_be_visible()
    assert load_settings(home).sub == "openai/sub-x"
    page.get_by_role("button", name="Try the sub-model").click()
    expect(page.get_by_text("ready ![x](http://127.0.0.1:9/x) (")).to_be_visible()
    expect(page.get_by_role("button", name="Try the sub-model")).to_be_enabled()
    assert [request["headers"]["authorization"] for request in model.requests] == [f"Bearer {KEY}"]


@pytest.mark.full
def test_a_newcomer_is_led_through_the_broken_example(browser: Browser, tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    with running_app(home) as app, ui.visiting(browser, f"http://127.0.0.1:{app.port}") as visit:
        page = visit.tab()
        page.get_by_role("button", name="Show me").click()
        for step in range(1, 7):
            expect(page.get_by_text(f"({step} of 6)")).to_be_visible()
            expect(page).to_have_url(re.compile(rf"guide={step}&span="))
            if step == 4:
                expect(page.locator(".st-key-span-title")).to_contain_text("llm_query")
            if step < 6:
                page.get_by_role("button", name="Next", exact=True).click()
        page.get_by_role("link", name="Ask a question of your own").click()
        expect(page.get_by_role("button", name="Show me")).to_be_visible()


@pytest.mark.full
def test_a_run_goes_on_while_the_app_is_started_anew_and_two_tabs_show_its_end(
    browser: Browser, tmp_path: Path
) -> None:
    home, gate = Home.resolve(tmp_path / "home"), tmp_path / "gate"
    models = {"RLMSCOPE_ROOT_MODEL": "openai/root", "RLMSCOPE_SUB_MODEL": "openai/sub"}
    env = {**surroundings(gate), **models}
    with running_app(home, env=env) as app:
        port = str(app.port)
        url = f"http://127.0.0.1:{port}"
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(ui.PATIENCE)
        first, second = context.new_page(), context.new_page()
        first.goto(url)
        ui.fill(first, "Question", "What goes on?")
        ui.start(first)
        expect(first.get_by_role("button", name="Cancel the run")).to_be_visible()
        ui.expect_figure(first, "Sub-calls done", "1")
        second.goto(f"{url}/run?{first.url.split('?')[1]}")
        expect(ui.tree_row(second, "llm_query 1")).to_contain_text("running")
    open_gate(gate)  # nobody serves the pages now
    with running_app(home, "--port", port, env=env):
        first.reload()  # a page that waits does this by itself, after up to a minute
        second.reload()
        expect(first.get_by_text(ANSWER, exact=True)).to_be_visible()
        expect(ui.tree_row(second, "llm_query 1")).to_contain_text(re.compile("ok"))
        for each in (first, second):
            expect(each).to_have_url(re.compile("run="))
        context.close()
