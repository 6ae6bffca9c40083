"""What ui/docs/replay.md says is run: its commands and what they print, its keys and words."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from tests.support.command import ROOT
from traces.home import Home
from traces.trial import MODES, OUTCOMES, Outcome
from ui.cli import cli
from ui.web.samples import install_examples

PAGE = (ROOT / "ui" / "docs" / "replay.md").read_text(encoding="utf-8")
SESSION = re.findall(r"^\$ rlmscope (.*)\n((?:(?!```|\$ ).*\n)*)", PAGE, re.M)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The recorded examples, in the home that the commands find by themselves."""
    home = Home.resolve(tmp_path / "home")
    install_examples(home)
    monkeypatch.setenv("RLMSCOPE_HOME", str(home.root))
    return home


def masked(text: str) -> str:
    """Without what differs from replay to replay: its id and its time."""
    text = re.sub(r"(?<!diff )\b20\d{6}T\d{6}-[0-9a-f]{8}", "(run)", text)
    return re.sub(r"· [\d.]+ m?s$", "· (time)", text, flags=re.M)


def test_the_commands_print_what_the_page_shows(home: Home) -> None:
    assert len(SESSION) == 2
    for line, printed in SESSION:
        done = CliRunner().invoke(cli, shlex.split(line))
        assert done.exit_code == 0, done.stderr
        assert masked(done.stdout) == masked(printed), line


def test_the_keys_named_are_those_of_the_document(home: Home) -> None:
    (named,) = re.findall(r"^\| `replay` \| (.*) \|$", PAGE, re.M)
    done = CliRunner().invoke(cli, ["replay", "20260105T091500", "--json"])
    assert list(json.loads(done.stdout)) == re.findall(r"`(\w+)`", named)


def test_modes_and_outcomes_are_said_in_the_words_of_the_program() -> None:
    for name, words in (*MODES.items(), *OUTCOMES.items()):
        assert f"| `{name}` | {words} |" in PAGE
    assert set(OUTCOMES) == set(get_args(Outcome))
