"""Code points and bytes of a canonical text; every 64 KB a checkpoint: how many characters came before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

STEP: Final = 1 << 16  # bytes between two checkpoints
CONTINUATION: Final = bytes(range(0x80, 0xC0))
ENTRY: Final = 8  # bytes of a checkpoint in its file, little endian


def count_starts(block: bytes) -> int:
    """How many characters start in these UTF-8 bytes."""
    return len(block) if block.isascii() else len(block.translate(None, CONTINUATION))


class Checkpoints(Sequence[int]):
    """The checkpoints of one document in a mapped table: an entry is read when it is asked for."""

    def __init__(self, table: Sequence[int], first: int, count: int) -> None:
        self._table = table
        self._first = first
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> int:  # type: ignore[override]  # slices are never asked for
        if not 0 <= index < self._count:
            raise IndexError(index)
        at = (self._first + index) * ENTRY
        return int.from_bytes(self._table[at : at + ENTRY], "little")
