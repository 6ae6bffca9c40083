"""A file or folder to import, and careful reading of it: JSON of any size and depth, whole or by lines."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, NamedTuple

from rlm_core.errors import InputError
from traces.spool import DECODER

LARGEST_LINE: Final = 256 * 1024 * 1024  # bytes
LARGEST_DOCUMENT: Final = 512 * 1024 * 1024  # bytes of a file that is one JSON value
_HEAD_BYTES: Final = 1024 * 1024
_ENDS_BYTES: Final = 64 * 1024  # in which a line of a file with lines ends
_BLOCK: Final = 256 * 1024  # bytes or characters that are put into another form at a time
_RECORD: Final = re.compile(rb'\s*(?:\[\s*)*\{\s*"')  # an object, or a list of such
#: How a file begins, and the encoding that it then has (None: UTF-8); that of UTF-16 begins like UTF-32's.
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"), (codecs.BOM_UTF8, None), (b"{\0", "utf-16-le"), (b"[\0", "utf-16-le"),
    (b"\0{", "utf-16-be"), (b"\0[", "utf-16-be"),
)  # fmt: skip


class _Other(RawIOBase):
    """A file that is read in another form."""

    def __init__(self, file: IO[Any]) -> None:
        self._file, self._left = file, b""

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; 0 at the end."""
        if not self._left:
            self._left = self._more()
        part = self._left[: len(buffer)]
        self._left = self._left[len(part) :]
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()

    def _more(self) -> bytes:
        raise NotImplementedError


class _Utf8(_Other):
    """Text in another encoding. What is no text in it is no JSON either: it becomes a backslash escape."""

    def _more(self) -> bytes:
        return str(self._file.read(_BLOCK)).encode("utf-8", "backslashreplace")


class _LineFeeds(_Other):
    """Lines that end with a carriage return."""

    def _more(self) -> bytes:
        return bytes(self._file.read(_BLOCK)).replace(b"\r", b"\n")


class JsonLine(NamedTuple):
    """A line of a file of JSON lines, counted from 1; `value` is None where it is no JSON (or null)."""

    number: int
    value: Any


@dataclass(frozen=True, slots=True)
class Source:
    """A file or folder, and what its owner calls it."""

    path: Path
    name: str

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.path.is_dir()

    def opened(self) -> BinaryIO:
        """The file as UTF-8 without a byte order mark, its lines ended by line feeds. UTF-16 and UTF-32 that
        begin with such a mark or with JSON, and lines ended by carriage returns, are put into that form.
        Raises OSError.
        """
        file = self.path.open("rb")
        try:
            begin = file.read(_ENDS_BYTES)
            mark, encoding = next(((m, e) for m, e in _MARKS if begin.startswith(m)), (b"", None))
            file.seek(0 if encoding else len(mark))
            if encoding is not None:
                return BufferedReader(_Utf8(TextIOWrapper(file, encoding, "backslashreplace", newline="")))
            old_mac = b"\r" in begin[:-1] and b"\n" not in begin
            return BufferedReader(_LineFeeds(file)) if old_mac else file
        except BaseException:
            file.close()
            raise

    def line_not_utf8(self) -> int | None:
        """The number of the first line of its beginning that is not UTF-8, where that looks like a record."""
        head = self.head()
        if not _RECORD.match(head):  # files of settings may begin with a bracket too
            return None
        try:
            head.decode()
        except UnicodeDecodeError as error:
            return None if error.end == len(head) == _HEAD_BYTES else head.count(b"\n", 0, error.start) + 1
        return None

    def head(self, most: int = _HEAD_BYTES) -> bytes:
        """The beginning of the file: at most `most` bytes (1 MB), empty for a folder. Raises InputError when
        it is unreadable.
        """
        if self.is_folder:
            return b""
        try:
            with self.opened() as file:
                return file.read(most)
        except OSError as error:
            raise self._unreadable(error) from error

    def first_lines(self, count: int = 20) -> list[Any]:
        """The values of the first lines that are JSON objects, from the beginning of the file."""
        values = (_decoded(line) for line in self.head().split(b"\n")[: count * 2])
        return [value for value in values if isinstance(value, dict)][:count]

    def lines(self) -> Iterator[JsonLine]:
        """All lines that are not blank, one at a time. Raises InputError when the file cannot be read."""
        try:
            with self.opened() as file:
                number = 0
                while line := file.readline(LARGEST_LINE):
                    number += 1
                    whole = line.endswith(b"\n") or len(line) < LARGEST_LINE
                    while not line.endswith(b"\n") and len(line) == LARGEST_LINE:
                        line = file.readline(LARGEST_LINE)  # too long to be held: it only counts
                    if line.strip():
                        yield JsonLine(number, _decoded(line) if whole else None)
        except OSError as error:
            raise self._unreadable(error) from error

    def document(self) -> Any:
        """The file as one JSON value, None where it is none. Raises InputError when it cannot be read."""
        try:
            if self.path.stat().st_size > LARGEST_DOCUMENT:
                raise self._too_large()
            with self.opened() as file:
                return _decoded(file.read())
        except OSError as error:
            raise self._unreadable(error) from error

    def checked_size(self) -> None:
        """Raises InputError for a file that looks like one JSON value and is too large to be read as one, or
        cannot be read.
        """
        head = self.head()
        try:
            large = self.path.stat().st_size > LARGEST_DOCUMENT
        except OSError as error:
            raise self._unreadable(error) from error
        if large and _RECORD.match(head) and not self.first_lines(1):
            raise self._too_large()

    def inside(self, *parts: str) -> Source:
        """A file or folder below this one. The name is for people; parts must not come from a record."""
        return Source(self.path.joinpath(*parts), "/".join((self.name, *parts)))

    def _too_large(self) -> InputError:
        most = LARGEST_DOCUMENT >> 20
        return InputError(
            f"{self.name} is larger than {most} MB, too large for one JSON value: save its runs in files of "
            "their own, or as lines."
        )

    def _unreadable(self, error: OSError) -> InputError:
        return InputError(f"{self.name} cannot be read: {error.strerror or error}.")


def _decoded(data: bytes) -> Any:
    try:
        return DECODER.decode(data.decode("utf-8-sig").strip())
    except (ValueError, RecursionError):
        return None


def as_text(value: Any) -> str:
    """A value of a record as text: strings as they are, everything else as JSON."""
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:  # what could just be read may be too deep a few calls further down
        return "(nested too deeply)"
