"""A document, or a part of one, too large for a `str`: its file is mapped and read where it is used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn, SupportsIndex

from rlm_core.texts import files
from rlm_core.texts.files import MappedFile, Source, Store
from rlm_core.texts.pictures import Picture, page_of, pages_of, pictures_of
from rlm_core.texts.text import Match, Passage, check_chunks, limited, placed, unknown_name
from rlm_core.texts.touched import note

_BLOCK: Final = 1 << 18  # bytes or characters taken at a time
_NEAR: Final = 1 << 14  # characters that are decoded sooner than their place is found
_SHOWN: Final = 60
_ADVICE: Final = "use .search(regex), .lines(), .chunks(n) or a slice such as [:1_000_000]"


class MappedText:
    """What a `Text` is, for gigabytes: same places, same methods where they make sense for so large a text.

    A slice of at most 8,388,608 characters is a `Text`, a larger one a `MappedText`. Methods give what `str`
    gives; `split` and `splitlines` give sequences that are cut as they are used. What would need the whole
    text in memory (`lower`, `replace`, `+`, an f-string) raises, in one line, and says what to use. `str()`
    and `print` give a description. Every use raises `OSError` when the file has changed.
    """

    __hash__ = None  # type: ignore[assignment]  # it would have to be that of the equal str

    def __init__(self, store: Store, source: Source, start: int = 0, end: int | None = None) -> None:
        self.store = store
        self.source = source
        self.document = source.number
        self.name = source.name
        self.start = start
        self.end = source.chars if end is None else end

    @property
    def names(self) -> list[str]:
        """The one name, as a list, so that a single document can be used like a sequence of them."""
        return [self.name]

    def __len__(self) -> int:
        return self.end - self.start

    def __getitem__(self, key: SupportsIndex | slice | str) -> Any:
        if isinstance(key, str):
            if key == self.name:
                return self
            raise KeyError(unknown_name(key, [self.name]))
        if isinstance(key, slice):
            return self._slice(range(*key.indices(len(self))))
        try:
            place = range(len(self))[key]
        except IndexError:
            raise IndexError("string index out of range") from None
        return self.read(place, place + 1)

    def _slice(self, places: range) -> Any:
        if places.step == 1:
            return self.part(places.start, max(places.start, places.stop))
        if not places:
            return ""
        low, high = sorted((places[0], places[-1]))
        if high - low >= files.MOST_CHARS:
            self._refuse(f"a slice with step {places.step} over {high - low + 1:,} characters is not made")
        return self.read(low, high + 1)[:: places.step]

    def part(self, start: int, end: int) -> Any:
        """The characters `start` to `end` of this text: a `Text`, or a `MappedText` if they are too many."""
        if end - start > files.MOST_CHARS:
            return MappedText(self.store, self.source, self.start + start, self.start + end)
        return placed(self.read(start, end), self.document, self.start + start, self.name)

    def read(self, start: int, end: int) -> str:
        """The characters `start` to `end` as a plain str, for code to see: it is noted."""
        note(self.document, self.start + start, self.start + end)
        return self.peek(start, end)

    def peek(self, start: int, end: int) -> str:
        """The same, for our own use."""
        return self.file().read(self.start + start, self.start + end)

    def file(self) -> MappedFile:
        """The mapped file, checked."""
        return self.store.file(self.source)

    def byte_range(self) -> tuple[int, int]:
        """The bytes of this text in its file."""
        file = self.file()
        return file.byte_of(self.start), file.byte_of(self.end)

    # -- finding

    def __contains__(self, part: object) -> bool:
        if not isinstance(part, str):
            raise TypeError(f"'in <text>' needs a str on its left side, not {type(part).__name__}")
        return self.find(part) >= 0

    def find(self, sub: str, start: int | None = None, end: int | None = None) -> int:
        """As `str.find`."""
        return self._find(sub, start, end, last=False)

    def rfind(self, sub: str, start: int | None = None, end: int | None = None) -> int:
        """As `str.rfind`."""
        return self._find(sub, start, end, last=True)

    def index(self, sub: str, start: int | None = None, end: int | None = None) -> int:
        """As `str.index`."""
        return _found(self.find(sub, start, end))

    def rindex(self, sub: str, start: int | None = None, end: int | None = None) -> int:
        """As `str.rindex`."""
        return _found(self.rfind(sub, start, end))

    def _find(self, sub: str, start: int | None, end: int | None, last: bool) -> int:
        low, high = self._bounds(start, end)
        if low > high:
            return -1
        needle = _encoded(sub)
        if not needle:
            return high if last else low
        file = self.file()
        if high - low <= _NEAR and not file.ascii:
            text = self.peek(low, high)
            at = text.rfind(sub) if last else text.find(sub)
            return at if at < 0 else low + at
        first, behind = file.byte_of(self.start + low), file.byte_of(self.start + high)
        at = file.bytes.rfind(needle, first, behind) if last else file.find(needle, first, behind)
        return at if at < 0 else file.char_of(at) - self.start

    def _bounds(self, start: int | None, end: int | None) -> tuple[int, int]:
        """Where a search goes from and to; the first is the larger where `str` finds not even ""."""
        low, high, _ = slice(start, end).indices(len(self))
        return (len(self) + 1 if start is not None and start > len(self) else low), high

    def count(self, sub: str, start: int | None = None, end: int | None = None) -> int:
        """As `str.count`."""
        low, high = self._bounds(start, end)
        if low > high:
            return 0
        needle = _encoded(sub)
        if not needle:
            return high - low + 1
        file = self.file()
        at, behind = file.byte_of(self.start + low), file.byte_of(self.start + high)
        total = 0
        if _overlaps_itself(needle):  # what counts depends on where the one before ended
            while (at := file.find(needle, at, behind)) >= 0:
                total, at = total + 1, at + len(needle)
            return total
        for block in range(at, behind, _BLOCK):
            total += file.bytes[block : min(block + _BLOCK + len(needle) - 1, behind)].count(needle)
        return total

    def startswith(
        self, prefix: str | tuple[str, ...], start: int | None = None, end: int | None = None
    ) -> bool:
        """As `str.startswith`."""
        low, high = self._bounds(start, end)
        return any(low + len(one) <= high and self._is_at(low, one) for one in _affixes(prefix, "startswith"))

    def endswith(
        self, suffix: str | tuple[str, ...], start: int | None = None, end: int | None = None
    ) -> bool:
        """As `str.endswith`."""
        low, high = self._bounds(start, end)
        return any(
            low + len(one) <= high and self._is_at(high - len(one), one)
            for one in _affixes(suffix, "endswith")
        )

    def _is_at(self, start: int, part: str) -> bool:
        needle, file = _encoded(part), self.file()
        first = file.byte_of(self.start + start)
        return file.bytes[first : first + len(needle)] == needle

    def search(self, regex: str | re.Pattern[str], limit: int | None = 100, flags: int = 0) -> list[Match]:
        """The matches of a regular expression, at most `limit` (None = all); says so when there are more.

        Exact for a plain string. Any other pattern is sure to find what `re` finds on a str when a match,
        with what lookarounds see around it, spans at most 65,536 characters. Raises `ValueError` for a match
        of more than 8,388,608.
        """
        return limited(self.matches(re.compile(regex, flags)), limit)

    def matches(self, pattern: re.Pattern[str]) -> Iterator[Match]:
        """Every match, one at a time."""
        from rlm_core.texts.scan import hits

        return (Match(self, match, offset) for match, offset in hits(self, pattern))

    # -- cutting

    def lines(self) -> Iterator[Any]:
        """The lines without their ends (\\n, \\r\\n or \\r), one at a time."""
        from rlm_core.texts.pieces import LINES, Pieces

        return iter(Pieces(self, LINES))

    def splitlines(self, keepends: bool = False) -> Any:
        """As `str.splitlines`, as a sequence that is cut as it is used."""
        from rlm_core.texts.pieces import LINE_ENDS, Pieces

        return Pieces(self, LINE_ENDS, keepends)

    def split(self, sep: str | None = None, maxsplit: int = -1) -> Any:
        """As `str.split`; without `maxsplit` a sequence that is cut as it is used."""
        from rlm_core.texts.pieces import Pieces, split_some, splitting

        rule = splitting(sep)
        return Pieces(self, rule) if maxsplit < 0 else split_some(self, rule, maxsplit)

    def chunks(self, n: int = 4000, overlap: int = 0) -> Any:
        """As `Text.chunks`, as a sequence that is cut as it is used."""
        from rlm_core.texts.pieces import Chunks

        check_chunks(n, overlap)
        return Chunks(self, n, overlap)

    def partition(self, sep: str) -> tuple[Any, Any, Any]:
        """As `str.partition`."""
        at = self._find(_separator(sep), None, None, last=False)
        if at < 0:
            return self, self.part(0, 0), self.part(0, 0)
        return self.part(0, at), self.part(at, at + len(sep)), self.part(at + len(sep), len(self))

    def rpartition(self, sep: str) -> tuple[Any, Any, Any]:
        """As `str.rpartition`."""
        at = self._find(_separator(sep), None, None, last=True)
        if at < 0:
            return self.part(0, 0), self.part(0, 0), self
        return self.part(0, at), self.part(at, at + len(sep)), self.part(at + len(sep), len(self))

    def strip(self, chars: str | None = None) -> Any:
        """As `str.strip`."""
        first = self._left(chars)
        return self.part(first, max(first, self._right(chars)))

    def lstrip(self, chars: str | None = None) -> Any:
        """As `str.lstrip`."""
        return self.part(self._left(chars), len(self))

    def rstrip(self, chars: str | None = None) -> Any:
        """As `str.rstrip`."""
        return self.part(0, self._right(chars))

    def _left(self, chars: str | None) -> int:
        for start, end in self._blocks():
            block = self.peek(start, end)
            if rest := block.lstrip(chars):
                return start + len(block) - len(rest)
        return len(self)

    def _right(self, chars: str | None) -> int:
        for end in range(len(self), 0, -_BLOCK):
            start = max(0, end - _BLOCK)
            if rest := self.peek(start, end).rstrip(chars):
                return start + len(rest)
        return 0

    def __iter__(self) -> Iterator[str]:
        for start, end in self._blocks():
            yield from self.read(start, end)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        return ((start, min(start + _BLOCK, len(self))) for start in range(0, len(self), _BLOCK))

    # -- ranking, tables, pictures

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

        whole = len(self) == self.source.chars
        return Tables(self.store, self.source) if whole else Tables.of_a_piece(self.name)

    @property
    def images(self) -> list[Picture]:
        """As `Text.images`."""
        return pictures_of(self, self._whole())

    @property
    def pages(self) -> list[Picture]:
        """As `Text.pages`."""
        return pages_of(self, self._whole())

    def page_image(self, number: int) -> Picture:
        """As `Text.page_image`."""
        return page_of(self, self._whole(), number)

    def _whole(self) -> Source | None:
        return self.source if len(self) == self.source.chars else None

    # -- the rest of what a str can do

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MappedText):
            same = other.store is self.store and other.document == self.document
            if same and (other.start, other.end) == (self.start, self.end):
                return True
        elif not isinstance(other, str):
            return NotImplemented
        return len(other) == len(self) and all(
            self.peek(start, end) == other[start:end] for start, end in self._blocks()
        )

    def __repr__(self) -> str:
        begins = self.read(0, min(_SHOWN, len(self)))
        return f"<a text of {len(self):,} characters from {self.name!r} that begins {begins!r}>"

    def __copy__(self) -> MappedText:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> MappedText:
        return self

    def __format__(self, spec: str) -> str:
        self._refuse("it does not fit into a formatted string")

    def __add__(self, other: object) -> NoReturn:
        self._refuse("it cannot be joined with another text")

    __radd__ = __mul__ = __rmul__ = __add__

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        self._refuse("it cannot be pickled")

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("_") and hasattr(str, name):
            raise AttributeError(f"a text of {len(self):,} characters has no .{name}(): {_ADVICE}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _refuse(self, why: str) -> NoReturn:
        raise TypeError(f"a text of {len(self):,} characters is never held as one str, {why}: {_ADVICE}")


def _encoded(sub: str) -> bytes:
    if not isinstance(sub, str):
        raise TypeError(f"must be str, not {type(sub).__name__}")
    return sub.encode("utf-8", "surrogatepass")


def _found(place: int) -> int:
    if place < 0:
        raise ValueError("substring not found")
    return place


def _affixes(given: str | tuple[str, ...], name: str) -> tuple[str, ...]:
    affixes = given if isinstance(given, tuple) else (given,)
    if not all(isinstance(one, str) for one in affixes):
        raise TypeError(f"{name} needs a str or a tuple of str")
    return affixes


def _separator(sep: str) -> str:
    if not sep:
        raise ValueError("empty separator")
    return sep


def _overlaps_itself(needle: bytes) -> bool:
    """Whether two occurrences can overlap; of a very long one it is not looked into."""
    lengths = range(1, len(needle))
    return len(needle) > _BLOCK >> 8 or any(needle.endswith(needle[:length]) for length in lengths)
