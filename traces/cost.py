"""What runs cost, by any of role, model, depth, iteration, cell and class.

Sums are exact: amounts are DECIMAL in SQL and `Decimal` here. A group in which any cost is unknown has no amount,
only a lower bound (`known_usd`). Calls are root calls and sub-calls; an attempt's tokens and cost are in its call's.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

from rlm_core.errors import InputError
from traces.facts import CLASSES
from traces.home import Home
from traces.rows import money_json
from traces.runs import Warn, current, resolve_run, spool_views
from traces.summing import CALL_KINDS, Spend
from traces.view import RunView

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

KEYS: Final = ("role", "model", "depth", "iteration", "cell", "class")
_CLASS: Final = "class"
_CALLS: Final = f"kind IN {CALL_KINDS!r}"
_SUMS: Final = """count(*), coalesce(sum(tok_input), 0), coalesce(sum(tok_output), 0),
    coalesce(sum(cost_usd), 0), count(*) - count(cost_usd),
    count(*) FILTER (WHERE cost_status = 'priced'), count(*) FILTER (WHERE cost_status = 'demo')"""

Key = tuple[Any, ...]


def cost_report(
    home: Home, run_refs: Sequence[str], by: Sequence[str], *, warn: Warn | None = None
) -> dict[str, Any]:
    """Spend of the given runs (of all runs when none is given), grouped.

    {total_usd, known_usd, cost_status, tokens, calls, runs, rows: [{<keys of by>, cost_usd, known_usd, cost_status,
    tokens, calls}]}, dearest first. With `class`, tokens are the billable ones of that class; the class None holds
    what cannot be told apart by class. Raises InputError for an unknown key or run.
    """
    unknown = [key for key in by if key not in KEYS]
    if unknown:
        raise InputError(f"{unknown[0]!r} is not one of {', '.join(KEYS)}.")
    keys = tuple(dict.fromkeys(by))
    wanted = None if not run_refs else {resolve_run(home, ref, warn=warn) for ref in run_refs}
    total, groups, runs = Spend(), dict[Key, Spend](), set[str]()
    with current(home, warn) as now:
        if now.con is not None:
            stored = _stored_runs(now.con, wanted, now.spools)
            _collect(now.con, stored, keys, total, groups)
            runs.update(stored)
    live = [run_id for run_id in now.spools if wanted is None or run_id in wanted]
    views = list(spool_views(home, live, warn))
    if views:
        _collect_views(views, keys, total, groups)
        runs.update(view.run_id for view in views)
    rows = [{**dict(zip(keys, key, strict=True)), **_figures(spend)} for key, spend in _sorted(groups)]
    figures = _figures(total)
    return {"total_usd": figures.pop("cost_usd"), **figures, "runs": len(runs), "rows": rows}
