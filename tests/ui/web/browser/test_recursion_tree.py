"""The recursion tree in a browser: keys and roles, rows out of sight, what a click sends, growing runs."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page

from rlm_core import semconv as sc
from tests.support import browser as ui
from tests.support.expecting import expect
from tests.support.pages import HOSTILE
from tests.support.recorded_runs import recording, sub_call, wide_run
from traces.home import Home

pytestmark = pytest.mark.needs("chromium")

MANY = 2_000
LARGEST_CLICK = 30_000  # bytes; the rows of that run are more than a hundred thousand
IN_SIGHT = 80  # rows drawn at most on a screen of this size
MOST_STOPS = 40  # of the tabulator before the tree
_FOCUSED = """() => {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return element?.getAttribute("role");
}"""


def opened(page: Page, visit: ui.Visit, run_id: str) -> Locator:
    """The tree of a run."""
    page.goto(f"{visit.url}/run?run={run_id}")
    page.get_by_role("treeitem").first.wait_for()
    ui.settle(page)
    return page.get_by_role("tree")


def active(page: Page) -> Locator:
    """The row that the keyboard is at."""
    return page.get_by_role("tree").locator(".row.active")


def title(page: Page) -> Locator:
    return page.locator(".st-key-span-title").first  # the one of before may stand there until all is drawn


def test_the_keyboard_alone_finds_a_sub_call(page: Page, visit: ui.Visit, home: Home) -> None:
    tree = opened(page, visit, wide_run(home, 60, "20270115T080000-00000060", batch=20))
    tree.focus()
    for keys, label, level in (
        (["Home"], "run", "1"),
        (["ArrowDown"], "iteration 0", "2"),
        (["ArrowRight", "ArrowDown"], "cell 0", "3"),
        (["ArrowDown"], "20 x llm_query", "4"),
        (["ArrowRight"], "llm_query 17", "5"),
        (["ArrowDown"], "19 x llm_query", "5"),
        (["ArrowRight", "ArrowRight", "ArrowDown"], "llm_query 1 ", "6"),
    ):
        for key in keys:
            tree.press(key)
        expect(active(page)).to_contain_text(label.strip())
        expect(active(page)).to_have_attribute("aria-level", level)
        expect(tree).to_have_attribute("aria-activedescendant", active(page).get_attribute("id") or "none")
    expect(active(page)).to_have_css("outline-style", "solid")
    tree.press("Enter")
    expect(title(page)).to_have_text("llm_query 1")
    expect(page.get_by_role("treeitem", selected=True)).to_contain_text("llm_query 1")
    tree.press("ArrowLeft")
    expect(active(page)).to_have_attribute("aria-expanded", "true")
    tree.press("ArrowLeft")
    expect(active(page)).to_have_attribute("aria-expanded", "false")
    expect(title(page)).to_have_text("llm_query 1")  # what is hidden stays chosen
    tree.press("End")
    expect(active(page)).to_contain_text("llm_query 3")  # of the second batch, too small to be a group


def test_the_tree_is_reached_by_tabulator_and_keeps_the_focus(
    page: Page, visit: ui.Visit, home: Home
) -> None:
    page.goto(f"{visit.url}/run?run={wide_run(home, 60, '20270115T080000-00000061')}")
    ui.tree_row(page, "llm_query").wait_for()
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        if page.evaluate(_FOCUSED) == "tree":
            break
    expect(active(page)).to_contain_text("run")
    is_outlined(active(page))
    for name in ("iteration 0", "root call", "cell 0"):
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(title(page)).to_have_text(name)
        expect(active(page)).to_contain_text(name)
        expect(page).to_have_url(re.compile("span=[0-9a-f]{16}$"))
        assert page.evaluate(_FOCUSED) == "tree"
        is_outlined(active(page))


def is_outlined(row: Locator) -> None:
    """A row has the outline of what the keyboard is at."""
    expect(row).to_have_css("outline-style", "solid")
    expect(row).to_have_css("outline-width", re.compile(r"^([2-9]|\d\d)"))


def test_a_button_shows_its_span_in_the_tree(page: Page, visit: ui.Visit, home: Home) -> None:
    opened(page, visit, wide_run(home, 120, "20270115T080000-00000120", batch=20))
    page.get_by_role("button", name="Collapse").click()
    expect(page.get_by_role("treeitem")).to_have_count(4)  # the run and its iterations
    page.get_by_role("button", name="Next failed sub-call").click()
    chosen = page.get_by_role("treeitem", selected=True)
    expect(chosen).to_contain_text("llm_query 17")
    expect(chosen).to_be_in_viewport()
    page.get_by_role("treeitem", name="iteration 0").first.click()
    expect(title(page)).to_have_text("iteration 0")
    ui.back(page)
    expect(title(page)).to_have_text("llm_query 17")
    expect(chosen).to_contain_text("llm_query 17")


def test_a_click_in_a_large_run_sends_no_rows(page: Page, visit: ui.Visit, home: Home) -> None:
    received: list[int] = []
    page.on("websocket", lambda ws: ws.on("framereceived", lambda frame: received.append(len(frame))))
    tree = opened(page, visit, wide_run(home, MANY, "20270115T080000-00002000"))
    page.get_by_role("button", name="Expand all").click()
    tree.press("End")
    expect(ui.tree_row(page, "llm_query 186")).to_be_visible()
    assert page.get_by_role("treeitem").count() < IN_SIGHT
    assert sum(received) > 4 * LARGEST_CLICK
    received.clear()
    ui.tree_row(page, "llm_query 186").click()
    expect(title(page)).to_have_text("llm_query 186")
    ui.settle(page)
    assert 0 < sum(received) < LARGEST_CLICK


@pytest.mark.full
def test_fast_clicks_through_the_views_of_a_run_end_at_the_last_one(
    page: Page, visit: ui.Visit, home: Home
) -> None:
    opened(page, visit, wide_run(home, MANY, "20270115T080000-00002001"))
    views = page.get_by_test_id("stButtonGroup").first.get_by_role("radio")
    for name in ("Overview", "Steps", "Coverage", "Findings", "Spans") * 3:
        views.filter(has_text=name).click()
        page.wait_for_timeout(80)
    expect(page.get_by_role("tree")).to_be_visible()
    expect(page).not_to_have_url(re.compile("view="))


def test_a_run_that_grows_keeps_what_was_chosen_opened_and_in_sight(
    page: Page, visit: ui.Visit, home: Home
) -> None:
    with recording(home, "20270115T080000-00000fff") as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        for slot in range(60):
            sub_call(made.recorder, run, slot, {sc.CALL_INDEX: slot})
        tree = opened(page, visit, made.run_id)
        page.get_by_role("button", name="Expand all").click()
        ui.tree_row(page, "llm_query 12").click()
        expect(title(page)).to_have_text("llm_query 12")
        ui.settle(page)  # what the click asked for is drawn: nobody scrolls before that
        tree.evaluate("tree => { tree.scrollTop = 200 }")
        for slot in range(60, 90):
            sub_call(made.recorder, run, slot, {sc.CALL_INDEX: slot})
        expect(page.get_by_text("90 x llm_query: 89 ok")).to_have_count(0)
        expect(page.get_by_text("182 spans")).to_be_visible()
        expect(tree).to_have_js_property("scrollTop", 200)
        expect(page.get_by_role("treeitem", selected=True)).to_contain_text("llm_query 12")
        run.text(sc.ANSWER, "grown")
        run.end()
        made.close("ok")
        expect(page.get_by_text("grown", exact=True).first).to_be_visible()
    head = page.locator(".st-key-run-head").first  # drawn anew when the run has ended, as is the tree
    expect(head.get_by_text("ok", exact=True)).to_be_visible()
    ui.settle(page)
    expect(tree).to_have_count(1)
    expect(tree).to_have_js_property("scrollTop", 200)
    expect(page.get_by_role("treeitem", selected=True)).to_contain_text("llm_query 12")
    expect(title(page)).to_have_text("llm_query 12")


def test_the_outcome_of_a_fan_out_is_readable_in_full(page: Page, visit: ui.Visit, home: Home) -> None:
    run_id = "20270115T080000-00000406"
    opened(page, visit, wide_run(home, 406, run_id, batch=200))
    label = ui.tree_row(page, "200 x llm_query: 196 ok, 2 empty, 2 error").locator(".label")
    assert label.evaluate("label => label.scrollWidth <= label.clientWidth")


def test_the_flame_with_keys_and_a_click(page: Page, visit: ui.Visit, home: Home) -> None:
    run_id = wide_run(home, 60, "20270115T080000-00000062", batch=20)
    page.goto(f"{visit.url}/run?run={run_id}&pane=flame")
    flame, said = page.get_by_role("application"), page.get_by_role("status", name="Span")
    flame.focus()
    expect(said).to_contain_text("run · 1 failed")
    for key, words in (
        ("ArrowDown", "iteration 0 Decompose"),
        ("ArrowRight", "iteration 1 Decompose"),
        ("ArrowLeft", "iteration 0 Decompose"),
        ("ArrowDown", "root call · ok"),
        ("ArrowRight", "cell 0 Decompose"),
        ("ArrowUp", "iteration 0 Decompose"),
    ):
        flame.press(key)
        expect(said).to_contain_text(words)
    flame.press("Enter")
    expect(title(page)).to_have_text("iteration 0")
    page.get_by_role("button", name="Whole run").click()
    box = flame.bounding_box()
    assert box is not None
    flame.click(position={"x": box["width"] / 2, "y": 30})  # the bar of the run, below the times
    expect(title(page)).to_have_text("run")
    page.get_by_role("button", name="Zoom in").click()
    window = f"() => globalThis.rlmscopeTree.kept.get('flame {run_id}').from"
    before = page.evaluate(window)
    page.mouse.move(box["x"] + 300, box["y"] + 30)
    page.mouse.down()
    flame.locator("canvas").dispatch_event("pointercancel")  # the browser took the pointer for something else
    page.mouse.move(box["x"] + 200, box["y"] + 30)
    assert page.evaluate(window) == before
    page.mouse.up()
    page.get_by_role("radio", name="Tree").last.click()
    expect(page.get_by_role("treeitem", selected=True)).to_contain_text("run")


def test_a_search_from_the_keyboard(page: Page, visit: ui.Visit, home: Home) -> None:
    opened(page, visit, wide_run(home, 120, "20270115T080000-00000121", batch=20))
    page.keyboard.press("/")
    field = page.get_by_label("Search in names and texts", exact=True)
    expect(field).to_be_focused()
    field.press_sequentially("order 1”")
    field.press("Enter")
    expect(page.get_by_text("3 spans hold it")).to_be_visible()
    field.blur()
    page.keyboard.press("n")
    expect(title(page)).to_have_text("llm_query 1")
    expect(page.get_by_text("1 of 3 spans that hold it")).to_be_visible()
    ui.settle(page)  # the address comes with the page
    first = page.url
    page.keyboard.press("n")
    expect(page.get_by_text("2 of 3 spans that hold it")).to_be_visible()
    chosen = page.get_by_role("treeitem", selected=True)
    expect(chosen).to_contain_text("refund of order 1”")
    page.keyboard.press("p")
    expect(page).to_have_url(first)
    page.reload()
    expect(page.get_by_text("1 of 3 spans that hold it")).to_be_visible()
    page.get_by_role("table", name="Hits").get_by_role("link").nth(2).click()
    expect(page.get_by_text("3 of 3 spans that hold it")).to_be_visible()
    expect(chosen).to_be_in_viewport()


def test_hostile_rows_are_text(page: Page, visit: ui.Visit, home: Home) -> None:
    facts: dict[str, str | int | float | bool | None] = {sc.PREVIEW: HOSTILE, sc.REQUEST_MODEL: HOSTILE}
    with recording(home, "20270115T080000-00000bad") as made:
        run = made.recorder.start("run", HOSTILE, None, {})
        run.text(sc.QUESTION, HOSTILE)
        made.recorder.start("tool", HOSTILE, run, facts).end()
        made.recorder.start("sub_call", HOSTILE, run, facts).fail(HOSTILE, HOSTILE)
        made.recorder.start("sub_call", "chat", run, {sc.REQUEST_MODEL: "plain"}).end()
    opened(page, visit, "20270115T080000-00000bad")
    expect(ui.tree_row(page, "<script>HOSTILE</script>")).to_be_visible()
    page.get_by_text("Flame", exact=True).click()
    page.get_by_role("application").press("ArrowDown")
    expect(page.get_by_role("status", name="Span").get_by_text("<script>HOSTILE</script>")).to_be_visible()
    page.get_by_role("button", name="Filters").click()
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="<script>HOSTILE</script>").click()
    expect(page.get_by_role("dialog", name="Filters (1)")).to_be_visible()
    for _ in range(2):  # the list of models, then the filters
        page.keyboard.press("Escape")
    ui.fill(page, "Search in names and texts", "HOSTILE")
    expect(
        page.get_by_role("table", name="Hits").get_by_text("<script>HOSTILE</script>").first
    ).to_be_visible()
    page.get_by_text("Table", exact=True).click()
    expect(page.locator("[role=gridcell]", has_text="<script>HOSTILE</script>").first).to_be_attached()
