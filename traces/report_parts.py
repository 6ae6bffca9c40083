"""The parts a report is made of, and what both of its forms do with long texts.

All texts in them may be anything: each form escapes every one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SHOWN_CHARS: Final = 2_400  # of a text that stands open; the whole follows, folded away
WHOLE_CHARS: Final = 400_000  # of a text that is given whole: a report is to be mailed and opened anywhere


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; `level` 2 is a section of the report."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph on one line; `strong`: what a reader should see first."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """A list of sentences."""

    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Text:
    """A text as it stands in the record, over several lines. None: there is none, `absent` says why."""

    label: str
    text: str | None
    language: str = "text"
    absent: str = "The record does not hold this text."


@dataclass(frozen=True, slots=True)
class Sides:
    """What was said and what should have been: beside each other where there is room, differences marked."""

    was: Text
    should_be: Text


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one-line cells under their heads. `right` are numbers of columns that hold figures; `folded`
    are the words under which the table is folded away.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int] = ()
    folded: str | None = None


Part = Heading | Words | Items | Text | Sides | Table


def middle_out(text: str, most: int) -> tuple[str, str, int]:
    """Beginning, end and the number of characters left out between them; an uncut text has no end.

    >>> middle_out("abcdef", 4), middle_out("abcd", 4)
    (('ab', 'ef', 2), ('abcd', '', 0))
    """
    if len(text) <= most:
        return text, "", 0
    half = most // 2
    return text[:half], text[-half:], len(text) - 2 * half


def left_out(chars: int) -> str:
    """What stands in the place of characters that were cut.

    >>> left_out(12345)
    '… 12,345 characters left out …'
    """
    return f"… {chars:,} characters left out …"


EMPTY: Final = "(empty)"
