"""Reports of diagnoses: what a reader finds in both forms, and that no text in them is more than text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.support.diagnosed import diagnosed_run, diagnosis_of
from traces.home import Home
from traces.report import report
from traces.report_culprits import Passage
from traces.report_markdown import fenced, inline
from traces.report_parts import SHOWN_CHARS
from traces.view import RunView
from traces.visible import block, line

HOSTILE = (
    "```\n~~~\n# head\n</pre></textarea><script>alert(1)</script>\n"
    "<img src=http://e.example/x onerror=alert(2)>![i](http://e.example/y) [l](javascript:alert(3)) "
    "<http://e.example> www.e.example | a | b |\n\n"
    "- item\n1. one\n> quote\n    code\n&lt;b&gt; \x1b[31m \u202egnp\u202c {{x}} `` ` \\"
)
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
ALLOWED = frozenset(
    (
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "h1",
        "h2",
        "h3",
        "p",
        "ul",
        "li",
        "div",
        "pre",
    )
    + ("mark", "details", "summary", "span", "table", "thead", "tbody", "tr", "th", "td")
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(tmp_path / "home")


def tokens(text: str) -> Iterator[Token]:
    """All tokens of a Markdown text, those inside others too."""
    for token in MARKDOWN.parse(text):
        yield token
        yield from token.children or ()


class Page(HTMLParser):
    """The elements, attributes and text of an HTML document, and the text of each `pre`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.boxes: list[str] = []
        self._inside: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self._inside.append(tag)
        if tag == "pre":
            self.boxes.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._inside.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._inside:
            self.words.append(data)
        if "pre" in self._inside:
            self.boxes[-1] += data


def test_both_forms_hold_what_a_reader_needs(home: Home) -> None:
    view = diagnosed_run(home)
    call, cell = (next(span for span in view.spans if span.kind == kind) for kind in ("sub_call", "cell"))
    passages = {call.span_id: [Passage("letter.txt", "page 3", "the passage itself")]}
    made = report(view, diagnosis_of(view), passages=passages)
    wanted = (
        "words plain",
        "question plain",
        "answer plain",
        "expected plain",
        "prompt 0 plain",
        "reply 0 plain",
        "should plain",
        "# code plain",
        "letter.txt, page 3",
        "the passage itself",
        "replayable plain",
        "assumed plain",
        "warning plain",
        "finding plain",
        "Proven",
        "sub-call 0 of cell 0",
        "cell 0",
        "fixed",
        "$0.25",
        "$1.5",
        f"rlmscope span {view.run_id} {cell.span_id}",
        "sub-model",
    )
    words = "".join(Page(made.html()).words)
    plain = "\n".join(token.content for token in tokens(made.markdown()))
    for text in wanted:
        assert text in words and text in plain.replace("\\", ""), text
    assert "prompt 1 plain" not in words  # the other call is none of it


def test_no_text_is_more_than_text_in_markdown(home: Home) -> None:
    view = diagnosed_run(home, HOSTILE)
    made = report(view, diagnosis_of(view, HOSTILE), passages=_hostile_passages(view)).markdown()
    kinds = {token.type for token in tokens(made)}
    assert not kinds & {
        "link_open",
        "image",
        "html_inline",
        "hr",
        "blockquote_open",
        "code_block",
        "code_inline",
    }
    raw = {token.content for token in tokens(made) if token.type == "html_block"}
    assert all(re.fullmatch(r"(<details><summary>[\w ,]*</summary>|</details>)\n?", one) for one in raw), raw
    heads = [token.content for token in tokens(made) if token.type == "inline" and "head" in token.content]
    assert all("\\# head" in text for text in heads)
    boxes = [token.content for token in tokens(made) if token.type == "fence"]
    for where in (
        "question",
        "answer",
        "expected",
        "prompt 0",
        "reply 0",
        "should",
        "# code",
        "printed",
        "said",
    ):
        assert f"{where} {block(HOSTILE)}\n" in boxes, where


def test_no_text_is_more_than_text_in_html(home: Home) -> None:
    view = diagnosed_run(home, HOSTILE)
    made = report(view, diagnosis_of(view, HOSTILE), passages=_hostile_passages(view)).html()
    page = Page(made)
    assert set(page.tags) <= ALLOWED
    assert {name for name, _ in page.attributes} <= {
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "dir",
    }
    policy = dict(page.attributes)
    assert "default-src 'none'; style-src 'unsafe-inline'" in made and policy["lang"] == "en"
    assert "url(" not in made and "@import" not in made
    for where in (
        "question",
        "answer",
        "expected",
        "prompt 0",
        "reply 0",
        "should",
        "# code",
        "printed",
        "said",
    ):
        assert f"\n{where} {block(HOSTILE)}" in page.boxes, where
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", made)


def _hostile_passages(view: RunView) -> dict[str, list[Passage]]:
    call = next(span for span in view.spans if span.kind == "sub_call")
    return {
        call.span_id: [
            Passage(HOSTILE, HOSTILE, f"said {HOSTILE}"),
            Passage(HOSTILE, HOSTILE, "", HOSTILE),
        ]
    }


def test_a_long_text_is_cut_in_the_middle_which_is_said_and_given_whole_below(home: Home) -> None:
    long = "".join(f"line {number} of a long letter\n" for number in range(2_000))
    view = diagnosed_run(home, prompt=long)
    made = report(view, diagnosis_of(view))
    cut = f"… {len(long) - SHOWN_CHARS:,} characters left out …"
    for boxes in (
        [token.content for token in tokens(made.markdown()) if token.type == "fence"],
        Page(made.html()).boxes,
    ):
        (shown,) = [box for box in boxes if cut in box]
        assert "line 0 of" in shown and "line 1999 of" in shown and "line 1000 of" not in shown
        assert [box for box in boxes if box.strip() == long.strip()] != []
    assert f"({len(long):,} characters; cut in the middle)" in made.html()


