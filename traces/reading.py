"""The one read interface of runs: lists, trees, single spans, spend. Nothing else in this package is for readers.

Every function takes closed runs into the store first. When the store is locked for longer than five seconds the
spools are read instead and `warn` is called with one sentence that says so (default: logged as a warning).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from traces.home import Home
from traces.rows import RunSummary, SpanRow, money_json

Warn = Callable[[str], None]


class RunView(Protocol):
    """A run as it stands in its spool (`live`) or in the store."""

    summary: RunSummary
    spans: tuple[SpanRow, ...]  # in seq order
    live: bool

    def payload(self, sha256: str) -> str | None:
        """The full text of a payload, or None when the record does not hold it."""
        ...

    def events(self, span_id: str) -> list[dict[str, Any]]:
        """Events of a span in order: {name, time_ns, attributes}."""
        ...


def list_runs(home: Home, limit: int | None = None, *, warn: Warn | None = None) -> list[RunSummary]:
    """All runs, newest first: stored ones and running ones."""
    raise NotImplementedError


def resolve_run(home: Home, ref: str, *, warn: Warn | None = None) -> str:
    """A full run id from a full id, a unique prefix, or "last". Raises InputError otherwise, listing candidates."""
    raise NotImplementedError


def load_run(home: Home, run_id: str, *, warn: Warn | None = None) -> RunView:
    """One run: from the store when closed, from its spool while open. Raises InputError when there is none."""
    raise NotImplementedError


def resolve_span(view: RunView, ref: str) -> SpanRow:
    """A span from a full id or a unique prefix. Raises InputError otherwise, listing candidates."""
    raise NotImplementedError


def span_detail(view: RunView, span: SpanRow) -> dict[str, Any]:
    """The JSON document of `rlmscope span`."""
    raise NotImplementedError


def cost_report(
    home: Home, run_refs: Sequence[str], by: Sequence[str], *, warn: Warn | None = None
) -> dict[str, Any]:
    """Spend of the given runs (all runs when none is given) grouped by any of role, model, depth, iteration, cell, class.

    {total_usd, known_usd, cost_status, rows: [{<by keys>, cost_usd, known_usd, cost_status, tokens, calls}]}
    """
    raise NotImplementedError


__all__ = [
    "RunSummary",
    "RunView",
    "SpanRow",
    "cost_report",
    "list_runs",
    "load_run",
    "money_json",
    "resolve_run",
    "resolve_span",
    "span_detail",
]
