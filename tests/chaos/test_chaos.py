"""Kills at random moments lose nothing: a short series always, two hundred in the full tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.__main__ import run, table
from tests.chaos.campaign import Campaign
from tests.chaos.verdict import judge

pytestmark = pytest.mark.needs("linux")


def check(seed: int, kills: int, folder: Path, max_seconds: float) -> Campaign:
    campaign, verdict = run(seed, kills, folder, lanes=3, max_seconds=max_seconds)
    lines = "\n".join([*table(campaign, verdict), *verdict.why])
    assert not any(verdict.wrong.values()), lines
    assert campaign.kills.total() >= kills and verdict.seen["requests the server received"] > 0, lines
    return campaign


def spoil(campaign: Campaign, which: Callable[[dict[str, Any]], bool]) -> None:
    """Take one record out of the spool of the undisturbed run."""
    (path,) = (p for p in campaign.home.spool.glob("*.jsonl") if campaign.runs[0].tag in p.read_text())
    lines = path.read_bytes().splitlines(keepends=True)
    found = next(number for number, line in enumerate(lines) if which(json.loads(line)))
    path.write_bytes(b"".join(lines[:found] + lines[found + 1 :]))


def test_a_few_kills_lose_nothing_and_a_loss_would_be_seen(tmp_path: Path) -> None:
    campaign = check(3, 5, tmp_path, 240)
    acknowledged = json.loads(campaign.runs[0].side.read_text().splitlines()[0])["span_id"]
    spoil(campaign, lambda record: record["kind"] == "e" and record["span_id"] == acknowledged)
    wrong = judge(campaign).wrong
    assert (wrong["acknowledged ends missing"], wrong["starts missing"]) == (1, 0)
    spoil(campaign, lambda record: record["kind"] == "s" and record["span_kind"] == "attempt")
    wrong = judge(campaign).wrong
    assert wrong["starts missing"] == 1 and wrong["untrue statuses"] > 0  # also: records are missing


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_two_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    check(4, 200, tmp_path, 1500)
