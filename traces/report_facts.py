"""What a report reads: a diagnosis as JSON (untrusted), the run it is about, and names for its spans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from traces.diagnosis_words import name_of
from traces.view import RunView


@dataclass(frozen=True)
class Facts:
    """A diagnosis with its run; what has not the right type is taken as absent."""

    view: RunView
    diagnosis: Mapping[str, Any]
    good: RunView | None

    @property
    def run_id(self) -> str:
        """The run that was diagnosed."""
        return self.view.run_id

    @property
    def good_id(self) -> str | None:
        """The run it was compared with, also where its record is gone."""
        return self.text("good_run_id")

    @cached_property
    def culprits(self) -> list[Mapping[str, Any]]:
        """What should stand in the place of each culprit: {span_id, kind, text, origin}."""
        return [row for row in self.rows("patches") if isinstance(row.get("span_id"), str)]

    @property
    def proven(self) -> bool:
        """Whether replays proved the verdict."""
        return self.diagnosis.get("proven") is True

    def text(self, key: str) -> str | None:
        """A text of the diagnosis."""
        value = self.diagnosis.get(key)
        return value if isinstance(value, str) else None

    def texts(self, key: str) -> list[str]:
        """A list of texts of the diagnosis."""
        value = self.diagnosis.get(key)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    def rows(self, key: str) -> list[Mapping[str, Any]]:
        """A list of objects of the diagnosis."""
        return rows(self.diagnosis.get(key))

    def row(self, key: str) -> Mapping[str, Any]:
        """An object of the diagnosis; empty where there is none."""
        value = self.diagnosis.get(key)
        return value if isinstance(value, Mapping) else {}

    def name(self, span_id: object) -> str:
        """What a span is called: `sub-call 7 of cell 2`; its id where the record has no such span."""
        span = self.view.by_id.get(span_id) if isinstance(span_id, str) else None
        return str(span_id) if span is None else name_of(span)


def rows(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; none where it is no list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def dollars(value: object) -> str:
    """Money of JSON: `$0.0012`, or unknown."""
    return f"${value}" if isinstance(value, str) else "unknown"


def figure(value: object) -> str:
    """A whole number of JSON, with marks between thousands; a question mark where there is none."""
    return f"{value:,}" if type(value) is int else "?"
