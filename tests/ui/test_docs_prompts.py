"""What ui/docs/prompts.md and ui/docs/compaction.md say is compared with the program; their commands run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlm_core import root_window
from rlm_core.prompt_families import _NOTES, SMALL_WINDOW, family_of
from rlm_core.prompts import PROMPTS_VERSION, SNIPPET_CHARS, SYSTEM
from tests.support.command import ROOT
from traces.home import Home
from ui.cli import cli
from ui.web.samples import install_examples

DOCS = ROOT / "ui" / "docs"
PROMPTS = (DOCS / "prompts.md").read_text(encoding="utf-8")
COMPACTION = (DOCS / "compaction.md").read_text(encoding="utf-8")


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_traits_are_those_of_the_program() -> None:
    named = re.findall(r"^\| `(\w+)` \|", PROMPTS, re.M)
    assert named == ["small", *(trait for trait, _ in _NOTES)]
    assert f"at most {SMALL_WINDOW:,} tokens" in PROMPTS and f"{SNIPPET_CHARS:,}" in PROMPTS
    assert f"`{PROMPTS_VERSION}/gpt`" in PROMPTS
    (row,) = re.findall(r"^\| `reasoning` \| models that think first: (.*), \.\.\. \|", PROMPTS, re.M)
    for name in re.findall(r"`([^`]+)`", row):
        assert family_of(f"x/{name}", "x/y").traits == ("reasoning",), name


def test_the_loop_is_the_one_that_the_root_is_shown() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PROMPTS, re.S | re.M)
    assert code in SYSTEM


def test_the_facts_of_a_run_name_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home.resolve(tmp_path / "home")
    install_examples(home)
    monkeypatch.setenv("RLMSCOPE_HOME", str(home.root))
    (command,) = re.findall(r"^\$ rlmscope (.*)$", PROMPTS, re.M)
    run = "20260105T091500-0000e002"
    shown = json.loads(CliRunner().invoke(cli, ["show", run, "--json"]).stdout)
    top = next(span["span_id"] for span in shown["spans"] if span["kind"] == "run")
    done = CliRunner().invoke(cli, shlex.split(command.replace("RUN", run).replace("SPAN", top)))
    assert json.loads(done.stdout)["facts"]["prompts.version"]


@pytest.mark.full
def test_a_small_window_is_summed_up_by_the_demo_model_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLMSCOPE_HOME", str(tmp_path / "home"))
    (command,) = re.findall(r"^\$ rlmscope (.*)$", COMPACTION, re.M)
    tickets = str(ROOT / "sample_data" / "tickets")
    words = shlex.split(command.replace("FILES", tickets).replace("30000", "1200"))
    words[1] = "How many tickets are about refunds?"
    models = ["--root", "demo/root", "--sub", "demo/sub"]
    told = json.loads(CliRunner().invoke(cli, [*words, *models, "--json"]).stdout)
    whole = json.loads(CliRunner().invoke(cli, [*words[:-2], *models, "--json"]).stdout)
    assert told["answer"] == whole["answer"] and told["stop_reason"] == "final"
    tree = CliRunner().invoke(cli, ["show", told["run_id"]]).stdout
    assert (
        "summary of " in tree
        and "summary of " not in CliRunner().invoke(cli, ["show", whole["run_id"]]).stdout
    )


def test_the_figures_are_those_of_the_program() -> None:
    assert f"at most {root_window._MOST_WORDS} words" in flat(COMPACTION)
    assert f"more than {root_window._MOST_CHARS:,} characters" in flat(COMPACTION)
