"""A report as Markdown.

Texts of models and documents stand in fences that nothing inside can close; in all other words every
character is escaped that could begin markup, HTML or a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final, assert_never

from traces.report_parts import (
    EMPTY,
    SHOWN_CHARS,
    WHOLE_CHARS,
    Heading,
    Items,
    Part,
    Sides,
    Table,
    Text,
    Words,
    left_out,
    middle_out,
)
from traces.visible import block, line

_MARKUP: Final = re.compile(r"[\\`*_{}\[\]<>#|~&$@^!]")
_LINK: Final = re.compile(r"(?i)(?<=:)(?=//)|(?<=www)(?=\.)")
_LIST: Final = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$))|(?=[-+=:]))")


def to_markdown(title: str, parts: Iterable[Part]) -> str:
    """The whole report as one Markdown text."""
    sections = [f"# {inline(title)}", *(text for part in parts for text in _part(part))]
    return "\n\n".join(sections) + "\n"


def inline(text: str) -> str:
    """Any text as words on one line that no reader of Markdown takes for markup."""
    escaped = _LINK.sub(r"\\", _MARKUP.sub(r"\\\g<0>", line(text)))
    return _LIST.sub(r"\1\\", escaped)


def fenced(text: str, language: str = "text") -> str:
    """Any text in a fence of more backquotes than stand beside each other in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{block(text)}\n{fence}"


def _part(part: Part) -> Iterator[str]:
    match part:
        case Heading():
            yield "#" * part.level + " " + inline(part.text)
        case Words():
            yield f"**{inline(part.text)}**" if part.strong else inline(part.text)
        case Items():
            yield "\n".join(f"- {inline(text)}" for text in part.texts)
        case Text():
            yield from _text(part)
        case Sides():
            yield from _text(part.was)
            yield from _text(part.should_be)
        case Table():
            yield _table(part)
        case _:
            assert_never(part)


def _text(part: Text) -> Iterator[str]:
    if not part.text:
        yield f"**{inline(part.label)}**: {EMPTY if part.text == '' else inline(part.absent)}"
        return
    begin, end, cut = middle_out(part.text, SHOWN_CHARS)
    said = f" ({len(part.text):,} characters; cut in the middle)" if cut else ""
    yield f"**{inline(part.label)}**{said}:"
    yield fenced(f"{begin}\n{left_out(cut)}\n{end}" if cut else begin, part.language)
    if cut:
        first, last, missing = middle_out(part.text, WHOLE_CHARS)
        whole = f"{first}\n{left_out(missing)}\n{last}" if missing else first
        yield _folded("The whole text", fenced(whole, part.language))


def _folded(words: str, inner: str) -> str:
    """What a reader opens; without the blank lines Markdown inside would be read as HTML."""
    return f"<details><summary>{escape(line(words))}</summary>\n\n{inner}\n\n</details>"


def _table(part: Table) -> str:
    rule = ["---:" if number in part.right else "---" for number in range(len(part.head))]
    table = "\n".join([_row(part.head), _row(rule, raw=True), *(_row(row) for row in part.rows)])
    return table if part.folded is None else _folded(part.folded, table)


def _row(cells: Sequence[str], *, raw: bool = False) -> str:
    return "| " + " | ".join(cell if raw else inline(cell) for cell in cells) + " |"
