"""What the spans of a run say about the places they read, gathered in one pass; everything is untrusted.

Places of a child run that was given texts of its own count in the corpus of the top run where the record
tells which place each text came from (`traces.child_places`); elsewhere they are not known, and that is said.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from rlm_core import semconv as sc
from traces.byte_ranges import merged
from traces.child_places import Translation, translation
from traces.facts import LARGEST
from traces.finding import decoded
from traces.rows import SpanRow
from traces.span_images import span_images
from traces.tree import outcome
from traces.view import RunView

_SEARCHED: Final = ("located", "reference", "none")
_FAILED: Final = ("error", "cancelled", "lost")


class Place(NamedTuple):
    """Bytes `start` to `end` of a document, read by a span."""

    start: int
    end: int
    span_id: str


@dataclass
class Gathered:
    """Places by fate and document, and what is not known.

    `names`, `sizes` and `sections` are of the documents, in order; a size is None when it is not known.
    `whole` are (first document, behind the last, span): documents that code was given whole. `images` are
    those that are image files; `seen` names the pages of a document that sub-calls were shown as pictures,
    0 for an image file.
    """

    corpus_id: str | None = None
    names: tuple[str, ...] = ()
    sizes: tuple[int | None, ...] = ()
    sections: tuple[Any, ...] = ()  # as recorded, of each document
    places: dict[str, dict[int, list[Place]]] = field(
        default_factory=lambda: {how: defaultdict(list) for how in ("sent", "shown", "unanswered", "given")}
    )
    whole: list[tuple[int, int, str]] = field(default_factory=list)
    images: frozenset[int] = frozenset()
    seen: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def lower_bound(self) -> bool:
        """Whether more may have been sent or shown than is known."""
        return any(self.counts[key] for key in ("unsearched", "cut", "unshown", "unplaced", "unusable"))

    @property
    def given_known(self) -> bool:
        """Whether every cell says which parts its code was given."""
        return not (self.counts["untouched"] or self.counts["dropped"])

    def words(self) -> Iterator[str]:
        """What is not known, in sentences."""
        if not self.names:
            yield "The record does not say which documents this run was asked over."
        for key, one, many in _SENTENCES:
            if count := self.counts[key]:
                yield (one if count == 1 else many).format(f"{count:,}")
        yield from self._seen_words()

    def _seen_words(self) -> Iterator[str]:
        unseen, pages = len(self.images - self.seen.keys()), sum(map(len, self.seen.values()))
        if unseen:
            yield f"Images of the corpus that no sub-call was shown: {unseen:,} of {len(self.images):,}."
        if pages:
            yield f"Pictures shown to sub-calls: {pages:,}. What a model read in them is not counted as text."


_SENTENCES: Final = (
    (
        "unsearched",
        "The text of {} sub-call was not searched for, or only in part: it may have read more.",
        "The texts of {} sub-calls were not searched for, or only in part: they may have read more.",
    ),
    (
        "cut",
        "{} span read more passages than its record lists.",
        "{} spans read more passages than their record lists.",
    ),
    (
        "unshown",
        "Of {} text shown to the root it is not known what of the corpus stood in it.",
        "Of {} texts shown to the root it is not known what of the corpus stood in them.",
    ),
    (
        "untouched",
        "{} cell does not say which parts of the corpus its code was given.",
        "{} cells do not say which parts of the corpus their code was given.",
    ),
    (
        "dropped",
        "{} cell looked at more parts of the corpus than its record lists.",
        "{} cells looked at more parts of the corpus than their record lists.",
    ),
    (
        "unplaced",
        "{} child run worked on texts of its own; of some it is not known where in the corpus they stand.",
        "{} child runs worked on texts of their own; of some it is not known where in the corpus they stand.",
    ),
    ("unusable", "{} entry of the record cannot be used.", "{} entries of the record cannot be used."),
)


def gathered(view: RunView) -> Gathered:
    """What all spans of a run say."""
    return _Reader(view).read()


class _Reader:
    def __init__(self, view: RunView) -> None:
        self._view = view
        self._out = Gathered()
        self._owners: dict[str, str | None] = {}  # span -> the run span it belongs to
        self._translations: dict[str | None, Translation | None] = {}  # run span -> its places in the corpus
        self._asked: set[str] = set()  # spans below which an attempt stands: their text was sent
        self._answered: set[str] = set()  # spans below which an attempt was answered
        self._roots: set[str] = set()  # run spans that asked their root at all
        self._read: set[str] = set()  # iterations whose root call was answered
        self._last_root: dict[str | None, int] = {}  # run span -> seq of its last root call that did not fail

    def read(self) -> Gathered:
        """Two passes to see how the spans hang together, one over what they say."""
        for span in self._view.spans:
            self._place_span(span)
        for span in self._view.spans:
            if span.kind == "root_call":
                self._place_root(span)
        for span in self._view.spans:
            owner = self._owners[span.span_id]
            if span.kind == "run":
                self._run(span, owner)
            elif span.kind == "sub_call":
                self._sub_call(span, owner)
            elif span.kind == "tool" and span.status == "ok":  # what it told the sub-model
                self._take("sent", _ranges(span.attributes, sc.SOURCE_RANGES), span, owner)
            elif span.kind == "cell":
                self._cell(span, owner)
            elif span.span_id in self._read and sc.SHOWN_RANGES in span.attributes:
                self._shown(span, owner)
        return self._out

    def _place_span(self, span: SpanRow) -> None:
        above = self._view.by_id.get(span.parent_id) if span.parent_id is not None else None
        if above is None or above.span_id not in self._owners:
            owner = None
        else:
            owner = above.span_id if above.kind == "run" else self._owners[above.span_id]
        self._owners[span.span_id] = owner
        if span.kind == "attempt" and span.parent_id is not None:
            self._asked.add(span.parent_id)
            if span.status == "ok":
                self._answered.add(span.parent_id)

    def _place_root(self, span: SpanRow) -> None:
        owner = self._owners[span.span_id]
        if owner is not None:
            self._roots.add(owner)
        if not self._failed(span):
            self._last_root[owner] = span.seq
            if span.parent_id is not None:
                self._read.add(span.parent_id)

    def _failed(self, span: SpanRow) -> bool:
        """Whether no model answered a call, so that nothing says that one read its text."""
        return outcome(span) in _FAILED and span.span_id not in self._answered

    # -- runs

    def _run(self, span: SpanRow, owner: str | None) -> None:
        attributes = span.attributes
        table = self._table(attributes)
        if owner is None and not self._out.names:
            corpus_id = attributes.get(sc.CORPUS_ID)
            self._out.corpus_id = corpus_id if isinstance(corpus_id, str) else None
            self._out.names, self._out.sizes, self._out.sections, self._out.images = table
            self._translations[span.span_id] = Translation.same()
        elif owner is not None:
            self._child(span, owner, table.sizes)
        if span.span_id in self._last_root:
            self._shown(span, span.span_id)

    def _child(self, span: SpanRow, owner: str, sizes: Sequence[int | None]) -> None:
        """A child run: its places in the corpus of the run above, and what it was given by that."""
        attributes = span.attributes
        found = _ranges(attributes, sc.SOURCE_RANGES)
        digest = attributes.get(sc.CHILD_CONTEXT + ".sha256")
        if digest is None:
            self._translations[span.span_id] = self._translations.get(owner)
            if span.span_id in self._last_root or outcome(span) not in _FAILED:
                self._take("sent", found, span, owner)  # its question, read by its root
            elif span.span_id in self._roots:
                self._take("unanswered", found, span, owner)
            return
        self._take("given", found, span, owner)
        if sc.CORPUS + ".sha256" not in attributes:
            return  # it never began, or its answer came from the record
        above = self._translations.get(owner)
        context = self._view.payload(digest) if isinstance(digest, str) else None
        own = None if found is None else translation(context, list(filter(_range, found.ranges)), sizes)
        known = None if own is None or above is None else own.through(above)
        self._translations[span.span_id] = known
        self._out.counts["unplaced"] += known is None or known.partial

    def _table(self, attributes: Mapping[str, Any]) -> _Table:
        """The documents of a run; none when its table is not there or not usable."""
        digest = attributes.get(sc.CORPUS + ".sha256")
        text = self._view.payload(digest) if isinstance(digest, str) else None
        try:
            documents = json.loads(text)["documents"] if text is not None else []
            return _Table(
                tuple(str(item["name"]) for item in documents),
                tuple(_size(item.get("bytes")) for item in documents),
                tuple(item.get("sections") for item in documents),
                frozenset(number for number, item in enumerate(documents) if item.get("picture")),
            )
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
            self._out.counts["unusable"] += 1
            return _Table((), (), (), frozenset())

    # -- calls and cells

    def _sub_call(self, span: SpanRow, owner: str | None) -> None:
        if span.status != "ok" and span.span_id not in self._asked:
            return  # turned away or stopped before any text left
        how = "unanswered" if self._failed(span) else "sent"
        for image in span_images(span) if how == "sent" else ():
            if image["document"] is not None and 0 <= image["document"] < len(self._out.names):
                self._out.seen[image["document"]].add(image["page"])
        found = _ranges(span.attributes, sc.SOURCE_RANGES)
        self._out.counts["unsearched"] += found is None or found.unsearched
        self._take(how, found, span, owner)

    def _cell(self, span: SpanRow, owner: str | None) -> None:
        self._touched(span, owner)
        if span.seq < self._last_root.get(owner, -1):  # else no root call that was answered came after it
            self._shown(span, owner)

    def _shown(self, span: SpanRow, owner: str | None) -> None:
        found = _ranges(span.attributes, sc.SHOWN_RANGES)
        self._out.counts["unshown"] += found is None or found.unsearched
        self._take("shown", found, span, owner)

    def _touched(self, span: SpanRow, owner: str | None) -> None:
        said = decoded(span.attributes, sc.TOUCHED)
        if not isinstance(said, Mapping):
            self._out.counts["untouched"] += 1
            return
        translate = self._translations.get(owner)
        dropped = said.get("left_out")
        self._out.counts["dropped"] += type(dropped) is int and dropped > 0
        parts = said.get("parts")
        for item in parts if isinstance(parts, list) else []:
            self._keep("given", item, span, translate)
        whole = said.get("whole")
        self._keep_whole(whole if isinstance(whole, list) else [], span, translate)

    # -- keeping what makes sense

    def _take(self, how: str, found: _Found | None, span: SpanRow, owner: str | None) -> None:
        if found is None:
            return
        self._out.counts["cut"] += found.cut
        translate = self._translations.get(owner)
        for item in found.ranges:
            self._keep(how, item, span, translate)

    def _keep(self, how: str, item: object, span: SpanRow, translate: Translation | None) -> None:
        place = _range(item)
        if place is None:
            self._out.counts["unusable"] += 1
        elif translate is not None:
            for document, start, end in translate.places(*place):
                if not self._exists(document, end):
                    self._out.counts["unusable"] += 1
                elif start < end:
                    self._out.places[how][document].append(Place(start, end, span.span_id))

    def _exists(self, document: int, end: int) -> bool:
        size = self._out.sizes[document] if document < len(self._out.sizes) else 0
        return size is None or end <= size

    def _keep_whole(self, items: Sequence[Any], span: SpanRow, translate: Translation | None) -> None:
        """Documents, each item `[first, last]`, that code was given as a whole."""
        usable = [i for i in items if isinstance(i, list) and len(i) == 2 and all(type(n) is int for n in i)]
        self._out.counts["unusable"] += len(items) - len(usable)
        if translate is None:
            return
        most = len(self._out.names) if translate.is_same else translate.documents
        for first, behind in merged((max(first, 0), min(last + 1, most)) for first, last in usable):
            if translate.is_same:
                self._out.whole.append((first, behind, span.span_id))
                continue
            for document in range(first, behind):
                self._keep("given", [document, 0, translate.size(document)], span, translate)


class _Table(NamedTuple):
    """Names, bytes and sections (as recorded) of documents, and which are image files."""

    names: tuple[str, ...]
    sizes: tuple[int | None, ...]
    sections: tuple[Any, ...]
    images: frozenset[int]


class _Found(NamedTuple):
    """Source ranges as recorded, whether some text was not searched, and whether some ranges are left out."""

    ranges: list[Any]
    unsearched: bool
    cut: bool


def _ranges(attributes: Mapping[str, Any], key: str) -> _Found | None:
    """Recorded source ranges; None when the record says nothing of the kind."""
    said = decoded(attributes, key)
    if not isinstance(said, Mapping) or not isinstance(said.get("how"), str):
        return None
    ranges, left_out = said.get("ranges"), said.get("left_out")
    return _Found(
        ranges if isinstance(ranges, list) else [],
        unsearched=said["how"] not in _SEARCHED or said.get("why") is not None,
        cut=type(left_out) is int and left_out > 0,
    )


def _range(item: object) -> tuple[int, int, int] | None:
    """[document, start, end] in numbers that a file can have; None for anything else."""
    if not (isinstance(item, list) and len(item) == 3 and all(type(part) is int for part in item)):
        return None
    document, start, end = item
    return (document, start, end) if document >= 0 and 0 <= start <= end < LARGEST else None


def _size(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < LARGEST else None
