"""The documents of a corpus as a sequence, and what `context` is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, SupportsIndex, overload

from rlm_core.texts import files
from rlm_core.texts.files import Source, Store
from rlm_core.texts.mapped import MappedText
from rlm_core.texts.pictures import Picture, pictures_of
from rlm_core.texts.text import (
    Match,
    Passage,
    Text,
    check_chunks,
    cut_name,
    limited,
    matches_in,
    unknown_name,
)
from rlm_core.texts.touched import note_whole

_NAMES_SHOWN: Final = 3


class Documents(Sequence[Any]):
    """The documents of a corpus, or some of them: by number, slice or name, read on first use.

    Each is a `Text`; in a corpus of more than 64 MB, one of more than 8,388,608 characters is a `MappedText`.
    """

    def __init__(self, sources: Sequence[Source], store: Store) -> None:
        self._sources = list(sources)
        self.store = store
        self._by_name = {source.name: source for source in self._sources}

    @property
    def names(self) -> list[str]:
        """The names of all documents, in order."""
        return [source.name for source in self._sources]

    @property
    def name(self) -> str:
        """A short label for all of them."""
        shown = ", ".join(cut_name(source.name) for source in self._sources[:_NAMES_SHOWN])
        more = len(self._sources) - _NAMES_SHOWN
        return f"{shown} and {more:,} more" if more > 0 else shown

    @property
    def chars(self) -> int:
        """Characters of all documents together, known without reading them."""
        return sum(source.chars for source in self._sources)

    @property
    def places(self) -> list[tuple[int, int]]:
        """Number and length in characters of every document, known without reading them."""
        return [(source.number, source.chars) for source in self._sources]

    @property
    def are_mapped(self) -> bool:
        """Whether the corpus is too large for `str` objects, so that there can be a `MappedText`."""
        return self.store.mapped

    def __len__(self) -> int:
        return len(self._sources)

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> Any: ...
    @overload
    def __getitem__(self, key: slice) -> Documents: ...
    def __getitem__(self, key: SupportsIndex | str | slice) -> Any:
        if isinstance(key, slice):
            return Documents(self._sources[key], self.store)
        if not isinstance(key, str):
            return self._noted(self._sources[key])
        if key not in self._by_name:
            raise KeyError(unknown_name(key, self.names))
        return self._noted(self._by_name[key])

    def __iter__(self) -> Iterator[Any]:
        return (self._noted(source) for source in self._sources)

    def quietly(self, number: int) -> Text | MappedText:
        """A document for our own use: what code does not get to see is not noted."""
        return self._text(self._sources[number])

    def _noted(self, source: Source) -> Text | MappedText:
        text = self._text(source)
        if isinstance(text, Text):
            note_whole(source.number, source.chars)
        return text

    def _text(self, source: Source) -> Text | MappedText:
        if self.store.mapped and source.chars > files.MOST_CHARS:
            return MappedText(self.store, source)
        text: Text = self.store.texts.get(source.number, source.size, lambda: self._read(source))
        return text

    def _read(self, source: Source) -> Text:
        text = Text(source.read(), source.number, 0, source.name)
        text._origin = (self.store, source)
        return text

    def __contains__(self, value: object) -> bool:
        if isinstance(value, (Text, MappedText)):
            return any(source.number == value.document for source in self._sources)
        raise TypeError("`in` is not clear here: use `name in documents.names` or `documents.search(regex)`")

    def search(self, regex: str | re.Pattern[str], limit: int | None = 100, flags: int = 0) -> list[Match]:
        """The matches of a regular expression, at most `limit` (None = all); says if there are more."""
        return limited(self._matches(re.compile(regex, flags)), limit)

    def _matches(self, pattern: re.Pattern[str]) -> Iterator[Match]:
        for text in map(self._text, self._sources):
            if isinstance(text, MappedText):
                yield from text.matches(pattern)
                continue
            yield from matches_in(text, pattern)

    def lines(self) -> Iterator[Any]:
        """The lines of all documents, without their ends, one at a time."""
        return (line for text in self for line in text.lines())

    def chunks(self, n: int = 4000, overlap: int = 0) -> Any:
        """The pieces of every document as `Text.chunks` cuts them; no piece spans two documents.

        A list; in a corpus of more than 64 MB a sequence that is cut as it is used.
        """
        check_chunks(n, overlap)
        if not self.store.mapped:
            return [piece for text in self for piece in text.chunks(n, overlap)]
        from rlm_core.texts.pieces import Joined

        return Joined(len(self), lambda number: self[number].chunks(n, overlap))

    def top(self, query: str, k: int = 10) -> list[Passage]:
        """The `k` passages of all documents that fit the words of the query best (BM25), best first.

        Each is a `Text` with a `.score`.
        """
        from rlm_core.texts.passages import best

        return best(self, query, k)

    @property
    def tables(self) -> Mapping[str, Any]:
        """The tables among the documents as pandas DataFrames, by name; `name#sheet` for sheets."""
        from rlm_core.texts.tables import Tables

        return Tables(self.store, *self._sources)

    @property
    def images(self) -> list[Picture]:
        """What can be seen of all documents, in order: image files, and the pages of PDF documents."""
        return [
            picture
            for source in self._sources
            if source.is_image or source.pages
            for picture in pictures_of(self._text(source), source)
        ]

    def __repr__(self) -> str:
        count = len(self._sources)
        return f"<{count:,} document{'' if count == 1 else 's'}, {self.chars:,} characters: {self.name}>"


def build_context(documents: list[dict[str, Any]]) -> tuple[Text | MappedText | Documents, Documents]:
    """`(context, documents)` from what `Corpus.worker_documents` gives.

    `context` is the text itself when there is one document; up to 64 MB it is then read at once. Raises
    `OSError` when that file has changed or is gone, and `ValueError` when there is no document.
    """
    if not documents:
        raise ValueError("a corpus has at least one document")
    sources = [Source(facts) for facts in documents]
    all_documents = Documents(sources, Store(sum(source.size for source in sources)))
    return (all_documents[0] if len(documents) == 1 else all_documents), all_documents
