"""The runs of several strategies side by side: a table that grows while they are carried out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import streamlit as st

from rlm_core.errors import InputError, RLMScopeError
from rlm_core.options import STRATEGIES
from traces.home import Home
from traces.imported import asked_words
from traces.opinions import check_how
from traces.refused import refused_words
from traces.same_answer import explain
from traces.strategies import StrategyRow, strategy_rows
from ui.figures import count, duration, least, total_tokens
from ui.web import live, plain, series, stored
from ui.web.notices import Colour, note, problem, said
from ui.web.order import StartFiles
from ui.web.places import href, run_link
from ui.web.rows_view import Cell, Column, Item, rows_view
from ui.web.series import Member, members

PERIOD: Final = 2.0  # seconds between two looks while a run is at work
_OPEN: Final = "strategies-open"  # in the session: the run to go to
_PAIR: Final = "strategies-pair"  # in the session: the runs that are chosen
_FORCED: Final = " (forced)"
_DEMO: Final = "The demo model answered, no language model was involved"
_NO_QUALITY: Final = "its answers say nothing about a strategy"
_RIGHT: Final[dict[bool | None, tuple[str, Colour] | None]] = {
    True: ("right", "green"),
    False: ("wrong", "red"),
    None: None,
}
_COLUMNS: Final = (
    Column("Strategy", 122),
    Column("Answer"),
    Column("Status", 96),
    Column("Root + sub", 84, right=True),
    Column("Tools", 52, right=True),
    Column("Tokens", 76, right=True),
    Column("Cost", 92, right=True),
    Column("Time", 72, right=True),
)
_VERDICT: Final = Column("Right", 70)


def show(home: Home, run_ids: Sequence[str], expected: str | None, how: str) -> None:
    """The table, drawn anew by itself while one of its runs is at work. `expected` is the right answer."""
    try:
        if expected is not None:
            check_how(how, expected)
    except InputError as error:
        problem(error)
        expected = None
    try:
        busy = any(one.at_work for one in members(home, run_ids))
    except RLMScopeError as error:
        problem(error)
        return
    st.fragment(_table, run_every=PERIOD if busy else None)(home, tuple(run_ids), expected, how, busy)


def _table(home: Home, run_ids: tuple[str, ...], expected: str | None, how: str, was_busy: bool) -> None:
    if run_id := st.session_state.pop(_OPEN, None):  # here: a click in a fragment runs the fragment alone
        st.switch_page("pages/run.py", query_params={"run": run_id})
    try:
        found = members(home, run_ids)
        known = [one for one in found if one.summary is not None]
        rows = strategy_rows(home, [one.run_id for one in known], expected=expected, how=how)
    except RLMScopeError as error:
        problem(error)
        return
    if was_busy and not any(one.at_work for one in found):
        st.rerun()  # without this timer
    _head(home, found)
    by_id = {row.run_id: row for row in rows}
    names = _ordered(home, run_ids)
    rows_view(
        [_item(one, by_id.get(one.run_id), names.get(one.run_id), expected is not None) for one in found],
        (*_COLUMNS[:2], *([_VERDICT] if expected is not None else []), *_COLUMNS[2:]),
        key="strategies-rows",
        label="Strategies",
        on_open=_open,
        chosen=_chosen(run_ids),
        on_choose=_choose,
    )
    _onward(run_ids)
    _notes(home, run_ids, found, rows, expected, how)


def _head(home: Home, found: Sequence[Member]) -> None:
    """The question, and over which corpus; more than one of either is said."""
    runs = [one.summary for one in found if one.summary is not None]
    asked = {run.question for run in runs}
    if runs:
        one = next((run for run in runs if run.question), runs[0])
        plain.bounded(asked_words(one), key="strategies-question", file_name="question.txt")
    corpora = list(dict.fromkeys(run.corpus_id for run in runs))
    listed = {info.corpus_id: info.name for info in stored.listed(home)}
    if corpora:
        first = runs[0]
        name = listed.get(corpora[0] or "", corpora[0] or "unknown")
        plain.text(
            f"Corpus {name} · root {first.root_model or 'unknown'} · sub {first.sub_model or 'unknown'}"
        )
    if len(asked - {None}) > 1 or len({*corpora} - {None}) > 1:
        note("These runs do not all ask the same question over the same corpus.")
    elif len(asked) > 1 or len(corpora) > 1:
        note("Whether these runs all ask the same question over the same corpus is not on record.")


def _ordered(home: Home, run_ids: Sequence[str]) -> dict[str, str]:
    """The strategies of runs that are not recorded yet, from the order of their process while it is there."""
    try:
        order = StartFiles(home, run_ids[0]).read_order()
    except InputError:
        return {}
    names = [str(way.get("strategy", "rlm")) for way in (order.way, *order.further)]
    return dict(zip(run_ids, names, strict=False))


def _item(one: Member, row: StrategyRow | None, name: str | None, judged: bool) -> Item:
    if row is None:
        blank = [""] * (len(_COLUMNS) - 3 + judged)
        return Item(one.run_id, [name or "?", "", *blank[:judged], one.word, *blank[judged:]])
    cells: list[Cell] = [
        row.strategy,
        *_answer(one, row),
        *([_RIGHT[None if row.fits is False else row.correct]] if judged else []),
        ("does not fit", "orange") if row.fits is False else one.word,
        " + ".join(map(count, row.asked)) + refused_words(row.refused_sub_calls),
        f"{row.tool_calls:,}" if row.tool_calls else "",
        total_tokens(row.tokens, row.untold_calls),
        least(row.cost_usd, row.cost_status, row.known_usd),
        duration(row.seconds),
    ]
    return Item(one.run_id, cells, href(run_link(one.run_id)), row.note or "")


def _answer(one: Member, row: StrategyRow) -> Iterator[str]:
    if row.answer is not None:
        yield row.answer + (_FORCED if row.forced else "")
    else:
        yield "" if one.at_work else "(no answer)"


def _chosen(run_ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for one in st.session_state.get(_PAIR, ()) if one in run_ids)


def _choose(run_ids: tuple[str, ...]) -> None:
    st.session_state[_PAIR] = run_ids


def _open(run_id: str) -> None:
    st.session_state[_OPEN] = run_id


def _onward(run_ids: Sequence[str]) -> None:
    chosen = _chosen(run_ids)
    if len(chosen) == 2:
        st.page_link(
            "pages/compare.py", label=":blue[Compare the two]",
            query_params=dict(zip("ab", chosen, strict=True)),
        )  # fmt: skip
    else:
        st.caption("Choose two rows to compare their runs.")


def _notes(
    home: Home,
    run_ids: Sequence[str],
    found: Sequence[Member],
    rows: Sequence[StrategyRow],
    expected: str | None,
    how: str,
) -> None:
    """Why there is no answer, what right means here, and what such answers are worth."""
    if busy := next((one for one in found if one.summary is not None and one.at_work), None):
        live.cancel(home, busy.run_id)
    elif left := series.failure(home, run_ids):
        problem(left)
    for row in rows:
        if row.note:
            said(row.strategy if row.strategy in STRATEGIES else "Note", "gray", row.note)
    if expected is not None:
        plain.text(f"Right is: {expected} ({explain(how)})")
    unjudged = "" if expected is None else ", and none is called right or wrong"
    if any(row.demo for row in rows):
        note(f"{_DEMO}: {_NO_QUALITY}{unjudged}")
    elif any(row.scripted for row in rows):
        note(f"A script answered for the models: {_NO_QUALITY}{unjudged}")
