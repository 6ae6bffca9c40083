"""Runs and their limits: what was spent of each limit, which were passed, and each run's own cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import streamlit as st

from traces.imported import asked_words, sub_calls_told
from traces.rows import RunSummary, money_json
from traces.spend import Budget, Chosen
from ui.figures import count, counted, duration, money
from ui.visible import line
from ui.web.csv_file import csv_button
from ui.web.listing import paged
from ui.web.notices import note
from ui.web.places import href, run_link
from ui.web.rows_view import Cell, Column, Item, rows_view
from ui.web.run_words import COLOURS, cost_words, status_word
from ui.web.runs_table import started
from ui.web.spend_data import Question, limits
from ui.web.spend_scope import only

_WORDS: Final = {"usd": "dollars", "tokens": "tokens", "calls": "calls", "seconds": "time"}
_CSV: Final = (
    "run_id", "question", "status", "corpus_id", "root_model", "sub_model", "started", "cost_usd",
    "known_usd", "cost_status", "sub_calls", "imported_file",
)  # fmt: skip
_NEAR: Final = 0.8  # of a limit: what is said to be near it
_CHOSEN: Final = "spend-chosen"  # in the session: runs whose boxes are checked


def show(chosen: Chosen, asked: Question) -> None:
    """The limits, the most used first, then the runs, the dearest first."""
    found, silent = limits(asked).value
    runs = {run.run_id: run for run in chosen.runs}
    st.markdown("##### Limits and what was taken of them")
    if found:
        over = sum(bool(one.over) for one in found)
        st.caption(
            f"{counted(len(found), 'limit')}, {over:,} passed. A run may pass one by what was in flight."
        )
        paged(found, lambda shown: _limits(shown, runs), key="spend-limits-pages", address="page")
        _limits_csv(found)
    else:
        st.text("No run that ended had a limit of dollars, tokens, calls or time.")
    if silent:
        note(f"{counted(silent, 'run')} did not end in order: what was taken of a limit is not on record.")
    st.markdown("##### Runs")
    _runs(sorted(chosen.runs, key=lambda run: (-run.known_usd, run.run_id)))


def _limits(shown: Sequence[Budget], runs: Mapping[str, RunSummary]) -> None:
    rows_view(
        [
            Item(
                f"{one.run_id} {one.dimension}",
                [
                    _question(runs.get(one.run_id)),
                    _WORDS[one.dimension],
                    _amount(one, one.spent) if one.exact else f"at least {_amount(one, one.spent)}",
                    _amount(one, one.limit),
                    f"{one.used:.0%}",
                    _state(one),
                ],
                href(run_link(one.run_id)),
                f"run {one.run_id}",
            )
            for one in shown
        ],
        [
            Column("Run"),
            Column("Limit of", 80),
            Column("Taken", 110, right=True),
            Column("Limit", 110, right=True),
            Column("Used", 70, right=True),
            Column("State", 190),
        ],
        key="spend-limits",
        label="Limits of runs, the most used first",
    )


def _state(one: Budget) -> Cell:
    if one.over:
        return f"passed by {_amount(one, one.over)}", "red"
    if one.used >= 1:
        return "reached", "orange"
    return ("near", "orange") if one.used >= _NEAR else "kept"


def _amount(one: Budget, value: object) -> str:
    """An amount of a limit in its unit."""
    if one.dimension == "usd":
        return money(str(value), None)
    number = float(str(value))
    return duration(number) if one.dimension == "seconds" else f"{number:,.0f}"


def _limits_csv(found: Sequence[Budget]) -> None:
    names = ["run_id", "limit_of", "spent", "limit", "over", "exact"]
    rows = [
        dict(zip(names, (one.run_id, one.dimension, one.spent, one.limit, one.over, one.exact), strict=True))
        for one in found
    ]
    csv_button(names, rows, key="spend-limits-csv", name="limits")


def _question(run: RunSummary | None) -> str:
    return line(asked_words(run) if run else "(the question is not recorded)")[:160]


def _runs(runs: Sequence[RunSummary]) -> None:
    """Runs with boxes: those that are checked can be asked about alone."""
    ids = {run.run_id for run in runs}
    checked = tuple(one for one in st.session_state.get(_CHOSEN, ()) if one in ids)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            f"Only the {len(checked):,} chosen" if checked else "Only the chosen",
            key="spend-only",
            disabled=not checked,
            on_click=_only,
            args=(checked,),
        )
        st.caption("Dearest first. Check the boxes of runs to see what these alone cost.", width="content")
    paged(runs, lambda shown: _page(shown, checked), key="spend-runs-pages", address="runs-page")
    csv_button(_CSV, [for_csv(run) for run in runs], key="spend-runs-csv", name="runs")


def for_csv(run: RunSummary) -> dict[str, object]:
    """A run by the columns of the CSV file; None is not known."""
    said = {name: getattr(run, name) for name in _CSV} | {"sub_calls": sub_calls_told(run)}
    return said | {name: money_json(said[name]) for name in ("cost_usd", "known_usd")}


def _page(shown: Sequence[RunSummary], checked: tuple[str, ...]) -> None:
    zone = st.context.timezone
    rows_view(
        [
            Item(
                run.run_id,
                [
                    _question(run),
                    (status_word(run), COLOURS[status_word(run)]),
                    cost_words(run),
                    count(sub_calls_told(run)),
                    f"{line(run.root_model or '?')} / {line(run.sub_model or '?')}",
                    started(run, zone),
                ],
                href(run_link(run.run_id)),
                f"run {run.run_id}",
            )
            for run in shown
        ],
        [
            Column("Run"),
            Column("Status", 90),
            Column("Cost", 120, right=True),
            Column("Sub-calls", 80, right=True),
            Column("Models", 250),
            Column("Started", 130),
        ],
        key="spend-runs",
        label="Runs, the dearest first",
        chosen=checked,
        on_choose=_choose,
    )


def _choose(run_ids: tuple[str, ...]) -> None:
    st.session_state[_CHOSEN] = run_ids


def _only(run_ids: tuple[str, ...]) -> None:
    st.session_state.pop(_CHOSEN, None)
    only(run_ids)
