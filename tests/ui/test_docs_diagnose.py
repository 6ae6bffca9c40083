"""What ui/docs/diagnose.md says is run: its commands and what they print, its keys and words."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from tests.support.command import ROOT
from traces.diagnosis import VERDICTS, Verdict
from traces.home import Home
from traces.trial import Budget
from ui.cli import cli
from ui.web.samples import install_examples

PAGE = (ROOT / "ui" / "docs" / "diagnose.md").read_text(encoding="utf-8")
SESSION = re.findall(r"^\$ rlmscope (.*)\n((?:(?!```|\$ ).*\n)*)", PAGE, re.M)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The recorded examples, in the home that the commands find by themselves."""
    home = Home.resolve(tmp_path / "home")
    install_examples(home)
    monkeypatch.setenv("RLMSCOPE_HOME", str(home.root))
    return home


def masked(text: str) -> str:
    """Without the id of the replay that was recorded."""
    return re.sub(r"(?<=recorded as )20\d{6}T\d{6}-[0-9a-f]{8}", "(run)", text)


def test_the_commands_print_what_the_page_shows(home: Home) -> None:
    assert [words.split()[0] for words, _ in SESSION] == ["diagnose", "lineage"]
    for line, printed in SESSION:
        done = CliRunner().invoke(cli, shlex.split(line))
        assert done.exit_code == 0, done.stderr
        assert masked(done.stdout) == masked(printed), line


@pytest.mark.parametrize("words", ["diagnose 20260105T091500 --expected 21", "lineage 20260105T091500"])
def test_the_keys_named_are_those_of_the_document(home: Home, words: str) -> None:
    (named,) = re.findall(rf"^\| `{words.split()[0]}` \| (.*) \|$", PAGE, re.M)
    done = CliRunner().invoke(cli, [*words.split(), "--json"])
    assert list(json.loads(done.stdout)) == re.findall(r"`(\w+)`", named)


def test_verdicts_and_limits_are_those_of_the_program() -> None:
    for name, words in VERDICTS.items():
        assert f"| `{name}` | {words} |" in PAGE
    assert set(VERDICTS) == set(get_args(Verdict))
    assert f"| replays of the run | {Budget().replays} |" in PAGE
    assert f"| calls to a model, root and sub together | {Budget().live_calls} |" in PAGE
