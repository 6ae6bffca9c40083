"""One corpus, searched for the text of prompts: all of it up to 64 MB, beyond that what code has looked at.

What code has looked at is a hint of the worker: it says where to look and which of several equal places to
prefer, and is never believed beyond that. An index is made when the first text is searched; in a large corpus
one more for every newly looked at part. They take at most 1.5 times (small corpora: 3 times) the indexed
bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final

from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError
from rlm_core.gram_index import GRAINS, MOST_BYTES, Index, Piece, Place
from rlm_core.locate import Found, locate

MOST_LOOKED_AT: Final = 32 << 20  # bytes indexed of a corpus that is too large for one index
MOST_WINDOWS: Final = 2_000  # remembered, the newest
_BLOCK: Final = 64 << 10
_MARGIN: Final = 256  # bytes around a block, so that what spans its end is found as a whole
_MERGED: Final = GRAINS[0].most_bytes

Window = Sequence[int]  # [document, first character, last character]


class NotSearched(Exception):
    """The text could not be searched for; the message is a clause that says why."""


class CorpusSearch:
    """Finds texts in one corpus. Used from one thread at a time.

    `stopped` is asked while an index is made; when it says so, the making ends with `NotSearched`.
    """

    def __init__(self, corpus: Corpus, stopped: Callable[[], bool]) -> None:
        self._corpus = corpus
        self._stopped = stopped
        self._size = sum(document.bytes for document in corpus.documents)
        self._whole = self._size <= MOST_BYTES
        self._failure: str | None = None
        self._looked: dict[tuple[int, ...], Piece] = {}  # window -> its bytes, the newest last
        self._fresh: dict[tuple[int, int], None] = {}  # blocks to be indexed: document, number
        self._parts: list[tuple[Index, set[tuple[int, int]]]] = []  # indexes with their blocks, oldest first
        self._left_out = False

    @property
    def weight(self) -> int:
        """How many bytes it may have indexed."""
        return min(self._size, MOST_BYTES)

    @property
    def indexed(self) -> bool:
        """Whether there is an index already: then a search costs little."""
        return bool(self._parts)

    def look(self, windows: Sequence[Window]) -> None:
        """Take note of what code has looked at; what does not exist in the corpus is passed over."""
        for document, start, end in windows:
            try:
                place = self._bytes_of(document, start, end)
            except CorpusError:
                continue
            self._looked.pop((document, start, end), None)
            self._looked[document, start, end] = place
            if not self._whole:
                self._note_blocks(place)
        while len(self._looked) > MOST_WINDOWS:
            del self._looked[next(iter(self._looked))]

    def find(self, text: str) -> list[Found]:
        """Where parts of a text stand, in the order of the text. Raises `NotSearched`."""
        if self._stopped():
            raise NotSearched("the run ended before")
        if self._failure is not None:
            raise NotSearched(self._failure)
        try:
            if not self._whole:
                self._index_fresh()
            elif not self._parts:
                pieces = [Piece(d.number, 0, d.bytes) for d in self._corpus.documents]
                self._parts = [(Index(pieces, self._read), set())]
        except (CorpusError, MemoryError) as error:
            self._failure = str(error) or "there is not enough memory to index the corpus"
            raise NotSearched(self._failure) from None
        found = locate(text, [index for index, _ in self._parts], self._prefer)
        if not found and not self._whole:
            raise NotSearched(self._what_was_searched())
        return found

    def _what_was_searched(self) -> str:
        size = f"the corpus has {self._size / 1e6:,.0f} MB, and"
        if self._left_out:
            most = MOST_LOOKED_AT >> 20
            return f"{size} the newest {most} MB that the code looked at do not hold this text"
        if self._parts:
            return f"{size} the parts that the code looked at do not hold this text"
        return f"{size} it is not known which parts the code looked at"

    def _bytes_of(self, document: int, start: int, end: int) -> Piece:
        documents = self._corpus.documents
        if document < len(documents) and (start, end) == (0, documents[document].chars):
            return Piece(document, 0, documents[document].bytes)  # nothing to be read for that
        return Piece(document, *self._corpus.byte_range(document, start, end))

    def _prefer(self, places: list[Place]) -> Place:
        """The first place in what code has looked at last."""
        for document, first, last in reversed(self._looked.values()):
            at = bisect_left(places, (document, first))
            if at < len(places) and places[at] < (document, last):
                return places[at]
        return places[0]

    def _note_blocks(self, place: Piece) -> None:
        document, first, last = place
        if last - first > MOST_LOOKED_AT:
            self._left_out = True
            return
        blocks = {(document, number) for number in range(first // _BLOCK, -(-last // _BLOCK))}
        for _, known in self._parts:
            blocks -= known
        self._fresh.update(dict.fromkeys(sorted(blocks)))
        while len(self._fresh) * _BLOCK > MOST_LOOKED_AT:
            del self._fresh[next(iter(self._fresh))]
            self._left_out = True

    def _index_fresh(self) -> None:
        """Index what was looked at since the last time; small indexes are merged, the oldest given up."""
        if not self._fresh:
            return
        blocks, self._fresh = set(self._fresh), {}
        index = self._index_of(blocks)
        while self._parts:
            earlier, known = self._parts[-1]
            if earlier.bytes > 2 * index.bytes or earlier.bytes + index.bytes > _MERGED:
                break
            blocks |= known
            self._parts.pop()
            index = self._index_of(blocks)
        self._parts.append((index, blocks))
        while len(self._parts) > 1 and sum(index.bytes for index, _ in self._parts) > MOST_LOOKED_AT:
            self._parts.pop(0)
            self._left_out = True

    def _index_of(self, blocks: set[tuple[int, int]]) -> Index:
        """An index of blocks; neighbours become one piece."""
        pieces: list[Piece] = []
        for document, number in sorted(blocks):
            size = self._corpus.documents[document].bytes
            start, end = max(0, number * _BLOCK - _MARGIN), min(size, (number + 1) * _BLOCK + _MARGIN)
            if pieces and pieces[-1].document == document and pieces[-1].end >= start:
                pieces[-1] = pieces[-1]._replace(end=end)
            else:
                pieces.append(Piece(document, start, end))
        return Index(pieces, self._read)

    def _read(self, document: int, start: int, end: int) -> bytes:
        if self._stopped():
            raise NotSearched("the run ended before")
        return self._corpus.raw(document, start, end)
