"""What a person waits for in the app, measured inside a real browser over runs of several sizes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from playwright.sync_api import Locator, Page

from tests.bench.rows import Row
from tests.support import browser as ui
from tests.support.app import running_app
from tests.support.recorded_runs import wide_run
from traces.home import Home

SPANS: Final = (200, 2_000, 30_000)
CLICKS: Final = 7
OPENINGS: Final = 3
TARGET: Final = 0.5  # seconds from a click to the painted detail; holds up to 2,000 spans
_FRAMES: Final = "await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"
# From the click, as the browser stamps it, until title and reply of the span are there and two frames passed.
_ARM: Final = """
([title, reply]) => {
  let start = null;
  addEventListener("click", event => { start = event.timeStamp; }, { capture: true, once: true });
  const there = () =>
    document.querySelector(".st-key-span-title")?.textContent === title &&
    document.querySelector("[role=tabpanel]")?.textContent.includes(reply);
  window.painted = new Promise(resolve => {
    const observer = new MutationObserver(() => {
      if (start === null || !there()) return;
      observer.disconnect();
      requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - start)));
    });
    observer.observe(document.body, { childList: true, subtree: true, characterData: true });
  });
}
"""


def browser_figures() -> list[Row]:
    """Opening a run, choosing sub-calls in its tree, and its tools; a row as `Figure` takes it."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Home.resolve(Path(folder) / "home")
        runs = {spans: wide_run(home, spans, f"20270115T080000-{spans:08d}") for spans in SPANS}
        with (
            running_app(home) as app,
            ui.chromium() as browser,
            ui.visiting(browser, f"http://127.0.0.1:{app.port}") as visit,
        ):
            for spans, run_id in runs.items():
                page = visit.context.new_page()
                opened = [open_run(page, f"{visit.url}/run?run={run_id}") for _ in range(OPENINGS)]
                clicks = click_rows(page)
                tools = use_tools(page)
                page.close()
                target = TARGET if spans <= 2_000 else None
                rows += [
                    (f"opening the page of a {spans:,}-span run until it is painted", "s", opened, None),
                    (f"  a click in its tree until the detail is painted ({spans:,})", "s", clicks, target),
                ]
                rows += [(f"  {what} ({spans:,})", "s", [seconds], None) for what, seconds in tools]
    return rows


def open_run(page: Page, address: str) -> float:
    """Seconds from asking for a page until its tree and the detail beside it are painted."""
    page.goto("about:blank")
    began = time.perf_counter()
    page.goto(address)
    page.get_by_role("treeitem").first.wait_for()
    page.get_by_role("tabpanel").get_by_text("Seventeen documents.").wait_for()
    page.evaluate(f"async () => {{ {_FRAMES} }}")
    return time.perf_counter() - began


def click_rows(page: Page) -> list[float]:
    """Seconds from clicks on sub-calls, one after the other, until their details are painted."""
    page.get_by_role("button", name="Expand all").click()
    seconds = []
    for slot in range(CLICKS + 1):
        row = page.get_by_role("treeitem").filter(has_text=f"order {slot}”").first
        row.scroll_into_view_if_needed()
        ui.settle(page)
        page.evaluate(_ARM, [f"llm_query {slot}", f"refund of order {slot}”"])
        row.click()
        seconds.append(page.evaluate("window.painted") / 1000)
    return seconds[1:]  # the first one also loads what the page had not needed before


def use_tools(page: Page) -> list[tuple[str, float]]:
    """Seconds of what is done once with a run: search, filter, flame. Each is left as it was found."""
    field = page.get_by_label("Search in names and texts", exact=True)
    found, fits = page.get_by_text("hold it, in"), page.get_by_text("filtered out")

    def look_for(text: str) -> float:
        field.fill(text)
        seconds = until(page, lambda: field.press("Enter"), found)
        field.fill("")
        field.press("Enter")
        found.wait_for(state="hidden")
        ui.settle(page)
        return seconds

    times = [("a search for words until the hits are there", look_for("refund of order 1"))]
    page.get_by_text("Regex", exact=True).click()
    ui.settle(page)
    times.append(("a search by regular expression", look_for("order [0-9]*7”")))
    page.get_by_role("button", name="Filters").click()
    page.get_by_role("combobox", name="Status").click()
    times.append(("a filter by status", until(page, page.get_by_role("option", name="error").click, fits)))
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Clear filters").click()
    fits.wait_for(state="hidden")
    page.keyboard.press("Escape")
    flame = page.get_by_role("application")
    times.append(("the flame", until(page, page.get_by_text("Flame", exact=True).click, flame)))
    return times


def until(page: Page, act: Callable[[], None], there: Locator) -> float:
    """Seconds from an act until something is there, the page at rest and painted."""
    began = time.perf_counter()
    act()
    there.first.wait_for()
    ui.settle(page)
    page.evaluate(f"async () => {{ {_FRAMES} }}")
    return time.perf_counter() - began
