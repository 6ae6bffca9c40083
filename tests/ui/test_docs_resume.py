"""What ui/docs/resume.md and ui/docs/recursion.md say is run: their commands, options, keys and figures."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlm_core.limits import Limits
from tests.support.command import ROOT
from tests.support.dead_runs import died_at, records
from traces.home import Home
from ui.cli import cli
from ui.resume_command import resume

PAGE = (ROOT / "ui" / "docs" / "resume.md").read_text(encoding="utf-8")
RECURSION = (ROOT / "ui" / "docs" / "recursion.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"^\$ rlmscope (.*)$", re.M)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home in which a run of the demo model died half way, the one that the commands find."""
    whole = Home.resolve(tmp_path / "whole")
    folder = tmp_path / "tickets"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.txt").write_text(f"Ticket {number}: my invoice is wrong.\n", "utf-8")
    words = ["ask", "How many tickets are about billing?", str(folder), "--json"]
    done = CliRunner().invoke(cli, [*words, "--home", str(whole.root)])
    run_id = json.loads(done.stdout)["run_id"]
    dead = died_at(whole, run_id, records(whole, run_id) // 2, tmp_path / "dead")
    monkeypatch.setenv("RLMSCOPE_HOME", str(dead.root))
    return dead


def test_the_commands_run_and_print_such_a_line(home: Home) -> None:
    first, second = COMMAND.findall(PAGE)
    form = re.compile(
        r"^continues \S+: \d+ root turns? and \d+ calls? from its record; spent before: \S+.*$", re.M
    )
    assert form.search(PAGE)
    done = CliRunner().invoke(cli, shlex.split(first))
    assert done.exit_code == 0 and form.search(done.stdout), done.stderr
    (older,) = re.findall(r"^continues (\S+):", done.stdout, re.M)
    done = CliRunner().invoke(cli, [*shlex.split(second.replace("last", older)), "--json"])
    said = json.loads(done.stdout)
    (named,) = re.findall(r"^\| `resume` \| (.*) \|$", PAGE, re.M)
    keys = re.findall(r"`(\w+)`", named)
    assert list(said)[-len(keys) :] == keys and said["resumed_from"] == older


def test_the_options_named_are_those_of_the_command() -> None:
    given = {option for parameter in resume.params for option in parameter.opts if option.startswith("--")}
    named = set(re.findall(r"`(--[a-z-]+)", PAGE))
    assert named <= given | {"--home", "--json"}
    assert {option for option in given if option.startswith("--max") or option == "--concurrency"} <= named


def test_child_runs_are_asked_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("RLMSCOPE_HOME", str(tmp_path))
    ask, models, cost = COMMAND.findall(RECURSION)
    assert models.startswith(ask)
    for line in (models, cost):
        done = CliRunner().invoke(cli, shlex.split(line))
        assert done.exit_code == 0, done.stderr
    usual = Limits()
    assert (usual.max_depth, usual.max_workers) == (1, 8)
    assert "1 by\ndefault, 0 for none" in RECURSION and "at most eight of them" in RECURSION
