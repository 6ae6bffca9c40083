"""The files behind the documents: opened, checked, read or mapped. Nothing is read before it is asked for."""

from __future__ import annotations

import os
import stat
import threading
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from typing import Any, BinaryIO, Final

from rlm_core.texts.positions import CONTINUATION, ENTRY, STEP, Checkpoints, count_starts

KEPT_BYTES: Final = 64 << 20  # of the texts that are held as `str`
MOST_CHARS: Final = 8 << 20  # of a `str` made from a corpus larger than that
_OPEN_FILES: Final = 64
_FIND_BYTES: Final = 1 << 28  # searched at once; in between an interrupt is heard
_BACK: Final = 1 << 13  # characters up to which it is quicker to go back than to start from a checkpoint
_OPEN_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)


def open_text(path: str, size: int, sha256: str, mtimes: set[int]) -> BinaryIO:
    """Open a canonical text after making sure that it is still the one that was added.

    `size` is in bytes; `mtimes` holds the modification times (ns) known to be good, and gets another one when
    the hash shows that only the time has changed; an empty set means that size is enough. Raises `OSError`,
    naming the file, when it is gone or has changed.
    """
    try:
        file = os.fdopen(os.open(path, _OPEN_FLAGS), "rb")
    except OSError as error:
        raise OSError(f"{path} cannot be read any more ({error.strerror}): add the corpus again") from None
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_size == size:
        if not mtimes or status.st_mtime_ns in mtimes:
            return file
        import hashlib

        if hashlib.file_digest(file, "sha256").hexdigest() == sha256:
            mtimes.add(status.st_mtime_ns)
            file.seek(0)
            return file
    file.close()
    raise OSError(f"{path} has changed since it was added to the corpus: add the corpus again")


class Source:
    """One document before it is read; `facts` are those of `Corpus.worker_documents`."""

    __slots__ = (
        "chars", "checkpoints", "is_image", "mtimes", "name", "number", "pages", "path", "sections", "sha256",
        "size", "table",
    )  # fmt: skip

    def __init__(self, facts: dict[str, Any]) -> None:
        self.number: int = facts["number"]
        self.name: str = facts["name"]
        self.path: str = facts["path"]
        self.size: int = facts["bytes"]
        self.chars: int = facts["chars"]
        self.sha256: str = facts["sha256"]
        self.mtimes: set[int] = {facts["mtime_ns"]} if facts["mtime_ns"] else set()
        self.checkpoints: list[Any] | None = facts.get("checkpoints")
        self.table: str = facts.get("table", "")
        self.sections: list[list[Any]] = facts.get("sections", [])
        self.is_image: bool = facts.get("image", False)
        self.pages: list[int] = facts.get("pages", [])

    def open(self) -> BinaryIO:
        """The file, checked; raises `OSError`."""
        return open_text(self.path, self.size, self.sha256, self.mtimes)

    def read(self) -> str:
        """The whole text; raises `OSError`."""
        with self.open() as file:
            text = file.read(self.size).decode("utf-8", "replace")
        return self.checked(text, self.chars)

    def checked(self, text: str, chars: int) -> str:
        """A text that was read, if it has as many characters as it should; raises `OSError`."""
        if len(text) != chars:
            raise OSError(f"{self.path} has changed while it was read: add the corpus again")
        return text


