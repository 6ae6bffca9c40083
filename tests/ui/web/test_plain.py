"""Untrusted text on pages: which elements show it, what they show, and how much of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.pages import HOSTILE, PLAIN, elements
from ui.web import plain

UNSEEN = "a\x00b\x1b[31mc\u202ed\u2066e\ud800f\u2028g\ufeffh"
SEEN = "a␀b␛[31mc\\u202ed\\u2066e\\ud800f\\u2028g\\ufeffh"


def drawn(show: Callable[..., Any], *values: Any, **options: Any) -> AppTest:
    """What one call of `plain` draws."""
    page = AppTest.from_string("import streamlit as st\nst.session_state.draw()", default_timeout=60)
    page.session_state["draw"] = lambda: show(*values, **options)
    page.run()
    assert not page.exception, page.exception
    return page


def captions(page: AppTest) -> list[str]:
    return [caption.value for caption in page.caption]


@pytest.mark.parametrize("show", [plain.text, plain.code])
def test_what_cannot_be_seen_is_made_visible(show: Callable[..., Any]) -> None:
    (element,) = (e for e in elements(drawn(show, UNSEEN)) if e.type in PLAIN)
    assert element.value == SEEN


def test_text_is_never_read_as_markdown() -> None:
    for show, value in (
        (plain.text, HOSTILE),
        (plain.code, HOSTILE),
        (plain.json, {HOSTILE: [HOSTILE]}),
        (plain.table, [{HOSTILE: HOSTILE}]),
    ):
        kinds = {element.type for element in elements(drawn(show, value)) if element.type != "main"}
        assert kinds and kinds <= PLAIN
    page = drawn(plain.payload, HOSTILE * 300, key="p")
    assert all("HOSTILE" not in e.label for e in [*page.toggle, *page.get("download_button")])
    assert all("HOSTILE" not in caption for caption in captions(page))


def test_code_keeps_white_space_and_line_feeds_at_both_ends() -> None:
    for text in ("\n\n  x\n\n", "\n", "  indented\n    more", "\tx"):
        (element,) = drawn(plain.code, text).code
        assert element.value == text


@pytest.mark.parametrize("show", [plain.text, plain.code])
def test_a_long_text_is_cut_and_its_true_size_said(show: Callable[..., Any]) -> None:
    page = drawn(show, "x" * 20_001)
    (element,) = (e for e in elements(page) if e.type in ("text", "code"))
    assert element.value == "x" * 20_000
    assert captions(page) == ["The first 20,000 of 20,001 characters."]
    assert captions(drawn(show, "x" * 20_000)) == []


def test_a_payload_is_shown_whole_on_request() -> None:
    text = "word " * 5_000
    page = drawn(plain.payload, text, key="p")
    assert page.code[0].value == text[:20_000]
    assert captions(page) == ["The first 20,000 of 25,000 characters."]
    assert [toggle.label for toggle in page.toggle] == ["Show all 25,000 characters"]
    assert len(page.get("download_button")) == 1
    page.toggle[0].set_value(True).run()
    assert page.code[0].value == text
    assert captions(page) == []


def test_a_small_payload_needs_neither() -> None:
    page = drawn(plain.payload, "small", key="p")
    assert (page.code[0].value, len(page.toggle), len(page.get("download_button"))) == ("small", 0, 0)


def test_a_payload_that_would_stop_the_browser_is_only_downloaded() -> None:
    page = drawn(plain.payload, "x" * 10_000_001, key="p")
    assert (len(page.toggle), len(page.get("download_button"))) == (0, 1)
    assert len(page.code[0].value) == 20_000


def test_json_is_shown_exactly() -> None:
    value = {
        "big": 2**63,
        "small": 3,
        "never": float("inf"),
        "cost": Decimal("0.10"),
        "none": None,
        "yes": True,
    }
    (element,) = drawn(plain.json, {**value, UNSEEN: [UNSEEN]}).json
    assert json.loads(element.value) == {
        "big": "9223372036854775808",
        "small": 3,
        "never": "inf",
        "cost": "0.10",
        "none": None,
        "yes": True,
        SEEN: [SEEN],
    }


def test_keys_that_look_alike_once_visible_are_all_there() -> None:
    (element,) = drawn(plain.json, {"\x1b": 1, "␛": 2}).json
    assert json.loads(element.value) == {"␛": 1, "␛′": 2}


def test_a_table_keeps_numbers_and_shows_structures() -> None:
    rows: list[dict[str, object]] = [
        {"name": UNSEEN, "size": 3, "what": {"a": [1]}, "mixed": 1, "id": 2**60},
        {"name": "b", "size": None, "what": None, "mixed": "two", "id": 2},
    ]
    frame = plain.frame(rows)
    assert list(frame) == ["name", "size", "what", "mixed", "id"]
    assert frame["name"].tolist() == [SEEN, "b"]
    assert frame["size"].tolist()[0] == 3
    assert frame["what"].tolist()[0] == '{"a": [1]}'
    assert frame.isna().to_numpy().sum() == 2
    assert frame["mixed"].tolist() == ["1", "two"]
    assert frame["id"].tolist() == [str(2**60), "2"]
    assert drawn(plain.table, rows).dataframe[0].value["name"].tolist() == [SEEN, "b"]


def test_a_table_has_the_columns_it_was_asked_for() -> None:
    assert list(plain.frame([{"b": 1, "a": 2, "c": 3}], ("a", "b", "missing"))) == ["a", "b", "missing"]
    assert list(plain.frame([], ("a",))) == ["a"]


def test_a_cell_is_bounded() -> None:
    (cell,) = plain.frame([{"a": "x" * 5_000}])["a"]
    assert cell == "x" * 2_000 + "… (5,000 characters)"
