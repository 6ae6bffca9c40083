"""What a page has to say: one sentence with a word and a colour in front. The sentence may be untrusted."""

from __future__ import annotations

import re
from typing import Final, Literal

import streamlit as st

from ui.web import plain

Colour = Literal["red", "orange", "green", "blue", "gray"]
_OPENING: Final = re.compile(
    r"(?:the|there|a|an|no|what|nothing) "
)  # never the first word of a path or a model id


def problem(error: object) -> None:
    """Something did not work."""
    said("Problem", "red", sentence(error))


def note(remark: object) -> None:
    """Something to know."""
    said("Note", "gray", sentence(remark))


def sentence(text: object) -> str:
    """An error's message, which the command line shows behind a colon, as a sentence that stands alone."""
    words = str(text)
    if _OPENING.match(words):
        words = words[0].upper() + words[1:]
    return words if words.endswith((".", "!", "?", "…")) else words + "."


def said(word: str, colour: Colour, text: object) -> None:
    """A word of ours in a colour, then a sentence as plain text."""
    with st.container(horizontal=True, gap="small", vertical_alignment="top"):
        st.badge(word, color=colour)
        with st.container(width="stretch"):
            plain.text(text)
