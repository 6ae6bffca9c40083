"""Playwright's `expect`, and what it does to elements, for pages that Streamlit draws.

While a page is drawn anew, an old element may stand beside its successor for a moment. Playwright waits for
what is not there yet, but fails at once when it finds two; this `expect`, and every deed inside `patiently`,
gives the page the same patience for both. Two that stay fail as they do there.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, overload

import pytest
from playwright.sync_api import Error, Locator, LocatorAssertions, Page, PageAssertions
from playwright.sync_api import expect as playwright_expect

PATIENCE: Final = 120_000.0  # milliseconds; only a broken test waits so long
_TWO: Final = "strict mode violation"
_PAUSE: Final = 50.0  # milliseconds
_DEEDS: Final = (
    "bounding_box", "check", "click", "dispatch_event", "evaluate", "fill", "focus", "get_attribute", "hover",
    "inner_text", "input_value", "press", "press_sequentially", "set_input_files", "text_content", "wait_for",
)  # fmt: skip


@overload
def expect(actual: Locator) -> LocatorAssertions: ...
@overload
def expect(actual: Page) -> PageAssertions: ...
def expect(actual: Any) -> Any:
    """What `playwright.sync_api.expect` gives, for one element or for the page."""
    playwright_expect.set_options(timeout=PATIENCE)
    said = playwright_expect(actual)
    return _Patient(actual, said) if isinstance(actual, Locator) else said


@contextmanager
def patiently() -> Iterator[None]:
    """Meanwhile whatever is done to one element waits until it is only one."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _DEEDS:
            patch.setattr(Locator, name, _deed(getattr(Locator, name)))
        yield


def _deed(do: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(do)
    def done(locator: Locator, *args: Any, **options: Any) -> Any:
        return _once_alone(locator.page, lambda: do(locator, *args, **options))

    return done


class _Patient:
    """Assertions about one element that wait until it is only one."""

    def __init__(self, locator: Locator, said: LocatorAssertions) -> None:
        self._locator = locator
        self._said = said

    def __getattr__(self, name: str) -> Callable[..., None]:
        check = getattr(self._said, name)

        def checked(*args: Any, **options: Any) -> None:
            _once_alone(self._locator.page, lambda: check(*args, **options))

        return checked


def _once_alone(page: Page, do: Callable[[], Any]) -> Any:
    """Do something that wants one element, again and again while it finds two."""
    end = time.monotonic() + PATIENCE / 1000
    while True:
        try:
            return do()
        except (AssertionError, Error) as error:
            if _TWO not in str(error) or time.monotonic() > end:
                raise
        page.wait_for_timeout(_PAUSE)
