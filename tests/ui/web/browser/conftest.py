"""One app and one browser for each file of tests; each test has tabs of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.app import Server, running_app
from tests.support.browser import Visit, chromium, visiting
from traces.home import Home


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A fresh home, shared by the tests of a file."""
    return Home.resolve(tmp_path_factory.mktemp("browser") / "home")


@pytest.fixture(scope="module")
def surroundings() -> dict[str, str]:
    """Variables of the environment that the app gets, and the runs it starts with it."""
    return {}


@pytest.fixture(scope="module")
def app(home: Home, surroundings: dict[str, str]) -> Iterator[Server]:
    """The app on that home."""
    with running_app(home, env=surroundings) as server:
        yield server


@pytest.fixture(scope="module")
def profile(browser: Browser, app: Server) -> Iterator[Visit]:
    """A browser profile for all tests of a file: pages load faster when their scripts are known."""
    with visiting(browser, f"http://127.0.0.1:{app.port}") as made:
        yield made


@pytest.fixture
def visit(profile: Visit) -> Iterator[Visit]:
    """A visit to the app that fails the test when anything leaves it or breaks."""
    yield profile
    profile.leave()


@pytest.fixture
def page(visit: Visit) -> Page:
    """The first tab of the visit, still empty."""
    return visit.context.new_page()
