"""What ui/docs/share.md says is so: its command, its keys, its bounds, its words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT
from traces.exporters import html_data
from traces.exporters.html_words import MARKS
from traces.home import Home
from traces.report_parts import WHOLE_CHARS
from ui.web.samples import install_examples

PAGE = (ROOT / "ui" / "docs" / "share.md").read_text(encoding="utf-8")
SCRIPTS = "".join(path.read_text("utf-8") for path in (ROOT / "traces" / "exporters" / "page").glob("*.js"))
((COMMAND, PRINTED),) = re.findall(r"^\$ rlmscope (.*)\n((?:(?!```).*\n)*)", PAGE, re.M)


def test_the_command_prints_what_the_page_shows(
    home: Home, call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_examples(home)
    monkeypatch.chdir(tmp_path)
    done = call(*shlex.split(COMMAND))
    assert (done.code, done.out) == (0, PRINTED)
    assert "How many tickets are about billing?" in (tmp_path / "run.html").read_text("utf-8")


def test_the_keys_named_are_those_that_the_page_knows() -> None:
    rows = re.findall(r"^\| (`.+?`) \|", PAGE, re.M)
    named = {key for row in rows for key in re.findall(r"`([^`]+)`", row)}
    arrows = {"↑": "ArrowUp", "↓": "ArrowDown", "→": "ArrowRight", "←": "ArrowLeft"}
    assert named == {*arrows, "PageUp", "PageDown", "Home", "End", "/", "n", "p"}
    for key in named:
        word = arrows.get(key, key)
        assert re.search(rf'\b{word}: \(\) =>|=== "{re.escape(word)}"', SCRIPTS), key


def test_the_bounds_and_the_words_of_trust_are_those_that_hold() -> None:
    assert f"more than {WHOLE_CHARS:,} characters" in PAGE
    assert f"{html_data.MOST_CHARS // 1_000_000}\n  million characters" in PAGE
    assert set(MARKS.values()) <= set(re.findall(r"`([^`\n]+)`", PAGE))
