"""What a reader child left behind, checked: it may come from a reader that a hostile file has taken over."""

from __future__ import annotations

import codecs
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from rlm_core.canonical import PICTURE_TYPES, Measure, Measured
from rlm_core.document import COLUMN_TYPES, SECTION_KINDS, TABLES, Section
from rlm_core.readers.child import RESULT
from rlm_core.readers.output import (
    LONGEST_EDGE,
    MOST_PICTURE_BYTES,
    MOST_TEXT_BYTES,
    MOST_WANTED,
    PICTURE,
    TEXT,
    Unreadable,
)
from rlm_core.walk import printable

_MOST_RESULT_BYTES: Final = 32 << 20
_MOST_REMARKS: Final = 20
_MOST_PROBLEMS: Final = 2000
_MOST_COLUMNS: Final = 20_000
_LINE_CHARS: Final = 300
_LABEL_CHARS: Final = 100
_BLOCK: Final = 1 << 20
_MEDIA_TYPE: Final = re.compile(r"[a-z]+/[\w.+-]{1,100}", re.ASCII)
_FILE: Final = re.compile(r"[0-9]{1,7}", re.ASCII)
_PICTURE: Final = re.compile(re.escape(PICTURE) + "[0-9]{1,3}", re.ASCII)
_MAGIC: Final = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_OPEN_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)


@dataclass(frozen=True, slots=True)
class Attached:
    """A contained file: its name in the container, and its place."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture that a reader made: a PNG or JPEG file of so many pixels."""

    mime: str
    data: bytes
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Result:
    """What a reader made of one file."""

    measured: Measured
    media_type: str
    table: str
    sections: tuple[Section, ...]
    remarks: tuple[str, ...]
    problems: tuple[tuple[str, str], ...]
    attached: tuple[Attached, ...]
    pictures: tuple[Shown, ...]


def take_result(folder: Path) -> Result:
    """The result in the folder of a child that has ended well. Raises `Unreadable` with the reason the reader
    gave, and for anything that is not a result.
    """
    try:
        with _open(folder / RESULT, _MOST_RESULT_BYTES) as file:
            facts = json.loads(file.read(_MOST_RESULT_BYTES))
        for key, start in (("unreadable", ""), ("failed", "cannot be read, it may be damaged: ")):
            if key in facts:
                raise Unreadable(_line(f"{start}{_str(facts[key])}"))
        return _checked(facts, folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Unreadable("cannot be read: its reader gave no proper result, it may be damaged") from None


def _checked(facts: dict[str, Any], folder: Path) -> Result:
    media_type, table = _str(facts["media_type"]), _str(facts["table"])
    if (media_type and not _MEDIA_TYPE.fullmatch(media_type)) or table not in TABLES:
        raise ValueError
    attached = tuple(_attached(folder, *values) for values in _list(facts["attached"]))
    if len({file.path for file in attached}) != len(attached):
        raise ValueError
    with _open(folder / TEXT, MOST_TEXT_BYTES) as file:
        measured, sections = _measured(file, _list(facts["sections"]))
    return Result(
        measured,
        media_type,
        table,
        sections,
        tuple(_line(_str(text)) for text in _few(facts["remarks"], _MOST_REMARKS, "more remarks")),
        tuple(
            (_line(_str(name)), _line(_str(text)))
            for name, text in _few(facts["problems"], _MOST_PROBLEMS, ["", "more of its files were not read"])
        ),
        attached,
        tuple(_shown(folder, *values) for values in _few(facts["pictures"], MOST_WANTED, None)),
    )


def _attached(folder: Path, name: object, file: object) -> Attached:
    if not _FILE.fullmatch(_str(file)):
        raise ValueError
    path = folder / _str(file)
    _open(path, None).close()
    return Attached(_str(name), str(path))


def _shown(folder: Path, name: object, mime: object, width: object, height: object) -> Shown:
    if not _PICTURE.fullmatch(_str(name)) or _str(mime) not in PICTURE_TYPES:
        raise ValueError
    if type(width) is not int or type(height) is not int or min(width, height) < 1:
        raise ValueError
    if max(width, height) > LONGEST_EDGE:
        raise ValueError
    with _open(folder / _str(name), MOST_PICTURE_BYTES) as file:
        data = file.read(MOST_PICTURE_BYTES + 1)
    if len(data) > MOST_PICTURE_BYTES or not data.startswith(_MAGIC[_str(mime)]):
        raise ValueError
    return Shown(_str(mime), data, width, height)


def _measured(file: BinaryIO, values: list[Any]) -> tuple[Measured, tuple[Section, ...]]:
    """Size and hash of the text, and its sections with their places in bytes; strict about both."""
    rows = [_section(*value) for value in values]
    wanted = [place for row in rows for place in (row[2], row[3])]
    if any(a > b for a, b in zip(wanted, wanted[1:], strict=False)):
        raise ValueError
    measure, places = Measure(), []
    for place in _places(file, measure, iter(wanted)):
        places.append(place)
    pairs = zip(rows, zip(places[::2], places[1::2], strict=True), strict=True)
    return measure.result(), tuple(Section(*row, *place) for row, place in pairs)


def _places(file: BinaryIO, measure: Measure, wanted: Iterator[int]) -> Iterator[int]:
    """The bytes at which these code points stand (in rising order), measuring the text on the way."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    chars = size = 0
    char = next(wanted, None)
    while True:
        block = file.read(_BLOCK)
        text = decoder.decode(block, final=not block)
        if "\0" in text:
            raise ValueError
        measure.update(block)
        ascii_only = text.isascii()
        done = done_bytes = 0
        while char is not None and char <= chars + len(text):
            done_bytes += char - chars - done if ascii_only else len(text[done : char - chars].encode())
            done = char - chars
            yield size + done_bytes
            char = next(wanted, None)
        chars += len(text)
        size += len(text) if ascii_only else len(text.encode())
        if not block:
            break
    if char is not None:
        raise ValueError


def _section(
    kind: object, label: object, start: object, end: object, columns: object
) -> tuple[str, str, int, int, dict[str, str] | None]:
    if kind not in SECTION_KINDS or type(start) is not int or type(end) is not int or start < 0:
        raise ValueError
    if columns is not None:
        if not isinstance(columns, dict) or len(columns) > _MOST_COLUMNS:
            raise ValueError
        if not COLUMN_TYPES.issuperset(columns.values()):
            raise ValueError
        columns = {_SURROGATE.sub("\ufffd", name): of for name, of in columns.items()}
    return _str(kind), printable(_str(label))[:_LABEL_CHARS], start, end, columns


def _open(path: Path, most: int | None) -> BinaryIO:
    """A file the child has written: a regular one, under no other name, not too large."""
    file = os.fdopen(os.open(path, _OPEN_FLAGS), "rb")
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and (most is None or status.st_size <= most):
        return file
    file.close()
    raise ValueError


def _few(values: object, most: int, last: Any) -> list[Any]:
    found = _list(values)
    return found if len(found) <= most else [*found[:most], last]


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _line(text: str) -> str:
    """One printable line that is not too long."""
    line = printable(text)
    return line if len(line) <= _LINE_CHARS else f"{line[: _LINE_CHARS - 1]}…"
