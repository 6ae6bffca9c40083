"""What ui/docs/export.md and ui/docs/notebook.md say is run: commands, programs, keys, columns, words."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from tests.support.command import ROOT, inside
from traces import tables
from traces.exporters import FORMATS, csv, parquet
from traces.exporters.secrets import REDACTED
from traces.frames import OpenStore
from traces.home import Home
from traces.instrumenting import Batch, Call, Cell, Iteration, Run
from traces.rows import MARKS
from ui.cli import cli
from ui.web.samples import install_examples

EXPORT = (ROOT / "ui" / "docs" / "export.md").read_text(encoding="utf-8")
NOTEBOOK = (ROOT / "ui" / "docs" / "notebook.md").read_text(encoding="utf-8")
FRAMES, ENGINE = re.findall(r"^```python\n(.*?)^```$", NOTEBOOK, re.S | re.M)
SESSION = r"^\$ rlmscope (.*)\n((?:(?!```|\$ ).*\n)*)"


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home with the two recorded examples, which the commands find by themselves."""
    home = Home.resolve(tmp_path / "home")
    monkeypatch.setenv("RLMSCOPE_HOME", str(home.root))
    monkeypatch.chdir(tmp_path)
    install_examples(home)
    return home


@pytest.mark.usefixtures("examples")
def test_the_commands_print_what_the_page_shows_and_the_query_is_answered(tmp_path: Path) -> None:
    for line, printed in re.findall(SESSION, EXPORT, re.M):
        done = CliRunner().invoke(cli, shlex.split(line))
        assert (done.exit_code, done.stdout.replace(f"{tmp_path}/", "")) == (0, printed), done.stderr
    again = CliRunner().invoke(cli, [*shlex.split(line), "--out", "again", "--json"])
    keys = re.findall(r"^\| `(\w+)` \|", EXPORT.partition("| Key | |")[2].partition("\n\n")[0], re.M)
    assert list(json.loads(again.stdout)) == keys
    (query,) = re.findall(r"^```\n(SELECT .*?)^```$", EXPORT, re.S | re.M)
    assert duckdb.sql(query.replace("'tables", f"'{tmp_path / 'tables'}")).fetchall()[0][:2] == (
        "demo/sub",
        400,
    )


def test_the_formats_are_said_in_the_words_of_the_program() -> None:
    assert all(f"| `{name}` | {one.words} |" in EXPORT for name, one in FORMATS.items())
    named = EXPORT.partition("| `--format` |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", named, re.M)) == {*FORMATS, "sft"}
    assert f"`{REDACTED}`" in EXPORT and all(f"`{mark}`" in EXPORT for mark in MARKS)


def test_the_tables_and_columns_of_the_page_are_those_of_the_files() -> None:
    files = EXPORT.partition("| File |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", files, re.M) == list(parquet.TABLES)
    columns = EXPORT.partition("## CSV of calls")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z]+_[a-z_]+)`", columns)) - {*MARKS}
    assert named <= set(csv.COLUMNS) == {*tables.CALLS_WITH_TEXTS.names} - {"parent_id"}


def test_the_steps_and_calls_of_the_page_are_those_of_the_library() -> None:
    steps = NOTEBOOK.partition("| Step |")[2].partition("\n\n")[0]
    kinds = (
        ("instrument", Run),
        ("iteration", Iteration),
        ("cell", Cell),
        ("batch", Batch),
        ("root_call", Call),
    )
    for name, kind in kinds:
        (row,) = [line for line in steps.splitlines() if line.startswith(f"| `{name}(")]
        named = set(re.findall(r"`(\w+)`", row))
        assert named == {each for each in dir(kind) if not each.startswith("_")} - {
            "run_id",
            "span_id",
            "phase",
        }, name
    rows = NOTEBOOK.partition("| Call | Gives |")[2].partition("\n\n")[0]
    named = set(re.findall(r"^\| `(\w+)\(", rows, re.M))
    assert named == {each for each in dir(OpenStore) if not each.startswith("_")} - {"close", "home"}


def printed(code: str, *arguments: str | Path) -> str:
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("examples")
def test_the_program_with_frames_runs_as_it_stands() -> None:
    shown = printed(FRAMES)
    assert "demo/sub" in shown and "call_index" in shown and "Decompose" in shown


def test_the_small_engine_leaves_a_run_that_every_command_reads(tmp_path: Path) -> None:
    assert len(ENGINE.split("\n\n")[-1].splitlines()) <= 20
    home = tmp_path / "records"
    printed(ENGINE, home)
    for line, _ in re.findall(SESSION, NOTEBOOK, re.M):
        words = shlex.split(line)[: -len(["--home", "records"])]
        assert inside(*words, "--home", home)
    shown = inside("show", "last", "--home", home)
    assert (shown["run"]["answer"], shown["run"]["status"], shown["run"]["sub_calls"]) == ("2", "ok", 3)
    assert inside("cost", "last", "--home", home)["cost_status"] == "priced"
    printed(ENGINE, home)
    first, second = (run["run_id"] for run in inside("runs", "--home", home))
    assert {row["status"] for row in inside("diff", first, second, "--home", home)["rows"]} == {"same"}
    refused = CliRunner().invoke(cli, ["replay", "last", "--home", str(home)])
    assert "cannot be played again" in refused.stdout + refused.stderr
