"""A file or folder to import, and careful reading of it: JSON of any size and depth, whole or by lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from rlm_core.errors import InputError
from traces.spool import DECODER

LARGEST_LINE: Final = 256 * 1024 * 1024  # bytes
LARGEST_DOCUMENT: Final = 512 * 1024 * 1024  # bytes of a file that is one JSON value
_HEAD_BYTES: Final = 1024 * 1024


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

    def head(self, most: int = _HEAD_BYTES) -> bytes:
        """The beginning of the file: at most `most` bytes (1 MB), empty for a folder. Raises InputError when
        it is unreadable.
        """
        if self.is_folder:
            return b""
        try:
            with self.path.open("rb") as file:
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
            with self.path.open("rb") as file:
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
                raise InputError(
                    f"{self.name} is larger than {LARGEST_DOCUMENT >> 20} MB, too large for one JSON value."
                )
            return _decoded(self.path.read_bytes())
        except OSError as error:
            raise self._unreadable(error) from error

    def inside(self, *parts: str) -> Source:
        """A file or folder below this one. The name is for people; parts must not come from a record."""
        return Source(self.path.joinpath(*parts), "/".join((self.name, *parts)))

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
