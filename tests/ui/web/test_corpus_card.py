"""What the Ask page says of a chosen corpus: files that were left out, and remarks on those that were not."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

import pytest

from rlm_core.corpus import Corpus
from tests.support.documents import DOCUMENTS
from tests.support.pages import shown, use
from tests.ui.web.test_ask_page import filled
from traces.home import Home


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


def test_files_that_are_left_out_are_counted_apart_from_remarks(home: Home) -> None:
    names = ("good/contract.docx", "good/deck.pptx", "broken/empty.pdf")
    made = Corpus.add([DOCUMENTS / name for name in names], home.corpora)
    remarks = sum(len(document.problems) for document in made.documents)
    assert remarks > 1 and len(made.problems) == 1
    badges = shown(filled(made.corpus_id))
    assert ":orange-badge[1 file left out]" in badges and f":gray-badge[{remarks} remarks]" in badges


def test_many_remarks_on_a_corpus_are_folded_behind_the_first_four(home: Home) -> None:
    names = [f"{number}.pdf" for number in range(6)]
    for name in names:
        shutil.copy(DOCUMENTS / "broken" / "empty.pdf", home.root.parent / name)
    good = DOCUMENTS / "good" / "contract.docx"
    made = Corpus.add([good, *(home.root.parent / name for name in names)], home.corpora)
    assert len(made.problems) == 6
    page = filled(made.corpus_id)
    (folded,) = [one for one in page.expander if "more" in one.label]
    shown_at_once, behind = texts_of_files(page, names), texts_of_files(folded, names)
    assert behind and len(behind) + 4 == len(shown_at_once) and folded.label == f"{len(behind)} more"


def texts_of_files(block: Any, names: Sequence[str]) -> list[str]:
    """The lines of a part of a page that begin with the path of one of these files."""
    lines = [line for text in block.text for line in text.value.splitlines()]
    return [line for line in lines if any(f"{name}: " in line for name in names)]
