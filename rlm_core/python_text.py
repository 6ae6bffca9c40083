"""Python source as text: whether it parses, its indentation, and where its strings are."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

# Strings (a backslash hides the next character in all of them) and comments. One that is never closed reaches
# to the end of its line, or of the text if its quotes are triple, so that a scan reads each character once.
_STRING_OR_COMMENT: Final = re.compile(
    r"#[^\n]*"
    r"|'''(?:[^\\']|\\.|'(?!''))*+(?:'''|\\?\Z)"
    r'|"""(?:[^\\"]|\\.|"(?!""))*+(?:"""|\\?\Z)'
    r"|'(?:[^\\\n']|\\.)*+'?"
    r'|"(?:[^\\\n"]|\\.)*+"?',
    re.S,
)


def parses(code: str) -> bool:
    """Whether code is Python, without running it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def as_written(lines: Sequence[str], indent: int = 0) -> tuple[str, bool]:
    """The lines of a block as code, and whether it parses: exactly as they are if they do, else without the
    block's indentation of `indent` columns, else without the indentation all lines share.
    """
    code = "\n".join(lines)
    if parses(code):
        return code, True
    shared = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    for margin in dict.fromkeys((min(indent, shared), shared)):
        shifted = "\n".join(_shifted(line, margin) for line in lines)
        if margin and parses(shifted):
            return shifted, True
    return code, False


def outside_strings(text: str, start: int, end: int, places: Iterable[int]) -> Iterator[int]:
    """Those of the ascending places in `text[start:end]` that no string of the code there covers.

    Reads the text once, and no further than the place it gives.
    """
    at = start
    for place in places:
        if place >= end:
            return
        while at < place and (opening := _STRING_OR_COMMENT.search(text, at, place)) is not None:
            whole = _STRING_OR_COMMENT.match(text, opening.start(), end)
            at = opening.end() if whole is None else whole.end()
        if at <= place:
            at = place
            yield place


def _shifted(line: str, margin: int) -> str:
    """Without the first `margin` columns, as far as they are blank."""
    return line[margin:] if not line[:margin].strip() else line.lstrip()
