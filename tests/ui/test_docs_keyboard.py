"""What ui/docs/keyboard.md says of keys is compared with the buttons of the pages."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.command import ROOT
from tests.support.pages import ask_page, use
from tests.support.recorded_runs import WIDE, wide_run
from tests.support.run_pages import looked_at, named, run_page
from tests.support.step_runs import NESTED, nested_run
from traces.home import Home
from traces.reading import load_run

PAGE = (ROOT / "ui" / "docs" / "keyboard.md").read_text(encoding="utf-8")
TABLE = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", PAGE, re.M)
COUNT = re.compile(r" \([\d,]+\)$")


def keys_of(page: AppTest, **query: str) -> set[tuple[str, str]]:
    """Key and label of the buttons that have a key."""
    for name, value in query.items():
        page.query_params[name] = value
    buttons = looked_at(page).button
    return {(_key(b.proto.shortcut), COUNT.sub("", b.label)) for b in buttons if b.proto.shortcut}


def _key(shortcut: str) -> str:
    return "+".join(part.capitalize() for part in shortcut.split("+"))


def test_the_keys_are_those_of_the_buttons(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)
    call = named(load_run(home, wide_run(home, 200)), "sub_call", 3)
    child = named(load_run(home, nested_run(home)), "run", 1)
    found = keys_of(run_page(WIDE, call.span_id), q="refund")
    found |= keys_of(run_page(NESTED), view="steps", step="2")
    found |= keys_of(run_page(NESTED), view="steps", child=child.span_id)
    found |= keys_of(ask_page().switch_page("pages/compare.py"), a=WIDE, b=NESTED)
    assert found == {(key, label) for key, label in TABLE if key != "/"}
