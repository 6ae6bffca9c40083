"""A text or a regular expression in everything that a run recorded: the field, the hits, next and previous.

Keys of the address: `q`, and `regex=1` for a regular expression. The hit one is at is the chosen span.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import streamlit as st

from rlm_core.errors import InputError
from traces.find import Found, Passage, Search
from traces.reading import RunView, SpanRow
from ui.figures import counted
from ui.web.address import put
from ui.web.listing import PAGE_ROWS, paged
from ui.web.notices import problem
from ui.web.places import href, run_link
from ui.web.rows_view import Column, Item, rows_view
from ui.web.run_record import Record, Select
from ui.web.span_paths import title

_SEARCH: Final = "run-search"  # in the session: (run, text, regex, the search)
_FIELD: Final = "run-search-field"
_REGEX: Final = "run-search-regex"
_COLUMNS: Final = (Column("Span", 130), Column("Place", 90), Column("Passage"))
_HELP: Final = (
    "Stands in names, prompts, replies, code, output, errors, and all else that was recorded. "
    "Upper and lower case are the same. The key / leads here, n and p go from hit to hit."
)
_REGEX_HELP: Final = "A regular expression, as RE2 reads it."
_LIST_HEIGHT: Final = 230

_slash = st.components.v2.component(
    "rlmscope.search_key", js=(Path(__file__).parent / "search_key.js").read_text(encoding="utf-8")
)


def search_field() -> None:
    """The field for what is looked for."""
    for key, value in ((_FIELD, st.query_params.get("q", "")), (_REGEX, st.query_params.get("regex") == "1")):
        if key not in st.session_state or st.session_state[key] != value:
            st.session_state[key] = value  # the address leads; a field that is being typed in is left alone
    with st.container(key="run-search-box", width="stretch"):
        st.text_input(
            "Search in names and texts",
            key=_FIELD,
            placeholder="Search in names and texts",
            help=_HELP,
            label_visibility="collapsed",
            on_change=_asked,
        )
    st.checkbox("Regex", key=_REGEX, help=_REGEX_HELP, on_change=_asked)
    _slash(key="run-search-key", data={"field": "run-search-box"}, width="content")


def _asked() -> None:
    for name, value in (("q", st.session_state[_FIELD]), ("regex", "1" if st.session_state[_REGEX] else "")):
        put(name, value)


def hits(record: Record) -> Found | None:
    """The spans that hold what the address asks for; None when it asks for nothing, or for no expression."""
    text, regex = st.query_params.get("q", ""), st.query_params.get("regex") == "1"
    if not text:
        return None
    try:
        search = _search(record.view.run_id, text, regex)
    except InputError as error:
        problem(error)
        return None
    with st.spinner("Searching in all that was recorded…", show_time=True):
        return record.once(search.spans, "hits", (text, regex))


def _search(run_id: str, text: str, regex: bool) -> Search:
    """The search of before where it is the same: it knows the texts that it has read."""
    kept = st.session_state.get(_SEARCH)
    if kept is None or kept[0] != (run_id, text, regex):
        kept = st.session_state[_SEARCH] = ((run_id, text, regex), Search(text, regex=regex))
    search: Search = kept[1]
    return search


def ways(found: Found, span: SpanRow, select: Select) -> None:
    """How many hits there are, and the buttons to the next and the previous one."""
    order = [each.seq for each, _ in found]
    before, after = bisect_left(order, span.seq), bisect_right(order, span.seq)
    spans = counted(len(found), "span")
    at = (
        f"{before + 1:,} of {spans} that hold it"
        if after > before
        else f"{spans} {'holds' if len(found) == 1 else 'hold'} it"
    )
    places = sum(len(names) for _, names in found)
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="run-hits"):
        if not found:
            st.text("No span holds that.")
            return
        st.text(f"{at}, in {counted(places, 'place')}")
        previous = found[before - 1][0].span_id
        following = found[after % len(found)][0].span_id
        st.button("Previous hit", key="run-hit-previous", shortcut="p", on_click=select, args=(previous,))
        st.button("Next hit", key="run-hit-next", shortcut="n", on_click=select, args=(following,))


def hit_list(record: Record, found: Found, span: SpanRow, select: Select) -> None:
    """The hits with a passage each, fifty at a time; those around the chosen span come first."""
    place = min(bisect_left([each.seq for each, _ in found], span.seq), len(found) - 1)
    show = partial(_listed, record.view, span, select)
    with st.container(height=_LIST_HEIGHT if len(found) > 5 else "content", border=False, key="run-hit-list"):
        paged(found, show, key=f"run-hits-{place // PAGE_ROWS}", first=place)


def _listed(view: RunView, span: SpanRow, select: Select, found: Sequence[tuple[SpanRow, list[str]]]) -> None:
    text, regex = st.query_params.get("q", ""), st.query_params.get("regex") == "1"
    passages = _search(view.run_id, text, regex).passages(view, list(found))
    rows_view(
        [
            Item(
                each.span_id,
                (_name(each, span), ", ".join(places), _words(passage)),
                href(run_link(view.run_id, each.span_id)),
            )
            for (each, places), passage in zip(found, passages, strict=True)
        ],
        _COLUMNS,
        key="run-hit-rows",
        label="Hits",
        on_open=select,
    )


def _name(span: SpanRow, chosen: SpanRow) -> str:
    return f"▸ {title(span)}" if span.span_id == chosen.span_id else title(span)


def _words(passage: Passage | None) -> str:
    return "" if passage is None else f"{passage.before}{passage.text}{passage.after}"
