"""Spans that cannot be used, as the run of their trace says it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from traces.otlp.spans import RefusedSpan

_SAID: Final = 5  # spans of which it is said why they cannot be used


class Refusals:
    """Refused spans of one trace, as few sentences however many they are. `count` is how many there are."""

    def __init__(self, refused: Iterable[RefusedSpan] = ()) -> None:
        self.count = 0
        self._first: list[str] = []
        self.add(refused)

    def add(self, refused: Iterable[RefusedSpan]) -> None:
        """Count some more."""
        for span in refused:
            self.count += 1
            if len(self._first) < _SAID:
                self._first.append(span.why)

    def merge(self, other: Refusals) -> None:
        """Count those of another part of the trace."""
        self.count += other.count
        self._first = (self._first + other._first)[:_SAID]

    def sentences(self) -> list[str]:
        """Why the first ones cannot be used, and how many more there are."""
        more = self.count - len(self._first)
        are = "1 more span" if more == 1 else f"{more:,} more spans"
        return [*self._first, *([f"{are} cannot be used."] if more else [])]
