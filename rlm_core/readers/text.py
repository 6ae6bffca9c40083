"""From one file to its canonical text: is it text, in which encoding, and where do the UTF-8 bytes stand.

A file that is valid UTF-8 without a byte order mark is its own canonical text and is only measured, in
blocks. Everything else that is text is written as UTF-8 into a folder. Line ends are kept as they are. A file
that is not text, or not in this version, raises `Unreadable`: one line on what it is and what to do.
"""

from __future__ import annotations

import codecs
import itertools
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from rlm_core.canonical import CanonicalWriter, Measure, Measured
from rlm_core.charsets import Survey, guess_encoding, utf16_without_mark
from rlm_core.readers.output import Unreadable
from rlm_core.readers.reading import Reading

BLOCK: Final = 1 << 20
_HEAD: Final = 1 << 16

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

_CONVERT: Final = "not read in this version: convert it to text and add that"
_UNPACK: Final = "not read in this version: unpack it and add the folder"
_EXPORT: Final = "not read in this version: export it as CSV and add that"
_NO_TEXT: Final = "there is no text in it to read"
_OFFICE: Final = {
    ".docx": ("a Word document", _CONVERT), ".odt": ("an OpenDocument text", _CONVERT),
    ".pptx": ("a presentation", _CONVERT), ".odp": ("a presentation", _CONVERT),
    ".epub": ("an e-book", _CONVERT),
    ".xlsx": ("a workbook", _EXPORT), ".ods": ("a workbook", _EXPORT),
}  # fmt: skip
_SIGNATURES: Final = (
    (b"%PDF-", "a PDF document", _CONVERT),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document", _CONVERT),
    (b"PK\x03\x04", "a zip archive", _UNPACK),
    (b"PK\x05\x06", "a zip archive", _UNPACK),
    (b"\x1f\x8b", "a gzip file", _UNPACK),
    (b"BZh", "a bzip2 file", _UNPACK),
    (b"\xfd7zXZ\x00", "an xz file", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a zstd file", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"Rar!\x1a\x07", "a rar archive", _UNPACK),
    (b"PAR1", "a Parquet file", _EXPORT),
    (b"SQLite format 3\x00", "an SQLite database", _EXPORT),
    (b"\x89PNG\r\n\x1a\n", "a PNG image", _NO_TEXT),
    (b"\xff\xd8\xff", "a JPEG image", _NO_TEXT),
    (b"GIF87a", "a GIF image", _NO_TEXT),
    (b"GIF89a", "a GIF image", _NO_TEXT),
    (b"\x7fELF", "a program (ELF)", _NO_TEXT),
)
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be", "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16-be"),
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


def read_file(path: str, texts: Path) -> Reading:
    """Read one file; what is not valid UTF-8 is written into the folder `texts`. Raises `Unreadable`."""
    try:
        with _open_regular(path) as file:
            before = os.fstat(file.fileno())
            reading = _read(file, before, path, texts)
            after = os.fstat(file.fileno())
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror or error}): check its permissions") from None
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


