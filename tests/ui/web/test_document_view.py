"""A document on the Corpora page at a place that the address names: the passage marked in its text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core.corpus import Corpus
from tests.support.pages import HOSTILE, badly_shown, corpora_page, elements, texts, use
from traces.home import Home
from ui.web import passage_view
from ui.web.places import document_link, href, run_link

TEXT = "Grüße. " * 600 + "The refund was granted on 3 May." + " Ende." * 600


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


@pytest.fixture
def letters(home: Home) -> Corpus:
    """Two documents; the second holds the passage between letters of more than one byte."""
    return Corpus.from_texts({"a.txt": "first\n" * 3_000, "b.txt": TEXT}, home.corpora)


def opened(corpus: Corpus, start: int | str, end: int | str, document: int = 1) -> AppTest:
    _, query = document_link(corpus.corpus_id, document)
    return corpora_page(**query, **{"from": str(start), "to": str(end)})


def passage(page: AppTest) -> dict[str, Any]:
    """What the marked passage is drawn from."""
    (found,) = [e for e in elements(page) if "Text of the document with the passage" in str(e.proto)]
    shown = json.loads(found.proto.json)
    assert isinstance(shown, dict)
    return shown


def bytes_of(words: str, text: str = TEXT) -> tuple[int, int]:
    start = text.encode().index(words.encode())
    return start, start + len(words.encode())


def test_a_passage_is_marked_in_the_text_around_it(letters: Corpus) -> None:
    start, end = bytes_of("granted on 3 May")
    page = opened(letters, start, end)
    shown = passage(page)
    assert shown["passage"] == "granted on 3 May"
    assert shown["before"].endswith("Grüße. The refund was ") and shown["after"].startswith(". Ende.")
    assert max(len(shown["before"]), len(shown["after"])) <= passage_view.AROUND
    assert any(f"bytes {start:,} to {end:,} of {len(TEXT.encode()):,}" in text for text in texts(page))
    assert not page.code  # the pieces come back with the button


def test_the_document_is_shown_at_the_same_place_without_the_mark(letters: Corpus) -> None:
    page = opened(letters, 12_000, 12_005, document=0)
    page.button(key="document-whole").click().run()
    assert "from" not in page.query_params and "to" not in page.query_params
    assert "4 pieces; characters 10,001 to 15,000 of 18,000" in [c.value for c in page.caption]


@pytest.mark.parametrize(
    ("start", "end"), [("5", "5"), ("9", "3"), ("0", "999999"), ("x", "9"), ("-1", "4"), ("1" * 400, "2")]
)
def test_a_passage_that_is_not_there_is_one_sentence(letters: Corpus, start: str, end: str) -> None:
    page = opened(letters, start, end)
    (words,) = [text for text in texts(page) if text.startswith("There is no passage")]
    assert words.endswith("this is its beginning.") and page.code[0].value.startswith("Grüße.")


def test_half_an_address_of_a_passage_is_one_sentence(letters: Corpus) -> None:
    page = corpora_page(corpus=letters.corpus_id, document="1", **{"from": HOSTILE})
    assert any(text.startswith("There is no passage") for text in texts(page))
    assert badly_shown(page, "HOSTILE") == []


def test_a_long_passage_is_bounded_and_that_is_said(home: Home) -> None:
    corpus = Corpus.from_texts(["x" * 90_000], home.corpora)
    page = opened(corpus, 0, 80_000, document=0)
    assert passage(page)["passage"] == "x" * passage_view.MOST
    assert any("Of the passage the first 20,000 bytes are shown" in c.value for c in page.caption)


def test_another_document_begins_at_its_beginning(letters: Corpus) -> None:
    page = opened(letters, *bytes_of("The refund"))
    page.number_input[0].set_value(0).run()
    assert page.query_params["document"] == "0" and "from" not in page.query_params
    assert page.code[0].value.startswith("first")


def test_an_address_that_changes_is_followed(letters: Corpus) -> None:
    """As by the back button of a browser, or a link to another place of the same corpus."""
    page = opened(letters, *bytes_of("The refund"))
    page.query_params["document"], page.query_params["from"], page.query_params["to"] = "0", "6", "11"
    page.run()
    assert passage(page)["passage"] == "first" and page.number_input[0].value == 0


def test_the_place_of_a_passage_is_said_in_pages(home: Home) -> None:
    fixtures = Path(__file__).parents[2] / "fixtures" / "documents" / "good"
    corpus = Corpus.add([fixtures / "contract.pdf"], home.corpora)
    second = corpus.documents[0].sections[1]
    page = opened(corpus, second.start_byte, second.start_byte + 4, document=0)
    assert any("The passage is marked: page 2, bytes " in text for text in texts(page))
    page.button(key="document-whole").click().run()
    assert page.query_params["section"] == "2" and page.number_input[0].value == 2
    page.query_params["section"] = "1"  # as the browser has it after a step back
    assert page.run().number_input[0].value == 1
    page.number_input[0].set_value(2).run()
    assert page.query_params["section"] == "2"
    page.query_params["section"] = "99"
    assert (
        f"There is no page 99 in this document; this is number {page.run().number_input[0].value}."
        in texts(page)
    )


def test_a_file_that_has_changed_is_said(tmp_path: Path, home: Home) -> None:
    (tmp_path / "a.txt").write_text("one two three")
    corpus = Corpus.add([tmp_path / "a.txt"], home.corpora)
    (tmp_path / "a.txt").write_text("one two other")
    assert any("has changed since" in text for text in texts(opened(corpus, 4, 7, document=0)))


def test_hostile_text_around_a_passage_is_only_data(home: Home) -> None:
    corpus = Corpus.from_texts([f"{HOSTILE} here {HOSTILE}"], home.corpora)
    page = opened(corpus, *bytes_of("here", f"{HOSTILE} here {HOSTILE}"), document=0)
    shown = passage(page)
    assert "HOSTILE" in shown["before"] and "\x1b" not in shown["before"] + shown["after"]


def test_links_as_addresses() -> None:
    assert href(document_link("0123456789abcdef", 3, 10, 20)) == (
        "corpora?corpus=0123456789abcdef&document=3&from=10&to=20"
    )
    assert href(run_link("20270115T080000-00000001", "0123456789abcdef")).endswith("&span=0123456789abcdef")
