"""What the Spend page shows, computed once for each state of the record and kept for all sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import streamlit as st

from traces import spend
from traces.calls import Spans, spans_of_runs
from traces.cost import report_of
from traces.home import Home
from traces.what_if import what_if_of

_KEPT: Final = 64  # answers of each kind
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """The runs that are asked about, and the state of the record: by both together answers are kept."""

    home: str
    run_ids: tuple[str, ...]
    state: str


def question(home: Home, chosen: spend.Chosen) -> Question:
    """The question for these runs, as the record stands now."""
    return Question(str(home.root), chosen.run_ids, spend.state_of(home))


@dataclass(frozen=True, slots=True)
class Told:
    """An answer, and the sentences that came with it."""

    value: Any
    said: tuple[str, ...]


def _asked(asked: Question, what: Callable[[Spans], Any]) -> Told:
    said: list[str] = []
    with spans_of_runs(Home(Path(asked.home)), asked.run_ids, said.append) as spans:
        value = what(spans)
    return Told(value, tuple(said))


@st.cache_data(max_entries=_KEPT, show_spinner="Adding up…", hash_funcs={Question: repr})
def totals(asked: Question) -> Told:
    """`traces.spend.totals`."""
    return _asked(asked, spend.totals)


@st.cache_data(max_entries=_KEPT, show_spinner="Adding up…", hash_funcs={Question: repr})
def groups(asked: Question, keys: tuple[str, ...]) -> Told:
    """The document of `rlmscope cost --by`; keys were checked."""
    return _asked(asked, lambda spans: report_of(spans, keys))


@st.cache_data(max_entries=_KEPT, show_spinner="Looking at every call…", hash_funcs={Question: repr})
def calls(asked: Question) -> Told:
    """(the tails, the dearest sub-calls)."""
    return _asked(asked, lambda spans: (spend.tails(spans), spend.dearest(spans)))


@st.cache_data(max_entries=_KEPT, show_spinner="Looking at every limit…", hash_funcs={Question: repr})
def limits(asked: Question) -> Told:
    """`traces.spend.budgets`."""
    return _asked(asked, spend.budgets)


@st.cache_data(max_entries=_KEPT, show_spinner="Pricing every call again…", hash_funcs={Question: repr})
def other_models(asked: Question, keys: tuple[str, ...], models: tuple[tuple[str, str], ...]) -> Told:
    """The document of `rlmscope cost --as`; keys and models were checked."""
    return _asked(asked, lambda spans: what_if_of(Home(Path(asked.home)), spans, keys, dict(models)))
