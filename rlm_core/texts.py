"""The corpus as code in a cell sees it. Runs in the worker: standard library only, nothing heavy at import.

A document is a real `str` that also knows its place (`Text`), and so does every slice of it; that is how a
sub-call can say which part of the corpus it saw without sending the text. Texts are read when they are first
used. All are kept while the corpus has at most 64 MB; above that, the most recently used ones up to the same
size. A document larger than that is still read as a whole.
"""

from __future__ import annotations

import os
import re
import stat
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final, SupportsIndex, overload

KEPT_BYTES: Final = 64 << 20
_NAMES_SHOWN: Final = 3
_NAME_CHARS: Final = 60
_LINE: Final = re.compile(r"([^\r\n]*+)(?:\r\n?|\n)|([^\r\n]+)")
_OPEN_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)


def open_text(path: str, size: int, sha256: str, mtimes: set[int]) -> BinaryIO:
    """Open a canonical text after making sure that it is still the one that was added.

    `size` is in bytes; `mtimes` holds the modification times (ns) known to be good, and gets another one when
    the hash shows that only the time has changed; an empty set means that size is enough. Raises `OSError`,
    naming the file, when it is gone or has changed.
    """
    try:
        file = os.fdopen(os.open(path, _OPEN_FLAGS), "rb")
    except OSError as error:
        raise OSError(f"{path} cannot be read any more ({error.strerror}): add the corpus again") from None
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_size == size:
        if not mtimes or status.st_mtime_ns in mtimes:
            return file
        import hashlib

        if hashlib.file_digest(file, "sha256").hexdigest() == sha256:
            mtimes.add(status.st_mtime_ns)
            file.seek(0)
            return file
    file.close()
    raise OSError(f"{path} has changed since it was added to the corpus: add the corpus again")


