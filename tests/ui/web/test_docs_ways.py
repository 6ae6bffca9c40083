"""What the docs call by name on the pages that ask in other ways is there under that name."""

from __future__ import annotations

import re

import pytest

from tests.support.command import ROOT
from tests.support.pages import ask_page, runs_page, shown, use
from tests.support.way_runs import asked_by
from traces.home import Home

FIRST, SECOND = "20270115T080000-00000001", "20270115T080000-00000002"
DOCS = ("strategies", "repeat", "resume", "training-data")
LATER = {"Cancel the run", "Download"}  # while a run is at work, once a file was made: see the pages' tests


def named() -> set[str]:
    """What stands in bold in the sections about the app."""
    pages = [(ROOT / "ui" / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in DOCS]
    sections = [re.search(r"^## In the app\n(.*?)^## ", page, re.M | re.S) for page in pages]
    return {
        " ".join(bold.split())
        for one in sections
        if one
        for bold in re.findall(r"\*\*(.+?)\*\*", one[1], re.S)
    }


def test_every_name_is_on_its_page(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)
    asked_by(home, FIRST, "direct", None)
    asked_by(home, SECOND, None, "four")
    run = ask_page().switch_page("pages/run.py")
    run.query_params["run"] = FIRST
    listed = runs_page(chosen=f"{FIRST},{SECOND}")
    strategies = ask_page().switch_page("pages/strategies.py").run()
    pages = [ask_page().run(), run.run(), listed, strategies]
    pages.append(runs_page(chosen=FIRST).button(key="runs-training-button").click().run())
    text = "\n".join(shown(page) for page in pages)
    main = (ROOT / "ui" / "web" / "main.py").read_text(encoding="utf-8")
    titles = set(re.findall(r'title="(\w+)"', main))
    words = named()
    assert len(words) > 9 and {"Strategies", "Runs", "Ask"} <= words
    assert [word for word in words - titles - LATER if word.rstrip("…") not in text] == []
