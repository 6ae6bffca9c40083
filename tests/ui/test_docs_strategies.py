"""What ui/docs/strategies.md says is run: its command and what that prints, its keys, its names and words."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlm_core.demo_reading import NO_RULE
from rlm_core.options import STRATEGIES, WITH_SUB_CALLS
from rlm_core.strategies.compaction import UNKNOWN_WINDOW
from rlm_core.strategies.texts import BYTES_PER_TOKEN
from tests.support.command import ROOT
from traces.strategies import StrategyRow
from ui.cli import cli

PAGE = (ROOT / "ui" / "docs" / "strategies.md").read_text(encoding="utf-8")
SESSION = re.findall(r"^\$ rlmscope (.*)\n((?:(?!```|\$ ).*\n)*)", PAGE, re.M)


def masked(text: str) -> str:
    """Without what differs from run to run (ids, times, their space) and with every prompt (tokens)."""
    text = re.sub(r" +[\d,]+ +(?=\$0 )", " (tokens) ", text)
    text = re.sub(r"\b20\d{6}T\d{6}-[0-9a-f]{8}", "(run)", text)
    return re.sub(r" +(?:\d+ ms|[\d.]+ s)(?=  )|(?<=cost) +time", " (time)", text)


def test_the_command_prints_what_the_page_shows_and_has_the_keys_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLMSCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(ROOT)
    ((line, printed),) = SESSION
    done = CliRunner().invoke(cli, shlex.split(line))
    assert (done.exit_code, masked(done.stdout)) == (0, masked(printed))
    quick = CliRunner().invoke(cli, [*shlex.split(line), "--strategies", "direct", "--json"])
    document = json.loads(quick.stdout)
    named = dict(re.findall(r"^\| (`compare-strategies`|each of `rows`) \| (.*) \|$", PAGE, re.M))
    keys = {name: re.findall(r"`(\w+)`", cells) for name, cells in named.items()}
    assert keys["`compare-strategies`"] == list(document)
    assert keys["each of `rows`"] == list(document["rows"][0]) == list(StrategyRow.__slots__)


def test_the_names_and_figures_are_those_of_the_program() -> None:
    assert re.findall(r"^\| `([\w+-]+)` \| [^|]+ \| [^|]+ \|$", PAGE, re.M) == list(STRATEGIES)
    assert f"`{NO_RULE}`" in PAGE and f"{UNKNOWN_WINDOW:,} tokens" in PAGE and BYTES_PER_TOKEN == 4
    assert {"rlm", "retrieve+rlm"} == WITH_SUB_CALLS
