"""How a CSV text is written: delimiter, header, from its first part."""

from __future__ import annotations

import csv
import re
from collections import Counter
from typing import Final, NamedTuple

SAMPLE_CHARS: Final = 1 << 16
_ROWS: Final = 200
_DELIMITERS: Final = ",;\t|"
_SEP_LINE: Final = re.compile(r"sep=(.)\r?\n")  # what spreadsheets write for each other
_YEAR: Final = re.compile(r"\s*(?:1[5-9]|20|21)\d\d\s*")
_NUMBER: Final = re.compile(r"\s*[+-]?[\d., ]*\d%?\s*")


class Dialect(NamedTuple):
    """`skipped` lines stand before the table; `columns` are those to read, None for all."""

    delimiter: str
    has_header: bool
    skipped: int
    columns: list[int] | None


def dialect(sample: str, is_whole: bool, delimiter: str = "") -> Dialect:
    """The dialect of a text that begins like this; a delimiter that is known is not guessed.

    The delimiter is the one of , ; tab | that cuts most rows into the same number of fields. The first row is
    a header unless it holds a number, and also then where a word or a year stands over a column of numbers.
    """
    said = _SEP_LINE.match(sample)
    if said:
        sample, delimiter = sample[said.end() :], said.group(1)
    elif not delimiter:
        delimiter = max(_DELIMITERS, key=lambda one: _agreement(_rows(sample, is_whole, one)))
    rows = _rows(sample, is_whole, delimiter)
    width = len(rows[0]) if rows else 0
    ends_with_delimiter = len(rows) > 1 and all(
        len(row) == width + 1 and not row[-1] or len(row) <= width for row in rows[1:]
    ) and any(len(row) > width for row in rows[1:])  # fmt: skip
    columns = list(range(width)) if ends_with_delimiter else None
    return Dialect(delimiter, _has_header(rows), 1 if said else 0, columns)


def _rows(sample: str, is_whole: bool, delimiter: str) -> list[list[str]]:
    lines = sample.splitlines(keepends=True)
    rows: list[list[str]] = []
    try:
        for row in csv.reader(lines, delimiter=delimiter):
            if row:
                rows.append(row)
            if len(rows) > _ROWS:
                break
    except csv.Error:  # a field that is too long: the delimiter is another
        return []
    cut = not is_whole and 1 < len(rows) <= _ROWS
    return rows[:-1] if cut else rows[:_ROWS]


def _agreement(rows: list[list[str]]) -> tuple[float, int]:
    """How many of the rows have the most common number of fields (above 1), and that number."""
    widths = Counter(len(row) for row in rows if len(row) > 1)
    if not widths:
        return 0.0, 0
    width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
    return count / len(rows), width


def _has_header(rows: list[list[str]]) -> bool:
    if not rows:
        return False
    first, others = rows[0], rows[1:]
    for number, cell in enumerate(first):
        below = [row[number] for row in others if number < len(row) and row[number].strip()]
        numbers = bool(below) and all(map(_NUMBER.fullmatch, below))
        names_years = _YEAR.fullmatch(cell) and not all(map(_YEAR.fullmatch, below))
        if numbers and cell.strip() and (names_years or not _NUMBER.fullmatch(cell)):
            return True
    names = [cell for cell in first if cell.strip()]
    return bool(names) and len(set(names)) == len(names) and not any(map(_NUMBER.fullmatch, names))
