"""Regular expressions over a mapped text: the same matches as over a `str`, without holding one.

A pattern that is a plain string is searched for in the bytes; that is exact, since UTF-8 finds no character
inside another. Any other pattern runs over decoded text, a window at a time, each with 65,536 characters of
what is before and behind: a match that spans no more, with all that its lookarounds see, is the one that
`re` finds. A match that grows to the end of its window gets a larger one. A plain string that every match
must hold lets the windows jump over text without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from re import _parser  # type: ignore[attr-defined]  # the tree of a pattern: there is no public way to it
from typing import Any, Final

from rlm_core.texts import files
from rlm_core.texts.mapped import MappedText

MARGIN: Final = 1 << 16  # characters around a match that may count
WINDOW: Final = 1 << 18  # bytes decoded at a time: what fits the cache of a processor
_MOST_BYTES: Final = 4  # of a character
_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")

Hit = tuple[re.Match[str], int]


def hits(text: MappedText, pattern: re.Pattern[str], start: int = 0) -> Iterator[Hit]:
    """The matches in a text from character `start` on, each with what its places must be raised by.

    Raises `ValueError` for a match of more than `files.MOST_CHARS` characters and `TypeError` for a pattern
    of bytes.
    """
    if not isinstance(pattern.pattern, str):
        raise TypeError("cannot use a bytes pattern on a text")
    literal, whole = required(pattern)
    return _literal_hits(text, pattern, literal, start) if whole else _scan(text, pattern, literal, start)


def first_match(text: MappedText, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """What `pattern.match` finds at the start of the text. Raises as `hits`."""
    if not isinstance(pattern.pattern, str):
        raise TypeError("cannot use a bytes pattern on a text")
    window = _Window(text, "", 0)
    while True:
        window.move(0)
        match = pattern.match(window.text)
        if window.is_last or match is None or match.end() < window.end - 1:
            return match


def _literal_hits(text: MappedText, pattern: re.Pattern[str], literal: str, start: int) -> Iterator[Hit]:
    match = pattern.match(literal)
    assert match is not None
    needle, file = literal.encode("utf-8", "surrogatepass"), text.file()
    at, behind = file.byte_of(text.start + start), file.byte_of(text.end)
    while (at := file.find(needle, at, behind)) >= 0:
        yield match, file.char_of(at) - text.start
        at += len(needle)


def _scan(text: MappedText, pattern: re.Pattern[str], literal: str, start: int) -> Iterator[Hit]:
    window = _Window(text, literal, start)
    at, empty_at = start, -1  # no match before `at`; where the last one was, if it was empty
    while True:
        at = window.move(at)
        limit = window.end if window.is_last else window.end - MARGIN
        for match in pattern.finditer(window.text, at - window.offset):
            first, end = (window.offset + place for place in match.span())
            if not window.is_last and (first >= limit or end >= window.end - 1):
                limit = min(first, limit)  # it may go on behind the window
                break
            if first == end == empty_at:  # found before the window was moved
                continue
            at, empty_at = end, end if first == end else -1
            yield match, window.offset
        if window.is_last:
            return
        at = max(at, limit)


class _Window:
    """A decoded part of a text; places are characters of that text.

    Every move reads on behind what was decoded, and drops what is more than `MARGIN` before the new start.
    """

    def __init__(self, text: MappedText, literal: str, start: int) -> None:
        self._text = text
        self._file = text.file()
        self._literal = literal
        self._needle = literal.encode("utf-8", "surrogatepass")
        self._behind = self._file.byte_of(text.end)
        self.text = ""
        self.offset = max(0, start - MARGIN)
        self._next = self._file.byte_of(text.start + self.offset)

    @property
    def end(self) -> int:
        return self.offset + len(self.text)

    @property
    def is_last(self) -> bool:
        return self._next >= self._behind

    def move(self, at: int) -> int:
        """Read on, to search from `at`; the place to search from, later where nothing can match before."""
        dropped = max(0, at - MARGIN - self.offset)
        self.text = self.text[dropped:]
        self.offset += dropped
        if self.end - at > files.MOST_CHARS:
            raise ValueError(
                f"a match that begins at {at:,} has more than {files.MOST_CHARS:,} characters: "
                "use .find(), or a pattern that ends sooner"
            )
        if self._literal and self._literal not in self.text[max(0, at - self.offset) :]:
            at = self._jump(at)
        size = max(WINDOW, len(self.text))  # a match that does not end gets twice the room
        last = self._file.boundary(min(self._next + size, self._behind))
        self.text += self._file.bytes[self._next : last].decode("utf-8", "replace")
        self._next = last
        return at

    def _jump(self, at: int) -> int:
        """Go on where the literal is next, if that is far away; to the end, if it is nowhere."""
        room = 2 * MARGIN * (1 if self._file.ascii else _MOST_BYTES)  # surely 2 * MARGIN characters
        found = self._file.find(self._needle, max(0, self._next - len(self._needle)), self._behind)
        if found < 0:
            self._next = self._behind
        elif found - self._next > room:
            self._next = self._file.boundary(found - room)
            self.text = ""
            self.offset = self._file.char_of(self._next) - self._text.start
            at = self.offset + MARGIN
        return at


@lru_cache(maxsize=256)
def required(pattern: re.Pattern[str]) -> tuple[str, bool]:
    """A string that every match holds ("" where none is known), and whether it is all of the pattern."""
    if pattern.flags & re.IGNORECASE:
        return "", False
    tree = list(_parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))
    longest = max(_literals(tree), key=len, default="")
    return longest, bool(longest) and all(str(operator) == "LITERAL" for operator, _ in tree)


def _literals(tree: Iterable[tuple[Any, Any]]) -> list[str]:
    """The strings that stand in every match of a sequence."""
    found = [""]
    for operator, value in _flat(tree):
        name = str(operator)
        if name == "LITERAL":
            found[-1] += chr(value)
            continue
        if name == "AT":  # takes no character
            continue
        if name in _REPEATS and value[0] > 0:
            found += _literals(value[2])
        found.append("")
    return found


def _flat(tree: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """The sequence with its groups opened, except those that ignore case."""
    for operator, value in tree:
        if str(operator) != "SUBPATTERN":
            yield operator, value
        elif not value[1] & re.IGNORECASE:
            yield from _flat(value[3])
        else:
            yield None, None
