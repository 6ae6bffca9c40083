"""An accessibility checker on every page and state of the app, light and dark; one way by keyboard alone.

The checker is axe-core: what WCAG 2.1 A and AA ask for that a program can decide, and the order of headings.
States are those of `tests.support.screenshots`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.support import browser as ui
from tests.support import screenshots
from tests.support.expecting import expect
from tests.support.screenshots import SHOTS, Shot
from traces.home import Home
from traces.opinions import opinions

pytestmark = pytest.mark.needs("chromium")

# Streamlit fades what is about to be drawn anew: a moment that is no state of a page
STILL: Final = """
*, *::before, *::after { transition: none !important; animation: none !important }
[data-stale="true"] { opacity: 1 !important }
"""
RULES: Final = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21aa"],
    "rules": {"heading-order": {"enabled": True}},
    "resultTypes": ["violations"],  # to tell of what is right takes most of the time
}
COLOURS: Final = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}  # what a theme can break
# those states of the pages that hold the most; `test_every_state` has all
USUAL: Final = (
    "ask_passages",
    "runs",
    "compare",
    "diagnose_found",
    "compare_trees",
    "run_sub_call",
    "run_steps",
    "set_checked",
    "spend",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with runs to look at."""
    made = Home.resolve(tmp_path_factory.mktemp("accessible") / "home")
    screenshots.prepare_most(made)
    return made


def complaints(page: Page, state: str) -> Iterator[str]:
    """What the checker has against a page, in light and in dark."""
    page.add_style_tag(content=STILL)
    for theme, rules in (("light", RULES), ("dark", COLOURS)):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        expect(page.get_by_test_id("stApp")).to_have_css("color-scheme", theme)
        ui.settle(page)  # what is about to be drawn anew is faded
        for found in Axe().run(page, options=rules).response["violations"]:
            for node in found["nodes"]:
                yield f"{state}, {theme}, {found['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"


@pytest.mark.parametrize("state", USUAL)
def test_a_checker_has_nothing_against(page: Page, visit: ui.Visit, home: Home, state: str) -> None:
    SHOTS[state](page, visit.url, home)
    ui.settle(page)
    assert not list(complaints(page, state))


def test_the_checker_sees_pale_words_also_inside_our_own_components(
    page: Page, visit: ui.Visit, home: Home
) -> None:
    SHOTS["runs"](page, visit.url, home)
    page.add_style_tag(content="h4 { color: #ddd !important; background: #fff !important }")
    link = page.get_by_role("link", name=screenshots.QUESTION).first
    link.evaluate("link => { link.style.color = '#ddd' }")
    found = [one for one in complaints(page, "runs") if one.startswith("runs, light, color-contrast: ")]
    assert [word in "".join(found) for word in (">Runs</", f">{screenshots.QUESTION}</")] == [True, True]


@pytest.mark.full
@pytest.mark.timeout(1_800)
def test_every_state(browser: Browser) -> None:
    found: list[str] = []

    def visits(opened: Browser, url: str, home: Home, shots: dict[str, Shot]) -> None:
        with ui.visiting(opened, url) as visit:
            for name, make in shots.items():
                page = visit.context.new_page()
                make(page, visit.url, home)
                ui.settle(page)
                found.extend(complaints(page, name))
                visit.leave()

    screenshots.every_state(browser, set(), visits)
    assert not found, "\n".join(found)


# -- by keyboard alone


FOCUSED: Final = """() => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  const named = at.getAttribute("aria-label") ?? at.labels?.[0]?.innerText ?? at.innerText;
  return `${at.getAttribute("role") ?? at.localName}: ${named.trim().split("\\n")[0]}`;
}"""
STOPS: Final = 80  # of the tabulator on one page, at most


def walk(page: Page, wanted: str) -> None:
    """Press Tab until the focus is at an element of that role and name, and can be seen there."""
    passed = []
    for _ in range(STOPS):
        page.keyboard.press("Tab")
        passed.append(page.evaluate(FOCUSED))
        if re.match(wanted, passed[-1]):
            return
    raise AssertionError(f"no {wanted} among {passed}")


def press_until(page: Page, key: str, there: Callable[[], bool]) -> None:
    """Press a key until something is so; not for ever."""
    for _ in range(STOPS):
        if there():
            return
        page.keyboard.press(key)
    raise AssertionError(f"{STOPS} times {key} do not lead there; the focus is at {page.evaluate(FOCUSED)}")


@pytest.mark.full
def test_by_keyboard_from_the_runs_to_the_verdict_on_a_sub_call(
    page: Page, visit: ui.Visit, home: Home
) -> None:
    page.goto(f"{visit.url}/runs?kind=demo&sort=-failed")
    page.get_by_role("table", name="Runs").wait_for()
    walk(page, f"a: {re.escape(screenshots.QUESTION)}")
    page.keyboard.press("Enter")
    page.get_by_role("treeitem").first.wait_for()
    run_id = parse_qs(urlsplit(page.url).query)["run"][0]

    walk(page, "tree: ")
    page.keyboard.press("End")
    at = page.locator(".row.active")
    press_until(page, "ArrowUp", lambda: "x llm_query" in at.inner_text())
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    title = page.locator(".st-key-span-title")
    expect(title).to_have_text(re.compile(r"llm_query \d+"))
    ui.settle(page)  # the tabs of the span before are gone, and the focus with them
    walk(page, "tab: ")
    press_until(page, "ArrowRight", lambda: page.evaluate(FOCUSED).endswith("Prompt"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("tabpanel").get_by_text("Which one label fits this text best?")).to_be_visible()

    page.reload()
    expect(title).to_have_text(re.compile(r"llm_query \d+"))
    for _ in range(2):  # that on the run stands first
        walk(page, "radio: right")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(FOCUSED) == "radio: wrong"
    page.keyboard.press("Space")
    said = page.locator(".st-key-span-verdict-verdict").get_by_role("radio", name="wrong")
    expect(said).to_be_checked()
    while not (told := opinions(home).spans(run_id)):  # the click is shown before the app has heard of it
        page.wait_for_timeout(100)
    (judged,) = told.values()
    assert judged.verdict == "wrong"
