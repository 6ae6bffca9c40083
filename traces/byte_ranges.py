"""Sets of bytes of one document: sorted ranges `(first byte, behind the last byte)` that do not touch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Range = tuple[int, int]
Ranges = tuple[Range, ...]


def merged(ranges: Iterable[Range]) -> Ranges:
    """The union of ranges in any order; empty ones are left out."""
    found: list[list[int]] = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end])
    return tuple((start, end) for start, end in found)


def size(ranges: Sequence[Range]) -> int:
    """How many bytes a set holds."""
    return sum(end - start for start, end in ranges)


def without(ranges: Sequence[Range], other: Sequence[Range]) -> Ranges:
    """The bytes of the first set that are not in the second."""
    left: list[Range] = []
    at = 0
    for start, end in ranges:
        while at < len(other) and other[at][1] <= start:
            at += 1
        place, here = start, at
        while here < len(other) and other[here][0] < end:
            if other[here][0] > place:
                left.append((place, other[here][0]))
            place = max(place, other[here][1])
            here += 1
        if place < end:
            left.append((place, end))
    return tuple(left)
