"""`.top`: the passages that fit a query, ranked the same way whatever the size of the corpus."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core.corpus import Corpus
from rlm_core.texts import Passage, Text, build_context, files, passages, take_touched
from rlm_core.texts.documents import Documents
from rlm_core.texts.files import Source, Store

FILLER = "nothing of any interest stands in this line, whatever is asked\n"
FACTS = {
    "house.txt": FILLER * 60 + "The Señor paid 300 EUR rent for the GARDEN house.\n" + FILLER * 60,
    "boat.txt": FILLER * 20 + "A boat has no garden. Rent of the boat: none.\n" + FILLER * 20,
    "tokyo.txt": FILLER * 10 + "東京は大きい。Straße, ﬁnal.\n",
}


def documents_of(folder: Path, kept: int = files.KEPT_BYTES) -> Documents:
    """The documents, as those of a large corpus when more than `kept` bytes."""
    sources = [Source(facts) for facts in Corpus.from_texts(FACTS, folder).worker_documents()]
    return Documents(sources, Store(sum(source.size for source in sources), kept))


@pytest.fixture(params=["all passages", "candidates", "candidates of mapped texts"])
def documents(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Documents:
    """The same documents, small enough to be indexed, or not, or even mapped."""
    passages._kept.clear()
    if request.param == "all passages":
        return documents_of(tmp_path)
    monkeypatch.setattr(passages, "INDEXED", 100)
    if request.param == "candidates":
        return documents_of(tmp_path)
    monkeypatch.setattr(files, "MOST_CHARS", 500)
    monkeypatch.setattr(passages, "_BLOCK", 2_000)
    return documents_of(tmp_path, 1_000)


@pytest.mark.parametrize(
    ("query", "holds", "document"),
    [
        ("rent of the garden house", "GARDEN house", "house.txt"),
        ("SENOR", "Señor", "house.txt"),
        ("boat", "A boat has", "boat.txt"),
        ("strasse", "Straße", "tokyo.txt"),
        ("FINAL", "ﬁnal", "tokyo.txt"),
        ("京", "東京", "tokyo.txt"),
    ],
)
def test_the_best_passage_comes_first(documents: Documents, query: str, holds: str, document: str) -> None:
    found = documents.top(query, k=3)
    assert isinstance(found[0], Passage) and holds in found[0]
    assert found[0].name == document
    place = found[0].start
    assert FACTS[document][place : place + len(found[0])] == found[0]
    assert [passage.score for passage in found] == sorted((p.score for p in found), reverse=True)
    assert found[0].score > 0


def test_only_whole_words_count_and_only_passages_that_hold_one(documents: Documents) -> None:
    assert [passage.name for passage in documents.top("gard")] == []
    assert [passage.name for passage in documents.top("eur")] == ["house.txt"]
    assert {passage.name for passage in documents.top("garden unheard")} == {"house.txt", "boat.txt"}
    assert len(documents.top("interest", k=2)) == 2


def test_one_document_has_its_own_ranking(documents: Documents) -> None:
    [found] = documents["boat.txt"].top("garden")
    assert found.name == "boat.txt" and "garden" in found


def test_the_passages_of_a_ranking_are_noted_as_seen(documents: Documents) -> None:
    take_touched()
    [found] = documents.top("eur")
    assert take_touched() == [[0, found.start, found.start + len(found)]]


@pytest.mark.parametrize(("query", "k"), [("", 3), ("?!", 3), ("garden", 0)])
def test_a_query_needs_a_word(documents: Documents, query: str, k: int) -> None:
    with pytest.raises(ValueError, match="at least one word, and k of at least 1"):
        documents.top(query, k)


def test_the_rarest_words_decide_what_is_ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passages, "INDEXED", 100)
    monkeypatch.setattr(passages, "CANDIDATES", 2)
    body = "common words here\n" * 2_000 + "common gem\n" + "common words here\n" * 2_000
    context, _ = build_context(Corpus.from_texts(body, tmp_path).worker_documents())
    assert "gem" in context.top("common gem words", 1)[0]


def test_an_index_is_kept_for_the_next_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passages._kept.clear()
    documents = documents_of(tmp_path)
    first = documents.top("garden")
    monkeypatch.setattr(passages, "_Index", None)
    assert documents.top("garden") == first
    with pytest.raises(TypeError):
        documents[:2].top("garden")


def test_texts_without_words_have_no_passages() -> None:
    assert Text("--- ---").top("garden") == []


@given(text=st.text(st.sampled_from("aé e\u0301ßﬁ京ÀZ\u0130한"), max_size=30))
def test_folding_a_text_is_folding_its_characters(text: str) -> None:
    folded = passages.fold(text)
    assert folded == "".join(map(passages.fold, text))
    assert passages.fold(folded) == folded or "i̇" in text.casefold()
    assert not re.search("[A-Zé\u0301ß]", folded)
