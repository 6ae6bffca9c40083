"""Tables as canonical text: CSV (RFC 4180, "\\n"), a header of unique names, and the kind of each column."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, Final

_EXACT: Final = 1 << 53  # up to here every whole number is a float of its own
_WIDER: Final = (  # kinds that go together, and what they are together
    ({"integer", "number"}, "number"),
    ({"date", "datetime"}, "datetime"),
)


def csv_lines(rows: Iterable[Sequence[str]]) -> str:
    """The rows as CSV lines."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def unique_names(names: Sequence[str], first: int = 0) -> list[str]:
    """Names for columns: one line each, an empty one replaced by the letters of a spreadsheet (the first
    column being number `first`), a repeated one numbered: "Sum", "Sum (2)".
    """
    found: dict[str, None] = {}
    for number, name in enumerate(names, first):
        base = " ".join(name.split()) or letters(number)
        unique, repeat = base, 1
        while unique in found:
            repeat += 1
            unique = f"{base} ({repeat})"
        found[unique] = None
    return list(found)


def letters(number: int) -> str:
    """The letters of a spreadsheet's column, from 0: A, B, ..., Z, AA."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


def kind_of(value: Any) -> str:
    """The kind of one value: boolean, integer, number, datetime, date or text; "" for none."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() and abs(value) < _EXACT else "number"
    if isinstance(value, datetime):
        return "datetime"
    return "date" if isinstance(value, date) else "text"


def common_kind(kinds: set[str]) -> str:
    """The kind of a column whose values have these kinds."""
    kinds = kinds - {""}
    if len(kinds) == 1:
        return next(iter(kinds))
    return next((wide for narrow, wide in _WIDER if kinds and kinds <= narrow), "text")
