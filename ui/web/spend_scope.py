"""Which runs the Spend page is about: the keys of its address, and the fields that set them.

`run` (repeated), `corpus`, `from` and `to` (UTC days), `demo=1`. The address is the truth; fields write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Final

import streamlit as st

from rlm_core.errors import InputError
from traces.home import Home
from traces.rows import RunSummary
from traces.runs import resolve_run
from traces.spend import Chosen, Scope
from ui.figures import counted
from ui.visible import fit, line
from ui.web import stored
from ui.web.address import put
from ui.web.notices import note

_FIRST_DAY: Final = date(1970, 1, 1)
_LAST_DAY: Final = date(2199, 12, 31)
_KEYS: Final = ("run", "corpus", "from", "to", "demo")
_NAME_COLUMNS: Final = 40
_ANY: Final = ""  # no id of a corpus


def scope_of_address(home: Home, runs: Sequence[RunSummary]) -> Scope:
    """The scope that the address asks for. Raises InputError for what cannot be meant, in one sentence."""
    corpus = st.query_params.get("corpus")
    if corpus is not None and corpus not in corpora_of(runs):
        raise InputError(f"there is no run over a corpus {corpus[:60]!r}")
    first, last = _day("from"), _day("to")
    if first is not None and last is not None and first > last:
        raise InputError(f"the days from {first} to {last} are none: the first is after the last")
    demo = st.query_params.get("demo")
    if demo not in (None, "1"):
        raise InputError(f"demo={demo[:20]} means nothing here: demo=1 counts runs of the demo model too")
    refs = st.query_params.get_all("run")
    known = {run.run_id for run in runs}
    ids = tuple(dict.fromkeys(ref if ref in known else resolve_run(home, ref) for ref in refs))
    if list(ids) != refs:
        st.query_params["run"] = list(ids)
    # whoever names a run means it, whatever model answered
    named_demo = bool(ids) and all(run.demo for run in runs if run.run_id in ids)
    return Scope(ids, corpus, first, last, demo == "1" or named_demo)


def _day(key: str) -> date | None:
    text = st.query_params.get(key)
    if text is None:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or not _FIRST_DAY <= day <= _LAST_DAY:
        raise InputError(f"{key}={text[:40]} is no day: write it as 2026-11-30")
    return day


def corpora_of(runs: Sequence[RunSummary]) -> tuple[str, ...]:
    """The ids of the corpora that runs are over, the one asked about last first."""
    return tuple(dict.fromkeys(run.corpus_id for run in runs if run.corpus_id is not None))


def corpus_names(home: Home) -> dict[str, str]:
    """Names of the corpora that the home holds, by id."""
    return {info.corpus_id: line(info.name) for info in stored.listed(home) if info.broken is None}


def corpus_words(corpus_id: str | None, names: dict[str, str]) -> str:
    """A corpus in words: its name and the beginning of its id, which alone tells two apart."""
    if corpus_id is None:
        return "no corpus recorded"
    name = names.get(corpus_id)
    return f"{fit(name, _NAME_COLUMNS)} · {corpus_id[:8]}" if name else f"{line(corpus_id)[:40]} (removed)"


def fields(home: Home, runs: Sequence[RunSummary], scope: Scope) -> None:
    """The fields of the scope."""
    names = corpus_names(home)
    stands = {
        "spend-corpus": scope.corpus or _ANY,
        "spend-from": scope.first,
        "spend-to": scope.last,
        "spend-demo": scope.demo,
    }
    for key, value in stands.items():
        st.session_state[key] = value  # the address leads, also after a step back
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.selectbox(
            "Corpus",
            [_ANY, *corpora_of(runs)],
            format_func=lambda corpus: "any" if corpus == _ANY else corpus_words(corpus, names),
            key="spend-corpus",
            on_change=_write,
            args=("corpus", "spend-corpus"),
            width=340,
        )
        for label, key in (("From (UTC day)", "from"), ("To (UTC day)", "to")):
            st.date_input(
                label,
                key=f"spend-{key}",
                format="YYYY-MM-DD",
                min_value=_FIRST_DAY,
                max_value=_LAST_DAY,
                on_change=_write,
                args=(key, f"spend-{key}"),
                width=170,
            )
        st.toggle("Count demo runs", key="spend-demo", on_change=_write, args=("demo", "spend-demo"))
        st.button(
            "Clear", key="spend-clear", on_click=clear, disabled=scope == Scope(), help="Ask about all runs."
        )
        st.button("Refresh", key="spend-refresh")


def _write(name: str, key: str) -> None:
    value = st.session_state[key]
    put(name, None if value in (None, False, _ANY) else "1" if value is True else str(value))


def clear() -> None:
    """Ask about all runs."""
    for key in _KEYS:
        st.query_params.pop(key, None)


def only(run_ids: Sequence[str]) -> None:
    """Ask about these runs and no others."""
    clear()
    st.query_params["run"] = list(run_ids)


def words(scope: Scope, chosen: Chosen, of_all: int) -> None:
    """Say which runs count, and which do not."""
    at_work = sum(run.status == "running" for run in chosen.runs)
    told = f"{len(chosen.runs):,} of {counted(of_all, 'run')}"
    if scope.runs:
        told += f", {len(scope.runs):,} chosen by hand"
    if scope.first or scope.last:
        told += f"; begun from {scope.first or 'the first day'} to {scope.last or 'today'} (UTC)"
    if replays := sum(run.replay_of is not None for run in chosen.runs):
        told += f"; {counted(replays, 'of them is a replay', 'of them are replays')}"
    if at_work:
        told += f"; {at_work:,} at work, counted so far"
    st.caption(told)
    if chosen.demo_left_out:
        note(
            f"{counted(chosen.demo_left_out, 'run')} of the demo model cost nothing and "
            f"{'is' if chosen.demo_left_out == 1 else 'are'} left out of every figure."
        )
    elif scope.demo and (demos := sum(run.demo for run in chosen.runs)):
        note(f"{counted(demos, 'run')} of the demo model, at no cost, in these figures.")
