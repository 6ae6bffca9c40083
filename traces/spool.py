"""The spool: one append-only file of JSON lines per run, the truth about it.

Every record is one object on one line with a running `seq`. Line 0 names the format version. The writer makes
one `write` per record and never raises; the reader takes what is readable and counts the rest. Offsets are
bytes.
"""

from __future__ import annotations

import base64
import json
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeGuard

from rlm_core.errors import RecordError
from rlm_core.semconv import RECORD_VERSION

FORMAT: Final = "rlmscope-spool"
MAX_RECORD_BYTES: Final = 256 * 1024 * 1024
#: How files of records are opened: bytes as they are, also on Windows, at the end, made when missing.
APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
_CHUNK: Final = 1024 * 1024
_TALLY_BYTES: Final = 160  # blanks after the first record, which `"lost"` takes the place of: see SpoolWriter
_LARGEST_SEQ: Final = 2**53

Record = dict[str, Any]
Upcaster = Callable[[Record], Record]

#: From a format version to the next: each turns one record of that version into one of the following version.
#: They stay for ever, so that every spool ever written can be read.
UPCASTERS: Final[dict[int, Upcaster]] = {}

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
_ASCII = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False, default=str)


class SpoolWriter:
    """Appends records to a new file. Thread-safe; no record raises, failures are counted in `problems`.

    What cannot be written must not be missing without a word, also when the disk stays full for the rest of
    the run. So the first record, that of kind `run`, is followed by blanks: on a failure it is written again
    in its own place with the member `lost`: {"records", "status", "t"}, which needs no new space.
    """

    def __init__(self, path: Path | None, *, fsync: bool = False) -> None:
        """Create the file (0600); without a path nothing is kept, and every record counts as a problem.

        Raises FileExistsError when it exists, OSError when it cannot be made.
        """
        self._path = path
        self._fd = -1 if path is None else os.open(path, APPEND | os.O_EXCL, 0o600)
        self._first: Record | None = None
        self._room = 0  # bytes of the first line
        self._fsync = fsync
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._seq = 0
        self._torn = False  # the file ends inside a record
        self._closed = False
        self.counts: dict[str, int] = {}
        self.problems = 0
        self.removed = False  # whether the file was found to be gone at the end

    def write(self, record: Record) -> bool:
        """Append one record (`seq` is added); False when it does not stand in the file."""
        with self._lock:
            return self._write(record)

    def finish(self, time_ns: int, status: str | None) -> None:
        """Write the last record and close the file. Further calls and records do nothing but count.

        Without a status there is no last record: the run counts as interrupted.
        """
        with self._lock:
            if self._closed:
                return
            fin = {"kind": "fin", "t": time_ns, "status": status}
            fin |= {"counts": dict(self.counts), "problems": self.problems}
            if status is not None and not self._write(fin):
                self._tally(status, time_ns)
            self._closed = True
            if self._path is not None:
                if not _is_file_of(self._fd, self._path):  # somebody removed it: nothing of it is kept
                    self.removed = True
                    self.problems += sum(self.counts.values())
                os.close(self._fd)

    def _write(self, record: Record) -> bool:
        # a forked child must not write: its records would carry numbers that the parent uses too
        if self._path is None or self._closed or os.getpid() != self._owner:
            self.problems += 1
            return False
        seq, self._seq = self._seq, self._seq + 1
        try:
            line = encode({"seq": seq, **record})
            if seq == 0:
                line = line[:-1] + b" " * _TALLY_BYTES + b"\n"
            data = b"\n" + line if self._torn else line
            self._torn = True  # until the whole record stands, also when a signal interrupts the write
            if os.write(self._fd, data) != len(data):
                raise OSError("short write")
            self._torn = False
            if self._fsync:
                _to_disk(self._fd)
        except Exception:
            self.problems += 1
            self._tally(None, None)
            return False
        if seq == 0:
            self._first, self._room = {"seq": seq, **record}, len(line)
        self.counts[record["kind"]] = self.counts.get(record["kind"], 0) + 1
        return True

    def _tally(self, status: str | None, time_ns: int | None) -> None:
        """Say in the first record how many records are lost, and at the end how the run ended."""
        if self._first is None or self._path is None or self._closed or not _is_file_of(self._fd, self._path):
            return
        lost = {"records": self.problems, "status": status, "t": time_ns}
        line = encode({**self._first, "lost": lost})[:-1]
        with suppress(OSError):
            fd = os.open(self._path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
            try:
                if len(line) < self._room:
                    _at_start(fd, line.ljust(self._room - 1) + b"\n")
            finally:
                os.close(fd)


def encode(record: Record) -> bytes:
    """One record as a line. Raises ValueError or RecursionError for what JSON cannot hold."""
    try:
        line = _COMPACT.encode(record).encode("utf-8")
    except UnicodeEncodeError:
        line = _ASCII.encode(_lossless(record)).encode("ascii")
    except ValueError:  # numbers that are not finite
        line = _ASCII.encode(_finite(record)).encode("ascii")
    if len(line) >= MAX_RECORD_BYTES:
        raise ValueError("record too large")
    return line + b"\n"


def _lossless(record: Record) -> Record:
    """Two lone surrogates that look like one character would be joined by a JSON reader: use base64."""
    text = record.get("text")
    if not isinstance(text, str) or json.loads(_ASCII.encode(text)) == text:
        return record
    exact = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")
    return {key: value for key, value in record.items() if key != "text"} | {"b64": exact}


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _is_file_of(fd: int, path: Path) -> bool:
    """Whether the path still names the open file."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False
    except OSError:
        return True  # nothing can be learnt, so nothing is said


def _at_start(fd: int, data: bytes) -> None:
    if hasattr(os, "pwrite"):
        os.pwrite(fd, data, 0)
    else:  # Windows; the file was just opened, and not for appending
        os.write(fd, data)


def _to_disk(fd: int) -> None:
    (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(fd)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a spool: where it stands, and its record (None when it is unreadable).

    `escaped` says that the line holds JSON escapes of characters: only then can texts hold lone surrogates.
    """

    offset: int
    length: int
    record: Record | None
    escaped: bool


class SpoolReader:
    """Reads a spool that may still grow: each `read` yields the complete lines since the last one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0  # of the first byte not read yet
        self._version: int | None = None

    def read(self, *, final: bool = False) -> Iterator[Line]:
        """New complete lines in order. `final` (the writer is gone) yields a torn last line too.

        Raises RecordError when the spool was written in a newer format, OSError when it cannot be read.
        """
        with self.path.open("rb", buffering=0) as file:
            file.seek(self.offset)
            parts: list[bytes] = []
            length = 0
            while chunk := file.read(_CHUNK):
                *complete, rest = chunk.split(b"\n")
                for piece in complete:
                    yield self._line([*parts, piece], length + len(piece), 1)
                    parts, length = [], 0
                length += len(rest)
                # a file without line ends must not fill the memory: such a line only counts
                parts = [*parts, rest] if length < MAX_RECORD_BYTES else []
            if final and length:
                yield self._line(parts, length, 0)

    def _line(self, parts: list[bytes], length: int, newline: int) -> Line:
        data = b"".join(parts) if length < MAX_RECORD_BYTES else b""
        record = decode(data)
        if self._version is None:
            self._version = self._declared_version(record)
        offset = self.offset
        self.offset += length + newline
        if record is not None and self._version < RECORD_VERSION:
            record = self._upcast(record, self._version)
        return Line(offset, length, record, b"\\u" in data)

    def _declared_version(self, header: Record | None) -> int:
        version = (header or {}).get("v")
        if header is None or header.get("kind") != "run" or type(version) is not int or version < 1:
            return RECORD_VERSION
        if version > RECORD_VERSION:
            raise RecordError(
                f"The spool {self.path.name} was written by a newer version (format {version}, this program "
                f"knows {RECORD_VERSION}); it is left alone. Update the program to read it."
            )
        return version

    def _upcast(self, record: Record, version: int) -> Record:
        for earlier in range(version, RECORD_VERSION):
            record = UPCASTERS[earlier](record)
        return record


def decode(line: bytes) -> Record | None:
    """The record on one line, or None when the line is not one: an object with a `seq` and a `kind`."""
    try:
        record = DECODER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return record if is_record(record) else None


def is_record(value: object) -> TypeGuard[Record]:
    """Whether a JSON value is a record: an object with a `seq` and a `kind`."""
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return False
    seq = value.get("seq")
    return type(seq) is int and 0 <= seq < _LARGEST_SEQ


def _number(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


#: JSON as records may hold it: numbers that no float can hold stay text.
DECODER: Final = json.JSONDecoder(parse_float=_number, parse_constant=str)


def payload_text(record: Record) -> str | None:
    """The text of a payload record exactly as it was given, or None when it has none."""
    text = record.get("text")
    if text is None and isinstance(record.get("b64"), str):
        try:
            text = base64.b64decode(record["b64"], validate=True).decode("utf-8", "surrogatepass")
        except ValueError:
            return None
    return text if isinstance(text, str) else None


def read_record(path: Path, offset: int, length: int) -> Record | None:
    """One record at a known place, or None when the file no longer holds it there."""
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(offset)
            return decode(file.read(length))
    except OSError:
        return None


def has_final_record(path: Path) -> bool:
    """Whether the last complete line is a `fin` record. Reads only the end of the file."""
    try:
        with path.open("rb", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 4096))
            tail = file.read(4096)
    except OSError:
        return False
    lines = tail.split(b"\n")
    record = decode(lines[-2]) if len(lines) >= 2 and not lines[-1] else None
    return record is not None and record["kind"] == "fin"
