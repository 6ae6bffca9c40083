"""The programs of ui/docs/library.md are run as they stand, and its tables name what there is."""

from __future__ import annotations

import dataclasses
import re
import shlex
import subprocess
import sys
from pathlib import Path

from rlm_core import events, rlms
from rlm_core.event_stream import CAPACITY
from rlm_core.limits import Limits
from tests.support.command import ROOT, inside

PAGE = (ROOT / "ui" / "docs" / "library.md").read_text(encoding="utf-8")
SIMPLE, FOLLOW, RLMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.S | re.M)


def printed(code: str, *arguments: str | Path) -> list[str]:
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_short_programs_run_as_they_stand() -> None:
    together = f"{SIMPLE}\n{RLMS}"
    assert printed(together) == ["1 final demo", "1 True final"]


def test_the_program_that_follows_leaves_runs_that_the_commands_read(tmp_path: Path) -> None:
    assert len(FOLLOW.splitlines()) < 40
    (line,) = re.findall(r"^\$ rlmscope (.*)$", PAGE, re.M)
    words = shlex.split(line)
    home = tmp_path / words[-1]
    lines = printed(FOLLOW, home, ROOT / "sample_data" / "tickets")
    ends = [re.fullmatch(r"(.*\?) (\d+) after 200 sub-calls in run (\S+)", line) for line in lines]
    told = {end[3]: (end[1], end[2]) for end in ends if end}
    assert len(told) == 2 and sum("cell" in line for line in lines) == len(lines) - 2 >= 2
    runs = inside(*words[:-1], home)
    assert {run["run_id"]: (run["question"], run["answer"]) for run in runs} == told
    assert {run["status"] for run in runs} == {"ok"}
    shown = inside("show", runs[0]["run_id"], "--home", home)
    assert sum(span["kind"] == "sub_call" for span in shown["spans"]) == 200


def test_the_tables_name_every_event_and_field() -> None:
    rows = PAGE.partition("## Events")[2].partition("Texts are cut")[0]
    named = set(re.findall(r"`([A-Z]\w+)`", rows))
    base = {"Event", "SpanEvent", "EndEvent", "CallEnded"}
    kinds = {
        name: kind
        for name, kind in vars(events).items()
        if isinstance(kind, type) and issubclass(kind, events.Event)
    }
    assert named == kinds.keys() - base
    fields = {field.name for kind in kinds.values() for field in dataclasses.fields(kind)}
    assert {word for word in re.findall(r"`([a-z_]+)`", rows)} <= fields
    assert f"{CAPACITY:,}" in PAGE and f"{events.MOST_TEXT:,} characters" in PAGE


def test_the_table_for_rlms_names_every_parameter() -> None:
    rows = PAGE.rpartition("## Programs written for `rlms`")[2]
    parameters = {field.name for field in dataclasses.fields(rlms.RLM)}
    refused = {name for name, _, _ in rlms._NOT_HERE}
    named = set(re.findall(r"[a-z_]+", rows))
    assert parameters - named <= refused | {"handler"}
    limits = set(re.findall(r"Limits[.(](\w+)", PAGE))
    assert limits and all(hasattr(Limits(), name) for name in limits)
