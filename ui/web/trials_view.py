"""The trials of a diagnosis as rows: what was replaced, what came out, what it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import streamlit as st

from traces.reading import RunView
from ui.figures import counted
from ui.web.diagnose_words import OUTCOME, badge, patched_words, usd_words
from ui.web.places import href, run_link
from ui.web.rows_view import Cell, Column, Item, rows_view

MOST: Final = 200  # rows that are drawn, the newest; all of them stand in the report
_LEGEND: Final = (
    "Hits: sub-calls answered from the record or by what was replaced. Misses: prompts that no record holds."
)
_COLUMNS: Final = (
    Column("Trial", 60, right=True),
    Column("Replaced", 260),
    Column("Outcome", 120),
    Column("Answer", None),
    Column("Mode", 80),
    Column("Hits", 60, right=True),
    Column("Misses", 70, right=True),
    Column("Model calls", 104, right=True),
    Column("Cost", 76, right=True),
)


def trials_view(view: RunView, trials: Sequence[Mapping[str, Any]], *, key: str) -> None:
    """Draw trials, as `Trial.to_json` has them, in the order in which they were made."""
    if not trials:
        st.caption("No replay was made.")
        return
    first = max(0, len(trials) - MOST)
    if first:
        st.caption(f"The last {MOST} of {counted(len(trials), 'trial')}; the report has all of them.")
    rows = [_row(view, number, trial) for number, trial in enumerate(trials[first:], first + 1)]
    rows_view(rows, _COLUMNS, key=key, label="Trials")
    st.caption(_LEGEND)


def _row(view: RunView, number: int, trial: Mapping[str, Any]) -> Item:
    run_id = trial.get("run_id")
    patches = trial.get("patches")
    listed = [one for one in patches if isinstance(one, Mapping)] if isinstance(patches, list) else []
    cells: list[Cell] = [
        f"{number:,}",
        patched_words(view, listed),
        badge(OUTCOME, trial.get("outcome")),
        _answer(trial),
        _word(trial.get("mode")),
        *(_count(trial.get(name)) for name in ("hits", "misses", "live_calls")),
        usd_words(trial.get("cost_usd")),
    ]
    link = href(run_link(run_id)) if isinstance(run_id, str) else None
    return Item(str(number), cells, link, "Recorded as a run of its own." if link else "")


def _answer(trial: Mapping[str, Any]) -> str:
    if isinstance(trial.get("stopped"), str):
        return str(trial["stopped"])
    answer = trial.get("answer")
    return "(no answer)" if answer is None else str(answer)


def _word(value: object) -> str:
    return value if isinstance(value, str) else "unknown"


def _count(value: object) -> str:
    return f"{value:,}" if type(value) is int else "unknown"
