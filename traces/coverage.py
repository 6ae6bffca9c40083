"""Which parts of a corpus a run read: sent to a sub-call, shown to the root, given to code, never touched.

What was sent only to calls that failed is a fate of its own, "unanswered": no model is known to have read it.

A pure function of the record. What it says was read was read; what it does not say may have been read all the
same where `Coverage.words` tells what is not known. Ranges are bytes of the canonical texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from rlm_core.document import Section, place_of
from traces.byte_ranges import Range, Ranges, merged, size, without
from traces.coverage_facts import Gathered, Place, gathered
from traces.view import RunView

How = Literal["sent", "shown", "unanswered", "given"]
HOWS: Final[tuple[How, ...]] = ("sent", "shown", "unanswered", "given")  # what tells most first
LISTED: Final = 100  # documents in the JSON form


class Part(NamedTuple):
    """A stretch of a document with one fate: `how` is what tells most about it, or "never"."""

    start: int
    end: int
    how: str


class Reading(NamedTuple):
    """A span that read a part of a document: a sub-call, child run, cell or run."""

    start: int
    end: int
    how: How
    span_id: str


@dataclass(frozen=True, slots=True)
class DocumentCoverage:
    """One document. `bytes` is None when the record does not say how large it is; the sets are what is known.

    A byte may be in several sets: what was sent has mostly been given to code before. `seen` are the pages
    that answered sub-calls were shown as pictures, 0 for an image file.
    """

    number: int
    name: str
    bytes: int | None
    sent: Ranges = ()
    shown: Ranges = ()
    given: Ranges = ()
    unanswered: Ranges = ()
    is_image: bool = False
    seen: tuple[int, ...] = ()

    @property
    def read(self) -> Ranges:
        """What a model saw: sent to a sub-call that was answered, or shown to the root."""
        return merged((*self.sent, *self.shown))

    @property
    def touched(self) -> Ranges:
        """What was sent (answered or not), shown or given to code."""
        return merged((*self.sent, *self.shown, *self.unanswered, *self.given))

    @property
    def is_something(self) -> bool:
        """Whether there is anything in it that a model could be sent."""
        return self.bytes != 0 or self.is_image

    def share(self, ranges: Sequence[Range]) -> float | None:
        """How much of the document a set is, from 0 to 1; None for an empty document or an unknown size."""
        return size(ranges) / self.bytes if self.bytes else None

    def parts(self) -> tuple[Part, ...]:
        """The document from its first to its last byte, each part with what tells most about it."""
        found: list[Part] = []
        left: Ranges = ((0, self.bytes),) if self.bytes else merged(self.touched)
        for how in HOWS:
            ranges: Ranges = getattr(self, how)
            rest = without(left, ranges)
            found += (Part(start, end, how) for start, end in without(left, rest))
            left = rest
        return tuple(sorted([*found, *(Part(start, end, "never") for start, end in left)]))


@dataclass(frozen=True)
class Coverage:
    """What is known about the documents of one run's corpus, child runs included.

    `words` are sentences on what is not known. `lower_bound`: more may have been sent or shown than is known.
    `given_known`: every cell says which parts of the corpus its code was given.
    """

    corpus_id: str | None
    documents: tuple[DocumentCoverage, ...]
    words: tuple[str, ...] = ()
    lower_bound: bool = False
    given_known: bool = True
    _gathered: Gathered = field(default_factory=Gathered, repr=False, compare=False)

    @cached_property
    def bytes(self) -> int:
        """Bytes of all documents whose size is known."""
        return sum(document.bytes or 0 for document in self.documents)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Bytes by fate, each byte once, as in `DocumentCoverage.parts`: `HOWS`, and never."""
        sizes: Counter[str] = Counter(dict.fromkeys((*HOWS, "never"), 0))
        for document in self.documents:
            for start, end, how in document.parts():
                sizes[how] += end - start
        return sizes

    @property
    def read_share(self) -> float | None:
        """How much of the corpus a model saw, from 0 to 1; None when there is no text."""
        return (self.sizes["sent"] + self.sizes["shown"]) / self.bytes if self.bytes else None

    @cached_property
    def never_sent(self) -> tuple[DocumentCoverage, ...]:
        """The documents with text, and images, of which nothing is known to have been sent to a sub-call."""
        return tuple(d for d in self.documents if d.is_something and not (d.sent or d.unanswered or d.seen))

    @cached_property
    def never_answered(self) -> tuple[DocumentCoverage, ...]:
        """The documents that were sent to sub-calls, all of which failed."""
        return tuple(document for document in self.documents if document.unanswered and not document.sent)

    @cached_property
    def never_touched(self) -> tuple[DocumentCoverage, ...]:
        """The documents with text, and images, of which nothing is known to have been sent, shown, or given
        to code.
        """
        return tuple(d for d in self.documents if d.is_something and not (d.touched or d.seen))

    @cached_property
    def least_first(self) -> tuple[DocumentCoverage, ...]:
        """The documents, those that models saw least of first; then by what code was given, then in order."""
        return tuple(sorted(self.documents, key=_least))

    def readings(self, document: int, start: int = 0, end: int | None = None) -> list[Reading]:
        """The spans that read something of a document between two bytes, in the order of the text."""
        places = self._gathered.places
        found = [
            Reading(place.start, place.end, how, place.span_id)
            for how in HOWS
            for place in places[how].get(document, ())
            if place.end > start and (end is None or place.start < end)
        ]
        last = self.documents[document].bytes or 0 if document < len(self.documents) else 0
        found += (
            Reading(0, last, "given", span_id)
            for first, behind, span_id in self._gathered.whole
            if first <= document < behind
        )
        return sorted(found, key=lambda one: (one.start, HOWS.index(one.how), one.end))

    def place(self, document: int, start: int, end: int) -> str | None:
        """The page, slide or sheet of a range in words, as `rlm_core.document.place_of`; None without any."""
        recorded = self._gathered.sections[document] if document < len(self._gathered.sections) else None
        try:
            sections = [
                Section(str(k), str(label), 0, 0, None, int(a), int(b)) for k, label, a, b in recorded or ()
            ]
            return place_of(sections, start, end)
        except (TypeError, ValueError, OverflowError):
            return None

    def to_json(self, most: int = LISTED) -> dict[str, Any]:
        """The whole in figures, and the `most` documents that were covered least; the rest is counted."""
        sizes = self.sizes
        return {
            "corpus_id": self.corpus_id,
            "documents": len(self.documents),
            "bytes": self.bytes,
            **{f"{how}_bytes": sizes[how] for how in (*HOWS, "never")},
            "read_share": _rounded(self.read_share),
            "lower_bound": self.lower_bound,
            "given_known": self.given_known,
            "never_sent": len(self.never_sent),
            "never_answered": len(self.never_answered),
            "never_touched": len(self.never_touched),
            "unknown": list(self.words),
            "by_document": [_document_json(one) for one in self.least_first[:most]],
            "left_out": max(0, len(self.documents) - most),
        }


