"""Passages of a text found in a corpus: exact to the byte, complete, longest first."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_core.gram_index import GRAINS, Index, Piece, Place, grain_for
from rlm_core.locate import MOST_PLACES, Found, locate

LEAST = GRAINS[0].least


def first(places: list[Place]) -> Place:
    return places[0]


def index(documents: Sequence[str]) -> Index:
    raw = [document.encode() for document in documents]
    pieces = [Piece(number, 0, len(data)) for number, data in enumerate(raw)]
    return Index(pieces, lambda document, start, end: raw[document][start:end])


def found_in(documents: Sequence[str], text: str) -> list[Found]:
    return locate(text, [index(documents)], first)


def passages(documents: Sequence[str], text: str) -> list[str]:
    """What was found, as text out of the documents; whole characters only."""
    raw = [document.encode() for document in documents]
    return [raw[item.document][item.start : item.end].decode() for item in found_in(documents, text)]


def times(document: bytes, passage: bytes) -> int:
    """How often a passage stands in a document, overlaps counted."""
    return sum(document.startswith(passage, at) for at in range(len(document)))


PIECES = st.text("ab é\n", max_size=60)


@st.composite
def documents_and_text(draw: st.DrawFn) -> tuple[list[str], str]:
    """Repetitive documents, and a text of slices of them, sometimes with other text between."""
    documents = draw(st.lists(PIECES.map(lambda piece: piece * 3), min_size=1, max_size=3))
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        document = draw(st.sampled_from(documents))
        start = draw(st.integers(0, len(document)))
        parts += [draw(PIECES), document[start : start + draw(st.integers(0, 80))]]
    return documents, "".join(parts)


@settings(max_examples=300, deadline=None)
@given(documents_and_text())
def test_ranges_are_exact_ordered_and_leave_out_no_passage(case: tuple[list[str], str]) -> None:
    documents, text = case
    raw, data = text.encode(), [document.encode() for document in documents]
    end = 0
    gaps = []
    for item in found_in(documents, text):
        passage = data[item.document][item.start : item.end]
        assert raw[item.at : item.at + len(passage)] == passage and len(passage) >= LEAST
        assert item.at >= end
        assert passage.decode() and raw[: item.at].decode() is not None  # whole characters on both sides
        assert item.also + 1 == sum(times(document, passage) for document in data)
        gaps.append(raw[end : item.at])
        end = item.at + len(passage)
    for gap in [*gaps, raw[end:]]:
        for at in range(len(gap) - LEAST - 1):  # one more than the shortest: a character may be cut in two
            passage = gap[at : at + LEAST + 2]
            says = any(map(str.isalnum, passage.decode("utf-8", "ignore")))
            assert not says or not any(passage in document for document in data)


@pytest.mark.parametrize("grain", GRAINS, ids=lambda grain: f"{grain.most_bytes >> 20}MB")
def test_the_shortest_passage_is_found_wherever_it_stands_and_a_shorter_one_is_not(grain: object) -> None:
    size = {GRAINS[0]: 1 << 16, GRAINS[1]: (4 << 20) + 1, GRAINS[2]: (16 << 20) + 1}[grain]  # type: ignore[index]
    document = random.Random(5).randbytes(size // 2 + 1).hex()
    made, least = index([document]), grain_for(size).least
    assert made.grain == grain
    for start in range(1_000, 1_000 + 2 * made.grain.stride):
        text = f"({document[start : start + least]})"
        assert locate(text, [made], first) == [Found(1, 0, start, start + least, 0)]
        assert locate(f"({document[start : start + least - 1]})", [made], first) == []


def test_a_passage_is_extended_as_far_as_it_is_the_same_and_template_text_is_not_taken() -> None:
    documents = ["The quick brown fox jumps over the lazy dog near the river bank."]
    assert passages(documents, "Please say: brown fox jumps over the lazy cat, and why?") == [
        " brown fox jumps over the lazy "
    ]
    assert passages(documents, "Please summarise what comes next in at most fifty words, and why.") == []


def test_the_longest_passage_wins_and_the_others_get_what_is_left() -> None:
    documents = ["first words of a sentence, then ", "of a sentence, then all of the rest of it follows here"]
    text = "first words of a sentence, then all of the rest of it follows here"
    assert passages(documents, text) == [documents[1]]
    more = "and the first words of a sentence, then "
    assert passages([more, documents[1]], "and the " + text) == ["and the first words ", documents[1]]


@pytest.mark.parametrize("before_b", range(4))
@pytest.mark.parametrize("before_c", range(4))
def test_what_a_longer_passage_takes_from_another_is_made_up_for_by_a_third(
    before_b: int, before_c: int
) -> None:
    head, tail = "abcdefghijklmnopqrstuvwxyz0123", "and then a very long tail of the text" * 5
    # the second has the gram of the third, is longer, and has too little left once the first is taken
    documents = [head[20:] + tail, "#" * before_b + head[6:] + tail[:30], "#" * before_c + head[4:20]]
    assert passages(documents, head + tail) == [head[4:20], documents[0]]


def test_no_passage_spans_two_documents_and_neighbours_in_one_are_joined() -> None:
    documents = ["the end of the first document", "the start of the second document"]
    assert passages(documents, "".join(documents)) == documents
    raw = documents[1].encode()
    parts = [
        Index([Piece(1, 0, 16)], lambda _, a, b: raw[a:b]),
        Index([Piece(1, 16, 32)], lambda _, a, b: raw[a:b]),
    ]
    assert locate(documents[1], parts, first) == [Found(0, 1, 0, 32, 0)]


def test_characters_are_never_cut() -> None:
    documents = ["straße und größe und übermäßig viele Wörter", "щука и ёж живут в лесу у реки"]
    found = passages(documents, "straßé und größe und übermäßig viele Wärter; щука и ёж живут в лесу у рекч")
    assert found == ["é und größe und übermäßig viele W"[1:], "щука и ёж живут в лесу у рек"]


def test_of_several_places_the_preferred_one_is_given_and_the_others_are_counted() -> None:
    line = "the same line of text in every document"
    documents = [f"{number}: {line}" for number in range(5)]
    assert found_in(documents, line) == [Found(0, 0, 3, 3 + len(line), 4)]
    (preferred,) = locate(line, [index(documents)], lambda places: places[3])
    assert (preferred.document, preferred.also) == (3, 4)


def test_rulers_and_indentation_are_no_passages() -> None:
    ruler = "-" * 40 + "\n" + " " * 40
    assert found_in([f"a heading\n{ruler}more text here"], f"look:\n{ruler}what is it?") == []


def test_a_text_that_stands_in_more_places_than_are_looked_at_is_still_found_exactly() -> None:
    document = "yes,no,no,yes,\n" * (MOST_PLACES * 2)
    (item,) = found_in([document], "Count: " + document[3_000:9_000])
    assert item.end - item.start == 6_000 and document[item.start : item.end] == document[3_000:9_000]
    assert item.also > 100


def test_nothing_is_found_in_nothing() -> None:
    assert locate("a text that is long enough", [], first) == []
    assert (
        found_in(["short"], "a text that is long enough") == found_in(["a document of some length"], "") == []
    )
    assert found_in(["a document of some length"], "\ud800 lone surrogates \udfff everywhere \ud800") == []


def test_an_index_stops_when_its_source_does() -> None:
    def broken(document: int, start: int, end: int) -> bytes:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        Index([Piece(0, 0, 100)], broken)
