"""Settings: which provider keys are set, and a field that takes one. None is ever shown again."""

from __future__ import annotations

import os
from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.home import Home
from ui.web import plain
from ui.web.notices import Colour, note, said, sentence
from ui.web.rows_view import Column, Item, rows_view
from ui.web.settings_keys import ADDRESS_ENDS, Origin, address_host, key_origins, remove_key, set_key
from ui.web.settings_needs import PROVIDERS, owner_of

_FIELD: Final = "settings-key-value"
_NAME: Final = "settings-key-name"
_SAID: Final = "settings-keys-said"
_STATES: Final[dict[Origin | None, tuple[str, Colour]]] = {
    "environment": ("environment", "blue"),
    "file": ("kept here", "green"),
    None: ("not set", "gray"),
}
_VARIABLES: Final = tuple(name for _, *names in PROVIDERS.values() for name in names if name is not None)


def show(home: Home) -> None:
    """The form, then every variable with where it is set."""
    st.caption(
        "A key is kept in a file of its own that only you can read, and given to nothing but the processes "
        "that call models. It is not shown again, and stands in no run, log or command line; generated code "
        "does not get it. What the environment of the app has goes before what is kept here."
    )
    origins = key_origins(home, os.environ)
    names = sorted({*_VARIABLES, *origins}, key=lambda name: (name not in origins, _place(name), name))
    _form(home, names, origins)
    word, colour, sentence = st.session_state.pop(_SAID, (None, None, None))
    if word is not None:
        said(word, colour, sentence)
    shadowed = [name for name in origins if origins[name] == "environment" and name in _in_file(home)]
    for name in shadowed:
        note(f"{name} is also kept here; the one of the environment is used.")
    items = [Item(name, _cells(home, name, origins.get(name))) for name in names]
    columns = [Column("Variable", 260), Column("Set in", 130), Column("Whose", 260), Column("Calls go to")]
    rows_view(items, columns, key="settings-keys", label="Keys and addresses of providers")
    plain.text(f"The file is {home.keys}.")


def _place(name: str) -> int:
    return _VARIABLES.index(name) if name in _VARIABLES else len(_VARIABLES)


def _in_file(home: Home) -> dict[str, Origin]:
    return key_origins(home, {})


def _cells(home: Home, name: str, origin: Origin | None) -> list[str | tuple[str, Colour] | None]:
    is_address = name.endswith(ADDRESS_ENDS)
    host = address_host(home, os.environ, name) if is_address and origin is not None else ""
    return [name, _STATES[origin], owner_of(name), host]


def _form(home: Home, names: list[str], origins: dict[str, Origin]) -> None:
    left, middle = st.columns(2)
    with left:
        name = st.selectbox(
            "Variable",
            names,
            index=names.index("OPENAI_API_KEY"),
            key=_NAME,
            accept_new_options=True,
            help="Another provider's variable can be typed, such as NVIDIA_NIM_API_KEY.",
        )
    with middle:
        st.text_input(
            "Key or address",
            key=_FIELD,
            type="password",
            autocomplete="off",
            on_change="ignore",
            live="0ms",  # on its way to the eye in the field, Tab does not count as leaving it
            placeholder="is not shown again",
        )
    with st.container(horizontal=True):
        st.button("Keep it", key="settings-key-keep", type="primary", on_click=_keep, args=(home,))
        st.button(
            "Remove what is kept",
            key="settings-key-remove",
            disabled=name not in _in_file(home),
            on_click=_remove,
            args=(home,),
        )


def _keep(home: Home) -> None:
    """Take what was entered out of the session at once, whatever becomes of it."""
    value, name = st.session_state[_FIELD], st.session_state[_NAME]
    st.session_state[_FIELD] = ""
    try:
        set_key(home, name or "", value)
    except RLMScopeError as error:
        st.session_state[_SAID] = ("Problem", "red", sentence(error))
    else:
        st.session_state[_SAID] = ("Kept", "green", f"{name} is kept; the next run uses it.")


def _remove(home: Home) -> None:
    name = st.session_state[_NAME]
    try:
        remove_key(home, name or "")
    except RLMScopeError as error:
        st.session_state[_SAID] = ("Problem", "red", sentence(error))
    else:
        st.session_state[_SAID] = ("Removed", "gray", f"{name} is not kept any longer.")
