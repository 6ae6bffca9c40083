"""What ui/docs/coverage.md says of the JSON form is compared with what the command prints."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from rlm_core.source_ranges import MOST_FOR_SHOWN
from sample_data.generators.examples import RIGHT
from tests.support.command import ROOT, rlmscope
from traces.coverage import LISTED
from traces.home import Home
from ui.web.listing import PAGE_ROWS
from ui.web.strips_view import MOST, WORDS

PAGE = (ROOT / "ui" / "docs" / "coverage.md").read_text(encoding="utf-8")


def test_the_figures_are_those_of_the_example_that_is_shipped(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.S | re.M)
    home = Home(tmp_path / "home")
    home.create()
    shutil.copy(ROOT / "sample_data" / "examples" / f"{RIGHT}.jsonl", home.spool)
    told = rlmscope("show", RIGHT, "--home", home.root)["coverage"]
    listed, left_out = told.pop("by_document"), told.pop("left_out")
    assert told == json.loads(block)
    assert (len(listed), left_out) == (LISTED, told["documents"] - LISTED)
    shares = {"sent", "shown", "unanswered", "given", "read"}
    assert set(listed[0]) == {"number", "document", "bytes", "is_image", "seen", *shares}
    assert [key for key in listed[0] if f"`{key}`" not in PAGE] == []


def test_words_and_limits_are_those_of_the_program() -> None:
    assert [word for word in WORDS.values() if f"| {word} |" not in PAGE] == []
    assert f"the {LISTED} documents" in PAGE and f"at most {MOST} steps" in PAGE
    assert PAGE_ROWS == 50 and "fifty at a" in PAGE
    assert f"more than {MOST_FOR_SHOWN >> 20} MB" in PAGE
