"""Long lists on a page: fifty rows at a time, each with a link or a button that acts on what stands in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar
from zoneinfo import ZoneInfo

import streamlit as st

from ui.web.notices import note
from ui.web.rows_view import Cell, Column, Item, rows_view

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


def paged(
    items: Sequence[T],
    show: Callable[[Sequence[T]], None],
    *,
    key: str,
    first: int = 0,
    address: str | None = None,
) -> None:
    """Show a page of the items, at first that with item number `first`, and the way to the other pages.

    With `address` the number of the page stands under that name in the address.
    """
    count = pages(len(items))
    turn = f"{key}-page-of-{count}"  # a list of another length begins at its first page
    begin_at = min(first // PAGE_ROWS + 1, count)
    page = st.session_state.get(turn) or begin_at
    if address is not None:
        asked = _asked(address, key, count) or begin_at
        if asked != page:  # after a step back
            st.session_state[turn] = page = asked
    shown = page_of(items, page)
    show(shown)
    if count > 1:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.pagination(count, default=begin_at, key=turn, on_change=_turned, args=(address, turn))
            begin = PAGE_ROWS * (page - 1)
            st.caption(f"{begin + 1:,} to {begin + len(shown):,} of {len(items):,}", width="content")


def _asked(address: str, key: str, count: int) -> int | None:
    """The page that the address asks for, None when it asks for none that is there, which is said; what it
    asked of a list of another length is forgotten."""
    counted = f"{key}-pages"
    if st.session_state.setdefault(counted, count) != count:
        st.session_state[counted] = count
        st.query_params.pop(address, None)
    asked = st.query_params.get(address, "")
    if asked.isascii() and asked.isdigit() and 0 < int(asked[:9]) <= count:
        return int(asked[:9])
    if asked:
        note(f"there is no page “{asked[:40]}” of this list")
    return None


def _turned(address: str | None, turn: str) -> None:
    if address is not None:
        st.query_params[address] = str(st.session_state[turn])


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
    href: Callable[[T], str] | None = None,
    address: str | None = None,
) -> None:
    """A page of items as a table, and the way to the other pages; `rows` makes rows of those of one page.

    `widths` are least pixels for columns, those of `right` hold figures; the page with item number `first`
    comes first. `button` is a word and what it does; with `href`, the address of an item inside the app, the
    first column is a link that does it, and there is no button. `address` is as in `paged`.
    """

    def show(shown: Sequence[T]) -> None:
        made = list(rows(shown))
        names = list(made[0]) if made else []
        listed = [
            Item(str(place), [_cell(row.get(name)) for name in names], href(item) if href else None)
            for place, (item, row) in enumerate(zip(shown, made, strict=True))
        ]
        act = None if button is None else button[1]
        rows_view(
            listed,
            [Column(name, widths.get(name), right=name in right) for name in names],
            key=key,
            label=alt,
            on_open=(lambda place: act(shown[int(place)])) if act and href else None,
            actions=(button[0],) if button and not href else (),
            on_action=(lambda _, place: act(shown[int(place)])) if act and not href else None,
        )

    paged(items, show, key=key, first=first, address=address)


def _cell(value: object) -> Cell:
    """A value as text; a (word, colour) stays one."""
    return value if value is None or isinstance(value, tuple) else str(value)
