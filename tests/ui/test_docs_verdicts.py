"""What ui/docs/verdicts.md says is run: its commands and what they print, its keys and words."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.command import ROOT
from tests.traces.records import record_run
from traces.home import Home
from traces.opinions import HOW, VERDICTS
from traces.same_answer import same_answer
from ui.cli import cli
from ui.web.diff_view import MOST_LINES

PAGE = (ROOT / "ui" / "docs" / "verdicts.md").read_text(encoding="utf-8")
SESSION = re.findall(r"^\$ rlmscope (.*)\n((?:(?!```|\$ ).*\n)*)", PAGE, re.M)
RUN = "20260102T030405-0000abcd"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """One run, in the home that the commands find by themselves."""
    home = Home.resolve(tmp_path / "home")
    record_run(home, RUN)
    monkeypatch.setenv("RLMSCOPE_HOME", str(home.root))
    return home


def test_the_commands_print_what_the_page_shows(home: Home) -> None:
    assert len(SESSION) == 3
    for line, printed in SESSION:
        done = CliRunner().invoke(cli, shlex.split(line))
        assert (done.exit_code, done.stdout) == (0, printed), line


def test_the_keys_named_are_those_of_the_documents(home: Home) -> None:
    (named,) = re.findall(r"^\| `mark` \| (.*) \|$", PAGE, re.M)
    done = CliRunner().invoke(cli, ["mark", RUN, "--verdict", "right", "--json"])
    assert list(json.loads(done.stdout)) == re.findall(r"`(\w+)`", named)
    (run,) = json.loads(CliRunner().invoke(cli, ["runs", "--json"]).stdout)
    show = json.loads(CliRunner().invoke(cli, ["show", RUN, "--json"]).stdout)
    for document in (run, show["run"]):
        assert (document["verdict"], document["expected"], document["tags"]) == ("right", None, [])
    assert show["verdicts"] == {}


def test_the_words_named_are_those_that_are_understood() -> None:
    assert all(f"`{word}`" in PAGE for word in (*VERDICTS, *HOW))
    assert same_answer("Seven  refunds!", "seven refunds.") and f"{MOST_LINES:,} lines" in PAGE
