"""Long lists on a page: fifty rows at a time, each with a button that acts on what stands in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo

import streamlit as st

from ui.web import plain

PAGE_ROWS: Final = 50
T = TypeVar("T")


def pages(count: int) -> int:
    """How many pages so many rows take; at least one."""
    return max(1, -(-count // PAGE_ROWS))


def page_of(items: Sequence[T], page: int) -> Sequence[T]:
    """The items of one page; the first page is 1."""
    return items[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]


def moment(when: datetime, zone: str | None) -> str:
    """A time as `2027-01-15 09:00` in the time zone of that name (None: UTC)."""
    try:
        there = ZoneInfo(zone) if zone else UTC
    except (OSError, ValueError, LookupError):
        there = UTC
    return when.astimezone(there).strftime("%Y-%m-%d %H:%M")


def listing(
    items: Sequence[T],
    rows: Callable[[Sequence[T]], Iterable[Mapping[str, object]]],
    *,
    key: str,
    alt: str,
    widths: Mapping[str, int],
    right: Collection[str] = (),
    first: int = 0,
    button: tuple[str, Callable[[T], None]] | None = None,
) -> None:
    """A page of items as a table, and the way to the other pages; `rows` makes rows of those of one page.

    `widths` are pixels for columns, those of `right` hold figures; the page with item number `first` comes
    first. `button` is a word and what it does.
    """
    count = pages(len(items))
    turn = f"{key}-page-of-{count}"  # a list of another length begins at its first page
    begin_at = min(first // PAGE_ROWS + 1, count)
    page = st.session_state.get(turn) or begin_at
    shown = page_of(items, page)
    config: dict[str, Any] = {
        name: st.column_config.Column(width=width, alignment="right" if name in right else None)
        for name, width in widths.items()
    }
    made = list(rows(shown))
    if button is not None:
        word, act = button
        made = [{word: word, **row} for row in made]
        config[word] = st.column_config.ButtonColumn(
            "", width=60, type="tertiary", key=f"{key}-click", on_click=_clicked, args=(key, shown, act)
        )
    st.dataframe(
        plain.frame(made),
        hide_index=True,
        key=key,
        lazy=False,
        height="content",
        column_config=config,
        alt=alt,
        placeholder="",
    )
    if count > 1:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.pagination(count, default=begin_at, key=turn)
            begin = PAGE_ROWS * (page - 1)
            st.caption(f"{begin + 1:,} to {begin + len(shown):,} of {len(items):,}", width="content")


def _clicked(key: str, shown: Sequence[T], act: Callable[[T], None]) -> None:
    click = st.session_state[f"{key}-click"]
    if click is not None and 0 <= click["row"] < len(shown):
        act(shown[click["row"]])
