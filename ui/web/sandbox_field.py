"""How far the code of a run is locked in on this machine, and the consent where that is less than usual."""

from __future__ import annotations

import streamlit as st

from rlm_core.errors import SandboxError
from rlm_core.sandbox import below, default_minimum, level_words, probe
from ui.web.notices import note, problem


def sandbox_field() -> str | None:
    """The lowest level to accept, None: the engine's default. The machine is tried out once per process."""
    try:
        found = probe()
    except SandboxError as error:
        problem(error)
        return None
    st.caption(f"Sandbox: {level_words(found.level)}.")
    if not below(found.level, "standard"):
        return None
    note(f"level {found.level!r} means: {found.detail}")
    if found.why:
        note(found.why)
    if not below(found.level, default_minimum()):
        return None
    accepted = st.checkbox("Run it all the same", key="ask-sandbox", persist_state="session")
    return found.level if accepted else None
