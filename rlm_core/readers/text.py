"""Text files: in which encoding they are, and where their UTF-8 bytes stand.

A file that is valid UTF-8 without a byte order mark is its own canonical text and is only measured, in
blocks. Everything else that is text is written as UTF-8 into a folder. Line ends are kept as they are. A file
that is not text raises `Unreadable`.
"""

from __future__ import annotations

import codecs
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from rlm_core.canonical import CanonicalWriter, Measure, Measured
from rlm_core.charsets import Survey, guess_encoding, utf16_without_mark
from rlm_core.readers.output import Unreadable
from rlm_core.readers.reading import Reading

BLOCK: Final = 1 << 20
HEAD: Final = 1 << 16

MEDIA_TYPES: Final = {
    ".c": "text/x-c",
    ".cpp": "text/x-c++",
    ".css": "text/css",
    ".csv": "text/csv",
    ".eml": "message/rfc822",
    ".go": "text/x-go",
    ".h": "text/x-c",
    ".htm": "text/html",
    ".html": "text/html",
    ".java": "text/x-java",
    ".js": "text/javascript",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".log": "text/x-log",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".ndjson": "application/x-ndjson",
    ".py": "text/x-python",
    ".rs": "text/x-rust",
    ".rst": "text/x-rst",
    ".sh": "text/x-shellscript",
    ".sql": "application/sql",
    ".toml": "application/toml",
    ".ts": "text/x-typescript",
    ".tsv": "text/tab-separated-values",
    ".xml": "text/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}

_TABLES: Final = {
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/json": "json",
    "application/x-ndjson": "jsonl",
}

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be", "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16-be"),
)
_WIDE: Final = ("utf-16", "utf-32")
_NO_TEXT: Final = "there is no text in it to read"
_OPEN_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)
_CONTROLS: Final = bytes(
    {*range(7), *range(14, 27), *range(28, 32)}
)  # without \a \b \t \n \v \f \r and escape
_MOST_CONTROLS: Final = 0.3  # of the head, in valid UTF-8: some exports separate fields by control characters
_MOST_CONTROLS_UNKNOWN: Final = 0.03  # in anything else: random bytes hold about 0.09
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# How each error handler leaves what it could not decode; a strict decoder leaves nothing.
_BAD: Final = {"surrogateescape": _SURROGATE, "replace": re.compile("\ufffd")}


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to decode a file: skip the mark, use `codec`, say `encoding` and the remark."""

    codec: str
    encoding: str
    errors: str = "strict"
    skip: int = 0
    remark: str | None = None


@dataclass(frozen=True, slots=True)
class _Input:
    """An open file: its size when it was opened (one that grows as fast as it is read would never end), its
    first bytes, and whom to tell how many bytes have been read.
    """

    file: BinaryIO
    size: int
    head: bytes
    tick: Callable[[int], None]

    def blocks(self, start: int = 0) -> Iterator[bytes]:
        """The bytes from `start` on."""
        if self.size <= len(self.head):
            yield self.head[start:]
            return
        left = self.size - start
        self.file.seek(start)
        while left > 0 and (block := self.file.read(min(BLOCK, left))):
            left -= len(block)
            self.tick(len(block))
            yield block


def open_regular(path: str) -> BinaryIO:
    """Open a file without ever blocking, whatever the path has become since it was listed.

    Raises `Unreadable` when it is no regular file any more, `OSError` when it cannot be opened.
    """
    descriptor = os.open(path, _OPEN_FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Unreadable("is no longer a file")
    return os.fdopen(descriptor, "rb", 0)


def read_text(
    file: BinaryIO,
    path: str,
    name: str,
    head: bytes,
    texts: Path,
    encoding: str | None,
    tick: Callable[[int], None],
) -> Reading:
    """Read an open file that begins with `head` as text; what is not valid UTF-8 is written into `texts`.

    Its name (`name`) tells its media type. `encoding` is taken instead of a guess. `tick` is called with the
    number of bytes read since the last call, and may raise. Raises `Unreadable` for what is not text.
    """
    before = os.fstat(file.fileno())
    source = _Input(file, before.st_size, head, tick)
    reading = _read(source, before.st_mtime_ns, path, name, texts, encoding)
    after = os.fstat(file.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise Unreadable("was written to while it was read: add a copy of it, or add it again")
    return reading


def table(name: str) -> str:
    """How a text of this name reads as a table: csv, tsv, json, jsonl, or "" for not at all."""
    return _TABLES.get(media_type(name), "")


def media_type(name: str) -> str:
    """The media type by extension, text/plain where it is not known."""
    return MEDIA_TYPES.get(os.path.splitext(name)[1].lower(), "text/plain")


def replace_surrogates(text: str) -> tuple[str, int]:
    """The text with every lone surrogate as U+FFFD, and how many there were."""
    return _SURROGATE.subn("\ufffd", text)


def _read(source: _Input, mtime_ns: int, path: str, name: str, texts: Path, encoding: str | None) -> Reading:
    plan = _plan_from_head(source.head, encoding)
    kind = media_type(name)
    if plan is None:
        measured, nuls = _measure_utf8(source)
        if measured and _is_utf8(path):
            remarks = (f"holds {nuls:,} NUL characters",) if nuls else ()
            return Reading(measured, kind, "utf-8", True, mtime_ns, remarks, table=table(name))
        plan = _Plan("utf-8", "utf-8") if measured else _plan_from_survey(source, encoding)
    return replace(_copy(source, plan, kind, texts), table=table(name))


def _plan_from_head(head: bytes, asked: str | None) -> _Plan | None:
    """A plan by byte order mark, the encoding that was given, or the pattern of UTF-16.

    None = try strict UTF-8. Raises for binary data.
    """
    for mark, encoding, codec in _MARKS:
        if head.startswith(mark):
            return _Plan(codec, encoding, "surrogateescape" if codec == "utf-8" else "strict", len(mark))
    controls = _control_share(head) > _MOST_CONTROLS
    if (controls or b"\0" in head) and asked and asked.startswith(_WIDE):
        return _given(asked)
    if b"\0" in head:
        codec16 = utf16_without_mark(head)
        if codec16 is None:
            raise Unreadable(f"a binary file (NUL bytes): {_NO_TEXT}")
        return _Plan(codec16, codec16, remark=f"read as {codec16} (guessed: no byte order mark)")
    if controls:
        raise Unreadable(f"a binary file (control characters): {_NO_TEXT}")
    return None


def _control_share(head: bytes) -> float:
    return 1 - len(head.translate(None, _CONTROLS)) / len(head)


def _measure_utf8(source: _Input) -> tuple[Measured | None, int]:
    """Measure the whole file if it is valid UTF-8 (and count its NULs); None as soon as it is not."""
    measure, nuls = Measure(), 0
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for block in source.blocks():
            if not block.isascii() or decoder.getstate()[0]:
                decoder.decode(block)
            nuls += block.count(b"\0")
            measure.update(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return None, nuls
    return measure.result(), nuls


def _given(encoding: str) -> _Plan:
    return _Plan(encoding, encoding, "replace", remark=f"read as {encoding} (as asked for)")


def _plan_from_survey(source: _Input, encoding: str | None) -> _Plan:
    """A plan for what is not valid UTF-8: the encoding given, nearly UTF-8, or an older one.

    Raises for binary data.
    """
    survey = Survey()
    for block in source.blocks():
        survey.update(block)
    if encoding and not survey.nuls:
        return _given(encoding)
    if survey.is_nearly_utf8:
        return _Plan("utf-8", "utf-8", "surrogateescape")
    if survey.nuls or _control_share(source.head) > _MOST_CONTROLS_UNKNOWN:
        raise Unreadable(f"a binary file (NUL bytes or control characters): {_NO_TEXT}")
    guess = guess_encoding(survey.sample())
    return _Plan(guess, guess, remark=f"read as {guess} (guessed)")


def _copy(source: _Input, plan: _Plan, kind: str, texts: Path) -> Reading:
    """Decode the file by the plan into `texts`; where a strict decoder fails, the next best one is taken."""
    for codec, errors in _attempts(plan):
        try:
            measured, shown, line = _decode(source, codec, errors, plan.skip, texts)
        except UnicodeDecodeError:
            continue
        if not measured.bytes:
            raise Unreadable("an empty file: nothing to read")
        remarks = [plan.remark.replace(plan.codec, codec)] if plan.remark else []
        if shown:
            places = "place is" if shown == 1 else "places are"
            remarks.append(
                f"not valid {codec}: {shown:,} bad {places} shown as U+FFFD, the first in line {line:,}"
            )
        encoding = plan.encoding if codec == plan.codec else codec
        return Reading(measured, kind, encoding, False, 0, tuple(remarks))
    raise Unreadable(f"is not {plan.encoding}: convert it to UTF-8 and add that")


def _attempts(plan: _Plan) -> list[tuple[str, str]]:
    """Codecs with their error handlers, best first; the last one decodes any bytes."""
    if plan.errors != "strict":
        return [(plan.codec, plan.errors)]
    if plan.codec.startswith("utf"):
        return [(plan.codec, "strict"), (plan.codec, "replace")]
    return [(codec, "strict") for codec in dict.fromkeys((plan.codec, "cp1252", "latin-1"))]


def _decode(source: _Input, codec: str, errors: str, skip: int, texts: Path) -> tuple[Measured, int, int]:
    """Write the decoded file; also how many bad places are shown as U+FFFD, and the line of the first."""
    decoder = codecs.getincrementaldecoder(codec)(errors)
    writer = CanonicalWriter(texts)
    pattern = _BAD.get(errors)
    shown, first, line = 0, 0, 1
    try:
        for block in itertools.chain(source.blocks(skip), [b""]):
            text = decoder.decode(block, final=not block)
            if pattern and (place := pattern.search(text)):
                first = first or line + text.count("\n", 0, place.start())
                text, bad = pattern.subn("\ufffd", text)
                shown += bad
            line += text.count("\n")
            writer.write(text)
        return writer.close(), shown, first
    finally:
        writer.discard()


def _is_utf8(path: str) -> bool:
    """Whether a path can travel as UTF-8; a file with another name is copied."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
