"""`rlmscope mark`: verdicts, expected answers, notes and tags, and where other commands show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from traces.home import Home
from traces.opinions import opinions

RUN, OTHER = "20270115T080000-00000001", "20270115T080000-00000002"
Call = Callable[..., Any]


@pytest.fixture(autouse=True)
def _run(written: Callable[..., Any]) -> None:
    written(RUN)


def test_what_is_said_is_shown_and_kept_until_something_else_is_said(call: Call) -> None:
    said = call("mark", RUN[:12], "--verdict", "wrong", "--expected", "41", "--tag", "billing", "--json").json
    assert {**said, "time": ""} == {
        "run_id": RUN, "span_id": None, "verdict": "wrong", "expected": "41", "how": "normalised",
        "note": None, "time": "", "tags": ["billing"],
    }  # fmt: skip
    said = call("mark", "last", "--note", "counts twice", "--how", "number", "--tag", "x", "--json").json
    assert (said["verdict"], said["expected"], said["how"]) == ("wrong", "41", "number")
    assert (said["note"], said["tags"]) == ("counts twice", ["billing", "x"])
    done = call("mark", RUN, "--verdict", "nothing", "--expected", "", "--untag", "billing")
    assert done.out == "note: counts twice\ntags: x\n"
    assert call("mark", RUN, "--note", "", "--untag", "x").out == "nothing was said about it\n"


def test_a_span_has_a_verdict_and_a_note(home: Home, call: Call) -> None:
    span_id = next(s["span_id"] for s in call("show", RUN, "--json").json["spans"] if s["kind"] == "sub_call")
    said = call("mark", RUN, span_id, "--verdict", "wrong", "--note", "made up", "--json").json
    assert (said["span_id"], said["verdict"], said["note"]) == (span_id, "wrong", "made up")
    shown = call("show", RUN, "--json").json
    assert shown["verdicts"] == {span_id: {"verdict": "wrong", "note": "made up"}}
    assert shown["run"]["verdict"] is None
    done = call("mark", RUN, span_id, "--tag", "x")
    assert done.code == 2 and "--tag is for runs" in done.err
    assert opinions(home).tags(RUN) == ()


def test_lists_and_show_say_what_was_said_also_after_a_rebuild(
    call: Call, written: Callable[..., Any]
) -> None:
    written(OTHER)
    call("mark", RUN, "--verdict", "right", "--expected", "42", "--tag", "smoke")
    assert call("ingest", "--rebuild").code == 0
    keys = ("verdict", "expected", "tags")
    runs = {run["run_id"]: [run[key] for key in keys] for run in call("runs", "--json").json}
    assert runs == {RUN: ["right", "42", ["smoke"]], OTHER: [None, None, []]}
    assert [call("show", RUN, "--json").json["run"][key] for key in keys] == ["right", "42", ["smoke"]]
    assert call("show", RUN).out.endswith("verdict: right\nexpected: 42\ntags: smoke\n")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--verdict", "splendid"], "a verdict is right, wrong or unsure, not 'splendid'"),
        (["--how", "vibes"], "answers are compared by"),
        (["--how", "exact"], "give --expected too"),
        (["--how", "contains", "--expected", " ."], "contains needs a text to look for"),
        (["--tag", "a,b"], "a tag has 1 to 40"),
        (["--verdict", "right", "--tag", "a,b"], "a tag has 1 to 40"),
        (["0000ffff", "--verdict", "right"], "There is no span"),
    ],
)
def test_what_cannot_be_said_is_one_line(home: Home, call: Call, words: list[str], complaint: str) -> None:
    done = call("mark", RUN, *words)
    assert done.code == 2 and complaint.casefold() in done.error.casefold() and not done.out
    assert not home.user_log.exists()


def test_a_run_that_is_not_there_is_one_line(call: Call) -> None:
    assert call("mark", "2099", "--verdict", "right").code == 2
