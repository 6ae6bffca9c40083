"""One browser for all of these tests that a process runs, one app for each file, own tabs for each test."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.app import Server, running_app
from tests.support.browser import Visit, chromium, visiting
from traces.home import Home


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A browser."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="package")
def port() -> Iterator[int]:
    """The port of every app: to the browser it is one site, whose scripts it keeps compiled.

    It stays ours between two apps: the system gives a port that is bound to no other program.
    """
    with socket.socket() as kept:
        if os.name == "posix":  # as the app does: one that does not listen lets the app have it
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        found: int = kept.getsockname()[1]
        if sys.platform != "linux":  # elsewhere it is in the way
            kept.close()
        yield found


@pytest.fixture(scope="package")
def site(browser: Browser, port: int) -> Iterator[Visit]:
    """The browser profile that has seen the app before."""
    with visiting(browser, f"http://127.0.0.1:{port}") as made:
        yield made


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A fresh home, shared by the tests of a file."""
    return Home.resolve(tmp_path_factory.mktemp("browser") / "home")


@pytest.fixture(scope="module")
def surroundings() -> dict[str, str]:
    """Variables of the environment that the app gets, and the runs it starts with it."""
    return {}


@pytest.fixture(scope="module")
def app(home: Home, surroundings: dict[str, str], port: int) -> Iterator[Server]:
    """The app on that home."""
    with running_app(home, "--port", str(port), env=surroundings) as server:
        yield server


@pytest.fixture(scope="module")
def profile(site: Visit, app: Server) -> Visit:
    """The profile for the tests of a file; nothing is kept in it from those of another."""
    site.forget()
    return site


@pytest.fixture
def visit(profile: Visit) -> Iterator[Visit]:
    """A visit to the app that fails the test when anything leaves it or breaks."""
    yield profile
    profile.leave()


@pytest.fixture
def page(visit: Visit) -> Page:
    """The first tab of the visit, still empty."""
    return visit.context.new_page()
