"""A button that copies a text, untrusted or not, to the clipboard of the person who presses it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import streamlit as st

_HERE: Final = Path(__file__).parent


def _source(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


_view = st.components.v2.component(
    "rlmscope.copy", css=_source("copy_button.css"), js=_source("copy_button.js")
)


def copy_button(label: str, text: str, *, key: str) -> None:
    """Draw the button. `label` is ours; `text` is copied as it is, so keep it below a few megabytes: it
    travels to the browser with the page."""
    _view(key=key, data={"label": label, "text": text}, width="content")
