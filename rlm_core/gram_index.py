"""Some pieces of a corpus, ready to be searched: the grams (a few bytes) at a fixed stride in a sorted table.

A passage of at least `Grain.least` bytes contains a gram at the stride wherever it stands, so looking up the
grams of a text at every offset finds it, as rsync does (Tridgell, "Efficient Algorithms for Sorting and
Synchronization", 1999, chapter 3). Hashes only propose places; who uses them compares bytes.

Memory: the indexed bytes once, and 8 bytes per stride: at the largest size 64 MB + 32 MB. Needs numpy, which
is imported when the first index is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

Array = Any  # of numpy
Read = Callable[[int, int, int], bytes]  # (document, first byte, last byte) -> those bytes
Place = tuple[int, int]  # (document, byte)

_BLOCK: Final = 1 << 18
_SEPARATOR: Final = 0xFF  # between documents; no byte of UTF-8, so no match spans two of them
_POSITION_BITS: Final = 23  # of a table entry: the stride number; the rest is hash
_POSITION: Final = (1 << _POSITION_BITS) - 1
_HASH: Final = (1 << 64) - 1 - _POSITION
_FACTORS: Final = (  # odd and random: the first 64 bits of SHA-256 of b"0", b"1", ..., lowest bit set
    0x5FECEB66FFC86F39, 0x6B86B273FF34FCE1, 0xD4735E3A265E16EF, 0x4E07408562BEDB8B,
    0x4B227777D4DD1FC7, 0xEF2D127DE37B942B, 0xE7F6C011776E8DB7, 0x7902699BE42C8A8F,
)  # fmt: skip


class Grain(NamedTuple):
    """How finely a corpus of at most `most_bytes` is indexed, in bytes (multiples of 4)."""

    most_bytes: int
    gram: int
    stride: int

    @property
    def least(self) -> int:
        """The shortest passage that is reported. Every one of at least this length is found."""
        return self.gram + self.stride


GRAINS: Final = (Grain(4 << 20, 12, 4), Grain(16 << 20, 16, 4), Grain(64 << 20, 32, 16))
MOST_BYTES: Final = GRAINS[-1].most_bytes


def grain_for(size: int) -> Grain:
    """The finest grain for that many bytes (at most `MOST_BYTES`)."""
    return next(grain for grain in GRAINS if size <= grain.most_bytes)


class Piece(NamedTuple):
    """Bytes `start` to `end` of a document."""

    document: int
    start: int
    end: int


class Index:
    """Some pieces of a corpus, ready to be searched. At most `MOST_BYTES` in all.

    `read` is asked for blocks of the pieces; what it raises ends the making.
    """

    def __init__(self, pieces: Sequence[Piece], read: Read) -> None:
        import numpy as np

        self.pieces = pieces
        self.bytes = sum(piece.end - piece.start for piece in pieces)
        self.grain = grain_for(self.bytes)
        sizes = np.array([piece.end - piece.start + 1 for piece in pieces], np.int64)
        self._starts = 1 + np.concatenate(([0], np.cumsum(sizes)[:-1]))
        self.data: Array = np.full((1 + int(sizes.sum()) + 3) // 4 * 4, _SEPARATOR, np.uint8)
        for piece, start in zip(pieces, self._starts.tolist(), strict=True):
            for first in range(piece.start, piece.end, _BLOCK):
                block = read(piece.document, first, min(first + _BLOCK, piece.end))
                at = start + first - piece.start
                self.data[at : at + len(block)] = np.frombuffer(block, np.uint8)
        self._table = self._make_table()

    def _make_table(self) -> Array:
        """Hash and stride number of every gram, sorted: equal grams stand together, first places first."""
        import numpy as np

        words: Array = self.data.view("<u4")
        step = self.grain.stride // 4
        count = max(0, (len(words) - self.grain.gram // 4) // step + 1)
        table: Array = np.empty(count, np.uint64)
        for first in range(0, count, _BLOCK):
            last = min(first + _BLOCK, count)
            columns = (words[first * step + t : (last - 1) * step + t + 1 : step] for t in self._words)
            table[first:last] = _hashes(columns) & np.uint64(_HASH) | np.arange(first, last, dtype=np.uint64)
        table.sort()
        return table

    @property
    def _words(self) -> range:
        return range(self.grain.gram // 4)

    def look_up(self, text: Array) -> tuple[Array, Array]:
        """For each offset of a text: where in the table its gram begins, and how often it is there."""
        import numpy as np

        gram, table = self.grain.gram, self._table
        size = max(0, len(text) - gram + 1)
        firsts: Array = np.zeros(size, np.int64)
        counts: Array = np.zeros(size, np.int64)
        for start in range(0, size, _BLOCK):
            block = text[start : start + _BLOCK + gram - 1].astype(np.uint32)
            words = block[:-3] | block[1:-2] << 8 | block[2:-1] << 16 | block[3:] << 24
            length = min(_BLOCK, size - start)
            keys = _hashes(words[4 * t : 4 * t + length] for t in self._words) & np.uint64(_HASH)
            order = keys.argsort()  # sorted questions are answered several times faster
            first: Array = np.empty(length, np.int64)
            first[order] = np.searchsorted(table, keys[order])
            inside: Array = first < len(table)
            inside[inside] = table[first[inside]] & np.uint64(_HASH) == keys[inside]
            hits = np.flatnonzero(inside)
            firsts[start + hits] = first[hits]
            ends = np.searchsorted(table, keys[hits] | np.uint64(_POSITION), side="right")
            counts[start + hits] = ends - first[hits]
        return firsts, counts

    def places(self, first: int, count: int) -> Array:
        """Positions in the data of table entries."""
        import numpy as np

        entries = self._table[first : first + count] & np.uint64(_POSITION)
        return entries.astype(np.int64) * self.grain.stride

    def origin(self, position: int) -> Place:
        """Document and byte of a position in the data."""
        piece = int(self._starts.searchsorted(position, side="right")) - 1
        return self.pieces[piece].document, self.pieces[piece].start + position - int(self._starts[piece])


def _hashes(columns: Iterator[Array]) -> Array:
    """One hash for each row of 4-byte words."""
    import numpy as np

    return sum(
        column.astype(np.uint64) * np.uint64(factor)
        for column, factor in zip(columns, _FACTORS, strict=False)
    )
