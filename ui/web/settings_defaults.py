"""Settings: limits of runs for which nothing else is said, and the sandbox that they need at least."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final

import click
import streamlit as st

from rlm_core.errors import InputError, RLMScopeError
from rlm_core.limits import Limits
from rlm_core.sandbox import LEVELS, MEANING, Level, below, default_minimum, level_words, probe
from traces.home import Home
from ui.params import Dollars
from ui.web.notices import note, problem, said
from ui.web.settings import Settings, load_settings, save_settings

_SAVED: Final = "settings-defaults-saved"
_LARGEST: Final = 10**12
_LABELS: Final = {  # setting: label, the least value
    "max_iterations": ("Iterations", 1),
    "max_calls": ("Sub-calls", 1),
    "max_depth": ("Depth of child runs", 0),
    "max_tokens": ("Tokens", 1),
    "max_seconds": ("Seconds", 1),
    "concurrency": ("Calls at a time", 1),
    "max_tool_calls": ("Calls of tools", 1),
    "max_tool_rounds": ("Rounds of tools in a sub-call", 1),
}
_BUILT_IN: Final = {field.name: field.default for field in fields(Limits)}


def show(home: Home) -> None:
    """The fields and the machine's own level."""
    settings = load_settings(home)
    st.caption(
        "A field left empty is no setting: then the value in grey counts. The form on Ask starts with these."
    )
    values, slot = _limit_fields(settings)
    level = _sandbox(settings)
    if st.button("Save limits and sandbox", key="settings-defaults-save", type="primary"):
        try:
            limits = {**values, "max_cost_usd": _dollars(values["max_cost_usd"])}
            save_settings(home, replace(settings, limits=limits, sandbox=level))
        except InputError as error:
            with slot.container():
                problem(error)
        else:
            st.session_state[_SAVED] = True
            st.rerun()
    if st.session_state.pop(_SAVED, False):
        said("Saved", "green", "The next run starts with it, from the app and from `rlmscope ask`.")


def _limit_fields(settings: Settings) -> tuple[dict[str, Any], Any]:
    values: dict[str, Any] = {}
    columns = st.columns(3)
    for place, (name, (label, least)) in enumerate(_LABELS.items()):
        with columns[place % 3]:
            kind = float if name == "max_seconds" else int
            given = settings.limits.get(name)
            values[name] = st.number_input(
                label,
                kind(least),
                kind(_LARGEST),
                None if given is None else kind(given),
                kind(1),
                key=f"settings-{name}",
                placeholder=_counts_now(name),
                on_change="ignore",
            )
    with columns[0]:
        values["max_cost_usd"] = st.text_input(
            "Cost in dollars",
            str(settings.limits.get("max_cost_usd") or ""),
            key="settings-max_cost_usd",
            placeholder="no limit",
            on_change="ignore",
        ).strip()
        slot = st.empty()
    return values, slot


def _counts_now(name: str) -> str:
    built_in = _BUILT_IN[name]
    return "no limit" if built_in is None else f"{built_in:,}"


def _dollars(given: str) -> str | None:
    if not given:
        return None
    try:
        return str(Dollars().convert(given, None, None))
    except click.BadParameter as error:
        raise InputError(error.message) from None


def _sandbox(settings: Settings) -> Level | None:
    st.markdown("##### Sandbox")
    words = {level: f"at least {level}: {MEANING[level]}" for level in LEVELS}
    chosen = st.selectbox(
        "Lowest level to accept",
        [None, *LEVELS],
        index=0 if settings.sandbox is None else 1 + LEVELS.index(settings.sandbox),
        format_func=lambda level: f"not set: {default_minimum()}" if level is None else words[level],
        key="settings-sandbox",
    )
    try:
        with st.spinner("Trying this machine out", show_time=False):
            found = probe()
    except RLMScopeError as error:
        problem(error)
        return chosen
    note(f"This machine gives level {level_words(found.level)}: {found.detail}")
    if found.why:
        note(f"Not higher, because {found.why}")
    minimum = chosen or default_minimum()
    if below(found.level, minimum):
        problem(
            f"This machine does not give {minimum}: each run will have to be told to go ahead all the same"
        )
    if minimum == "none":
        note("At level none generated code can read your files, the file of keys among them")
    return chosen
