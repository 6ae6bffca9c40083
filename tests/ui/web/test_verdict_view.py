"""The form of a verdict: what it keeps, what it shows, what it says when it cannot keep it."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core.errors import RecordError
from tests.support.pages import HOSTILE, badly_shown, problems, texts
from traces import opinions as stored
from traces.home import Home
from traces.opinions import judge, opinions, tag
from ui.web import verdict_view

RUN, SPAN = "20260102T030405-0000abcd", "00000000000000aa"


def script() -> None:
    import streamlit as st

    from ui.web.verdict_view import verdict

    verdict(*st.session_state["about"], key="v")


def form(home: Home, span_id: str | None = None) -> AppTest:
    page = AppTest.from_function(script, default_timeout=60)
    page.session_state["about"] = (home, RUN, span_id)
    page.run()
    assert not page.exception, page.exception
    return page


def test_a_verdict_is_kept_at_the_click_and_taken_back_by_another(home: Home) -> None:
    page = form(home)
    page.segmented_control(key="v-word").set_value("wrong").run()
    kept = opinions(home).of(RUN)
    assert kept is not None and kept.verdict == "wrong" and opinions(home).of(RUN, SPAN) is None
    assert page.segmented_control(key="v-word").value == "wrong"
    page.segmented_control(key="v-word").set_value(None).run()
    assert opinions(home).of(RUN) is None


def test_an_expected_answer_a_note_and_tags_are_kept_beside_the_verdict(home: Home) -> None:
    judge(home, RUN, verdict="wrong")
    page = form(home)
    page.text_area[0].set_value(" 41 ")
    page.selectbox[0].set_value("number")
    page.text_area[1].set_value("counts twice")
    page.text_input[0].set_value("billing, smoke ,")
    page.button[0].click().run()
    kept = opinions(home).of(RUN)
    assert kept is not None and opinions(home).tags(RUN) == ("billing", "smoke")
    assert (kept.verdict, kept.expected, kept.how, kept.note) == ("wrong", "41", "number", "counts twice")
    assert texts(page) == ["Expected: 41 · Note: counts twice · Tags: billing, smoke"]
    page.segmented_control(key="v-word").set_value("right").run()
    kept = opinions(home).of(RUN)
    assert kept is not None and (kept.verdict, kept.expected, kept.note) == ("right", "41", "counts twice")


def test_a_span_has_a_verdict_and_a_note_of_its_own(home: Home) -> None:
    page = form(home, SPAN)
    assert [area.label for area in page.text_area] == ["Note"] and not page.text_input
    page.text_area[0].set_value("cut off")
    page.button[0].click().run()
    kept = opinions(home).of(RUN, SPAN)
    assert kept is not None and kept.note == "cut off" and opinions(home).of(RUN) is None


def test_what_was_said_elsewhere_is_shown_at_the_next_look(home: Home) -> None:
    page = form(home)
    judge(home, RUN, verdict="unsure", expected="42")
    page.run()
    assert page.segmented_control(key="v-word").value == "unsure" and page.text_area[0].value == "42"


def test_a_click_leaves_alone_what_another_tab_said_meanwhile(home: Home) -> None:
    page = form(home)
    judge(home, RUN, verdict=None, expected="42", note="from another tab")
    page.segmented_control(key="v-word").set_value("right").run()
    kept = opinions(home).of(RUN)
    assert kept is not None
    assert (kept.verdict, kept.expected, kept.note) == ("right", "42", "from another tab")


def test_what_cannot_be_kept_is_one_sentence_and_nothing_is_lost(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(home, RUN, verdict="right", note="sure")
    page = form(home)
    page.text_input[0].set_value("x" * 41)
    page.button[0].click().run()
    assert len(problems(page)) == 1 and "tag has 1 to 40" in problems(page)[0]
    page.run()
    assert problems(page) == [] and page.text_input[0].value == "x" * 41

    def full(*_: object, **__: object) -> None:
        raise RecordError("user.jsonl cannot be written: the disk is full.")

    monkeypatch.setattr(verdict_view, "judge", full)
    page.segmented_control(key="v-word").set_value("wrong").run()
    assert problems(page) == ["user.jsonl cannot be written: the disk is full."]
    assert page.segmented_control(key="v-word").value == "right"
    monkeypatch.setattr(stored.user_log, "records", full)
    stored._read.cache_clear()
    page.run()
    assert problems(page) == ["user.jsonl cannot be written: the disk is full."]


def test_hostile_notes_are_plain_text(home: Home) -> None:
    judge(home, RUN, verdict="wrong", expected=HOSTILE, note=HOSTILE)
    tag(home, RUN, ["![HOSTILE](http://127.0.0.1:9/x)"])
    page = form(home)
    assert badly_shown(page, "HOSTILE") == [] and "HOSTILE" in texts(page)[0] and "\x1b" not in texts(page)[0]
