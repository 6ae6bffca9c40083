"""What people say about runs: the last word stands, nothing is lost, bad input is one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_core.errors import InputError
from tests.traces.records import record_run
from traces import user_log
from traces.home import Home
from traces.opinions import TEXT_CHARS, judge, opinions, tag
from traces.upkeep import rebuild

RUN, OTHER, SPAN = "20260102T030405-0000abcd", "20260102T030405-0000abce", "00000000000000aa"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(tmp_path / "home")


def test_nothing_was_said_in_a_new_home(home: Home) -> None:
    said = opinions(home)
    assert (said.of(RUN), said.tags(RUN), said.all_tags, said.spans(RUN)) == (None, (), (), {})


def test_the_last_word_about_a_run_stands_and_that_about_its_spans_apart(home: Home) -> None:
    judge(home, RUN, verdict="right", note="at first sight")
    judge(home, RUN, verdict="wrong", expected="41", how="number±0.5")
    judge(home, RUN, span_id=SPAN, verdict="unsure", note="read it again")
    said = opinions(home)
    run, span = said.of(RUN), said.of(RUN, SPAN)
    assert run is not None and span is not None
    assert (run.verdict, run.expected, run.how, run.note) == ("wrong", "41", "number±0.5", None)
    assert (span.verdict, span.note) == ("unsure", "read it again")
    assert said.spans(RUN) == {SPAN: span} and said.spans(OTHER) == {} and said.of(OTHER) is None


def test_a_verdict_can_be_withdrawn(home: Home) -> None:
    judge(home, RUN, verdict="right")
    judge(home, RUN, verdict=None)
    assert opinions(home).of(RUN) is None


def test_tags_are_replaced_as_a_whole_and_listed_over_all_runs(home: Home) -> None:
    tag(home, RUN, ["to  do", "billing", "billing "])
    tag(home, OTHER, ["smoke"])
    assert opinions(home).tags(RUN) == ("billing", "to do")
    assert opinions(home).all_tags == ("billing", "smoke", "to do")
    tag(home, RUN, [])
    assert opinions(home).tags(RUN) == () and opinions(home).all_tags == ("smoke",)


def test_what_was_said_survives_a_rebuild(home: Home) -> None:
    record_run(home, RUN)
    judge(home, RUN, verdict="wrong", expected="41")
    before = opinions(home).of(RUN)
    rebuild(home)
    assert opinions(home).of(RUN) == before is not None


def test_what_another_process_says_is_seen(home: Home) -> None:
    assert opinions(home).of(RUN) is None
    user_log.append(home, "verdict", {"run_id": RUN, "verdict": "right"})
    found = opinions(home).of(RUN)
    assert found is not None and (found.verdict, found.how) == ("right", "normalised")


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"run_id": 7, "verdict": "right"},
        {"run_id": RUN, "span_id": 1, "verdict": "right"},
        {"run_id": RUN, "verdict": "splendid"},
        {"run_id": RUN, "verdict": ["right"], "note": {"a": 1}},
    ],
)
def test_a_record_that_says_nothing_usable_is_passed_over(home: Home, facts: dict[str, Any]) -> None:
    user_log.append(home, "verdict", facts)
    user_log.append(home, "tags", {**facts, "tags": "billing"})
    user_log.append(home, "tags", {"run_id": OTHER, "tags": [1, "a,b", "x" * 99, "fine"]})
    said = opinions(home)
    assert said.of(RUN) is None and said.all_tags == ("fine",)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"verdict": "perfect"}, "a verdict is right, wrong or unsure, not 'perfect'"),
        ({"verdict": "wrong", "how": "vibes"}, "answers are compared by normalised"),
        ({"verdict": "wrong", "how": "number±x"}, "answers are compared by normalised"),
        ({"verdict": "wrong", "how": "regex", "expected": "("}, "no regular expression"),
        ({"verdict": "wrong", "note": "x" * (TEXT_CHARS + 1)}, "the note has 100,001 characters"),
    ],
)
def test_what_cannot_be_said_is_refused_and_changes_nothing(
    home: Home, said: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        judge(home, RUN, **said)
    assert not home.user_log.exists()


@pytest.mark.parametrize("tags", [[""], ["a,b"], ["x" * 41], ["a\x1bb"], [str(n) for n in range(21)]])
def test_tags_that_cannot_be_kept_are_refused(home: Home, tags: list[str]) -> None:
    with pytest.raises(InputError, match="tag"):
        tag(home, RUN, tags)
    assert not home.user_log.exists()