def test_words_that_differ_are_marked_beside_each_other(home: Home) -> None:
    view = diagnosed_run(home)
    diagnosis = diagnosis_of(view)
    diagnosis["patches"][0]["text"] = "reply 7 plain"
    made = report(view, diagnosis).html()
    assert "reply <mark>0</mark> plain" in made and "reply <mark>7</mark> plain" in made


def test_a_report_begins_with_what_a_run_and_a_replay_are(home: Home) -> None:
    view = diagnosed_run(home)
    first, second, verdict = report(view, diagnosis_of(view)).markdown().split("\n\n")[1:4]
    assert all(word in first for word in ("root", "cells", "sub-call")) and second.startswith("A replay ")
    assert verdict == "**words plain**"


def test_a_report_says_when_nobody_confirmed_the_answer_of_the_good_run(home: Home) -> None:
    view = diagnosed_run(home)
    nobody = "Nobody has confirmed that the answer of the good run is right"
    borrowed = diagnosis_of(view, good_run_id="20260102T030405-0000ffff", expected_from="good run")
    assert nobody in report(view, borrowed).markdown()
    assert nobody not in report(view, borrowed, confirmed=True).markdown()
    given = {**borrowed, "expected_from": "expected"}
    assert nobody not in report(view, given).markdown()
    assert "The answer it should have given" in report(view, given).markdown()


def test_without_culprits_the_report_says_so_and_lists_what_looks_wrong(home: Home) -> None:
    view = diagnosed_run(home)
    call = next(span for span in view.spans if span.kind == "sub_call")
    suspect = {
        "span_id": call.span_id,
        "score": 0.91,
        "signals": [{"kind": "empty", "words": "It is empty."}],
    }
    diagnosis = diagnosis_of(
        view, verdict="suspects", culprits=[], patches=[], suspects=[suspect], proven=False
    )
    words = " ".join(Page(report(view, diagnosis).html()).words)
    assert "Not proven" in words and "What broke the answer" not in words
    assert "None of it is proven." in words and "0.91" in words and "It is empty." in words


@pytest.mark.parametrize("reply", ["22", 'it\'s $HOME `id` !x "q" \\', "-n", "a=b", "é ñ 漢"])
def test_a_reply_that_fits_in_a_command_arrives_there_as_it_is(home: Home, reply: str) -> None:
    view = diagnosed_run(home)
    diagnosis = diagnosis_of(view, expected=reply)
    diagnosis["patches"][:] = [{**diagnosis["patches"][0], "text": reply}]
    (commands,) = [
        token.content for token in tokens(report(view, diagnosis).markdown()) if token.info == "sh"
    ]
    words = shlex.split(next(one for one in commands.splitlines() if one.startswith("rlmscope replay")))
    assert words[words.index("--patch") + 1] == f"{diagnosis['patches'][0]['span_id']}={reply}"
    assert f"--expected={reply}" in words


@pytest.mark.parametrize("reply", ["two\nlines", "x" * 300, "\x1b[31m", "@file", " blank"])
def test_any_other_reply_is_taken_from_a_file(home: Home, reply: str) -> None:
    view = diagnosed_run(home)
    made = report(view, diagnosis_of(view, patches=[{**diagnosis_of(view)["patches"][0], "text": reply}]))
    assert re.search(r"--patch (\w+)=@\1\.txt", made.markdown()) and "takes a text from a file" in made.html()


@given(text=st.text())
def test_a_fence_holds_any_text(text: str) -> None:
    (token,) = MARKDOWN.parse(fenced(text))
    assert (token.type, token.content) == ("fence", block(text) + "\n")


@given(
    text=st.text(alphabet=st.one_of(st.sampled_from("`*_~#-+=.1)<>[]()!|&;:/\\ \nw@{}$"), st.characters()))
)
def test_words_on_a_line_are_words_whatever_they_are(text: str) -> None:
    kinds = {token.type for token in tokens(inline(text))}
    assert kinds <= {"paragraph_open", "inline", "text", "text_special", "paragraph_close"}
    assert "".join(Page(MARKDOWN.render(inline(text))).words).split() == line(text).split()


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunView, dict[str, Any]]:
    """A run and its diagnosis, not to be changed."""
    view = diagnosed_run(Home.resolve(tmp_path_factory.mktemp("plain") / "home"))
    return view, diagnosis_of(view)


@given(data=st.data())
@settings(max_examples=40)
def test_a_diagnosis_of_any_shape_makes_a_report(
    plain: tuple[RunView, dict[str, Any]], data: st.DataObject
) -> None:
    view, diagnosis = plain
    changed = data.draw(st.lists(st.sampled_from(sorted(diagnosis)), unique=True, max_size=6))
    broken = {**diagnosis, **{name: data.draw(ANY_JSON) for name in changed}}
    rows = ("patches", "trials", "suspects", "findings")
    broken |= {
        name: [
            {**row, **{key: data.draw(ANY_JSON) for key in ("span_id", "text", "outcome", "signals")}}
            for row in broken[name]
        ]
        for name in rows
        if isinstance(broken[name], list)
        and all(isinstance(row, dict) for row in broken[name])
        and data.draw(st.booleans())
    }
    made = report(view, broken)
    assert set(Page(made.html()).tags) <= ALLOWED
    assert made.markdown().startswith("# Diagnosis of run ")
