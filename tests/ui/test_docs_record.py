"""What ui/docs/record.md says is run: its commands and what they print, its keys and paths."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.command import ROOT
from tests.traces.records import record_run
from traces import user_log
from traces.home import Home
from ui.cli import cli

PAGE = (ROOT / "ui" / "docs" / "record.md").read_text(encoding="utf-8")
SESSION = re.findall(r"^\$ rlmscope (.*)\n((?:(?!```).*\n)*)", PAGE, re.M)
KEYS = re.findall(r"^\| `(\w+)` \| (`dry_run|`\w+`.*) \|$", PAGE.split("## In scripts")[1], re.M)
WORDS = {
    "delete": ["20260102T030405", "--yes"],
    "prune": ["--dry-run"],
    "backup": ["copy"],
    "ingest": [],
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """Three runs, one of them with a verdict, in the home that the commands find by themselves."""
    home = Home.resolve(tmp_path / "home")
    for run_id in ("20260102T030405-0000abcd", "20260102T030406-0000abce", "20260102T030407-0000abcf"):
        record_run(home, run_id)
    user_log.append(home, "verdict", {"run_id": "20260102T030407-0000abcf"})
    monkeypatch.setenv("RLMSCOPE_HOME", str(home.root))
    monkeypatch.chdir(home.root)
    yield home


def masked(text: str) -> str:
    """Without what differs from machine to machine: folders and sizes."""
    text = re.sub(r"backup /\S+:", "backup (folder):", text)
    return re.sub(r" *\d[\d.,]* (bytes|KB|MB)", " (size)", text)


def test_the_commands_print_what_the_page_shows(home: Home) -> None:
    assert [line.split()[0] for line, _ in SESSION] == ["ingest", "delete", "prune", "backup", "runs"]
    for line, shown in SESSION:
        if line.startswith("backup"):
            CliRunner().invoke(cli, ["delete", "20260102T030407", "--yes"])
        done = CliRunner().invoke(cli, shlex.split(line))
        assert done.exit_code == 0, done.stderr
        assert masked(done.stdout).strip() == masked(shown).strip(), line


@pytest.mark.parametrize(("command", "named"), KEYS, ids=[command for command, _ in KEYS])
def test_the_keys_named_are_those_of_the_documents(
    home: Home, tmp_path: Path, command: str, named: str
) -> None:
    words = [str(tmp_path / word) if word == "copy" else word for word in WORDS[command]]
    done = CliRunner().invoke(cli, [command, *words, "--json"])
    assert set(json.loads(done.stdout)) == set(re.findall(r"`(\w+)`", named))


def test_the_paths_named_are_those_of_a_home(tmp_path: Path) -> None:
    home = Home(tmp_path)
    places = (home.spool, home.user_log, home.store, home.corpora, home.settings, home.keys)
    named = re.findall(r"`([\w./]+)`", PAGE.split("## The home folder")[1].split("## Rebuild")[0])
    assert {path.name for path in places} <= {name.rstrip("/") for name in named}
