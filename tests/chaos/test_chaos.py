"""Kills at random moments lose nothing: a short series always, two hundred in the full tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.__main__ import run, table

pytestmark = pytest.mark.needs("linux")


def check(seed: int, kills: int, folder: Path, max_seconds: float) -> None:
    campaign, verdict = run(seed, kills, folder, lanes=3, max_seconds=max_seconds)
    lines = "\n".join([*table(campaign, verdict), *verdict.why])
    assert not any(verdict.wrong.values()), lines
    assert campaign.kills.total() >= kills and verdict.seen["requests the server received"] > 0, lines


def test_a_few_kills_lose_nothing(tmp_path: Path) -> None:
    check(3, 9, tmp_path, 240)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_two_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    check(4, 200, tmp_path, 1500)
