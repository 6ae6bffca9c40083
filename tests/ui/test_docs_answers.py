"""What ui/docs/answers.md says of the Ask page is what the code does and shows."""

from __future__ import annotations

import re

from tests.support.command import ROOT
from traces import evidence
from traces.evidence import Evidence
from ui.passages import _HOW
from ui.web import evidence_view, expected, new_documents
from ui.web.corpus_choice import SOURCES

PAGE = (ROOT / "ui" / "docs" / "answers.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())


def test_the_sources_named_are_those_of_the_form() -> None:
    section = PAGE.split("## Documents")[1].split("##")[0]
    assert set(re.findall(r"^- \*\*(.+?)\*\*", section, re.M)) == set(SOURCES.values())


def test_the_figures_named_hold() -> None:
    assert f"at most {new_documents.MAX_UPLOAD_MB} MB at a time" in WORDS
    assert f"at {expected.CHARS_PER_TOKEN} characters for each token" in WORDS
    assert f"more than {evidence.COMPARED_WHOLE:,} calls" in WORDS
    assert evidence_view.FIRST * 2 == 10 and "the first ten calls" in WORDS


def test_the_sentences_quoted_are_those_of_the_page() -> None:
    for basis in ("read", "printed", "shown", "code"):
        shown = evidence_view.basis_words(Evidence(basis, (), ()))  # type: ignore[arg-type]
        quotes = [quote.rstrip("…").strip() for quote in re.findall(r"^- \*(.+?)\*:", PAGE, re.M)]
        assert any(re.sub(r" cell$", "", quote.split(" … ")[0]) in shown for quote in quotes), shown


def test_the_words_for_unknown_sources_are_defined() -> None:
    for how in ("none", "not_searched"):
        word = _HOW[how].split(":")[0].lower().rstrip(".")
        assert f"**{word}**" in PAGE
