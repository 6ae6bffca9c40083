"""The four figures that a reviewer of cost looks at first, and what keeps them from being exact."""

from __future__ import annotations

from typing import Final

import streamlit as st

from traces.diagnosis_spending import spent_beside
from traces.home import Home
from traces.prices import price_table
from traces.spend import Chosen, Totals, per_run
from ui.cost_text import unsent_words
from ui.figures import counted, least, money, tokens
from ui.trust_text import marks_of_calls
from ui.visible import line
from ui.web import plain
from ui.web.notices import note, said

_NAMED: Final = 5  # models of unknown price
_HELP: Final = (
    "A price that you set counts for later calls; what was recorded stays as it was. Under “Other models” "
    "these calls can be priced again, with the same model too."
)


def figures(totals: Totals, chosen: Chosen) -> None:
    """Total, who spent it, what a finished run costs, calls whose cost is unknown."""
    shown = (_total(totals), _shares(totals), _run(chosen), _unknown(totals))
    with st.container(key="spend-figures"):
        for column, (label, value, words) in zip(st.columns(4, gap="small"), shown, strict=True):
            with column.container(border=True, gap=None, height="stretch"):
                st.metric(label, value)
                st.text(words)


def _total(totals: Totals) -> tuple[str, str, str]:
    spend = totals.whole
    exact = spend.usd is not None
    words = f"{counted(spend.calls, 'call')}; {tokens(spend.tokens, spend.untold)}"
    return ("Total" if exact else "Total, at least"), money(spend.known_usd, None), words


def _shares(totals: Totals) -> tuple[str, str, str]:
    known = totals.whole.known_usd
    parts = {role: totals.by_role[role] for role in ("root", "sub") if role in totals.by_role}
    if not known:
        return "Root / sub-calls", "—", "nothing was spent, as far as is known"
    words = ", ".join(
        f"{role} {least(part.usd, part.status, part.known_usd)}" for role, part in parts.items()
    )
    if any(part.usd is None and not part.known_usd for part in parts.values()):
        return "Root / sub-calls", "unknown", words
    shares = (float((parts[role].known_usd if role in parts else 0) / known) for role in ("root", "sub"))
    return "Root / sub-calls", " / ".join(f"{share:.0%}" for share in shares), words


def _run(chosen: Chosen) -> tuple[str, str, str]:
    found = per_run(chosen.finished)
    unknown = f"; of {found.unknown:,} more the cost is unknown" if found.unknown else ""
    if found.spread is None:
        return "A finished run (median)", "unknown" if found.unknown else "—", f"no finished run{unknown}"
    middle, high, most = (money(usd, None) for usd in found.spread)
    words = f"p95 {high}, most {most}; {counted(found.known, 'finished run')}{unknown}"
    return "A finished run (median)", middle, words


def _unknown(totals: Totals) -> tuple[str, str, str]:
    calls = sum(count for _, count in totals.unknown)
    words = (
        "every call has a known cost"
        if not calls
        else f"of {counted(len(totals.unknown), 'model')}, named below"
    )
    return "Calls of unknown cost", f"{calls:,}", words


def diagnoses(home: Home, chosen: Chosen) -> None:
    """What diagnoses of the runs spent beyond what is on record of runs."""
    spent = spent_beside(home, set(chosen.run_ids))
    if spent.live_calls:
        note(
            f"Beside these runs, diagnoses made {counted(spent.live_calls, 'call')} to a model: "
            f"{money(spent.usd, None)}. That is in no figure here."
        )


def remarks(home: Home, totals: Totals) -> None:
    """Calls that no model was asked for, records with gaps, and the models whose cost is not known with
    what to do about it.
    """
    if totals.served:
        note(f"Not counted: {unsent_words(totals.served, totals.refused)}.")
    for words in marks_of_calls(totals.whole):
        note(words)
    if totals.gaps:
        note(
            f"The record of {counted(totals.gaps, 'run')} has gaps: calls may be missing, "
            "the total is a lower bound."
        )
    if not totals.unknown:
        return
    calls = sum(count for _, count in totals.unknown)
    said("Unknown", "orange", f"The cost of {counted(calls, 'call')} is unknown, and not in these figures.")
    prices = price_table(home)
    with st.container(key="spend-unknown", horizontal=True, vertical_alignment="center", gap="medium"):
        parts = []
        for model, count in totals.unknown[:_NAMED]:
            # a run keeps the prices it was made with: one that is known now may be younger
            late = "no usage was reported, or the price was set after they were made"
            why = late if model and prices.rows(model) else "no price is known"
            parts.append(f"{line(model) if model else 'model not recorded'}: {counted(count, 'call')}, {why}")
        if len(totals.unknown) > _NAMED:
            more = counted(len(totals.unknown) - _NAMED, "more model")
            parts.append(f"and {more}, which the table by model has")
        with st.container(width="content"):
            plain.text("; ".join(parts))
        st.page_link(
            "pages/settings.py", label="Set a price in Settings", help=_HELP, query_params={"part": "prices"}
        )
