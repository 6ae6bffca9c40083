"""Sequences over texts too large to be cut at once: lines, parts, chunks, made when they are used."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, islice
from typing import Any, Final, NamedTuple

from rlm_core.texts import files
from rlm_core.texts.mapped import MappedText
from rlm_core.texts.text import chunk_end, placed

BLOCK: Final = 1 << 16  # characters cut at a time
LISTED: Final = 100_000  # pieces that a slice gives as a list


Cut = tuple[list[str], list[int]]  # pieces, and where each begins; then where what is left over begins


class Rule(NamedTuple):
    """How texts are cut: `cut` does it, given the text, whether ends are kept and whether it is the last.

    `pattern` is what stands between two pieces; `first_empty` and `last_empty` say whether the first and the
    last piece may be empty ones.
    """

    cut: Callable[[str, bool, bool], Cut]
    pattern: re.Pattern[str]
    first_empty: bool
    last_empty: bool


def _at_line_ends(text: str, keep: bool, is_last: bool) -> Cut:
    return _of_wholes(text.splitlines(True), text.splitlines(keep), is_last)


def _at_plain_ends(text: str, keep: bool, is_last: bool) -> Cut:
    if "\r" in text:
        wholes = _WHOLE_LINE.findall(text)
        return _of_wholes(wholes, [line.rstrip("\r\n") for line in wholes], is_last)
    lines, starts = _at_separator("\n", text, keep, is_last)
    return (lines[:-1], starts[:-1]) if is_last and not lines[-1] else (lines, starts)


def _of_wholes(wholes: list[str], pieces: list[str], is_last: bool) -> Cut:
    """Pieces of texts with their ends: the last may go on, or its end may, unless it is the last of all."""
    known = len(wholes) if is_last else len(wholes) - 1
    return pieces[:known], list(accumulate(map(len, wholes[:known]), initial=0))


def _at_separator(sep: str, text: str, keep: bool, is_last: bool) -> Cut:
    pieces = text.split(sep)
    starts = list(accumulate(map(len(sep).__add__, map(len, pieces)), initial=0))
    return (pieces, starts) if is_last else (pieces[:-1], starts[:-1])


def _at_space(text: str, keep: bool, is_last: bool) -> Cut:
    found = list(_WORD.finditer(text))
    done = len(text)
    if found and not is_last and found[-1].end() == len(text):
        done = found.pop().start()
    return [match.group() for match in found], [*(match.start() for match in found), done]


_WHOLE_LINE: Final = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]+")
_WORD: Final = re.compile(r"\S+")
_ENDS: Final = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
LINES: Final = Rule(_at_plain_ends, re.compile(r"\r\n?|\n"), True, False)
LINE_ENDS: Final = Rule(_at_line_ends, _ENDS, True, False)
_SPACE: Final = Rule(_at_space, re.compile(r"\s+"), False, False)


def splitting(sep: str | None) -> Rule:
    """The rule of `str.split`; raises `ValueError` for an empty separator."""
    if sep is None:
        return _SPACE
    if not sep:
        raise ValueError("empty separator")
    return Rule(partial(_at_separator, sep), re.compile(re.escape(sep)), True, True)


class Lazy(Sequence[Any]):
    """A sequence whose items are made when they are asked for, from the first on; `len` makes all of them."""

    def __iter__(self) -> Iterator[Any]:
        return self.starting(0)

    def starting(self, number: int) -> Iterator[Any]:
        """The items from this number on; none if there are not so many."""
        raise NotImplementedError

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self._slice(key)
        number = key.__index__()
        if number < 0:
            number += len(self)
        if number >= 0:
            for item in self.starting(number):
                return item
        raise IndexError("there are not so many")

    def _slice(self, key: slice) -> Any:
        start, stop, step = key.start or 0, key.stop, key.step or 1
        if stop is not None and start >= 0 and step > 0 and 0 <= stop <= start + LISTED:  # no need to count
            return list(islice(self.starting(start), 0, max(0, stop - start), step))
        places = range(*key.indices(len(self)))
        part = _Part(self, places)
        return list(part) if len(places) <= LISTED else part

    def __repr__(self) -> str:
        first = [str(item)[:40] for item in islice(self, 3)]
        return f"<a sequence made as it is used, take [:n] of it; it begins {first}>"


class _Part(Lazy):
    """Some items of another sequence."""

    def __init__(self, whole: Lazy, places: range) -> None:
        self._whole = whole
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    def starting(self, number: int) -> Iterator[Any]:
        places = self._places[number:]
        if places.step > 0 and places:
            return islice(self._whole.starting(places.start), 0, places[-1] - places.start + 1, places.step)
        return (self._whole[place] for place in places)


class _Block(NamedTuple):
    """Pieces next to each other: the number of the first, where the block begins, and where the next one does
    (None: nowhere); `starts` count from the start of the block.
    """

    number: int
    start: int
    pieces: list[Any]
    starts: list[int]
    behind: int | None


class Pieces(Lazy):
    """What stands between the places of a rule. They are cut in blocks; where one begins is kept."""

    def __init__(self, text: MappedText, rule: Rule, keep: bool = False) -> None:
        self._text = text
        self._rule = rule
        self._keep = keep
        self._numbers = array("Q", [0])  # of the first piece of every block known so far
        self._starts = array("Q", [0])
        self._length: int | None = None
        self._last = _Block(-1, 0, [], [], None)

    def __len__(self) -> int:
        if self._length is None:
            for block in self._blocks(len(self._numbers) - 1):
                self._length = block.number + len(block.pieces)
        return self._length or 0

    def starting(self, number: int) -> Iterator[Any]:
        """The pieces from this number on."""
        document, name, begin = self._text.document, self._text.name, self._text.start
        for block in self._blocks(bisect_right(self._numbers, number) - 1):
            skipped = max(0, number - block.number)
            place = begin + block.start
            for piece, start in zip(block.pieces[skipped:], block.starts[skipped:], strict=False):
                yield placed(piece, document, place + start, name) if type(piece) is str else piece

    def _blocks(self, index: int) -> Iterator[_Block]:
        """The blocks from this one on, which is known."""
        while True:
            block = self._last
            if block.number != self._numbers[index] or block.start != self._starts[index]:
                block = self._cut(self._numbers[index], self._starts[index])
                self._last = block
            yield block
            if block.behind is None:
                return
            index += 1
            if index == len(self._numbers):
                self._numbers.append(block.number + len(block.pieces))
                self._starts.append(block.behind)

    def _cut(self, number: int, start: int) -> _Block:
        size = BLOCK
        while True:
            end = min(start + size, len(self._text))
            is_last = end == len(self._text)
            pieces, starts = self._rule.cut(self._text.read(start, end), self._keep, is_last)
            if is_last:
                return _Block(number, start, pieces, starts, None)
            if starts[-1]:
                return _Block(number, start, pieces, starts, start + starts[-1])
            if size >= files.MOST_CHARS:
                return self._long(number, start)
            size *= 2

    def _long(self, number: int, start: int) -> _Block:
        """One piece of more characters than a `str` may have here."""
        from rlm_core.texts.scan import hits

        for match, offset in hits(self._text, self._rule.pattern, start):
            first, behind = match.start() + offset, match.end() + offset
            piece = self._text.part(start, behind if self._keep else first)
            return _Block(number, start, [piece], [0], behind)
        return _Block(number, start, [self._text.part(start, len(self._text))], [0], None)


def split_some(text: MappedText, rule: Rule, most: int) -> list[Any]:
    """`str.split` with at most so many cuts: what is behind the last one stays whole."""
    from rlm_core.texts.scan import hits

    pieces: list[Any] = []
    start = 0
    for match, offset in hits(text, rule.pattern):
        first, behind = match.start() + offset, match.end() + offset
        if first or rule.first_empty:
            if len(pieces) == most:
                break
            pieces.append(text.part(start, first))
        start = behind
    if start < len(text) or rule.last_empty:
        pieces.append(text.part(start, len(text)))
    return pieces


class Chunks(Lazy):
    """The pieces `Text.chunks` makes; where each begins is found from the one before, and kept."""

    def __init__(self, text: MappedText, n: int, overlap: int) -> None:
        self._text = text
        self._n = n
        self._overlap = overlap
        self._starts = array("Q", [0])
        self._complete = False

    def __len__(self) -> int:
        while not self._complete:
            self._next()
        return len(self._starts)

    def _next(self) -> None:
        end = self._end(len(self._starts) - 1)
        if end < len(self._text):
            self._starts.append(end - self._overlap)
        else:
            self._complete = True

    def _end(self, number: int) -> int:
        if number + 1 < len(self._starts):
            return self._starts[number + 1] + self._overlap
        return chunk_end(self._text, self._starts[number], self._n, self._overlap)

    def starting(self, number: int) -> Iterator[Any]:
        """The chunks from this number on."""
        while True:
            while number >= len(self._starts):
                if self._complete:
                    return
                self._next()
            yield self._text.part(self._starts[number], self._end(number))
            number += 1


class Joined(Lazy):
    """The items of several sequences, one after another; a sequence is made when needed, and not kept."""

    def __init__(self, count: int, make: Callable[[int], Sequence[Any]]) -> None:
        self._count = count
        self._make = make
        self._lengths: list[int] = []

    def __len__(self) -> int:
        return sum(self._length(number) for number in range(self._count))

    def _length(self, number: int) -> int:
        if number == len(self._lengths):
            self._lengths.append(len(self._make(number)))
        return self._lengths[number]

    def starting(self, number: int) -> Iterator[Any]:
        """The items from this number on."""
        for which in range(self._count):
            if number > 0 and number >= (length := self._length(which)):
                number -= length
                continue
            made = self._make(which)
            yield from made.starting(number) if isinstance(made, Lazy) else made[number:]
            number = 0
