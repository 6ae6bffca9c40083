"""Ids of spans in a printed tree: as short as they can be typed, and never those of two spans."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.traces.records import RUN, end, fin, header, home_in, start, write_spool
from traces.reading import load_run
from traces.runs import resolve_span
from ui.render import show_found
from ui.tree import tree_lines

IDS = ("aaaaaaaa00000001", "aaaaaaaa00000002", "aaaaaaaa10000000", "bbbbbbbb00000000")


@pytest.mark.parametrize("everything", [False, True])
def test_every_id_that_is_shown_names_one_span(tmp_path: Path, everything: bool) -> None:
    home = home_in(tmp_path)
    write_spool(home, [header(), *(one for name in IDS for one in (start(name), end(name))), fin()])
    view = load_run(home, RUN)
    lines = [line.text for line in tree_lines(view, everything=everything)]
    shown = re.findall(r"\[(\w+)\]", "\n".join(lines))
    assert shown == ["aaaaaaaa00000001", "aaaaaaaa00000002", "aaaaaaaa1", "bbbbbbbb"]
    assert [resolve_span(view, each).span_id for each in shown] == list(IDS)
    found = "\n".join(show_found(view, [(span, ["its name"]) for span in view.spans]))
    assert re.findall(r"\[(\w+)\]", found) == shown