def coverage(view: RunView) -> Coverage:
    """The coverage of a run's corpus; without documents when the record does not hold the corpus table."""
    found = gathered(view)
    sets = {how: _sets(found.places[how], found.sizes) for how in HOWS}
    whole = _whole_documents(found, sets["given"])
    documents = tuple(
        DocumentCoverage(
            number,
            name,
            found.sizes[number],
            sets["sent"].get(number, ()),
            sets["shown"].get(number, ()),
            ((0, found.sizes[number] or 0),) if number in whole else sets["given"].get(number, ()),
            sets["unanswered"].get(number, ()),
            number in found.images,
            tuple(sorted(found.seen.get(number, ()))),
        )
        for number, name in enumerate(found.names)
    )
    return Coverage(
        found.corpus_id, documents, tuple(found.words()), found.lower_bound, found.given_known, found
    )


def _sets(places: Mapping[int, Sequence[Place]], sizes: Sequence[int | None]) -> dict[int, Ranges]:
    return {
        number: merged((place.start, place.end) for place in found)
        for number, found in places.items()
        if number < len(sizes)
    }


def _whole_documents(found: Gathered, parts: Mapping[int, Ranges]) -> set[int]:
    """The documents that code was given as a whole."""
    numbers = merged((first, behind) for first, behind, _ in found.whole)
    return {number for first, behind in numbers for number in range(first, behind) if found.sizes[number]}


def _least(document: DocumentCoverage) -> tuple[float, float, int]:
    read, touched = document.share(document.read), document.share(document.touched)
    return (1.0 if read is None else read), (1.0 if touched is None else touched), document.number


def _document_json(document: DocumentCoverage) -> dict[str, Any]:
    return {
        "number": document.number,
        "document": document.name,
        "bytes": document.bytes,
        **{how: _rounded(document.share(getattr(document, how))) for how in HOWS},
        "read": _rounded(document.share(document.read)),
        "is_image": document.is_image,
        "seen": list(document.seen),
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)
