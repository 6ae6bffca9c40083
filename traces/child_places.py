"""Where the texts that a child run was given stand in the corpus of the run above it.

A child run with texts of its own has a small corpus of its own, and its spans count bytes in that. What it
was given is recorded as parts, texts and places; the places as byte ranges stand on its span.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

_MOST_BYTES: Final = 4  # of one character in UTF-8
_SHORT: Final = 24  # bytes of a text that says little: no run searches for shorter ones
_MOST_PIECES: Final = 200_000  # of a child run's child: each of its parts may be all pieces of the one above
_Piece = tuple[int, int, int, int]  # first byte and behind the last in the child, document and byte above


@dataclass(frozen=True, slots=True)
class Translation:
    """From places in one corpus to those in another; `pieces` by document, None when both are the same.

    `partial`: some text of the first may stand in the second, but the record does not say where.
    """

    pieces: tuple[tuple[_Piece, ...], ...] | None
    partial: bool = False

    @classmethod
    def same(cls) -> Translation:
        """Of a run that works on the corpus itself."""
        return cls(None)

    @property
    def is_same(self) -> bool:
        """Whether nothing is to be translated."""
        return self.pieces is None

    @property
    def documents(self) -> int:
        """How many documents there are to translate from."""
        return len(self.pieces or ())

    def size(self, document: int) -> int:
        """The end of what is known of a document."""
        pieces = (self.pieces or ())[document]
        return pieces[-1][1] if pieces else 0

    def places(self, document: int, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The places of a range; what the child's texts hold beside text of the corpus has none."""
        return ((other, first, behind) for _, other, first, behind in self.cuts(document, start, end))

    def cuts(self, document: int, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """The same; before each place stands the byte of `document` at which it begins."""
        if self.pieces is None:
            yield start, document, start, end
        elif document < len(self.pieces):
            pieces = self.pieces[document]
            for first, behind, other, at in pieces[max(0, bisect_right(pieces, (start,)) - 1) :]:
                if first >= end:
                    return
                low, high = max(first, start), min(behind, end)
                if low < high:
                    yield low, other, at + low - first, at + high - first

    def through(self, above: Translation) -> Translation | None:
        """This translation followed by that of the run above; None where that has too many pieces."""
        if self.pieces is None or above.pieces is None:
            return above if self.pieces is None else self
        chained: list[tuple[_Piece, ...]] = []
        left = _MOST_PIECES
        for pieces in self.pieces:
            chained.append(tuple(islice(_chained(pieces, above), left + 1)))
            left -= len(chained[-1])
            if left < 0:
                return None
        return Translation(tuple(chained), self.partial or above.partial)


def translation(
    context: str | None, ranges: Sequence[Any], sizes: Sequence[int | None]
) -> Translation | None:
    """The places of a child's texts, or None when the record does not tell them for sure.

    `context` is the recorded JSON: one list of parts per document, each a text or [document, first character,
    behind the last]. `ranges` are the source ranges of the child's span: question first, then those parts in
    order, with what a search found between them. `sizes` are the bytes of its documents, which all has to
    add up to.
    """
    try:
        given = json.loads(context) if context is not None else None
        if not isinstance(given, list) or len(given) != len(sizes):
            return None
        left = list(ranges)
        placed = [_placed(parts, left) for parts in reversed(given)]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    placed.reverse()
    if [document.size for document in placed] != list(sizes):
        return None
    return Translation(
        tuple(tuple(document.pieces) for document in placed), any(document.partial for document in placed)
    )


class _Placed(NamedTuple):
    """One document of a child: its pieces, its length in bytes, whether some of its text is not placed."""

    pieces: list[_Piece]
    size: int
    partial: bool


def _placed(parts: Sequence[Any], left: list[Any]) -> _Placed:
    """Place the parts of one document, the last first; takes the ranges it uses off the end of `left`."""
    found = [_part(part, left) for part in reversed(parts)]
    pieces: list[_Piece] = []
    at = 0
    for length, place in reversed(found):
        if place is not None:
            pieces.append((at, at + length, place[0], place[1]))
        at += length
    return _Placed(pieces, at, any(place is None and length >= _SHORT for length, place in found))


def _part(part: Any, left: list[Any]) -> tuple[int, Sequence[int] | None]:
    """The length of a part in bytes, and its place. A text has one if it was found as a whole."""
    if isinstance(part, str):
        length = len(part.encode("utf-8", "surrogatepass"))
        found = bool(left) and length >= _SHORT and left[-1][2] - left[-1][1] == length
        return length, (left.pop() if found else None)
    document, first, behind = part
    while behind > first:
        place: Sequence[int] = left.pop()  # IndexError: the record does not list it
        size = place[2] - place[1]
        if place[0] == document and behind - first <= size <= _MOST_BYTES * (behind - first):
            return size, place
    return 0, None


def _chained(pieces: Sequence[_Piece], above: Translation) -> Iterator[_Piece]:
    for first, behind, document, at in pieces:
        for low, other, start, end in above.cuts(document, at, at + behind - first):
            yield first + low - at, first + low - at + end - start, other, start
