"""The patience of these tests with pages that are being drawn anew."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Error

from tests.support import expecting
from tests.support.expecting import expect

pytestmark = pytest.mark.needs("chromium")
TWINS = "<button onclick='window.pressed = 1'>ok</button>" * 2


def test_an_old_element_beside_its_successor_is_waited_out(browser: Browser) -> None:
    with browser.new_page() as page:
        for do in ("to_be_visible", "click"):
            page.set_content(TWINS)
            page.evaluate("() => setTimeout(() => document.querySelector('button').remove(), 200)")
            button = page.get_by_role("button", name="ok")
            getattr(button if do == "click" else expect(button), do)()
        assert page.evaluate("window.pressed") == 1


def test_two_elements_that_stay_fail(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expecting, "PATIENCE", 100.0)
    with browser.new_page() as page:
        page.set_content(TWINS)
        with pytest.raises(AssertionError, match="strict mode violation"):
            expect(page.get_by_text("ok")).to_be_visible()
        with pytest.raises(Error, match="strict mode violation"):
            page.get_by_text("ok").click()
