"""The corpus as it is shown to a root: pieces with a heading each, in parts of a bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rlm_core.corpus import Corpus
from rlm_core.errors import InputError
from rlm_core.source_ranges import Prompt
from rlm_core.texts import build_context

BYTES_PER_TOKEN: Final = 4
_MOST_OF_A_CHAR: Final = 4  # bytes
_TAIL: Final = 10  # a cut is made at a line's or a word's end in the last tenth, where there is one


class Piece(NamedTuple):
    """Characters `start` to `end` of a document."""

    document: int
    start: int
    end: int


def whole(corpus: Corpus) -> list[Piece]:
    """Every document that has any text."""
    return [Piece(each.number, 0, each.chars) for each in corpus.documents if each.chars]


def tokens_of(corpus: Corpus) -> int:
    """Tokens of all documents with their headings, by estimate: four bytes of UTF-8 each. Nothing is read."""
    headings = sum(len(heading(corpus, piece)) + 2 for piece in whole(corpus))
    return -(-(sum(each.bytes for each in corpus.documents) + headings) // BYTES_PER_TOKEN)


def heading(corpus: Corpus, piece: Piece) -> str:
    """The line that stands before a piece."""
    facts = corpus.documents[piece.document]
    name = " ".join(facts.name.split())
    if (piece.start, piece.end) == (0, facts.chars):
        return f"=== [{facts.number}] {name} ==="
    return f"=== [{facts.number}] {name}, characters {piece.start:,} to {piece.end:,} of {facts.chars:,} ==="


def render(corpus: Corpus, pieces: Sequence[Piece]) -> str:
    """The pieces as they are shown. Reads files; raises `CorpusError` when one has changed."""
    return "\n\n".join(f"{heading(corpus, piece)}\n{corpus.text(*piece)}" for piece in pieces)


def fitting(corpus: Corpus, pieces: Sequence[Piece], tokens: int | None) -> list[Piece]:
    """The first pieces that together have at most so many tokens (None: any number) with their headings, by
    estimate: four bytes of UTF-8 each. Raises as `render`.
    """
    if tokens is None:
        return list(pieces)
    kept: list[Piece] = []
    left = tokens * BYTES_PER_TOKEN
    for piece in pieces:
        left -= len(render(corpus, [piece]).encode("utf-8", "surrogatepass")) + 2
        if left < 0:
            break
        kept.append(piece)
    return kept


def shown(corpus: Corpus, pieces: Sequence[Piece]) -> str:
    """The same places as the record keeps them, see `rlm_core.semconv.SHOWN_RANGES`. Raises as `render`."""
    return Prompt.of(corpus, [[list(piece) for piece in pieces]]).at_once()


def parts(corpus: Corpus, most: int) -> Iterator[list[Piece]]:
    """All documents in order, in parts of at most `most` bytes with their headings.

    A document that fits into a part of its own is not cut; a longer one is cut at the ends of lines or words
    where there are any. Reads files; raises as `render`.
    """
    part: list[Piece] = []
    room = most
    for document in whole(corpus):
        while document.start < document.end:
            piece, taken = _cut(corpus, document, most)
            if part and taken > room:
                yield part
                part, room = [], most
                continue
            part.append(piece)
            room -= taken
            document = document._replace(start=piece.end)
    if part:
        yield part


def _cut(corpus: Corpus, rest: Piece, most: int) -> tuple[Piece, int]:
    """The next piece of what is left of a document, and the bytes it takes."""
    facts = corpus.documents[rest.document]
    label = len(heading(corpus, Piece(facts.number, facts.chars, facts.chars)).encode()) + 2
    if rest.start == 0 and facts.bytes + label <= most:
        return rest, facts.bytes + label
    room = max(_MOST_OF_A_CHAR, most - label)
    text = corpus.text(rest.document, rest.start, min(rest.start + room, rest.end))
    text = text.encode()[:room].decode("utf-8", "ignore")
    if rest.start + len(text) < rest.end:
        text = text[: _end_of(text)]
    return rest._replace(end=rest.start + len(text)), len(text.encode()) + label


def _end_of(text: str) -> int:
    least = len(text) - len(text) // _TAIL
    for mark in ("\n", " "):
        if (at := text.rfind(mark, least)) >= 0:
            return at + 1
    return len(text)


def passages(corpus: Corpus, query: str, k: int) -> list[Piece]:
    """The passages that fit the query best, by BM25, best first; fewer where fewer hold a word of it.

    Reads the corpus. Raises `InputError` for a query without a word, and `OSError` when a file has changed.
    """
    from rlm_core.texts.passages import ranked

    try:
        found = ranked(build_context(corpus.worker_documents())[1], query, k)
    except ValueError as error:
        raise InputError(f"no passages can be looked for: {error}") from None
    return [Piece(each.document, each.start, each.start + len(each)) for each in found]
