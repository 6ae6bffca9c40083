"""A run in the words of the pages: its status, why it stopped, where it stands. Pure functions of its record.

Only `status_word`, `STOPPED` and `Where.phase` may stand in labels: all else can come from a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rlm_core import semconv as sc
from traces.imported import is_foreign
from traces.reading import RunSummary, RunView, SpanRow
from traces.refused import refused
from ui.figures import counted, least
from ui.web.notices import Colour

COLOURS: Final[dict[str, Colour]] = {
    "running": "blue",
    "ok": "green",
    "error": "red",
    "refused": "orange",
    "cancelled": "orange",
    "interrupted": "red",
}
STOPPED: Final = {
    "final": "The root model gave its answer.",
    "max_iterations": "The limit of iterations was reached.",
    "budget": "The limit of sub-calls, tokens or cost was reached.",
    "timeout": "The time limit was reached.",
    "cancelled": "The run was cancelled.",
    "error": "The run broke off with an error.",
}
INTERRUPTED: Final = (
    "The run was interrupted: its process ended before the run did. What was recorded until then is kept."
)
CUT_OFF: Final = "The record of the run ends before the run does. What stands in it is kept."


def status_word(run: RunSummary) -> str:
    """The status of a run as one of the words of `COLOURS`."""
    return run.status if run.status in COLOURS else "error"


def stopped(run: RunSummary) -> str:
    """Why a run that has ended stopped, as a sentence of ours."""
    if run.status == "interrupted":
        return CUT_OFF if is_foreign(run) else INTERRUPTED
    reason = run.stop_reason or ("cancelled" if run.status == "cancelled" else "")
    return STOPPED.get(reason, "Why the run stopped is not recorded.")


def cost_words(run: RunSummary) -> str:
    """The cost so far: a known lower bound is called one, unknown is called unknown."""
    return least(run.cost_usd, run.cost_status, run.known_usd)


def incomplete(run: RunSummary) -> str | None:
    """What is missing in the record of a run that has ended, as a sentence; None when nothing is."""
    if run.status == "running" or not run.problems:
        return None
    return f"The record is incomplete: {counted(run.problems, 'record')} missing or unreadable."


@dataclass(frozen=True, slots=True)
class Remarks:
    """What a run's own span says beside the answer; texts are the model's."""

    confidence: str | None
    note: str | None
    mark: str | None
    partial: str | None
    error: str | None


def remarks(view: RunView) -> Remarks:
    """The remarks of a run that has ended."""
    top = top_span(view)
    texts = {} if top is None else {k: v for k, v in top.attributes.items() if isinstance(v, str) and v}
    digest = texts.get(sc.BEST_PARTIAL + ".sha256")
    partial = view.payload(digest) if digest is not None else None
    return Remarks(
        confidence=texts.get(sc.ANSWER_CONFIDENCE),
        note=texts.get(sc.ANSWER_NOTE),
        mark=texts.get(sc.ANSWER_MARK),
        partial=partial or texts.get(sc.BEST_PARTIAL + ".preview"),
        error=texts.get(sc.ERROR_MESSAGE),
    )


def top_span(view: RunView) -> SpanRow | None:
    """The span of the run itself, None while it is not recorded."""
    return next((row for row in view.spans if row.kind == "run"), None)


@dataclass(frozen=True, slots=True)
class Where:
    """Where a running run stands. `cell` is the cell at work, if one is; `depth` that of a child at work."""

    phase: str = "starting"
    iterations: int = 0
    most: int | None = None
    cell: SpanRow | None = None
    depth: int = 0
    done: int = 0
    running: int = 0
    failed: int = 0


def where(view: RunView) -> Where:
    """Where a run stands, from the spans recorded so far."""
    top = top_span(view)
    if top is None:
        return Where()
    turned_away = refused(view.spans)
    calls = [row for row in view.spans if row.kind == "sub_call" and row.span_id not in turned_away]
    ends = [row.status if row.end_ns is not None else "running" for row in calls]
    at_work = list(_at_work(view))
    cell = next((row for row in at_work if row.kind == "cell" and row.depth == 0), None)
    iterations = sum(row.kind == "iteration" and row.depth == 0 for row in view.spans)
    return Where(
        phase=_phase(top, at_work, cell, iterations),
        iterations=iterations,
        most=_most(top),
        cell=cell,
        depth=max((row.depth for row in at_work), default=0),
        done=ends.count("ok"),
        running=ends.count("running"),
        failed=len(ends) - ends.count("ok") - ends.count("running"),
    )


def _at_work(view: RunView) -> Iterator[SpanRow]:
    return (row for row in view.spans if row.end_ns is None)


def _phase(top: SpanRow, at_work: list[SpanRow], cell: SpanRow | None, iterations: int) -> str:
    if top.end_ns is not None:
        return "finishing"
    if cell is not None:
        return "running a cell"
    own = [row for row in at_work if row.depth == 0]
    if any(row.kind == "iteration" and row.attributes.get(sc.FORCED) is True for row in own):
        return "asking the root for a last answer"
    if any(row.kind == "root_call" for row in own):
        return "asking the root"
    return "between two steps" if iterations else "starting"


def _most(top: SpanRow) -> int | None:
    """The limit of iterations, from the limits that stand on the run's span."""
    try:
        most = json.loads(str(top.attributes.get(sc.LIMITS))).get("max_iterations")
    except (ValueError, AttributeError, RecursionError):
        return None
    return most if type(most) is int else None
