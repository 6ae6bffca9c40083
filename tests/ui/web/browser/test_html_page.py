"""A run as an HTML page, opened from disk with the network off: tree, search, keys, hostile texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page

from rlm_core import semconv as sc
from tests.support.browser import Visit
from tests.support.expecting import expect
from tests.support.recorded_runs import WIDE, recording, wide_run
from traces.exporters.html import export
from traces.home import Home

pytestmark = pytest.mark.needs("chromium")

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21aa"],
    "rules": {"heading-order": {"enabled": True}},
    "resultTypes": ["violations"],
}
COLOURS = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}  # what a theme can break
HOSTILE = (
    "</script><script>window.pwned = 1</script><!-- "
    '<img src="http://127.0.0.1:9/x" onerror="window.pwned = 1"> \u202egnirts'
)
Opened = Callable[..., Page]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run of 2,000 spans."""
    folder = tmp_path_factory.mktemp("pages")
    home = Home.resolve(folder / "home")
    return export(home, (wide_run(home, 2_000),), folder / "run.html").path


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Open a file from disk; it may ask for nothing, and nothing may break in it."""
    contexts, asked, broken, files = [], set[str](), list[str](), set[str]()

    def visit(file: Path, **options: Any) -> Page:
        settings = {"viewport": {"width": 1280, "height": 900}, "offline": True, **options}
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.add(request.url))
        page.on("pageerror", lambda error: broken.append(str(error)))
        page.on("console", lambda said: broken.append(said.text) if said.type == "error" else None)
        page.goto(file.as_uri())
        files.add(file.as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()
    assert (asked, broken) == (files, [])


def title(page: Page) -> Locator:
    """What the chosen span is called."""
    return page.get_by_role("region", name="The chosen span").get_by_role("heading", level=2)


def row(page: Page, text: str) -> Locator:
    """The first row in sight that holds a text."""
    return page.get_by_role("treeitem").filter(has_text=text).first


def test_a_click_shows_prompt_reply_and_figures(opened: Opened, wide: Path) -> None:
    page = opened(wide)
    expect(title(page)).to_have_text("llm_query 17")  # what failed first
    expect(page.get_by_text("server: the server answered with status 500").last).to_be_visible()
    row(page, "196 x llm_query: 196 ok").locator(".twist").click()
    row(page, "refund of order 3”").click()
    expect(title(page)).to_have_text("llm_query 3")
    shown = page.get_by_role("region", name="The chosen span")
    for text in ("Does document 3 mention a refund?", "yes: “refund of order 3”", "test/sub", "$0.000042"):
        expect(shown.get_by_text(text).first).to_be_visible()
    shown.get_by_text("On record").click()
    expect(shown.get_by_text("source_ranges")).to_be_visible()
    assert page.get_by_role("treeitem").count() < 80  # only rows in sight are in the document
    shown.get_by_role("button", name="cell 0 Decompose").click()
    expect(title(page)).to_have_text("cell 0 Decompose")


def test_search_finds_words_of_texts_and_marks_them(opened: Opened, wide: Path) -> None:
    page = opened(wide)
    field = page.get_by_role("searchbox")
    field.fill("REFUND of order 77")
    expect(page.get_by_role("status")).to_have_text("5 of 2,005 spans")
    expect(title(page)).to_have_text("llm_query 77")
    assert page.evaluate("CSS.highlights.get('found').size") == 1
    field.press("Escape")
    expect(page.get_by_role("status")).to_have_text("2,005 spans")
    page.get_by_role("button", name="Failed or empty (20)").click()
    expect(page.get_by_role("status")).to_have_text("20 of 2,005 spans")
    expect(row(page, "empty reply")).to_be_visible()
    expect(page.get_by_role("treeitem").filter(has_text="yes:")).to_have_count(0)
    expect(page.get_by_text("No span matches.")).to_be_hidden()
    field.fill("no text says this")
    expect(page.get_by_text("No span matches.")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("0 of 2,005 spans")
    field.press("Escape")
    expect(page.get_by_text("No span matches.")).to_be_hidden()


def test_an_attempt_is_found_in_the_row_of_its_call(opened: Opened, wide: Path) -> None:
    page = opened(wide)
    attempt = page.evaluate(
        "JSON.parse(document.querySelector('script.rows').textContent).attempt.filter(Boolean)[5]"
    )
    page.goto("about:blank")
    page.goto(f"{wide.as_uri()}#{attempt}")
    name = title(page).text_content() or ""
    assert name.startswith("llm_query ")
    page.get_by_role("searchbox").fill(attempt)
    expect(page.get_by_role("status")).to_have_text("1 of 2,005 spans")
    expect(title(page)).to_have_text(name)


def test_all_of_it_works_by_keys_alone(opened: Opened, wide: Path) -> None:
    page = opened(wide)
    tree = page.get_by_role("tree")
    tree.focus()
    chosen = page.locator("[role=treeitem][aria-selected=true]")
    for key, name in (("Home", "run"), ("ArrowDown", "iteration 0 Decompose"), ("ArrowDown", "root call")):
        page.keyboard.press(key)
        expect(title(page)).to_have_text(name)
        expect(tree).to_have_attribute("aria-activedescendant", chosen.get_attribute("id") or "none")
    page.keyboard.press("ArrowLeft")
    expect(title(page)).to_have_text("iteration 0 Decompose")
    page.keyboard.press("ArrowLeft")
    expect(chosen).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowRight")
    expect(chosen).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("n")
    expect(title(page)).to_have_text("llm_query 17")
    page.keyboard.press("n")
    expect(title(page)).to_have_text("llm_query 42")
    page.keyboard.press("p")
    expect(title(page)).to_have_text("llm_query 17")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()


def test_the_address_names_the_span(opened: Opened, wide: Path) -> None:
    page = opened(wide)
    row(page, "empty reply").click()
    name, address = title(page).text_content(), page.url
    assert "#" in address
    page.goto("about:blank")
    page.goto(address)
    expect(title(page)).to_have_text(name or "")


def test_hostile_texts_and_a_line_of_a_megabyte_are_text(opened: Opened, tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.PREVIEW: HOSTILE, sc.ROOT_MODEL: HOSTILE})
        run.text(sc.QUESTION, HOSTILE)
        call = made.recorder.start("sub_call", HOSTILE, run, {sc.REQUEST_MODEL: HOSTILE, sc.CALL_INDEX: 0})
        call.text(sc.PROMPT, HOSTILE + "a" * 1_000_000)
        call.fail(HOSTILE, HOSTILE)
        run.text(sc.ANSWER, HOSTILE)
        run.end("ok", {sc.ANSWER_NOTE: HOSTILE})
        made.close("ok")
    page = opened(export(home, (WIDE,), tmp_path / "run.html").path)
    expect(title(page)).to_have_text("llm_query 0")
    page.get_by_role("button", name="Show all").click()
    prompt = page.get_by_role("region", name="The chosen span").locator("pre").first.text_content() or ""
    assert prompt.startswith(HOSTILE.replace("\u202e", "\\u202e") + "aaa") and len(prompt) > 400_000
    assert page.evaluate("window.pwned") is None and page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_without_scripts_there_is_a_summary(opened: Opened, wide: Path) -> None:
    page = opened(wide, java_script_enabled=False)
    expect(page.get_by_role("heading", name="Which documents mention a refund?")).to_be_visible()
    expect(page.get_by_text("Seventeen documents.")).to_be_visible()
    expect(page.get_by_role("table").locator("tbody tr")).to_have_count(5)
    expect(page.get_by_role("tree")).to_have_count(0)


def test_on_paper_stand_the_summary_and_the_chosen_span(opened: Opened, wide: Path) -> None:
    page = opened(wide)
    page.emulate_media(media="print")
    expect(page.get_by_role("table").locator("tbody tr")).to_have_count(5)
    expect(title(page)).to_be_visible()
    expect(page.get_by_role("tree")).to_be_hidden()


def test_a_checker_has_nothing_against_it(opened: Opened, tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    file = export(home, (wide_run(home, 100),), tmp_path / "run.html").path
    page = opened(file, bypass_csp=True)  # the checker is a script, which the policy would not let in
    page.get_by_text("On record").click()
    page.get_by_role("searchbox").fill("refund")
    expect(page.get_by_role("status")).to_contain_text(" of ")
    for theme, rules in (("light", RULES), ("dark", COLOURS)):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert Axe().run(page, options=rules).response["violations"] == [], theme


@pytest.mark.full
def test_the_app_makes_the_page_of_a_run(page: Page, visit: Visit, home: Home, opened: Opened) -> None:
    run_id = wide_run(home, 200, "20270115T080000-00000200")
    page.goto(f"{visit.url}/run?run={run_id}")
    page.get_by_role("button", name="Export").click()
    page.get_by_role("button", name="html", exact=True).click()
    with page.expect_download() as loaded:
        page.get_by_role("button", name="Download").click()
    assert loaded.value.suggested_filename == f"{run_id}.html"
    saved = loaded.value.path().with_suffix(".html")
    loaded.value.save_as(saved)
    expect(title(opened(saved))).to_have_text("llm_query 17")


OFFERED = """() => {
  window.offered = [];
  const look = () => {
    const found = [...document.querySelectorAll("[class*=st-key-run-export-download]")];
    const now = found.map((each) => (each.className.includes("parquet") ? "parquet" : "html")).join();
    if (now && now !== window.offered.at(-1)) window.offered.push(now);
    requestAnimationFrame(look);
  };
  look();
}"""


@pytest.mark.full
def test_the_file_made_before_goes_when_another_one_comes(page: Page, visit: Visit, home: Home) -> None:
    page.goto(f"{visit.url}/run?run={wide_run(home, 200, '20270115T080000-00000201')}")
    page.get_by_role("button", name="Export").click()
    page.get_by_role("button", name="html", exact=True).click()
    expect(page.get_by_role("button", name="Download")).to_be_visible()
    page.evaluate(OFFERED)
    page.get_by_role("button", name="parquet", exact=True).click()
    expect(page.get_by_text("-parquet.zip, ")).to_be_visible()
    painted = (
        "() => new Promise((tell) => setTimeout(() => requestAnimationFrame(() => tell(window.offered))))"
    )
    assert page.evaluate(painted) == ["html", "parquet"]  # never both


@pytest.mark.full
def test_thirty_thousand_spans_open_and_can_be_searched(opened: Opened, tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    page = opened(export(home, (wide_run(home, 30_000),), tmp_path / "run.html").path)
    page.get_by_role("button", name="Expand all").click()
    page.get_by_role("tree").focus()
    page.keyboard.press("End")
    expect(title(page)).to_have_text("llm_query 11")  # 74 iterations of 200 calls, one of 12
    page.get_by_role("searchbox").fill("refund of order 199”")
    expect(page.get_by_role("status")).to_have_text("74 of 30,073 spans")
    assert page.get_by_role("treeitem").count() < 80
