"""What tests of the engine share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.litellm_calls import KEY
from tests.support.loopback import Loopback, Script
from tests.support.source_runs import Recorded
from traces.home import Home


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Runs over documents whose prompts are traced, in a home of their own."""
    home = Home(tmp_path / "home")
    home.create()
    return Recorded(home)


@pytest.fixture(scope="module")
def running() -> Iterator[Loopback]:
    """One server for the tests of a module."""
    with Loopback() as server:
        yield server


@pytest.fixture
def server(running: Loopback, monkeypatch: pytest.MonkeyPatch) -> Loopback:
    """The server, as it begins, in the place of OpenAI's."""
    monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    running.use(Script())
    return running
