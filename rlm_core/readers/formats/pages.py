"""What a reader says about the pages or slides of a document: which hold no text, which could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rlm_core.readers.output import Output, Unreadable

_MOST_NAMED: Final = 20  # ranges of pages in one remark


class PageNumbers:
    """Collects the numbers while a document is read; `kind` is page or slide, of which there are `total`."""

    def __init__(self, kind: str, total: int) -> None:
        self._kind = kind
        self._total = total
        self._empty: list[int] = []
        self._broken: list[int] = []
        self._hidden: list[int] = []

    def empty(self, number: int) -> None:
        """This page holds no text."""
        self._empty.append(number)

    def broken(self, number: int) -> None:
        """This page could not be read."""
        self._broken.append(number)

    def hidden(self, number: int) -> None:
        """This slide is not shown in a presentation."""
        self._hidden.append(number)

    def finish(self, out: Output, *, shown: bool = False) -> None:
        """Say it all. Raises `Unreadable` when no page gave any text and the pages cannot be `shown` either,
        or all are damaged.
        """
        kind = self._kind if self._total == 1 else f"{self._kind}s"
        if len(self._broken) == self._total:
            raise Unreadable(f"is damaged: none of its {self._total:,} {kind} can be read")
        if shown and self._empty and len(self._empty) + len(self._broken) == self._total:
            out.remark(
                f"{self._total:,} {kind} without any text (scanned images?): a model that sees images can be "
                "shown them; to read them as text, run text recognition (OCR) and add the result"
            )
            self._empty = []
        elif len(self._empty) + len(self._broken) == self._total:
            raise Unreadable(
                f"{self._total:,} {kind} without any text (scanned images?): run text recognition (OCR) on "
                "it and add the result"
            )
        if self._empty:
            out.remark(f"no text on {self._named(self._empty)}")
        if self._broken:
            out.remark(f"damaged: {self._named(self._broken)} could not be read")
        if self._hidden:
            out.remark(f"hidden, but read: {self._named(self._hidden)}")

    def _named(self, numbers: Sequence[int]) -> str:
        """ "page 2", "pages 3-5, 9"."""
        ranges: list[list[int]] = []
        for number in numbers:
            if ranges and number == ranges[-1][1] + 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        named = [str(a) if a == b else f"{a}-{b}" for a, b in ranges[:_MOST_NAMED]]
        more = f" and more ({len(numbers):,} in all)" if len(ranges) > _MOST_NAMED else ""
        return f"{self._kind}{'s' if len(numbers) > 1 else ''} {', '.join(named)}{more}"
