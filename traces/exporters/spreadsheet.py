"""Cells of CSV files that a spreadsheet shows and does not run."""

from __future__ import annotations

import re
from typing import Final

#: What a spreadsheet takes for the beginning of a formula (OWASP, "CSV Injection").
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


def cell(value: object) -> str:
    """A value as a cell; None is an empty one. A text that a spreadsheet would take for a formula begins with
    an apostrophe.
    """
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
