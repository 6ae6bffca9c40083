"""Where a text stands word for word in a corpus, whatever built it: exact ranges, maximal, longest first.

Seed and extend: every gram of the text that is in the index is extended in both directions to a maximal exact
match, as MUMmer does it (Delcher et al., Nucleic Acids Research 27, 1999). What is reported was compared byte
by byte.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from rlm_core.gram_index import Index, Place

Array = Any  # of numpy
Prefer = Callable[[list[Place]], Place]  # which of several places, in the order of the corpus, to give
Range = tuple[int, int]

MOST_PLACES: Final = 4_096  # of one gram that are looked at: the first in the corpus
_FEW_PLACES: Final = 16  # the same, when a text has so many hits that looking at all would take seconds
_MOST_COMPARED: Final = 1 << 28  # bytes of one text and index, before only few places are looked at
MOST_SEEDS: Final = 10_000  # grams of one text and index that are extended, the most promising first
_STEP: Final = 1 << 18  # bytes compared at once


class Found(NamedTuple):
    """The text from byte `at` is the bytes `start` to `end` of a document, and stands in `also` other places.

    `also` is a lower bound when a passage stands in thousands of places.
    """

    at: int
    document: int
    start: int
    end: int
    also: int


class _Search:
    """One text against one index."""

    def __init__(self, index: Index, text: Array) -> None:
        self._index = index
        self._text = text
        self._firsts, self._counts = index.look_up(text)
        self._froms, self._tos = self._bounds()
        self._compared = self._extended = 0

    def matches(self, within: Range) -> Iterator[Range]:
        """Ranges of a part of the text that stand in the index and are long enough, as long as they can be.

        Grams that may belong to the longest matches come first, of these the rarest. One that can only give
        a part of a match that is already known is passed over.
        """
        import numpy as np

        (gram, stride), least = self._index.grain[1:], self._index.grain.least
        first, last = within
        froms, tos = self._froms.clip(first), self._tos.clip(max=last)
        explained: Array = tos - froms < least
        hits: Array = first + np.flatnonzero(self._counts[first : max(first, last - gram + 1)])
        for offset in hits[np.lexsort((self._counts[hits], (froms - tos)[hits]))].tolist():
            if explained[offset] or self._extended >= MOST_SEEDS:
                continue
            self._extended += 1
            places = self._places(offset)
            before = self._agreeing(offset - 1, places - 1, -1, offset - first)
            after = self._agreeing(offset, places, 1, last - offset)
            best = int((before + after).argmax())
            start, end = offset - int(before[best]), offset + int(after[best])
            explained[start:end] |= (froms[start:end] >= start) & (tos[start:end] <= end)
            # the other places of this gram, and of those at the stride from it, give no longer match
            explained[start + (offset - start) % stride : max(start, end - gram + 1) : stride] = True
            if end - start >= least:
                yield start, end

    def _bounds(self) -> tuple[Array, Array]:
        """For each offset the range of the text that no match through its gram can leave.

        A match goes on to the gram a stride further only if that is in the index too, and no further than a
        stride otherwise.
        """
        import numpy as np

        gram, stride, size = self._index.grain.gram, self._index.grain.stride, len(self._counts)
        rows = -(-size // stride)
        present: Array = np.zeros(rows * stride, bool)
        present[:size] = self._counts > 0
        present = present.reshape(rows, stride)
        number = np.arange(rows)[:, None]
        missed = np.maximum.accumulate(np.where(present, -1, number))
        missing = np.minimum.accumulate(np.where(present, rows, number)[::-1])[::-1]
        offset = np.arange(stride)
        froms = (missed * stride + offset + 1).ravel()[:size]
        tos = ((missing - 1) * stride + offset + gram + stride - 1).ravel()[:size]
        return froms.clip(0), tos.clip(max=len(self._text))

    def occurrences(self, start: int, end: int) -> Iterator[Place]:
        """Document and byte of every place at which a range of the text stands.

        Each place begins at some distance from the stride, so one gram for each distance finds them all; the
        rarest are taken.
        """
        import numpy as np

        stride = self._index.grain.stride
        counts = self._counts[start : max(start, end - self._index.grain.gram + 1)]
        rarest = (int(counts[n::stride].argmin()) * stride + n for n in range(min(stride, len(counts))))
        places = [self._places(start + n) - n for n in rarest if counts[n]]
        if places:
            every = np.concatenate(places)
            whole = every[self._agreeing(start, every, 1, end - start) == end - start]
            yield from map(self._index.origin, whole.tolist())

    def _places(self, offset: int) -> Array:
        most = MOST_PLACES if self._compared < _MOST_COMPARED else _FEW_PLACES
        return self._index.places(int(self._firsts[offset]), min(int(self._counts[offset]), most))

    def _agreeing(self, offset: int, places: Array, way: int, most: int) -> Array:
        """How many bytes of the text from an offset, forward (way 1) or backward (-1), a place has."""
        import numpy as np

        lengths: Array = np.zeros(len(places), np.int64)
        alive, done, width = np.flatnonzero(places >= 0), 0, 64
        while len(alive) and done < most:
            steps: Array = way * np.arange(done, min(done + width, most))
            there = (places[alive, None] + steps).clip(0, len(self._index.data) - 1)
            same = self._index.data[there] == self._text[offset + steps]
            run = np.where(same.all(axis=1), len(steps), same.argmin(axis=1))
            lengths[alive] += run
            self._compared += same.size
            alive, done = alive[run == len(steps)], done + len(steps)
            width = min(2 * width, max(64, _STEP // max(1, len(alive))))
        return lengths


def locate(text: str, indexes: Sequence[Index], prefer: Prefer) -> list[Found]:
    """The passages of a text that stand in the indexed pieces, in the order of the text, without overlap.

    The longest passages are taken first, others get what is left of them. A passage begins and ends with a
    whole character and has a letter or digit. Of several places the one to `prefer` is given.
    """
    import numpy as np

    raw = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    searches = [_Search(index, raw) for index in indexes]
    least = min((index.grain.least for index in indexes), default=0)
    found = []
    for start, end in _cover(raw, searches, least):
        places = sorted({place for search in searches for place in search.occurrences(start, end)})
        if places:  # none only when equal hashes misled
            document, first = prefer(places) if len(places) > 1 else places[0]
            found.append(Found(start, document, first, first + end - start, len(places) - 1))
    return _joined(found)


def _cover(text: Array, searches: Sequence[_Search], least: int) -> list[Range]:
    """Ranges of the text that stand in an index, without overlap: nothing long enough is between them."""
    covered: list[Range] = []
    gaps = [(0, len(text))]
    while gaps:
        matches = {
            _whole(text, *match) for gap in gaps for search in searches for match in search.matches(gap)
        }
        new = _longest_first({match for match in matches if _says_something(text, *match)}, least)
        # what a longer match took from a shorter one may be made up for by a third
        gaps = [gap for gap in _between(covered + new, len(text), least) if gap not in gaps] if new else []
        covered = sorted(covered + new)
    return covered


def _between(ranges: list[Range], size: int, least: int) -> list[Range]:
    """What is left of a text of that size, in parts that are long enough."""
    ends = [0, *(end for _, end in sorted(ranges))]
    starts = [*(start for start, _ in sorted(ranges)), size]
    return [(end, start) for end, start in zip(ends, starts, strict=True) if start - end >= least]


def _says_something(text: Array, start: int, end: int) -> bool:
    """Rulers and indentation stand in many places and come from none."""
    return any(map(str.isalnum, text[start:end].tobytes().decode("utf-8", "ignore")))


def _whole(text: Array, start: int, end: int) -> tuple[int, int]:
    """The range without the parts of characters at its ends."""
    while start < end and text[start] & 0xC0 == 0x80:
        start += 1
    while start < end < len(text) and text[end] & 0xC0 == 0x80:
        end -= 1
    return start, end


def _longest_first(matches: set[tuple[int, int]], least: int) -> list[tuple[int, int]]:
    """Ranges without overlap out of ranges that may overlap, in order; what is left of one counts again."""
    taken: list[tuple[int, int]] = []
    for start, end in sorted(matches, key=lambda match: (match[0] - match[1], match[0])):
        at = bisect_left(taken, (start, start))
        cursor = max(start, taken[at - 1][1]) if at else start
        free = []
        while cursor < end:
            following = taken[at][0] if at < len(taken) else end
            free.append((cursor, min(following, end)))
            cursor = taken[at][1] if at < len(taken) else end
            at += 1
        for rest in free:
            if rest[1] - rest[0] >= least:
                insort(taken, rest)
    return taken


def _joined(found: list[Found]) -> list[Found]:
    """Passages that follow each other in the text and in the document as one."""
    joined: list[Found] = []
    for item in found:
        last = joined[-1] if joined else None
        if (
            last is not None
            and (last.document, last.end) == (item.document, item.start)
            and last.at + last.end - last.start == item.at
        ):
            joined[-1] = last._replace(end=item.end, also=min(last.also, item.also))
        else:
            joined.append(item)
    return joined
