"""A document, or a slice of one, as a real `str` that knows its place; and the match of a search."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from rlm_core.texts.files import Source, Store
from rlm_core.texts.pictures import Picture, page_of, pages_of, pictures_of
from rlm_core.texts.touched import note

if TYPE_CHECKING:
    from rlm_core.texts.mapped import MappedText

LINE_CHARS: Final = 5_000  # of a line shown on each side of a match
_NAME_CHARS: Final = 60
_LINE: Final = re.compile(r"([^\r\n]*+)(?:\r\n?|\n)|([^\r\n]+)")


class Text(str):
    """A document, or a slice of one that knows its place.

    `document` is the number of the document, `start` the code point at which this text begins in it, `name`
    the document's name. Slices with step 1, `lines`, `chunks`, `splitlines`, `split`, `strip` and `partition`
    give `Text`s; every other method, and `+`, gives a plain `str` as usual.
    """

    __slots__ = ("_origin", "document", "name", "start")
    _origin: tuple[Store, Source]  # of a whole document only
    document: int
    start: int
    name: str

    def __new__(cls, text: str = "", document: int = -1, start: int = 0, name: str = "") -> Text:
        self = str.__new__(cls, text)
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
            raise KeyError(unknown_name(key, [self.name]))
        piece = super().__getitem__(key)
        if not isinstance(key, slice):
            return piece
        start, _, step = key.indices(len(self))
        return self._at(piece, start) if step == 1 else piece

    def _at(self, piece: str, offset: int) -> Text:
        return placed(piece, self.document, self.start + offset, self.name)

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
        return limited(matches_in(self, re.compile(regex, flags)), limit)

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
        check_chunks(n, overlap)
        pieces, start, size = [], 0, len(self)
        while start < size:
            end = chunk_end(self, start, n, overlap)
            pieces.append(self._at(str.__getitem__(self, slice(start, end)), start))
            start = end - overlap if end < size else size
        return pieces

    def top(self, query: str, k: int = 10) -> list[Passage]:
        """The `k` passages that fit the words of the query best (BM25, accents and case folded), best first.

        Each is a `Text` with a `.score`.
        """
        from rlm_core.texts.passages import best

        return best(self, query, k)

    @property
    def tables(self) -> Mapping[str, Any]:
        """The tables of this document as pandas DataFrames, by name; read when they are asked for."""
        from rlm_core.texts.tables import Tables

        origin = getattr(self, "_origin", None)
        return Tables(*origin) if origin else Tables.of_a_piece(self.name)

    @property
    def images(self) -> list[Picture]:
        """What can be seen of this document, for `llm_query(..., images=)`: its picture, or its pages."""
        return pictures_of(self, self._source())

    @property
    def pages(self) -> list[Picture]:
        """The pages of a PDF document as images; each has its `.text` and `.page`."""
        return pages_of(self, self._source())

    def page_image(self, number: int) -> Picture:
        """One page of a PDF document as an image, from 1. Raises `ValueError` when it is not there."""
        return page_of(self, self._source(), number)

    def _source(self) -> Source | None:
        origin = getattr(self, "_origin", None)
        return origin[1] if origin else None

    def __reduce__(self) -> tuple[type[Text], tuple[str, int, int, str]]:
        return Text, (str(self), self.document, self.start, self.name)

    def __copy__(self) -> Text:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Text:
        return self


_new: Final = str.__new__


def placed(piece: str, document: int, start: int, name: str) -> Text:
    """`Text(...)` in a third of the time: lines are made by the million."""
    text = _new(Text, piece)
    text.document = document
    text.start = start
    text.name = name
    return text


class Passage(Text):
    """A text that a query found; `score` says how well it fits, in comparison with the others."""

    __slots__ = ("score",)
    score: float

    @classmethod
    def of(cls, text: Text, score: float) -> Passage:
        """This text with a score."""
        self = cls(str(text), text.document, text.start, text.name)
        self.score = score
        return self

    def __new__(cls, text: str = "", document: int = -1, start: int = 0, name: str = "") -> Passage:
        self: Any = super().__new__(cls, text, document, start, name)
        return self  # type: ignore[no-any-return]


class Match:
    """One match of a search: `start` and `end` count in the text that was searched.

    `document` is the document's name, `text` the match and `line` its whole line (both know their place); of
    a very long line the 5,000 characters on each side of the match. Holds nothing else of the document.
    """

    __slots__ = ("_groups", "_names", "document", "end", "line", "start", "text")

    def __init__(self, searched: Text | MappedText, match: re.Match[str], offset: int = 0) -> None:
        self._groups = (match.group(), *match.groups())
        self._names = match.re.groupindex
        self.document = searched.name
        self.start, self.end = (offset + place for place in match.span())
        body, (start, end) = match.string, match.span()
        first, last = _line_around(body, start, end)
        if not isinstance(searched, Text) and (
            (not first and offset) or (last == len(body) and offset + last < len(searched))
        ):  # the line goes on outside of what was searched at once
            offset = max(0, self.start - LINE_CHARS)
            body = searched.peek(offset, min(self.end + LINE_CHARS, len(searched)))
            start, end = self.start - offset, self.end - offset
            first, last = _line_around(body, start, end)
        place = searched.start + offset
        note(searched.document, place + first, place + last)
        self.text = placed(
            str.__getitem__(body, slice(start, end)), searched.document, place + start, searched.name
        )
        line = str.__getitem__(body, slice(first, last)).rstrip("\r")
        self.line = placed(line, searched.document, place + first, searched.name)

    def group(self, *groups: int | str) -> Any:
        """As `re.Match.group`; raises `IndexError` as that does."""
        found = tuple(self._groups[self._number(group)] for group in groups or (0,))
        return found if len(found) > 1 else found[0]

    def groups(self) -> tuple[Any, ...]:
        """As `re.Match.groups`."""
        return self._groups[1:]

    def _number(self, group: int | str) -> int:
        number = self._names.get(group, -1) if isinstance(group, str) else group
        if not 0 <= number < len(self._groups):
            raise IndexError("no such group")
        return number

    def __repr__(self) -> str:
        return f"<Match {self.document!r} {self.start}:{self.end} {cut_name(str(self.text))!r}>"


def _line_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the line of a match begins and ends, at most `LINE_CHARS` away from it."""
    first = text.rfind("\n", max(0, start - LINE_CHARS), start) + 1 or max(0, start - LINE_CHARS)
    newline = text.find("\n", max(start, end - 1), end + LINE_CHARS)  # the match may end with the line
    return first, newline if newline >= 0 else min(len(text), end + LINE_CHARS)


