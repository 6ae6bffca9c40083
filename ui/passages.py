"""Where the text of a sub-call came from, for people: documents, places, and the passages themselves.

What the record says is untrusted; the passages are read from the corpus if it is still here and unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError
from traces.facts import LARGEST
from traces.reading import RunView, SpanRow
from ui.figures import counted

Load = Callable[[Path, str], Corpus]  # folder of all corpora, id of one; raises CorpusError
SHOWN_BYTES: Final = 4_000  # of one passage that are read
_GAP_BYTES: Final = 200  # of white space between two passages that are one for people
_TO: Final = " to "  # between the first and the last page of passages that are one
_HOW: Final = {
    "reference": "The prompt holds these passages of the corpus, word for word.",
    "located": "The prompt holds these passages of the corpus, word for word; a search found them.",
    "none": "Not verbatim: no passage of the corpus stands in this prompt word for word.",
    "not_searched": "Not searched: it is not known whether this prompt holds text of the corpus.",
}
_OLD: Final = "the code built this prompt from texts of its own"  # the only reason early records had


@dataclass(frozen=True, slots=True)
class Passage:
    """A range, or several of one document that touch, overlap, or have only white space between them.

    `number` is that of the document in the corpus of the sources. `also` is None where other places were not
    counted, as for several ranges; `text` is "" when `problem` says why, and then it cannot be opened either.
    """

    number: int
    document: str
    place: str | None
    start: int
    end: int
    also: int | None
    text: str
    problem: str | None

    @property
    def cut(self) -> bool:
        """Whether `text` is only the beginning."""
        return self.end - self.start > SHOWN_BYTES


@dataclass(frozen=True, slots=True)
class Sources:
    """`words`: what is known, in sentences; passages that make no sense are left out and counted there.

    `corpus_id` is what the record says, unchecked; None when it says nothing.
    """

    words: list[str]
    passages: list[Passage]
    corpus_id: str | None = None


def sources_of(
    view: RunView, span: SpanRow, value: Any, corpora: Path, load: Load = Corpus.load
) -> Sources | None:
    """What the source ranges of a span mean; None when the value is nothing of the kind. `load` opens the
    corpus: a caller with many spans of one corpus can give a function that keeps it."""
    how = value.get("how") if isinstance(value, Mapping) else None
    if not isinstance(how, str):
        return None
    usable = _usable(value)
    unusable = len(_list(value, "ranges")) - len(usable)
    words = [_HOW.get(how, how), *_remarks(value, how, unusable)]
    run = _run_of(view, span)
    digest = None if run is None else run.attributes.get(sc.CORPUS + ".sha256")
    rows = document_rows(view.payload(digest) if isinstance(digest, str) else None)
    corpus_id = None if run is None else run.attributes.get(sc.CORPUS_ID)
    reader = _Reader(corpora, corpus_id if usable else None, load)
    passages = []
    for document, start, end, place, also in _joined(usable, reader):
        name = str(rows[document]["document"]) if document < len(rows) else f"document {document}"
        text, problem = reader.read(document, start, end)
        passages.append(Passage(document, name, place, start, end, also, text, problem))
    return Sources(words, passages, corpus_id if isinstance(corpus_id, str) else None)


def passage_line(passage: Passage) -> str:
    """Where a passage stands, on one line."""
    parts = [passage.document, passage.place or "", f"bytes {passage.start:,} to {passage.end:,}"]
    if passage.also:
        parts.append(f"the same text stands in {counted(passage.also, 'other place')}")
    return ", ".join(part for part in parts if part)


def document_rows(corpus: object) -> list[dict[str, object]]:
    """The documents of a run from its corpus table (JSON, untrusted), in order; none when it is unusable."""
    try:
        documents = json.loads(corpus)["documents"] if isinstance(corpus, str) else []
        return [
            {
                "document": str(item["name"]),
                "characters": item.get("chars"),
                "type": item.get("media_type"),
                "encoding": item.get("encoding"),
                "problems": "; ".join(map(str, item.get("problems") or ())) or None,
            }
            for item in documents
        ]
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return []


class _Piece(NamedTuple):
    """A range of the record with what it says of it."""

    document: int
    start: int
    end: int
    place: str | None
    also: int | None


def _usable(value: Mapping[str, Any]) -> list[_Piece]:
    places, also = _list(value, "places"), _list(value, "also")
    return [
        _Piece(
            item[0],
            item[1],
            item[2],
            places[n] if n < len(places) and isinstance(places[n], str) else None,
            also[n] if n < len(also) and type(also[n]) is int else None,
        )
        for n, item in enumerate(_list(value, "ranges"))
        if _is_range(item)
    ]


def _joined(pieces: Iterable[_Piece], reader: _Reader) -> Iterator[_Piece]:
    """Neighbours as one, in the order of the text; documents in the order in which they come first."""
    by_document: dict[int, list[_Piece]] = {}
    for piece in pieces:
        by_document.setdefault(piece.document, []).append(piece)
    for found in by_document.values():
        one, *others = sorted(found, key=lambda piece: piece[1:3])
        for piece in others:
            if reader.joins(piece.document, one.end, piece.start, max(one.end, piece.end)):
                one = _both(one, piece)
            else:
                yield one
                one = piece
        yield one


def _both(one: _Piece, other: _Piece) -> _Piece:
    """Two neighbours as one, the first to begin given first."""
    start, end = one.start, max(one.end, other.end)
    places = list(dict.fromkeys(piece.place for piece in (one, other) if piece.place is not None))
    first = places[0].split(_TO)[0] if places else ""
    last = places[-1].split(_TO)[-1] if places else ""
    place = (first if first == last else first + _TO + last) if places else None
    whole = next((piece for piece in (one, other) if (piece.start, piece.end) == (start, end)), None)
    return _Piece(one.document, start, end, place, None if whole is None else whole.also)


class _Reader:
    """Reads passages of one corpus, or says why it cannot."""

    def __init__(self, corpora: Path, corpus_id: object, load: Load) -> None:
        self._corpus: Corpus | None = None
        self._problem: str | None = None
        try:
            if isinstance(corpus_id, str):
                self._corpus = load(corpora, corpus_id)
            else:
                self._problem = "the record does not say which corpus this was"
        except CorpusError:
            self._problem = "the corpus of this run is not here (any more)"

    def joins(self, document: int, end: int, start: int, last: int) -> bool:
        """Whether what begins at `start` goes on with what ends at `end`. `last` is where both end: what is
        behind the end of the document joins nothing, as it would spoil what can be read.
        """
        if self._corpus is None:
            return start <= end
        documents = self._corpus.documents
        if document >= len(documents) or last > documents[document].bytes or start - end > _GAP_BYTES:
            return False
        try:
            return start <= end or not self._corpus.raw(document, end, start).strip()
        except CorpusError:
            return False

    def read(self, document: int, start: int, end: int) -> tuple[str, str | None]:
        """The beginning of a passage, and None or why there is no text."""
        if self._corpus is None:
            return "", self._problem
        try:
            raw = self._corpus.raw(
                document, start, end if end - start <= SHOWN_BYTES else start + SHOWN_BYTES
            )
        except CorpusError as error:
            return "", str(error)
        return raw.decode("utf-8", "ignore"), None


def _remarks(value: Mapping[str, Any], how: str, unusable: int) -> Iterator[str]:
    why = value.get("why", _OLD if how == "not_searched" else None)
    if isinstance(why, str):
        yield (
            f"Some text of the prompt was not searched for: {why}."
            if how != "not_searched"
            else f"Why: {why}."
        )
    left_out = value.get("left_out")
    if type(left_out) is int and left_out > 0:
        yield f"{counted(left_out, 'shorter passage is', 'shorter passages are')} not listed."
    if unusable:
        yield f"{counted(unusable, 'entry', 'entries')} of the record cannot be used."


def _run_of(view: RunView, span: SpanRow) -> SpanRow | None:
    """The (child) run whose corpus a span's ranges count in; a child run's own ranges are its caller's."""
    above: SpanRow | None = span
    seen = 0
    while above is not None and (above.kind != "run" or above is span) and seen < len(view.spans):
        above = view.by_id.get(above.parent_id) if above.parent_id is not None else None
        seen += 1
    return above


def _list(value: Mapping[str, Any], key: str) -> list[Any]:
    found = value.get(key)
    return found if isinstance(found, list) else []


def _is_range(item: object) -> bool:
    """Whether this is [document, start, end] in numbers that a file can have."""
    if not (isinstance(item, list) and len(item) == 3 and all(type(part) is int for part in item)):
        return False
    document, start, end = item
    return bool(document >= 0 and 0 <= start <= end < LARGEST)
