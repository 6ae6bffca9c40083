"""Settings: the two models of runs for which nothing else is said, and a way to try them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Final

import streamlit as st

from rlm_core.errors import InputError, RLMScopeError
from rlm_core.models import ROOT_VARIABLE, SUB_VARIABLE, check_usable, default_models, is_demo
from traces.home import Home
from ui.figures import counted, duration
from ui.web import plain
from ui.web.notices import note, problem, said
from ui.web.settings import Origin, load_settings, save_settings
from ui.web.settings_keys import address_host, key_origins
from ui.web.settings_needs import needs_of
from ui.web.settings_trial import QUESTION, Role, last_trial, start_trial

LABELS: Final[dict[Role, str]] = {"root": "Root model", "sub": "Sub-model"}
ORIGINS: Final[dict[Origin, str]] = {
    "environment": "From the environment of the app",
    "settings": "From these settings.",
    "demo": "Because no model is set.",
}
_VARIABLES: Final[dict[Role, str]] = {"root": ROOT_VARIABLE, "sub": SUB_VARIABLE}
_SAVED: Final = "settings-models-saved"
_TICK: Final = 1.0  # seconds between two looks at a trial


def show(home: Home) -> None:
    """The fields, what runs use at present, and the trials."""
    st.caption(
        "The root model writes the code, the sub-model answers the calls from it; a cheaper one will do. "
        "A field left empty is no setting. Ids are those of LiteLLM, PROVIDER/NAME: openai/NAME, "
        "anthropic/NAME, ollama/NAME and so on. A server of your own that speaks OpenAI's protocol is "
        "openai/NAME with its address under Keys."
    )
    settings = load_settings(home)
    values: dict[Role, str] = {}
    slots = {}
    columns = dict(zip(LABELS, st.columns(2), strict=True))
    for role, label in LABELS.items():
        with columns[role]:
            values[role] = st.text_input(
                label, getattr(settings, role) or "", key=f"settings-{role}", on_change="ignore",
                placeholder="not set",
            ).strip()  # fmt: skip
            slots[role] = st.empty()
    if st.button("Save models", key="settings-models-save", type="primary"):
        _save(home, values, slots)
    if st.session_state.pop(_SAVED, False):
        said("Saved", "green", "The next run uses it, from the app and from `rlmscope ask`.")
    st.markdown("##### What a run uses now")
    st.fragment(_in_force, run_every=_TICK if _asking(home) else None)(home)


def _save(home: Home, values: dict[Role, str], slots: dict[Role, st.delta_generator.DeltaGenerator]) -> None:
    good = True
    for role, value in values.items():
        try:
            if value:
                check_usable(value, f"the {LABELS[role].lower()}")
        except InputError as error:
            good = False
            with slots[role].container():
                problem(error)
    if good:
        chosen = {role: value or None for role, value in values.items()}
        save_settings(home, replace(load_settings(home), root=chosen["root"], sub=chosen["sub"]))
        st.session_state[_SAVED] = True
        st.rerun()


def _asking(home: Home) -> bool:
    return any(_is_asked(home, role) for role in LABELS)


def _is_asked(home: Home, role: Role) -> bool:
    trial = last_trial(home, role)
    return trial is not None and trial.answer is None and trial.error is None


def _in_force(home: Home) -> None:
    """Both models, each with what it needs and its trial. Drawn anew by itself while one is being asked."""
    try:
        settings = load_settings(home)
        root, sub, _ = default_models(settings.over(os.environ))
        origins = settings.origin(os.environ)
    except RLMScopeError as error:
        problem(error)
        return
    columns = st.columns(2)
    for role, model, origin, column in zip(LABELS, (root, sub), origins, columns, strict=True):
        with column, st.container(border=True):
            plain.text(f"{LABELS[role]}: {model}")
            st.caption(_origin_words(role, origin))
            if is_demo(model):
                note("The demo model answers by fixed rules: no language model is involved, nothing to try.")
                continue
            _needs(home, model)
            _trial(home, role, model)


def _origin_words(role: Role, origin: Origin) -> str:
    words = ORIGINS[origin]
    if origin == "environment":
        return f"{words} ({_VARIABLES[role]}), which goes before these settings."
    return words


def _needs(home: Home, model: str) -> None:
    """The key that the provider of this model reads, and where calls go if that was changed."""
    variable, address = needs_of(model)
    if variable is not None:
        set_by = key_origins(home, os.environ).get(variable)
        if set_by is None:
            note(f"{variable} is not set; enter it under Keys, unless the server takes none.")
        else:
            where = "the environment" if set_by == "environment" else "the file of keys"
            st.caption(f"{variable} is set, in {where}.")
    host = None if address is None else address_host(home, os.environ, address)
    if host is not None:
        plain.text(f"Calls go to {host} ({address}).")


def _trial(home: Home, role: Role, model: str) -> None:
    asked = _is_asked(home, role)
    pressed = st.button(
        f"Try the {LABELS[role].lower()}",
        key=f"settings-try-{role}",
        disabled=asked,
        help=f"One call, “{QUESTION}”, which your provider may bill; it is no run and is not recorded.",
    )
    if pressed:
        start_trial(home, role, model)
        st.rerun()  # the whole page: its fragment has to look again by itself from now on
    trial = last_trial(home, role)
    if trial is None or trial.model != model:
        return
    if asked:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.badge("asking", color="blue")
            st.text("The model is being asked.")
    elif trial.error is not None:
        problem(trial.error)
    else:
        used = "" if trial.tokens is None else f", {counted(trial.tokens, 'token')}"
        said("It answers", "green", f"{trial.answer or '(an empty text)'} ({duration(trial.seconds)}{used})")
