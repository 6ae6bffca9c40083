"""What became of one file that was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rlm_core.canonical import Measured
from rlm_core.document import Original, Picture, Section

READER_VERSION: Final = 1  # part of every corpus id: a reader that reads differently makes a different corpus
TEXT_READER: Final = "text"


@dataclass(frozen=True, slots=True)
class Reading:
    """The text of one file, and how it was got. `in_place`: the file itself is the canonical text, with this
    `mtime_ns`; else the text stands in the folder of texts under its hash.

    The other fields are those of a `Document`.
    """

    measured: Measured
    media_type: str
    encoding: str
    in_place: bool
    mtime_ns: int
    remarks: tuple[str, ...]
    reader: str = TEXT_READER
    sections: tuple[Section, ...] = ()
    table: str = ""
    picture: Picture | None = None
    original: Original | None = None
