"""Playwright's `expect` for pages that Streamlit draws.

While a page is drawn anew, an old element may stand beside its successor for a moment. Playwright waits for
what is not there yet, but fails at once when it finds two; this `expect` gives the page the same patience for
both. Two that stay fail as they do there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, overload

from playwright.sync_api import Locator, LocatorAssertions, Page, PageAssertions
from playwright.sync_api import expect as playwright_expect

PATIENCE: Final = 60_000.0  # milliseconds; only a broken test waits so long
_TWO: Final = "strict mode violation"
_PAUSE: Final = 50.0  # milliseconds


@overload
def expect(actual: Locator) -> LocatorAssertions: ...
@overload
def expect(actual: Page) -> PageAssertions: ...
def expect(actual: Any) -> Any:
    """What `playwright.sync_api.expect` gives, for one element or for the page."""
    playwright_expect.set_options(timeout=PATIENCE)
    said = playwright_expect(actual)
    return _Patient(actual, said) if isinstance(actual, Locator) else said


class _Patient:
    """Assertions about one element that wait until it is only one."""

    def __init__(self, locator: Locator, said: LocatorAssertions) -> None:
        self._locator = locator
        self._said = said

    def __getattr__(self, name: str) -> Callable[..., None]:
        check = getattr(self._said, name)

        def checked(*args: Any, **options: Any) -> None:
            end = time.monotonic() + PATIENCE / 1000
            while True:
                try:
                    return check(*args, **options)
                except AssertionError as error:
                    if _TWO not in str(error) or time.monotonic() > end:
                        raise
                self._locator.page.wait_for_timeout(_PAUSE)

        return checked
