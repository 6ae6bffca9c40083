"""Text of models and corpora never reaches a terminal as anything but text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.visible import block, fit, line

RUN = "20270115T080000-00000001"
EVIL = (
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \x1b]8;;http://evil.example\x1b\\link [red]markup[/red] "
    ":smile: \u202ereversed\u202c \u2066isolated\u2069 back\x08space car\rriage nul\x00 zero\u200bwidth "
    "line\u2028break tag\U000e0041"
)
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)


@pytest.fixture
def evil(written: Callable[..., Any], script: Any, sub_call: Any) -> None:
    """A run in which every text is hostile."""
    calls = [sub_call(EVIL, EVIL)] + [sub_call(EVIL, EVIL, error=EVIL)]
    written(RUN, script(question=EVIL, answer=EVIL, code=EVIL, stdout=EVIL, calls=calls, model=f"x/{EVIL}"))


COMMANDS = [("runs",), ("show", RUN), ("show", RUN, "--all"), ("cost",), ("cost", "--by", "model")]


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_a_terminal_obeys(command: tuple[str, ...], evil: None, call: Callable[..., Any]) -> None:
    result = call(*command)
    assert result.code == 0
    assert not FORBIDDEN.search(result.out)


@pytest.mark.parametrize("command", [("show", RUN, "--all"), ("runs",)])
def test_it_is_shown_visibly(
    command: tuple[str, ...], evil: None, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    out = call(*command).out
    assert "␛[31mred␛[0m" in out and "\\u202ereversed" in out
    assert "[red]markup[/red]" in out and ":smile:" in out  # neither markup nor emoji codes


def test_spans(evil: None, call: Callable[..., Any]) -> None:
    spans = call("show", RUN, "--json").json["spans"]
    for span in spans:
        for options in ((), ("--all",)):
            result = call("span", RUN, span["span_id"], *options)
            assert result.code == 0 and not FORBIDDEN.search(result.out)
    asked = next(span["span_id"] for span in spans if span["kind"] == "sub_call")
    assert "[red]markup[/red]" in call("span", RUN, asked).out


def test_json_is_exact_and_plain_ascii(evil: None, call: Callable[..., Any]) -> None:
    for command in (("runs",), ("show", RUN), ("cost",)):
        assert call(*command, "--json").out.isascii()
    assert call("runs", "--json").json[0]["answer"] == EVIL


def test_error_messages(call: Callable[..., Any]) -> None:
    for arguments in (("show", EVIL.replace("\0", "")), (EVIL.replace("\0", ""),), ("cost", "--by", EVIL)):
        result = call(*arguments)
        assert result.code == 2 and not FORBIDDEN.search(result.error.rstrip("\n"))


def test_wide_characters_keep_columns_aligned(
    written: Callable[..., Any], script: Any, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    written(RUN, script(question="日本語" * 100, answer="é" * 300))
    from rich.cells import cell_len

    for command in (("runs",), ("show", RUN)):
        tree = call(*command).out.split("\n\n")[-1]
        assert all(cell_len(text) <= 100 for text in tree.splitlines())


@given(st.text())
def test_no_text_gets_through(text: str) -> None:
    for shown in (block(text), line(text)):
        assert not FORBIDDEN.search(shown)
        shown.encode()  # lone surrogates would raise
    assert "\n" not in line(text)


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"]), max_size=80))
def test_plain_text_is_left_alone(text: str) -> None:
    assert block(text) == text and line(text) == text


@given(st.text(alphabet="ab日本🙂é", max_size=60), st.integers(0, 60))
def test_fit_never_exceeds_the_width(text: str, width: int) -> None:
    from rich.cells import cell_len

    shown = fit(text, width)
    assert cell_len(shown) <= width
    assert shown == text or cell_len(text) > width
