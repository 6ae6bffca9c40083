"""What ui/docs/regression.md and ui/docs/report.md say is run: commands, what they print, keys, words."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.checked_sets import make_set
from tests.support.command import ROOT
from tests.traces.records import RUN, record_run
from traces.home import Home
from traces.regression import CHECK_MODES, DIAGNOSIS
from traces.report_parts import WHOLE_CHARS
from ui.cli import cli
from ui.web.samples import install_examples

PAGE = (ROOT / "ui" / "docs" / "regression.md").read_text(encoding="utf-8")
REPORT = (ROOT / "ui" / "docs" / "report.md").read_text(encoding="utf-8")
SESSION = r"^\$ rlmscope (.*)\n((?:(?!```|\$ ).*\n)*)"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The recorded examples, in the home that the commands find by themselves."""
    home = Home.resolve(tmp_path / "home")
    install_examples(home)
    monkeypatch.setenv("RLMSCOPE_HOME", str(home.root))
    monkeypatch.chdir(tmp_path)
    return home


def masked(text: str) -> str:
    """Without ids that differ from check to check."""
    return re.sub(r"\[[0-9a-f]{8}\]|(?<=diff )20\d{6}T\d{6}-[0-9a-f]{8}", "(id)", text)


@pytest.mark.usefixtures("home")
def test_the_commands_print_what_the_page_shows() -> None:
    session = re.findall(SESSION, PAGE, re.M)
    assert len(session) == 3
    for line, printed in session:
        done = CliRunner().invoke(cli, shlex.split(line))
        assert (done.exit_code, masked(done.stdout)) == (0, masked(printed)), line


def test_the_keys_named_are_those_of_the_document(home: Home) -> None:
    record_run(home)  # it has no corpus to be played over
    make_set(home, "small", [(RUN, "42")])
    document = json.loads(CliRunner().invoke(cli, ["check", "small", "--json"]).stdout)
    for row, keys in (("`check`", document), ("one of `results`", document["results"][0])):
        (named,) = re.findall(rf"^\| {row} \| (.*) \|$", PAGE, re.M)
        assert list(keys) == re.findall(r"`(\w+)`", named)


@pytest.mark.usefixtures("home")
def test_a_diagnosis_is_written_as_a_report_in_both_forms(tmp_path: Path) -> None:
    ((line, printed),) = re.findall(SESSION, REPORT, re.M)
    assert printed == ""
    assert CliRunner().invoke(cli, shlex.split(line)).exit_code == 0
    made = (tmp_path / "why.html").read_text("utf-8")
    assert (
        "Proven: replays of the recorded run decided it." in made
        and "ticket_0002.txt, bytes 0 to 215" in made
    )
    assert CliRunner().invoke(cli, shlex.split(line.replace(".html", ".md"))).exit_code == 0
    assert (
        (tmp_path / "why.md").read_text("utf-8").startswith("# Diagnosis of run 20260105T091500-0000e002\n")
    )
    refused = CliRunner().invoke(cli, shlex.split(line.replace(".html", ".pdf")))
    assert refused.exit_code == 2 and "a report is written as .html or .md" in refused.stderr


def test_modes_and_numbers_are_those_of_the_program() -> None:
    for name, words in CHECK_MODES.items():
        assert f"| `{name}` | {words} |" in PAGE
    assert (
        f"at most {DIAGNOSIS.replays} replays, no model" in PAGE and f"{WHOLE_CHARS:,} characters" in REPORT
    )
