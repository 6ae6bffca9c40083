"""The patience of these tests with pages that are being drawn anew."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.support import expecting
from tests.support.expecting import expect

pytestmark = pytest.mark.needs("chromium")
TWINS = "<p>ok</p><p>ok</p>"


def test_an_old_element_beside_its_successor_is_waited_out(browser: Browser) -> None:
    with browser.new_page() as page:
        page.set_content(TWINS)
        page.evaluate("() => setTimeout(() => document.querySelector('p').remove(), 200)")
        expect(page.get_by_text("ok")).to_be_visible()


def test_two_elements_that_stay_fail(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expecting, "PATIENCE", 100.0)
    with browser.new_page() as page:
        page.set_content(TWINS)
        with pytest.raises(AssertionError, match="strict mode violation"):
            expect(page.get_by_text("ok")).to_be_visible()
