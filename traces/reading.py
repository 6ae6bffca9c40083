"""The one read interface of runs: lists, trees, single spans, spend.

Every function takes closed runs into the store first. When the store is in use for longer than five seconds,
the spools are read instead and `warn` is called with one sentence that says so (default: logged as a
warning).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traces.detail import span_detail
from traces.home import Home
from traces.rows import RunSummary, SpanRow, money_json
from traces.runs import Warn, continued_by, list_runs, load_run, load_runs, resolve_run, resolve_span
from traces.tree import Group, Node, build_tree, mark_whole
from traces.view import RunView, SpoolRun

__all__ = [
    "Group",
    "Node",
    "RunSummary",
    "RunView",
    "SpanRow",
    "SpoolRun",
    "Warn",
    "build_tree",
    "continued_by",
    "cost_report",
    "list_runs",
    "load_run",
    "load_runs",
    "mark_whole",
    "money_json",
    "resolve_run",
    "resolve_span",
    "span_detail",
]


def cost_report(
    home: Home, run_refs: Sequence[str], by: Sequence[str], *, warn: Warn | None = None
) -> dict[str, Any]:
    """Spend of the given runs, grouped; see `traces.cost.cost_report` (imported late: it needs DuckDB)."""
    from traces import cost

    return cost.cost_report(home, run_refs, by, warn=warn)
