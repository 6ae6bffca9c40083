"""What a page has to say: one sentence with a word and a colour in front. The sentence may be untrusted."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from ui.web import plain

Colour = Literal["red", "orange", "green", "blue", "gray"]


def problem(sentence: object) -> None:
    """Something did not work."""
    said("Problem", "red", sentence)


def note(sentence: object) -> None:
    """Something to know."""
    said("Note", "gray", sentence)


def said(word: str, colour: Colour, sentence: object) -> None:
    """A word of ours in a colour, then a sentence as plain text."""
    with st.container(horizontal=True, gap="small", vertical_alignment="top"):
        st.badge(word, color=colour)
        with st.container(width="stretch"):
            plain.text(sentence)
