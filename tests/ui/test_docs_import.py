"""What ui/docs/import.md says is run: commands, what they print, keys, bounds."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.command import ROOT
from traces.home import Home
from traces.importers import unpacking
from ui.cli import cli
from ui.web.samples import install_examples

PAGE = (ROOT / "ui" / "docs" / "import.md").read_text(encoding="utf-8")
SESSION = r"^\$ rlmscope (.*)\n((?:(?!```|\$ ).*\n)*)"


def test_the_commands_print_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLMSCOPE_HOME", str(tmp_path / "mine"))
    install_examples(Home.resolve())
    once, folder, export = re.findall(SESSION, PAGE, re.M)
    for number, (line, printed) in enumerate((export, once, folder)):
        done = CliRunner().invoke(cli, shlex.split(line))
        shown = done.output.replace(f"{tmp_path}/", "")
        assert (done.exit_code, shown) == ((0, 0, 1)[number], printed)
        if number == 0:  # the file goes to another home
            monkeypatch.setenv("RLMSCOPE_HOME", str(tmp_path / "theirs"))
            (tmp_path / "logs").mkdir()
            (tmp_path / "logs" / "run.gz").write_bytes(gzip.compress((tmp_path / "run.jsonl").read_bytes()))
            for name in ("logs/read.me", "notes.txt"):
                (tmp_path / name).write_text("no record")
    document = json.loads(CliRunner().invoke(cli, ["import", "run.jsonl", "--json"]).stdout)
    (named,) = re.findall(r"With `--json` each run has (.*)\.", PAGE)
    assert list(document[0]) == re.findall(r"`(\w+)`", named)


def test_the_bounds_of_archives_are_those_of_the_program() -> None:
    bounds = f"{unpacking.MOST_ENTRIES:,} files and {unpacking.MOST_BYTES >> 20:,} MB"
    assert f"at most {bounds};" in PAGE
