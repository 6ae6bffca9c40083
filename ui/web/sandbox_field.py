"""How far the code of a run is locked in on this machine, and the consent where that is less than usual."""

from __future__ import annotations

import streamlit as st

from rlm_core.errors import RLMScopeError
from rlm_core.sandbox import below, default_minimum, level_words, probe
from traces.home import Home
from ui.web.notices import note, problem
from ui.web.settings import load_settings


def sandbox_field() -> str | None:
    """The lowest level to accept, None: that of the settings, else the engine's default.

    The machine is tried out once per process.
    """
    try:
        found = probe()
        minimum = load_settings(Home.resolve()).sandbox or default_minimum()
    except RLMScopeError as error:
        problem(error)
        return None
    st.caption(f"Sandbox: {level_words(found.level)}.")
    too_low = below(found.level, minimum)
    if below(found.level, "standard") or too_low:
        note(f"level {found.level!r} means: {found.detail}")
        if found.why:
            note(found.why)
    if not too_low:
        return None
    accepted = st.checkbox("Run it all the same", key="ask-sandbox", persist_state="session")
    return found.level if accepted else None
