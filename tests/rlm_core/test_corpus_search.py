"""Searching one corpus: which of equal places is given, and what of a large corpus is searched."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_core import corpus_search
from rlm_core.corpus import Corpus
from rlm_core.corpus_search import CorpusSearch, NotSearched
from rlm_core.locate import Found
from rlm_core.telemetry import sha256_text

LINE = "the very same line of text"


def search_of(texts: list[str], folder: Path) -> CorpusSearch:
    return CorpusSearch(Corpus.from_texts(texts, folder), lambda: False)


def places(found: list[Found]) -> list[tuple[int, int, int]]:
    return [(item.document, item.start, item.also) for item in found]


# -- equal text in several places


def test_the_place_that_code_looked_at_last_is_given_else_the_first(tmp_path: Path) -> None:
    texts = [f"Ä{number} {LINE} / {LINE}" for number in range(4)]
    search = search_of(texts, tmp_path)
    assert places(search.find(LINE)) == [(0, 4, 7)]
    search.look([[2, 0, len(texts[2])]])
    assert places(search.find(LINE)) == [(2, 4, 7)]
    search.look([[1, 20, len(texts[1])]])
    assert places(search.find(LINE)) == [(1, 4 + len(LINE) + 3, 7)]
    search.look([[2, 0, len(texts[2])]])
    assert places(search.find(LINE)) == [(2, 4, 7)]


@pytest.mark.parametrize("window", [[9, 0, 1], [0, 5, 10**9], [0, 9, 3], [1, 2**53, 2**53]], ids=str)
def test_a_look_at_what_does_not_exist_changes_nothing(window: list[int], tmp_path: Path) -> None:
    search = search_of([LINE, f"2 {LINE}"], tmp_path)
    search.look([window, [1, 0, 4], window])
    assert places(search.find(LINE)) == [(1, 2, 1)]
    search.look([window])
    assert places(search.find(LINE)) == [(1, 2, 1)]


def test_looks_are_forgotten_from_the_oldest_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_search, "MOST_WINDOWS", 3)
    search = search_of([LINE, LINE + "."], tmp_path)
    search.look([[1, 0, 26], *([0, number, number + 1] for number in range(10, 12))])
    assert places(search.find(LINE)) == [(1, 0, 1)]
    search.look([[0, 15, 16]])
    assert places(search.find(LINE)) == [(0, 0, 1)]


# -- corpora that are too large for one index


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 1,000 bytes; at most 4,000 of a corpus that has more than 2,000."""
    monkeypatch.setattr(corpus_search, "MOST_BYTES", 2_000)
    monkeypatch.setattr(corpus_search, "MOST_LOOKED_AT", 4_000)
    monkeypatch.setattr(corpus_search, "_BLOCK", 1_000)
    monkeypatch.setattr(corpus_search, "_MARGIN", 50)


def lines(count: int, mark: str = "x") -> str:
    """Lines of 35 characters, of which no two have much in common."""
    return "".join(f"{sha256_text(f'{mark} {number}')[:33]}ü\n" for number in range(count))


@pytest.mark.usefixtures("small")
def test_only_what_code_looked_at_is_searched(tmp_path: Path) -> None:
    text = lines(300)
    search = search_of([text], tmp_path)
    at, passage = 150 * 35, text[150 * 35 : 153 * 35]
    with pytest.raises(NotSearched, match="it is not known which parts the code looked at"):
        search.find(passage)
    search.look([[0, 0, 100]])
    with pytest.raises(NotSearched, match="the parts that the code looked at do not hold this text"):
        search.find(passage)
    search.look([[0, at, at + 40]])
    (item,) = search.find(f"<{passage}>")
    assert text.encode()[item.start : item.end].decode() == passage


@pytest.mark.usefixtures("small")
def test_text_across_parts_that_were_looked_at_one_by_one_is_one_passage(tmp_path: Path) -> None:
    text = lines(100)
    search = search_of([text], tmp_path)
    for start in range(0, 3_000, 500):
        search.look([[0, start, start + 500]])
        assert search.find(text[start : start + 100])
    (item,) = search.find(f"<{text[210:2_905]}>")
    assert text.encode()[item.start : item.end].decode() == text[210:2_905] and item.also == 0


@pytest.mark.usefixtures("small")
def test_text_at_the_border_of_two_parts_is_found_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_search, "_MERGED", 0)
    text = lines(100).replace("ü", "u")
    search = search_of([text], tmp_path)
    for start in (0, 1_000):
        search.look([[0, start, start + 1_000]])
        assert search.find(text[start : start + 100])
    for start in range(950, 1_000, 7):
        assert places(search.find(f"<{text[start : start + 50]}>")) == [(0, start, 0)]


@pytest.mark.usefixtures("small")
def test_of_too_much_that_code_looked_at_the_newest_is_searched(tmp_path: Path) -> None:
    texts = [lines(60, f"text {number}") for number in range(20)]
    search = search_of(texts, tmp_path)
    for number, text in enumerate(texts):
        search.look([[number, 0, len(text)]])
        assert places(search.find(f"<{text[105:900]}>")) == [(number, 108, 0)]
    with pytest.raises(NotSearched, match="the newest 0 MB that the code looked at"):
        search.find(texts[0][105:900])
    assert places(search.find(texts[19][105:900])) == [(19, 108, 0)]
    search.look([[0, 0, len(texts[0])]])
    assert places(search.find(texts[0][105:900])) == [(0, 108, 0)]


@pytest.mark.usefixtures("small")
def test_a_document_that_is_too_large_as_a_whole_is_not_searched(tmp_path: Path) -> None:
    text = lines(200)
    search = search_of([text], tmp_path)
    search.look([[0, 0, len(text)]])
    with pytest.raises(NotSearched, match="the newest 0 MB"):
        search.find(text[100:900])
