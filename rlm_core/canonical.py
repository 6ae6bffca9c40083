"""The canonical text of a document: UTF-8 bytes on disk, code points to Python.

`Measure` takes the bytes in blocks and knows size, hash and, for texts that are not ASCII, how many code
points start before every 64 KB: with this table a place in code points is found by reading 64 KB, not all.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from typing import BinaryIO, Final

from rlm_core.errors import CorpusError
from rlm_core.texts.positions import CONTINUATION, STEP, count_starts

TEXTS: Final = "texts"  # the folder, inside a corpus, of texts that are not referenced in place
PICTURES: Final = "pictures"  # the folder of images, and of files whose pages can be shown
PICTURE_TYPES: Final = {"image/png": ".png", "image/jpeg": ".jpg"}  # what pictures are kept and sent as
ORIGINAL_SUFFIX: Final = ".pdf"


@dataclass(frozen=True, slots=True)
class Measured:
    """Facts about one canonical text; `checkpoints` is empty for ASCII and for at most 64 KB."""

    chars: int
    bytes: int
    sha256: str
    checkpoints: array[int]


class Measure:
    """Counts valid UTF-8 given in blocks of any size (a block may end inside a character)."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._chars = 0
        self._bytes = 0
        self._checkpoints = array("Q")

    def update(self, block: bytes) -> None:
        """The next bytes of the text."""
        self._sha256.update(block)
        start = 0
        while start < len(block):
            past_step = self._bytes % STEP
            if not past_step:
                self._checkpoints.append(self._chars)
            piece = block[start : start + STEP - past_step]
            self._chars += count_starts(piece)
            self._bytes += len(piece)
            start += len(piece)

    def result(self) -> Measured:
        """The facts about all bytes so far."""
        checkpoints = self._checkpoints if needs_checkpoints(self._chars, self._bytes) else array("Q")
        return Measured(self._chars, self._bytes, self._sha256.hexdigest(), checkpoints)


class CanonicalWriter:
    """Writes one canonical text into a folder, under the name of its hash; without `close` nothing is left.

    Raises `CorpusError` when the folder cannot be written to.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._measure = Measure()
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            descriptor, self._temporary = mkstemp(prefix=".text-", dir=folder)
        self._file = os.fdopen(descriptor, "wb")

    def write(self, text: str) -> None:
        """The next characters; lone surrogates must have been replaced before."""
        block = text.encode("utf-8")
        with writing(self._folder):
            self._file.write(block)
        self._measure.update(block)

    def close(self) -> Measured:
        """Give the file its name and return what is in it."""
        measured = self._measure.result()
        with writing(self._folder):
            self._file.close()
            os.replace(self._temporary, self._folder / text_file(measured.sha256))
        return measured

    def discard(self) -> None:
        """Throw away what was written; harmless after `close`."""
        with suppress(OSError):
            self._file.close()
        Path(self._temporary).unlink(missing_ok=True)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an operating system error while writing into a `CorpusError` that names the folder."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CorpusError(
            f"the corpus cannot be stored in {folder} ({reason}): check the space and the rights there"
        ) from None


def text_file(sha256: str) -> str:
    """The file name of a canonical text; equal texts share a file."""
    return f"{sha256}.txt"


def needs_checkpoints(chars: int, size: int) -> bool:
    """Whether a text of so many characters and bytes has a checkpoint table."""
    return chars != size and size > STEP


def checkpoint_count(chars: int, size: int) -> int:
    """How many entries the checkpoint table of a text has."""
    return -(-size // STEP) if needs_checkpoints(chars, size) else 0


def byte_offset(file: BinaryIO, checkpoints: Sequence[int], char: int) -> int:
    """Where character number `char` starts, in bytes; `checkpoints` is empty for at most 64 KB."""
    nearest = bisect_right(checkpoints, char) - 1 if checkpoints else 0
    base = nearest * STEP
    file.seek(base)
    piece = file.read(STEP + 4)
    lead = next((i for i, byte in enumerate(piece[:4]) if byte not in CONTINUATION), len(piece[:4]))
    before = char - (checkpoints[nearest] if checkpoints else 0)
    # "ignore" drops at most the character that the end of the piece cuts in two
    return base + lead + len(piece[lead:].decode("utf-8", "ignore")[:before].encode("utf-8"))
