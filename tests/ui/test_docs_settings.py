"""What ui/docs/settings.md and ui/docs/first-steps.md say is what happens."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT
from traces.home import Home
from ui.web.first_steps import _STEPS
from ui.web.settings import _LIMITS, load_settings
from ui.web.settings_keys import ADDRESS_ENDS, is_key_name

DOCS = ROOT / "ui" / "docs"
SETTINGS = (DOCS / "settings.md").read_text("utf-8")
FIRST_STEPS = (DOCS / "first-steps.md").read_text("utf-8")
SESSION = re.findall(r"^\$ (.*)\n(.*)\n", SETTINGS, re.M)


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(("command", "output"), SESSION)
def test_the_commands_print_what_the_page_says(
    command: str, output: str, call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one.txt").write_text("A note.")
    monkeypatch.chdir(tmp_path)
    refused = call(*shlex.split(command)[1:])
    assert (refused.code, refused.err) == (2, output + "\n")


def test_the_file_of_the_page_holds_settings(home: Home) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```$", SETTINGS, re.S | re.M)
    home.settings.write_text(text)
    settings = load_settings(home)
    assert (settings.root, settings.sub, settings.sandbox) == (
        "openai/gpt-5",
        "openai/gpt-5-mini",
        "standard",
    )
    limits = settings.checked_limits()
    assert (limits.max_calls, limits.max_cost_usd) == (500, Decimal("0.50"))


def test_every_setting_and_every_kind_of_name_is_on_the_page() -> None:
    named = re.search(r"There are (.*?)\. What is", flat(SETTINGS))
    assert named is not None and sorted(re.findall(r"`(\w+)`", named[1])) == sorted(_LIMITS)
    ends = re.findall(r"`\.\.\.(_\w+)`", SETTINGS)
    assert set(ADDRESS_ENDS) < set(ends) and all(is_key_name(f"SOME{end}") for end in ends)
    assert all(map(is_key_name, ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION_NAME")))


def test_the_parts_and_steps_are_those_of_the_pages() -> None:
    source = (ROOT / "ui" / "web" / "pages" / "settings.py").read_text("utf-8")
    parts = re.findall(r'^    "(\w+)": _Part\(', source, re.M)
    said = re.search(r"\(`/settings\?part=(\w+)`, (.*?)\)", flat(SETTINGS))
    assert said is not None and [said[1], *re.findall(r"`(\w+)`", said[2])] == parts
    assert len(re.findall(r"^\| \d \|", FIRST_STEPS, re.M)) == len(_STEPS)


def test_links_lead_to_pages_that_are_there() -> None:
    for page in (SETTINGS, FIRST_STEPS):
        assert all((DOCS / link).exists() for link in re.findall(r"\]\(([\w-]+\.md)\)", page))
