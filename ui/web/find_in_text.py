"""Finding words in one long text: how often they stand there, and each place with what is around it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import streamlit as st

from ui.figures import counted
from ui.web.notices import note
from ui.web.passage_view import Passage, passage

_AROUND: Final = 1_500  # characters shown before and after a place
_MOST: Final = 10_000  # places that are counted


def find_in_text(text: str, *, key: str, words: str = "") -> None:
    """A field for words and the place where they stand, one at a time. Capitals do not matter.

    `key` is unique on the page; `words` are those to look for at first.
    """
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        wanted = st.text_input("Find in this text", words, key=f"{key}-find", width=280)
        places = places_of(text, wanted) if wanted else []
        place = f"{key}-find-place"
        number = min(st.session_state.get(place, 0), max(len(places) - 1, 0))

        def go(step: int) -> Callable[[], None]:
            return lambda: st.session_state.update({place: (number + step) % len(places)})

        if places:
            st.button("Previous place", key=f"{key}-find-back", on_click=go(-1), disabled=len(places) < 2)
            st.button("Next place", key=f"{key}-find-on", on_click=go(1), disabled=len(places) < 2)
    if not wanted:
        return
    if not places:
        note("These words do not stand in this text.")
        return
    start, end = places[number]
    many = f"the first {_MOST:,} places" if len(places) == _MOST else counted(len(places), "place")
    st.caption(f"Place {number + 1:,} of {many}, at character {start + 1:,} of {len(text):,}.")
    first, last = max(start - _AROUND, 0), min(end + _AROUND, len(text))
    shown = Passage(text[first:start], text[start:end], text[end:last], first, last)
    passage(shown, key=f"{key}-find-shown", label="The text around the words that were found")


def places_of(text: str, words: str) -> list[tuple[int, int]]:
    """Where the words stand, as (start, end), at most 10,000 places; any white space fits a blank.

    >>> places_of("A refund. Refund!", "refund")
    [(2, 8), (10, 16)]
    """
    pattern = r"\s+".join(map(re.escape, words.split()))
    if not pattern:
        return []
    found = re.finditer(pattern, text, re.IGNORECASE)
    return [match.span() for match, _ in zip(found, range(_MOST), strict=False)]
