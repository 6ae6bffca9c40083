"""Sequences over texts too large to be cut at once: lines, parts, chunks, made when they are used."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from rlm_core.texts import files
from rlm_core.texts.mapped import MappedText
from rlm_core.texts.text import Text, chunk_end

BLOCK: Final = 1 << 16  # characters cut at a time
LISTED: Final = 100_000  # pieces that a slice gives as a list


class Rule(NamedTuple):
    """What stands between two pieces; `empty` says whether the first and last piece may be an empty one."""

    pattern: re.Pattern[str]
    first_empty: bool
    last_empty: bool


LINES: Final = Rule(re.compile(r"\r\n?|\n"), True, False)
LINE_ENDS: Final = Rule(re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]"), True, False)
_SPACE: Final = Rule(re.compile(r"\s+"), False, False)


def splitting(sep: str | None) -> Rule:
    """The rule of `str.split`; raises `ValueError` for an empty separator."""
    if sep is None:
        return _SPACE
    if not sep:
        raise ValueError("empty separator")
    return Rule(re.compile(re.escape(sep)), True, True)


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
    """Pieces next to each other: their number, where they begin, and where the next do (None: nowhere)."""

    number: int
    start: int
    pieces: list[Any]
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
        self._last = _Block(-1, 0, [], None)

    def __len__(self) -> int:
        if self._length is None:
            for block in self._blocks(len(self._numbers) - 1):
                self._length = block.number + len(block.pieces)
        return self._length or 0

    def starting(self, number: int) -> Iterator[Any]:
        """The pieces from this number on."""
        for block in self._blocks(bisect_right(self._numbers, number) - 1):
            yield from block.pieces[max(0, number - block.number) :]

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
            text, is_last = self._text.read(start, end), end == len(self._text)
            pieces, done = self._pieces(text, start, is_last)
            if is_last:
                return _Block(number, start, pieces, None)
            if done:
                return _Block(number, start, pieces, start + done)
            if len(text) >= files.MOST_CHARS:
                return self._long(number, start)
            size *= 2

    def _pieces(self, text: str, start: int, is_last: bool) -> tuple[list[Any], int]:
        """The whole pieces of a text, and how much of it they and what is between them take."""
        place, name, document = self._text.start + start, self._text.name, self._text.document
        pieces: list[Any] = []
        done = 0
        for between in self._rule.pattern.finditer(text):
            first, behind = between.span()
            if behind == len(text) and not is_last:  # what is between may go on
                break
            if first or start or self._rule.first_empty:
                piece = text[done : behind if self._keep else first]
                pieces.append(Text(piece, document, place + done, name))
            done = behind
        if is_last and (done < len(text) or self._rule.last_empty):
            pieces.append(Text(text[done:], document, place + done, name))
        return pieces, done

    def _long(self, number: int, start: int) -> _Block:
        """One piece of more characters than a `str` may have here."""
        from rlm_core.texts.scan import hits

        for match, offset in hits(self._text, self._rule.pattern, start):
            first, behind = match.start() + offset, match.end() + offset
            piece = self._text.part(start, behind if self._keep else first)
            return _Block(number, start, [piece], behind)
        return _Block(number, start, [self._text.part(start, len(self._text))], None)


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
