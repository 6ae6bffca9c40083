"""The Settings page: `/settings?part=PART`. Models, keys, defaults of runs, prices, and the home itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.home import Home
from ui.web import settings_defaults, settings_home, settings_keys_form, settings_models, settings_prices
from ui.web.notices import problem

_KEY: Final = "settings-part"
_WIDTH: Final = 1280  # pixels: fields and lines any wider are hard to read


@dataclass(frozen=True, slots=True)
class _Part:
    title: str
    show: Callable[[Home], None]


_PARTS: Final[dict[str, _Part]] = {
    "models": _Part("Models", settings_models.show),
    "keys": _Part("Keys", settings_keys_form.show),
    "defaults": _Part("Limits and sandbox", settings_defaults.show),
    "prices": _Part("Prices", settings_prices.show),
    "home": _Part("This home", settings_home.show),
}


def page() -> None:
    """Show the part that the address names."""
    with st.container(width=_WIDTH):
        _show()


def _show() -> None:
    st.markdown("#### Settings")
    name = _named()
    st.session_state[_KEY] = name  # the address leads, also after a step back
    st.segmented_control(
        "Part of the settings",
        list(_PARTS),
        format_func=lambda part: _PARTS[part].title,
        key=_KEY,
        required=True,
        on_change=_chosen,
        label_visibility="collapsed",
    )
    try:
        _PARTS[name].show(Home.resolve())
    except RLMScopeError as error:
        problem(error)


def _named() -> str:
    name = st.query_params.get("part", "models")
    if name in _PARTS:
        return name
    problem(f"There is no part “{name[:60]}” of the settings; these are the models.")
    return "models"


def _chosen() -> None:
    st.query_params.from_dict({"part": st.session_state[_KEY] or "models"})  # nothing: after fast clicks


page()
