"""What tests of the engine share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.source_runs import Recorded
from traces.home import Home


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Runs over documents whose prompts are traced, in a home of their own."""
    home = Home(tmp_path / "home")
    home.create()
    return Recorded(home)