def _open_regular(path: str) -> BinaryIO:
    """Open without ever blocking, whatever the path has become since it was listed."""
    flags = (
        os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    )
    file = os.fdopen(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise Unreadable("is no longer a file")
    return file


def _read(file: BinaryIO, status: os.stat_result, path: str, texts: Path) -> Reading:
    head = file.read(_HEAD)
    if not status.st_size:
        raise Unreadable("an empty file: nothing to read")
    _refuse_signature(head, path)
    plan = _plan_from_head(head)
    kind = media_type(path)
    if plan is None:
        measured, nuls = _measure_utf8(file)
        if measured and _is_utf8(path):
            remarks = (f"holds {nuls:,} NUL characters",) if nuls else ()
            return Reading(measured, kind, "utf-8", True, status.st_mtime_ns, remarks, table=table(path))
        plan = _Plan("utf-8", "utf-8") if measured else _plan_from_survey(file, head)
    return replace(_copy(file, plan, kind, texts), table=table(path))


def _refuse_signature(head: bytes, path: str) -> None:
    for signature, kind, advice in _SIGNATURES:
        if head.startswith(signature):
            if kind == "a zip archive":
                kind, advice = _OFFICE.get(os.path.splitext(path)[1].lower(), (kind, advice))
            raise Unreadable(f"{kind}: {advice}")


def _plan_from_head(head: bytes) -> _Plan | None:
    """A plan by byte order mark or the pattern of UTF-16; None = try strict UTF-8. Raises for binary data."""
    for mark, encoding, codec in _MARKS:
        if head.startswith(mark):
            return _Plan(codec, encoding, "surrogateescape" if codec == "utf-8" else "strict", len(mark))
    if b"\0" in head:
        codec16 = utf16_without_mark(head)
        if codec16 is None:
            raise Unreadable(f"a binary file (NUL bytes): {_NO_TEXT}")
        return _Plan(codec16, codec16, remark=f"read as {codec16} (guessed: no byte order mark)")
    if _control_share(head) > _MOST_CONTROLS:
        raise Unreadable(f"a binary file (control characters): {_NO_TEXT}")
    return None


def _control_share(head: bytes) -> float:
    return 1 - len(head.translate(None, _CONTROLS)) / len(head)


def _blocks(file: BinaryIO, start: int = 0) -> Iterator[bytes]:
    """The file up to the size it has now: one that grows as fast as it is read would never end."""
    left = os.fstat(file.fileno()).st_size - start
    file.seek(start)
    while left > 0 and (block := file.read(min(BLOCK, left))):
        left -= len(block)
        yield block


def _measure_utf8(file: BinaryIO) -> tuple[Measured | None, int]:
    """Measure the whole file if it is valid UTF-8 (and count its NULs); None as soon as it is not."""
    measure, nuls = Measure(), 0
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for block in _blocks(file):
            if not block.isascii() or decoder.getstate()[0]:
                decoder.decode(block)
            nuls += block.count(b"\0")
            measure.update(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return None, nuls
    return measure.result(), nuls


def _plan_from_survey(file: BinaryIO, head: bytes) -> _Plan:
    """A plan for what is not valid UTF-8: nearly UTF-8, or an older encoding. Raises for binary data."""
    survey = Survey()
    for block in _blocks(file):
        survey.update(block)
    if survey.is_nearly_utf8:
        return _Plan("utf-8", "utf-8", "surrogateescape")
    if survey.nuls or _control_share(head) > _MOST_CONTROLS_UNKNOWN:
        raise Unreadable(f"a binary file (NUL bytes or control characters): {_NO_TEXT}")
    encoding = guess_encoding(survey.sample())
    return _Plan(encoding, encoding, remark=f"read as {encoding} (guessed)")


def _copy(file: BinaryIO, plan: _Plan, kind: str, texts: Path) -> Reading:
    """Decode the file by the plan into `texts`; where a strict decoder fails, the next best one is taken."""
    for codec, errors in _attempts(plan):
        try:
            measured, shown, line = _decode(file, codec, errors, plan.skip, texts)
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
    raise Unreadable(f"is not {plan.encoding}: {_CONVERT}")


def _attempts(plan: _Plan) -> list[tuple[str, str]]:
    """Codecs with their error handlers, best first; the last one decodes any bytes."""
    if plan.errors != "strict":
        return [(plan.codec, plan.errors)]
    if plan.codec.startswith("utf"):
        return [(plan.codec, "strict"), (plan.codec, "replace")]
    return [(codec, "strict") for codec in dict.fromkeys((plan.codec, "cp1252", "latin-1"))]


def _decode(file: BinaryIO, codec: str, errors: str, skip: int, texts: Path) -> tuple[Measured, int, int]:
    """Write the decoded file; also how many bad places are shown as U+FFFD, and the line of the first."""
    decoder = codecs.getincrementaldecoder(codec)(errors)
    writer = CanonicalWriter(texts)
    pattern = _BAD.get(errors)
    shown, first, line = 0, 0, 1
    try:
        for block in itertools.chain(_blocks(file, skip), [b""]):
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
