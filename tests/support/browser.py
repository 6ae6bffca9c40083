"""The app in Debian's Chromium, under a watch that fails whatever leaves the app or breaks on a page.

`with chromium() as browser, visiting(browser, url) as visit: page = visit.tab("runs")`. When a visit ends it
fails if anything but the app itself was asked for or would have been, had the policy of the pages not refused
it, if a script broke, or if a dialog came up. `visit.strays` holds what was noticed so far.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Locator, Page
from playwright.sync_api import sync_playwright as playwright

from tests.support.expecting import PATIENCE, expect, patiently

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
_FLAGS: Final = (
    "--no-sandbox",  # the pages come from this machine, and a container may have no user namespaces
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_INNER: Final = ("data", "blob", "about")  # schemes of addresses that lead nowhere


def program() -> str | None:
    """The browser on this machine."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window. While it is open no other event loop can run in this thread."""
    with playwright() as tools, patiently():
        browser = tools.chromium.launch(executable_path=program(), args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A browser profile of its own that visits one app; its tabs share cookies and storage."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.url = url.rstrip("/")
        self.strays: list[str] = []
        context.set_default_timeout(PATIENCE)
        context.on("request", lambda request: self._asked(request.url))
        context.on("page", self._opened)
        context.on("console", self._said)
        context.on("dialog", self._dialog)
        context.on("weberror", lambda error: self.strays.append(f"script error: {error.error}"))

    def tab(self, path: str = "") -> Page:
        """A new tab at an address of the app."""
        page = self.context.new_page()
        page.goto(f"{self.url}/{path}")
        return page

    def check(self) -> None:
        """Fail when something was noticed."""
        for page in self.context.pages:
            page.evaluate("0")  # what happened before has been told when this comes back
        assert not self.strays, "\n".join(dict.fromkeys(self.strays))

    def leave(self) -> None:
        """Close every tab; fail when something was noticed, which is forgotten then."""
        try:
            self.check()
        finally:
            for page in self.context.pages:
                page.close()
            self.strays.clear()

    def forget(self) -> None:
        """Drop what pages have stored in the profile; their scripts stay known."""
        page = self.context.new_page()
        session = self.context.new_cdp_session(page)
        kinds = "cookies,local_storage,indexeddb,service_workers,cache_storage"
        session.send("Storage.clearDataForOrigin", {"origin": self.url, "storageTypes": kinds})
        page.close()

    def _opened(self, page: Page) -> None:
        page.on("websocket", lambda socket: self._asked(socket.url))

    def _asked(self, address: str) -> None:
        place, own = urlsplit(address), urlsplit(self.url)
        if place.scheme in _INNER or (place.netloc == own.netloc and place.scheme in ("http", "ws")):
            return
        self.strays.append(f"asked for {address[:300]}")

    def _said(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            self.strays.append(f"refused: {message.text[:300]}")

    def _dialog(self, dialog: Dialog) -> None:
        self.strays.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@contextmanager
def visiting(browser: Browser, url: str, **options: Any) -> Iterator[Visit]:
    """A visit that must end without anything noticed; `options` are those of a Playwright context."""
    settings = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options}
    context = browser.new_context(**settings)
    try:
        visit = Visit(context, url)
        yield visit
        visit.check()
    finally:
        context.close()


# -- the pages, as a person uses them ------------------------------------------------------------------------


def settle(page: Page) -> None:
    """Wait until the script of the page has run, after something was done to it that makes it run."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def back(page: Page) -> None:
    """One step back, once the page is drawn: what its script says of the address meanwhile would meet the
    page that the step leads to.
    """
    settle(page)
    page.go_back()


def choose_sample(page: Page, corpus: str, question: str | None = None) -> None:
    """On the Ask page: pick a sample corpus and, if given, one of its suggested questions."""
    box = page.get_by_role("combobox", name="Sample corpus")
    box.click()
    box.fill(corpus)
    page.get_by_role("option", name=re.compile(rf"^{corpus}\b")).click()
    suggested = page.locator(f".st-key-ask-suggested-{corpus}").get_by_role("combobox")
    suggested.wait_for()
    if question is not None:
        suggested.click()
        page.get_by_role("option", name=question, exact=True).click()
        expect(page.get_by_label("Question", exact=True)).to_have_value(question)


def choose_source(page: Page, name: str) -> None:
    """On the Ask page: where the corpus comes from, as its button says."""
    page.get_by_role("radiogroup", name="Corpus").get_by_text(name, exact=True).click()
    settle(page)


def fill(page: Page, label: str, text: str) -> None:
    """Type into a field and leave it."""
    field = page.get_by_label(label, exact=True)
    field.fill(text)
    field.blur()
    settle(page)


def start(page: Page) -> None:
    """On the Ask page: press Start."""
    page.get_by_role("button", name="Start", exact=True).click()


def outcome(page: Page) -> Locator:
    """On the Ask page: the link to the run, which is there once it has ended."""
    return page.get_by_role("link", name="Open the run")


def tree_row(page: Page, text: str | re.Pattern[str]) -> Locator:
    """On the Run page: the first row of the tree in sight that holds a text."""
    return page.get_by_role("treeitem").filter(has_text=text).first


def toggle(row: Locator) -> None:
    """Open or close a row of the tree."""
    row.locator(".twist").click()


def table_rows(page: Page) -> list[dict[str, str]]:
    """The rows of the one table on the page, by the titles of its columns."""
    table = page.get_by_role("table")
    titles = [
        title.split(" ▲")[0].split(" ▼")[0] for title in table.locator("thead tr > *").all_inner_texts()
    ]
    return [
        dict(zip(titles, row.locator("td").all_inner_texts(), strict=True))
        for row in table.locator("tbody tr").all()
    ]


def wait_for_table(page: Page, rows: int) -> None:
    """Wait until the one table on the page has so many rows."""
    expect(page.get_by_role("table").locator("tbody tr")).to_have_count(rows)


def row_of(page: Page, number: int) -> Locator:
    """The n-th row, from 0, of the one table on the page."""
    return page.get_by_role("table").locator("tbody tr").nth(number)


def expect_figure(page: Page, label: str, value: str) -> None:
    """A value stands under its label."""
    block = page.get_by_test_id("stVerticalBlock").filter(has=page.get_by_text(label, exact=True)).last
    expect(block).to_have_text(re.compile(rf"^\s*{re.escape(label)}\s*{re.escape(value)}\s*$"))
