"""What ui/docs/compare.md says is run: its command, its statuses, its keys."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any, get_args

import pytest

from tests.support.command import ROOT
from traces.align_keys import Matched
from traces.diff import STATUSES
from traces.home import Home
from ui.web.samples import install_examples

PAGE = (ROOT / "ui" / "docs" / "compare.md").read_text(encoding="utf-8")
((COMMAND, PRINTED),) = re.findall(r"^\$ rlmscope (.*)\n((?:(?!```).*\n)*)", PAGE, re.M)


@pytest.fixture(autouse=True)
def examples(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    install_examples(home)
    monkeypatch.setenv("COLUMNS", "110")


def test_the_command_prints_what_the_page_shows(call: Callable[..., Any]) -> None:
    done = call(*shlex.split(COMMAND))
    first, last = PRINTED.split("...\n")
    assert done.code == 0 and done.out.startswith(first) and done.out.endswith(last)


def test_the_statuses_and_the_ways_of_pairing_are_those_that_exist() -> None:
    rows = dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", PAGE, re.M))
    assert {status: rows[status] for status in STATUSES} == STATUSES
    assert rows.keys() == {*STATUSES, *get_args(Matched)}


def test_the_keys_named_are_those_of_the_document(call: Callable[..., Any]) -> None:
    told = call(*shlex.split(COMMAND), "--json").json
    named = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("## As JSON") : PAGE.index("## What this")]))
    assert named == {*told, *told["answers"], *told["rows"][0]}
