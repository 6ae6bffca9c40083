"""What the README says is run: its commands, its Python, the picture of the tree, its table of commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from bootstrap import COMMANDS
from tests.support.command import ROOT, rlmscope
from tests.support.readme_pictures import PICTURES, SHOTS, THEMES

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.S | re.M)
LINES = [line.strip() for tag, block in BLOCKS if tag != "python" for line in block.splitlines()]
SHELL = [line for line in LINES if re.match(r"(\.venv/bin/)?rlmscope ", line)]


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    from ui.cli import cli

    with click.Context(cli) as context:
        found = cli.get_command(context, words[0])
    assert found is not None, words
    rest = words[1:]
    while isinstance(found, click.Group) and rest and rest[0] in found.commands:
        found, rest = found.commands[rest[0]], rest[1:]
    return found, rest


@pytest.mark.parametrize("line", SHELL + re.findall(r"`(rlmscope [^`]+)`", README))
def test_every_command_line_is_one_the_program_takes(line: str) -> None:
    words = shlex.split(line.replace("--sandbox standard", ""))
    command, rest = command_of(words[words.index(next(w for w in words if w.endswith("rlmscope"))) + 1 :])
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= known


@pytest.mark.parametrize("option", sorted(set(re.findall(r"`(--[a-z-]+)", README)) - {"--json"}))
def test_every_option_named_in_the_text_exists(option: str) -> None:
    command, _ = command_of(["ask"])
    others = [command_of([name])[0] for name in ("ingest", "show", "diagnose")]
    assert option in {o for c in (command, *others) for p in c.params for o in p.opts}


def test_every_guide_is_linked_and_every_link_leads_to_a_file() -> None:
    guides = README.partition("## All guides")[2].partition("\n## ")[0]
    linked = re.findall(r"\]\((ui/docs/[\w-]+\.md)\)", guides)
    assert sorted(linked) == sorted(f"ui/docs/{path.name}" for path in (ROOT / "ui" / "docs").glob("*.md"))
    pages = {ROOT / "README.md": README} | {
        path: path.read_text("utf-8") for path in (ROOT / "ui" / "docs").glob("*.md")
    }
    for page, text in pages.items():
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (page.parent / link).is_file(), (page.name, link)


def test_the_python_example_runs() -> None:
    code = next(block for tag, block in BLOCKS if tag == "python")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "final", "0"]


def test_every_make_target_exists() -> None:
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", README, re.M))
    assert {"app", "test", "demo"} <= named <= set(COMMANDS)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{name}:", makefile, re.M) for name in COMMANDS)


def test_the_practice_run_goes_as_described(tmp_path: Path) -> None:
    """The broken run differs from the whole one, and both can be looked at as the page says."""
    question, corpus = "How many tickets are about billing?", ROOT / "sample_data" / "tickets"
    line = next(line for line in SHELL if "--fault-seed" in line)
    words = shlex.split(line)
    assert words[2:4] == [question, "sample_data/tickets"]
    faults = words[4:]
    struck = rlmscope("ask", question, corpus, *faults, "--home", tmp_path)
    whole = rlmscope("ask", question, corpus, "--home", tmp_path)
    assert struck["sub_calls"] == whole["sub_calls"] == 200
    assert struck["answer"] != whole["answer"]  # there is something to find
    shown = [rlmscope("show", run["run_id"], "--home", tmp_path)["spans"] for run in (struck, whole)]
    replies = [{s["call_index"]: s["preview"] for s in spans if s["kind"] == "sub_call"} for spans in shown]
    differing = [index for index in replies[0] if replies[0][index] != replies[1][index]]
    assert 0 < len(differing) < 20


def test_the_picture_shows_the_tree_that_show_prints(tmp_path: Path) -> None:
    """Same iterations, phases and grouping as a real run; the picture leaves numbers out."""
    question, corpus = "How many tickets are about billing?", ROOT / "sample_data" / "tickets"
    rlmscope("ask", question, corpus, "--home", tmp_path)
    command = [sys.executable, "-m", "ui", "show", "last", "--home", str(tmp_path)]
    real = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    picture = next(block for _, block in BLOCKS if "200 x llm_query" in block)
    phases = r"iteration \d (\w+)|cell \d (\w+)"
    assert re.findall(phases, picture) and set(re.findall(phases, picture)) <= set(re.findall(phases, real))
    assert "200 x llm_query: 200 ok" in real


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "ui" / "docs").glob("*.md"))], ids=str)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([^)#\s]+)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    missing = [one for one in linked if "://" not in one and not (page.parent / one).is_file()]
    assert not missing


def test_the_pictures_are_of_both_themes_and_small() -> None:
    shown = set(re.findall(r'(?:src|srcset)="([^"]+)"', README))
    made = {f"ui/docs/pictures/{name}-{theme}.png" for name in SHOTS for theme in THEMES}
    assert shown <= made == {f"ui/docs/pictures/{path.name}" for path in PICTURES.iterdir()}
    assert all(path.stat().st_size < 300_000 for path in PICTURES.iterdir())
