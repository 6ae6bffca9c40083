"""Pages of runs as files, and what stands in one: its data, as its script reads it."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from traces.exporters.html import export
from traces.home import Home

_DATA = re.compile(
    r'<script type="application/json" class="(\w+)" data-first="(\d+)">(.*?)</script>', re.DOTALL
)


@dataclass(frozen=True)
class Page:
    """The text of a page."""

    text: str

    @cached_property
    def bare(self) -> str:
        """The page without its data."""
        return _DATA.sub("", self.text)

    def _all(self, kind: str) -> list[Any]:
        found = [
            (int(first), json.loads(data)) for name, first, data in _DATA.findall(self.text) if name == kind
        ]
        firsts = itertools.accumulate((len(data) for _, data in found), initial=0)
        assert [first for first, _ in found] == list(firsts)[:-1]
        return [each for _, data in found for each in data]

    @cached_property
    def texts(self) -> list[str | int | None]:
        """All texts by number."""
        return self._all("texts")

    @cached_property
    def spans(self) -> list[dict[str, Any]]:
        """The details of all spans, in the order of their rows."""
        return self._all("details")

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the tree."""
        (columns,) = [json.loads(data) for name, _, data in _DATA.findall(self.text) if name == "rows"]
        return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]

    def span(self, kind: str, number: int = 0) -> dict[str, Any]:
        """The details of the n-th span of a kind."""
        return [span for span in self.spans if span["kind"] == kind][number]

    def shown(self, span: dict[str, Any]) -> dict[str, str | int | None]:
        """The texts of a span by their titles."""
        return {title: self.texts[number] for title, number, _ in span["texts"]}


def facts(span: dict[str, Any]) -> dict[str, list[str]]:
    """The figures of a span by their labels: the value, and where there is one its mark and a sentence."""
    return {label: rest for label, *rest in span["facts"]}


def page_of(home: Home, run_id: str, out: Path) -> Page:
    """The page of a run, written to a file."""
    export(home, (run_id,), out)
    return Page(out.read_text("utf-8"))
