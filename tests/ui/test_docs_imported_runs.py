"""The guide to imported runs: what it quotes is what the program says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from rlm_core import semconv as sc
from tests.support.command import ROOT
from tests.support.foreign_runs import some_times, write_foreign
from traces.home import Home
from traces.importers.foreign import Mark
from traces.reading import load_run

PAGE = (ROOT / "ui" / "docs" / "imported-runs.md").read_text("utf-8")
QUOTED = [line for block in re.findall(r"^```\n(.*?)^```$", PAGE, re.M | re.S) for line in block.splitlines()]


def test_what_it_quotes_is_said(home: Home, call: Callable[..., Any]) -> None:
    run = write_foreign(home, some_times()).run_id
    calls = [span for span in load_run(home, run).spans if span.kind == "sub_call"]
    commands = (("show", run), ("replay", run), *(("span", run, one.span_id) for one in (calls[0], calls[2])))
    said = "\n".join(call(*command).out for command in commands)
    shown = re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", PAGE, re.M)
    assert [mark for mark, _ in shown] == list(Mark.__args__)
    assert [words for words in (*QUOTED, *(words for _, words in shown)) if words not in said] == []


def test_the_keys_it_names_are_there(home: Home, call: Callable[..., Any]) -> None:
    run = write_foreign(home, some_times()).run_id
    section = PAGE.split("## For scripts")[1]
    shown = call("show", run, "--json").json["run"]
    cost = call("cost", run, "--json").json
    known = {*shown, *shown["import"], *cost["rows"][0]}
    named = set(re.findall(r"`([a-z_]+)`", section))
    assert named <= known and {"untold_calls", "derived_calls", "imported_from", "missing"} <= named
    assert sc.IMPORT_OWN not in named