class MappedFile:
    """The file of a large document in the address space: pages are read by the system as they are used."""

    def __init__(self, source: Source) -> None:
        import mmap

        self._source = source
        self._file = source.open()
        self.bytes = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        self.ascii = source.chars == source.size
        self._checkpoints: Sequence[int] = (0,)
        if source.checkpoints:
            path, first, count = source.checkpoints
            self._checkpoints = Checkpoints(_mapped_table(path, first + count), first, count)
        elif not self.ascii and source.size > STEP:
            raise OSError(f"there are no checkpoints of {source.path}: add the corpus again")
        self._near = (0, 0)  # a character and its byte: the next place is often close by

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def is_unchanged(self) -> bool:
        """Whether size and modification time are still those of the file that was added."""
        status, source = os.fstat(self._file.fileno()), self._source
        return status.st_size == source.size and (not source.mtimes or status.st_mtime_ns in source.mtimes)

    def byte_of(self, char: int) -> int:
        """Where a character starts, in bytes; at most 64 KB are read to find it."""
        if self.ascii or char >= self._source.chars:
            return char if self.ascii else self._source.size
        near_char, near = self._near
        if 0 < near_char - char <= _BACK:
            before = self.bytes[max(0, near - 4 * (near_char - char)) : near].decode("utf-8", "ignore")
            found = near - len(before[char - near_char :].encode("utf-8"))
            self._near = (char, found)
            return found
        index = bisect_right(self._checkpoints, char) - 1
        base_char, base = self._checkpoints[index], index * STEP
        if base_char < near_char <= char:
            base_char, base = near_char, near
        else:
            base = self.boundary(base)
        distance = char - base_char
        piece = self.bytes[base : min(base + 4 * distance, (index + 1) * STEP + 4)]
        # "ignore" drops at most the character that the end of the piece cuts in two
        found = base + len(piece.decode("utf-8", "ignore")[:distance].encode("utf-8"))
        self._near = (char, found)
        return found

    def char_of(self, byte: int) -> int:
        """The number of the character that starts at this byte."""
        if self.ascii or byte >= self._source.size:
            return byte if self.ascii else self._source.chars
        index = byte // STEP
        base_char, base = self._checkpoints[index], index * STEP
        near_char, near = self._near
        if base < near <= byte:
            base_char, base = near_char, near
        char = base_char + count_starts(self.bytes[base:byte])
        self._near = (char, byte)
        return char

    def boundary(self, byte: int) -> int:
        """The next byte from here on at which a character starts."""
        while byte < self._source.size and self.bytes[byte] in CONTINUATION:
            byte += 1
        return byte

    def read(self, start: int, end: int) -> str:
        """The characters `start` to `end`; raises `OSError` when the file has changed."""
        first = self.byte_of(start)
        text = self.bytes[first : self.byte_of(end)].decode("utf-8", "replace")
        return self._source.checked(text, end - start)

    def find(self, needle: bytes, first: int, last: int) -> int:
        """The first place of these bytes inside `first` to `last`, or -1."""
        while first + len(needle) <= last:
            found = self.bytes.find(needle, first, min(first + _FIND_BYTES, last))
            if found >= 0:
                return found
            first += _FIND_BYTES - len(needle) + 1
        return -1


def _mapped_table(path: str, entries: int) -> Any:
    """The checkpoint file of a corpus, mapped; raises `OSError` when it is gone or too short."""
    import mmap

    try:
        with open(path, "rb") as file:
            table = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # an empty file cannot be mapped
        raise OSError(f"{path} cannot be read any more: add the corpus again") from None
    if len(table) < entries * ENTRY:
        raise OSError(f"{path} is damaged: add the corpus again")
    return table


class Shelf:
    """Things that are costly to make, kept up to a weight; the least recently used leave first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[Hashable, tuple[Any, int]] = {}
        self._weight = 0
        self._lock = threading.RLock()

    def get(self, key: Hashable, weight: int, make: Callable[[], Any]) -> Any:
        """What is on the shelf under this key, made if need be."""
        with self._lock:
            held = self._held.pop(key, None)
            if held is None:
                held = (make(), weight)
                self._weight += weight
            self._held[key] = held
            while self._weight > self._limit and len(self._held) > 1:
                self._weight -= self._held.pop(next(iter(self._held)))[1]
            return held[0]


class Store:
    """What is held of one corpus: texts, open files, tables. `mapped`: it is too large for `str` objects."""

    def __init__(self, size: int, kept: int = KEPT_BYTES) -> None:
        self.mapped = size > kept
        self.texts = Shelf(kept)
        self.tables = Shelf(kept)
        self._files = Shelf(_OPEN_FILES)

    def file(self, source: Source) -> MappedFile:
        """The mapped file of a document, checked; raises `OSError`."""
        file: MappedFile = self._files.get(source.number, 1, lambda: MappedFile(source))
        if not file.is_unchanged():
            source.open().close()  # raises unless only the time has changed
        return file
