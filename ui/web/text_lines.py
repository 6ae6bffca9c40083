"""The lines of two texts set against each other: lines by difflib, and within a changed line its words.

Pure functions. What two texts have in common at both ends is not searched, and very long lines are cut at the
ends of sentences, so that one other word in a page of prose marks a sentence and not the page.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final, Literal

MOST_LINES: Final = 2_000  # of each text, between what they share at the ends; difflib takes seconds for more
CONTEXT: Final = 3  # equal lines that stay around what differs
_LONG: Final = 600  # characters; a longer line is cut into pieces of about that many at the most
_WORDED: Final = 100  # changed lines whose words are compared; the others are marked as a whole
_WORDED_CHARS: Final = 2 * _LONG
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
_SENTENCES: Final = re.compile(rf".{{1,{_LONG}}}?(?:[.!?;:]\s+|$)|.{{1,{_LONG}}}", re.S)

#: Whether a piece of a line is in the other text too; "form": but for letter case or white space.
Mark = Literal["same", "form", "other"]
Part = tuple[str, Mark]
Line = list[Part] | None  # None where the other text has a line more
Row = tuple[Line, Line]


@dataclass(frozen=True, slots=True)
class Compared:
    """Two texts side by side: their rows in order. `left_out`: lines of the longer text that were not
    compared, because too many differ."""

    rows: tuple[Row, ...]
    left_out: int = 0

    def folded(self, context: int = CONTEXT) -> list[Row | int]:
        """The rows, with a number in the place of equal ones that are further than `context` from any that
        differ: how many they are."""
        near: set[int] = set()
        for place, row in enumerate(self.rows):
            if _differs(row):
                near.update(range(place - context, place + context + 1))
        found: list[Row | int] = []
        for place, row in enumerate(self.rows):
            if place in near:
                found.append(row)
            elif found and isinstance(found[-1], int):
                found[-1] += 1
            else:
                found.append(1)
        return found


def _differs(row: Row) -> bool:
    return any(line is None or any(mark != "same" for _, mark in line) for line in row)


@lru_cache(maxsize=16)  # a page that is drawn anew shows the same texts
def compared(a: str, b: str) -> Compared:
    """The lines of two texts, those that belong together in one row."""
    if a.endswith("\n") and b.endswith("\n"):
        a, b = a[:-1], b[:-1]  # no row for what stands behind the last line
    left, right = pieces(a), pieces(b)
    first, last = _shared(left, right)
    head, tail = left[:first], left[len(left) - last :]
    left, right = left[first : len(left) - last], right[first : len(right) - last]
    rows: list[Row] = [_equal(text) for text in head]
    rows += _rows(left[:MOST_LINES], right[:MOST_LINES])
    rows += [_equal(text) for text in tail]
    return Compared(tuple(rows), max(len(left), len(right), MOST_LINES) - MOST_LINES)


def side_by_side(a: str, b: str) -> list[Row]:
    """All rows of two texts; see `compared`."""
    return list(compared(a, b).rows)


def unified(a: str, b: str) -> str:
    """Both texts as one, `-` and `+` before lines that only one of them has; "" when there are none."""
    left, right = pieces(a), pieces(b)
    first, last = _shared(left, right)
    start, end = max(first - CONTEXT, 0), max(last - CONTEXT, 0)
    most = MOST_LINES + 2 * CONTEXT
    one, other = (side[start : len(side) - end][:most] for side in (left, right))
    found = difflib.unified_diff(one, other, "A", "B", lineterm="", n=CONTEXT)
    return "\n".join(text for number, text in enumerate(found) if number > 1)


def pieces(text: str) -> list[str]:
    """The lines of a text; a long line in pieces that end where sentences do. Joined they are the line."""
    found: list[str] = []
    for line in text.split("\n"):
        found += [line] if len(line) <= _LONG else _SENTENCES.findall(line)
    return found


def _shared(left: list[str], right: list[str]) -> tuple[int, int]:
    """How many lines are the same at the beginning, and how many of the others at the end."""
    most = min(len(left), len(right))
    first = next((at for at in range(most) if left[at] != right[at]), most)
    most -= first
    last = next((at for at in range(most) if left[-1 - at] != right[-1 - at]), most)
    return first, last


def _equal(text: str) -> Row:
    return [(text, "same")], [(text, "same")]


def _rows(left: list[str], right: list[str]) -> Iterator[Row]:
    worded = 0
    for tag, i, i_end, j, j_end in difflib.SequenceMatcher(None, left, right).get_opcodes():
        if tag == "equal":
            yield from map(_equal, left[i:i_end])
            continue
        for at in range(max(i_end - i, j_end - j)):
            one = left[i + at] if i + at < i_end else None
            other = right[j + at] if j + at < j_end else None
            if one and other and worded < _WORDED and len(one) + len(other) <= _WORDED_CHARS:
                worded += 1
                yield _worded(one, other)
            else:
                yield (
                    None if one is None else [(one, "other")],
                    None if other is None else [(other, "other")],
                )


def _worded(a: str, b: str) -> Row:
    """Two lines with the words marked that differ."""
    left, right = _WORDS.findall(a), _WORDS.findall(b)
    marks: tuple[list[Part], list[Part]] = ([], [])
    codes = difflib.SequenceMatcher(None, [*map(_form, left)], [*map(_form, right)]).get_opcodes()
    for tag, i, i_end, j, j_end in codes:
        if tag == "equal":
            for one, other in zip(left[i:i_end], right[j:j_end], strict=True):
                mark: Mark = "same" if one == other else "form"
                marks[0].append((one, mark))
                marks[1].append((other, mark))
        else:
            marks[0].extend((word, "other") for word in left[i:i_end])
            marks[1].extend((word, "other") for word in right[j:j_end])
    return _joined(marks[0]), _joined(marks[1])


def _form(word: str) -> str:
    """What is the same in two words that differ in letter case or white space only."""
    return word.casefold() if word.strip() else " "


def _joined(words: list[Part]) -> list[Part]:
    return [
        ("".join(word for word, _ in some), mark) for mark, some in groupby(words, key=lambda part: part[1])
    ]
