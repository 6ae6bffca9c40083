"""What the runs would have cost with other models: `?root=MODEL&sub=MODEL`. No model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import streamlit as st

from rlm_core.errors import InputError
from traces.home import Home
from traces.prices import overrides
from traces.rows import RunSummary, money_json
from traces.what_if import ROLES, check_models
from ui.figures import counted, least, money
from ui.visible import line
from ui.web import charts
from ui.web.address import put
from ui.web.csv_file import csv_button
from ui.web.listing import paged
from ui.web.notices import note, problem, said
from ui.web.rows_view import Column, Item, rows_view
from ui.web.spend_data import Question, other_models
from ui.web.spend_groups import choose_keys, keys_of_address, place
from ui.web.spend_scope import corpus_names

_CSV: Final = (
    "cost_usd",
    "known_usd",
    "cost_status",
    "recorded_usd",
    "recorded_known_usd",
    "difference_usd",
    "calls",
)


def show(home: Home, runs: Sequence[RunSummary], asked: Question) -> None:
    """The form, and what comes out. Raises InputError for keys of the address that mean nothing."""
    stands = {role: st.query_params[role] for role in ROLES if st.query_params.get(role)}
    known = _known(home, runs)
    st.text(
        "Every recorded call is priced again with another model: as many tokens, the prices of its day. "
        "No model is asked."
    )
    with st.form("spend-what-if", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        for role, label in (("root", "Root model"), ("sub", "Sub-model")):
            st.session_state[f"spend-as-{role}"] = stands.get(role)
            st.selectbox(
                label,
                list(dict.fromkeys([*known, *([stands[role]] if role in stands else [])])),
                index=None,
                key=f"spend-as-{role}",
                accept_new_options=True,
                placeholder="as it was",
                format_func=line,
                width=320,
            )
        st.form_submit_button("Price again", type="primary", on_click=_write)
    if not stands:
        st.text("Choose a model for one of the two roles, or write its id, such as openai/gpt-5-mini.")
        return
    try:
        check_models(stands)
    except InputError as error:
        problem(error)
        return
    _outcome(home, asked, stands)


def _known(home: Home, runs: Sequence[RunSummary]) -> list[str]:
    """Models that were used, or have a price of the user's."""
    used = {model for run in runs for model in (run.root_model, run.sub_model) if model}
    return sorted(used | {override.model for override in overrides(home)})


def _write() -> None:
    for role in ROLES:
        model = st.session_state[f"spend-as-{role}"]
        put(role, (model or "").strip())


def _outcome(home: Home, asked: Question, models: Mapping[str, str]) -> None:
    keys = keys_of_address()
    report = other_models(asked, keys, tuple(sorted(models.items()))).value
    _totals(report)
    _remarks(report)
    choose_keys(keys)
    names = corpus_names(home) if "corpus" in keys else {}
    left, right = st.columns([13, 8], gap="medium")
    with left:
        paged(report["rows"], lambda shown: _table(shown, keys, names), key="spend-as-pages")
        csv_button([*keys, *_CSV], report["rows"], key="spend-as-csv", name="what-if")
    with right:
        _chart(report["rows"], keys, names)


def _totals(report: Mapping[str, Any]) -> None:
    shown = (
        ("As recorded", least(report["recorded_usd"], None, report["recorded_known_usd"])),
        ("With these models", least(report["total_usd"], None, report["known_usd"])),
        ("Difference", _signed(report["difference_usd"])),
    )
    known = [Decimal(row["difference_usd"]) for row in report["rows"] if row["difference_usd"] is not None]
    words = ""
    if report["difference_usd"] is None and known:
        change = _signed(money_json(sum(known, Decimal(0))))
        words = f"{change} in {counted(len(known), 'row')} where both are known"
    with st.container(key="spend-as-totals"):
        for column, (label, value) in zip(st.columns(4, gap="small"), shown, strict=False):
            with column.container(border=True, gap=None, height="stretch"):
                st.metric(label, value)
                if label == "Difference" and words:
                    st.text(words)


def _signed(usd: str | None) -> str:
    if usd is None:
        return "unknown"
    sign = "−" if usd.startswith("-") else "+" if Decimal(usd) else ""
    return sign + money(usd.removeprefix("-"), None)


def _remarks(report: Mapping[str, Any]) -> None:
    for one in report["unpriced"]:
        said(
            "Unknown",
            "orange",
            f"The price of {line(one['model'])} is unknown: {counted(one['calls'], 'call')}.",
        )
    if report["unpriced"]:
        st.page_link("pages/settings.py", label="Set a price in Settings", query_params={"part": "prices"})
    if report["without_usage"]:
        note(f"{counted(report['without_usage'], 'call')} did not report a usage that can be priced.")
    if report["estimated"]:
        note(f"{counted(report['estimated'], 'call')}: tokens were estimated by the engine, not reported.")
    if report["not_billed"]:
        calls = counted(report["not_billed"], "call")
        note(f"{calls} cost nothing either way: never answered.")
    if report["runs_with_gaps"]:
        note(f"The record of {counted(report['runs_with_gaps'], 'run')} has gaps: calls may be missing.")


def _table(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], names: dict[str, str]) -> None:
    rows_view(
        [
            Item(
                str(at),
                [
                    *(place(row, key, names) for key in keys),
                    least(row["recorded_usd"], None, row["recorded_known_usd"]),
                    least(row["cost_usd"], row["cost_status"], row["known_usd"]),
                    _signed(row["difference_usd"]),
                    f"{row['calls']:,}",
                ],
            )
            for at, row in enumerate(rows)
        ],
        [
            *(Column(key, 150 if key in ("model", "corpus") else 80) for key in keys),
            *(Column(name, 110, right=True) for name in ("Recorded", "Would be", "Difference", "Calls")),
        ],
        key="spend-as",
        label="Recorded cost and what it would have been, by " + ", ".join(keys),
    )


def _chart(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], names: dict[str, str]) -> None:
    """The dearest rows as pairs of bars."""
    dearest = sorted(
        rows, key=lambda row: -max(Decimal(row["known_usd"]), Decimal(row["recorded_known_usd"]))
    )[:10]
    parts = [
        (" · ".join(place(row, key, names) for key in keys), series, Decimal(row[field]))
        for row in dearest
        for series, field in (("recorded", "recorded_known_usd"), ("would be", "known_usd"))
    ]
    if any(usd for _, _, usd in parts):
        charts.pairs(parts, key="spend-as-chart", what=", ".join(keys))
        if len(dearest) < len(rows):
            st.caption(
                f"The {len(dearest):,} dearest of {counted(len(rows), 'row')}; the table has all of them."
            )