def matches_in(text: Text, pattern: re.Pattern[str]) -> Iterator[Match]:
    """Every match, one at a time."""
    return (Match(text, match) for match in pattern.finditer(text))


def limited(matches: Iterable[Match], limit: int | None) -> list[Match]:
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


def chunk_end(text: Text | MappedText, start: int, n: int, overlap: int) -> int:
    """Where the piece of at most `n` characters from `start` on ends: after a line, if one is in reach."""
    end = start + n
    if end >= len(text):
        return len(text)
    # a cut in the first half would make tiny pieces, one inside the overlap would not move on
    return text.rfind("\n", start + max(n // 2, overlap), end) + 1 or end


def check_chunks(n: int, overlap: int) -> None:
    """Raises `ValueError` unless 0 <= overlap < n."""
    if not 0 <= overlap < n:
        raise ValueError(f"chunks needs 0 <= overlap < n, not n={n}, overlap={overlap}")


def unknown_name(name: str, names: list[str]) -> str:
    """One sentence for a name that is not there, with the closest ones."""
    import difflib

    close = [n for n in names if n.rsplit("/", 1)[-1] == name][:3] or difflib.get_close_matches(
        name, names, 3, 0.5
    )
    hint = f"did you mean {', '.join(map(repr, close))}?" if close else "see .names"
    return f"no document is called {name!r}: {hint}"


def cut_name(text: str) -> str:
    """A text short enough for one line of a description."""
    return text if len(text) <= _NAME_CHARS else text[: _NAME_CHARS - 1] + "…"