class Text(str):
    """A document, or a slice of one that knows its place.

    `document` is the number of the document, `start` the code point at which this text begins in it, `name`
    the document's name. Slices with step 1, `lines`, `chunks`, `splitlines`, `split`, `strip` and `partition`
    give `Text`s; every other method, and `+`, gives a plain `str` as usual.
    """

    __slots__ = ("document", "name", "start")
    document: int
    start: int
    name: str

    def __new__(cls, text: str = "", document: int = -1, start: int = 0, name: str = "") -> Text:
        self = super().__new__(cls, text)
        self.document = document
        self.start = start
        self.name = name
        return self

    @property
    def names(self) -> list[str]:
        """The one name, as a list, so that a single document can be used like a sequence of them."""
        return [self.name]

    def __getitem__(self, key: SupportsIndex | slice | str) -> str:
        if isinstance(key, str):
            if key == self.name:
                return self
            raise KeyError(_unknown_name(key, [self.name]))
        piece = super().__getitem__(key)
        if not isinstance(key, slice):
            return piece
        start, _, step = key.indices(len(self))
        return self._at(piece, start) if step == 1 else piece

    def _at(self, piece: str, offset: int) -> Text:
        return Text(piece, self.document, self.start + offset, self.name)

    def splitlines(self, keepends: bool = False) -> list[str]:
        """As `str.splitlines`; the lines are `Text`s."""
        lines, offset = [], 0
        for whole, line in zip(super().splitlines(True), super().splitlines(keepends), strict=True):
            lines.append(self._at(line, offset))
            offset += len(whole)
        return list(lines)

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        """As `str.split`; the parts are `Text`s."""
        parts, offset = [], 0
        for part in super().split(sep, maxsplit):
            if (
                sep is None
            ):  # between two parts there is only white space, so the next match is the part itself
                offset = self.find(part, offset)
            parts.append(self._at(part, offset))
            offset += len(part) + len(sep or "")
        return list(parts)

    def partition(self, sep: str) -> tuple[str, str, str]:
        """As `str.partition`; the parts are `Text`s."""
        head, middle, tail = super().partition(sep)
        return self._at(head, 0), self._at(middle, len(head)), self._at(tail, len(head) + len(middle))

    def strip(self, chars: str | None = None) -> str:
        """As `str.strip`; gives a `Text`."""
        return self._at(super().strip(chars), len(self) - len(super().lstrip(chars)))

    def lstrip(self, chars: str | None = None) -> str:
        """As `str.lstrip`; gives a `Text`."""
        piece = super().lstrip(chars)
        return self._at(piece, len(self) - len(piece))

    def rstrip(self, chars: str | None = None) -> str:
        """As `str.rstrip`; gives a `Text`."""
        return self._at(super().rstrip(chars), 0)

    def search(self, regex: str | re.Pattern[str], limit: int | None = 100, flags: int = 0) -> list[Match]:
        """The matches of a regular expression, at most `limit` (None = all); says so when there are more."""
        return _limited(_matches(self, re.compile(regex, flags)), limit)

    def lines(self) -> Iterator[Text]:
        """The lines without their ends (\\n, \\r\\n or \\r), one at a time."""
        for found in _LINE.finditer(self):
            start, end = found.span(1) if found.group(1) is not None else found.span(2)
            yield self._at(str.__getitem__(self, slice(start, end)), start)

    def chunks(self, n: int = 4000, overlap: int = 0) -> list[Text]:
        """The text in pieces of at most `n` characters, cut after a line end where there is one in reach.

        Each piece begins `overlap` characters before the end of the one before; without overlap the pieces
        joined are the text. Raises `ValueError` unless 0 <= overlap < n.
        """
        if not 0 <= overlap < n:
            raise ValueError(f"chunks needs 0 <= overlap < n, not n={n}, overlap={overlap}")
        pieces, start, size = [], 0, len(self)
        while start < size:
            end = min(start + n, size)
            if end < size:
                # a cut in the first half would make tiny pieces, one inside the overlap would not move on
                end = self.rfind("\n", start + max(n // 2, overlap), end) + 1 or end
            pieces.append(self._at(str.__getitem__(self, slice(start, end)), start))
            start = end - overlap if end < size else size
        return pieces

    def __reduce__(self) -> tuple[type[Text], tuple[str, int, int, str]]:
        return Text, (str(self), self.document, self.start, self.name)

    def __copy__(self) -> Text:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Text:
        return self


class Match:
    """One match of a search: `start` and `end` count in the text that was searched.

    `document` is the document's name, `text` the match and `line` its whole line (both know their place).
    """

    __slots__ = ("_match", "document", "end", "line", "start", "text")

    def __init__(self, searched: Text, match: re.Match[str]) -> None:
        self._match = match
        self.document = searched.name
        self.start, self.end = match.span()
        self.text = searched[self.start : self.end]
        first = searched.rfind("\n", 0, self.start) + 1
        newline = searched.find("\n", max(self.start, self.end - 1))  # the match may end with the line
        self.line = searched[first : newline if newline >= 0 else len(searched)].rstrip("\r")

    def group(self, *groups: int | str) -> Any:
        """As `re.Match.group`."""
        return self._match.group(*groups)

    def groups(self) -> tuple[Any, ...]:
        """As `re.Match.groups`."""
        return self._match.groups()

    def __repr__(self) -> str:
        return f"<Match {self.document!r} {self.start}:{self.end} {_cut(str(self.text))!r}>"


class _Source:
    """One document before it is read."""

    __slots__ = ("chars", "mtimes", "name", "number", "path", "sha256", "size")

    def __init__(self, facts: dict[str, Any]) -> None:
        self.number: int = facts["number"]
        self.name: str = facts["name"]
        self.path: str = facts["path"]
        self.size: int = facts["bytes"]
        self.chars: int = facts["chars"]
        self.sha256: str = facts["sha256"]
        self.mtimes: set[int] = {facts["mtime_ns"]} if facts["mtime_ns"] else set()

    def read(self) -> Text:
        with open_text(self.path, self.size, self.sha256, self.mtimes) as file:
            text = file.read(self.size).decode("utf-8", "replace")
        if len(text) != self.chars:
            raise OSError(f"{self.path} has changed while it was read: add the corpus again")
        return Text(text, self.number, 0, self.name)


class _Shelf:
    """The texts that are in memory, least recently used first."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._texts: dict[int, tuple[Text, int]] = {}
        self._bytes = 0

    def get(self, source: _Source) -> Text:
        """The text of a document, read if need be."""
        held = self._texts.pop(source.number, None)
        if held is None:
            held = (source.read(), source.size)
            self._bytes += source.size
        self._texts[source.number] = held
        while self._bytes > self._limit and len(self._texts) > 1:
            self._bytes -= self._texts.pop(next(iter(self._texts)))[1]
        return held[0]


class Documents(Sequence[Text]):
    """The documents of a corpus, or some of them: by number, slice or name, read on first use."""

    def __init__(self, sources: Sequence[_Source], shelf: _Shelf) -> None:
        self._sources = list(sources)
        self._shelf = shelf
        self._by_name = {source.name: source for source in self._sources}

    @property
    def names(self) -> list[str]:
        """The names of all documents, in order."""
        return [source.name for source in self._sources]

    @property
    def name(self) -> str:
        """A short label for all of them."""
        shown = ", ".join(_cut(source.name) for source in self._sources[:_NAMES_SHOWN])
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

    def __len__(self) -> int:
        return len(self._sources)

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> Text: ...
    @overload
    def __getitem__(self, key: slice) -> Documents: ...
    def __getitem__(self, key: SupportsIndex | str | slice) -> Text | Documents:
        if isinstance(key, slice):
            return Documents(self._sources[key], self._shelf)
        if isinstance(key, str):
            if key not in self._by_name:
                raise KeyError(_unknown_name(key, self.names))
            return self._shelf.get(self._by_name[key])
        return self._shelf.get(self._sources[key])

    def __iter__(self) -> Iterator[Text]:
        return (self._shelf.get(source) for source in self._sources)

    def __contains__(self, value: object) -> bool:
        if isinstance(value, Text):
            return any(source.number == value.document for source in self._sources)
        raise TypeError("`in` is not clear here: use `name in documents.names` or `documents.search(regex)`")

    def search(self, regex: str | re.Pattern[str], limit: int | None = 100, flags: int = 0) -> list[Match]:
        """The matches of a regular expression, at most `limit` (None = all); says if there are more."""
        pattern = re.compile(regex, flags)
        return _limited((match for text in self for match in _matches(text, pattern)), limit)

    def lines(self) -> Iterator[Text]:
        """The lines of all documents, without their ends, one at a time."""
        return (line for text in self for line in text.lines())

    def chunks(self, n: int = 4000, overlap: int = 0) -> list[Text]:
        """The pieces of every document as `Text.chunks` cuts them; no piece spans two documents."""
        return [piece for text in self for piece in text.chunks(n, overlap)]

    def __repr__(self) -> str:
        count = len(self._sources)
        return f"<{count:,} document{'' if count == 1 else 's'}, {self.chars:,} characters: {self.name}>"


def build_context(documents: list[dict[str, Any]]) -> tuple[Text | Documents, Documents]:
    """`(context, documents)` from what `Corpus.worker_documents` gives.

    `context` is the text itself when there is one document, which is then read at once. Raises `OSError` when
    that file has changed or is gone, and `ValueError` when there is no document.
    """
    if not documents:
        raise ValueError("a corpus has at least one document")
    all_documents = Documents([_Source(facts) for facts in documents], _Shelf())
    return (all_documents[0] if len(documents) == 1 else all_documents), all_documents


Part = str | list[int]


def parts_of(value: object) -> list[Part]:
    """What a prompt or snippet argument stands for: plain strings and `[document, start, end]` places.

    Takes a text, a document or slice, `documents`, or a list or tuple of these, which is joined by blank
    lines. Raises `TypeError`, in one sentence, for anything else.
    """
    if not isinstance(value, (list, tuple)):
        return _merged(_parts_of_one(value, ""))
    parts: list[Part] = []
    for number, item in enumerate(value, 1):
        if number > 1:
            parts.append("\n\n")
        parts.extend(_parts_of_one(item, f"snippet {number} of {len(value)}"))
    return _merged(parts)


def _parts_of_one(value: object, which: str) -> list[Part]:
    if isinstance(value, Text) and value.document >= 0:
        return [[value.document, value.start, value.start + len(value)]]
    if isinstance(value, str):
        return [str(value)]
    if isinstance(value, Documents):
        places: list[Part] = []
        for document, chars in value.places:
            places += ["\n\n", [document, 0, chars]]
        return places[1:]
    if type(value).__name__ == "SubCallError":
        advice = (
            "leave it out, for example [r for r in replies if r]"
            if which
            else "test `if reply:` before you use it"
        )
        raise TypeError(
            f"{which or 'this'} is a failed sub-call ({getattr(value, 'kind', 'unknown')}): {advice}"
        )
    kind = type(value).__name__
    raise TypeError(
        f"{which or 'this'} must be text (a str, a document, a slice), not {kind}: use str() or json.dumps()"
    )


def _merged(parts: list[Part]) -> list[Part]:
    """Neighbouring plain strings as one."""
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return merged


def _matches(text: Text, pattern: re.Pattern[str]) -> Iterator[Match]:
    return (Match(text, match) for match in pattern.finditer(text))


def _limited(matches: Iterator[Match], limit: int | None) -> list[Match]:
    """The first matches; a warning when there are more, so that their number is not taken for a count."""
    kept: list[Match] = []
    for match in matches:
        if limit is not None and len(kept) >= limit:
            warnings.warn(
                f"search stopped after limit={limit}, there is more: limit=None gives all", stacklevel=3
            )
            break
        kept.append(match)
    return kept


def _unknown_name(name: str, names: list[str]) -> str:
    """One sentence for a name that is not there, with the closest ones."""
    import difflib

    close = [n for n in names if n.rsplit("/", 1)[-1] == name][:3] or difflib.get_close_matches(
        name, names, 3, 0.5
    )
    hint = f"did you mean {', '.join(map(repr, close))}?" if close else "see .names"
    return f"no document is called {name!r}: {hint}"


def _cut(text: str) -> str:
    return text if len(text) <= _NAME_CHARS else text[: _NAME_CHARS - 1] + "…"
