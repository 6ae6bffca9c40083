"""Settings: what models cost, a search for any model's price, and prices of one's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

import click
import streamlit as st

from rlm_core.errors import InputError, RLMScopeError
from rlm_core.models import check_model_id, is_demo
from traces.home import Home
from traces.prices import overrides, price_list, set_price, unset_price
from ui.params import Rate
from ui.prices_command import known_models
from ui.prices_text import origin_words
from ui.web.address import put
from ui.web.listing import paged
from ui.web.notices import Colour, problem, said
from ui.web.rows_view import Column, Item, rows_view

_SAID: Final = "settings-prices-said"
_MODEL: Final = "settings-price-model"
_RATES: Final = {
    "input": "Input",
    "output": "Output",
    "cached_read": "Cached read",
    "cache_write": "Cache write",
}
_STATUS: Final[dict[str, Colour]] = {"priced": "gray", "free": "green", "unknown": "orange", "demo": "gray"}


def show(home: Home) -> None:
    """The models that were used or are set, with their prices; `?model=ID` looks up another one."""
    st.caption(
        "Dollars for a million tokens, in force today (UTC). Prices come with the program; your own go "
        "before them and count for later runs, recorded runs keep the prices they were made with."
    )
    word, colour, sentence = st.session_state.pop(_SAID, (None, None, None))
    if word is not None:
        said(word, colour, sentence)
    words = _search()
    with st.spinner("Looking up prices", show_time=False):
        models = _fitting(known_models(home, os.environ), words)
        listed = price_list(home, models)
    if listed:
        paged(listed, _table, key="settings-prices", address="page")
    else:
        st.text("No model fits these words.")
    _own(home)
    with st.expander("Set a price", expanded=any(row["status"] == "unknown" for row in listed)):
        _form(home, listed)


def _search() -> str:
    given = st.query_params.get("model", "")
    st.session_state["settings-price-find"] = given  # the address leads

    def wrote() -> None:
        put("model", st.session_state["settings-price-find"])

    st.text_input(
        "Find a model", key="settings-price-find", on_change=wrote, type="search",
        placeholder="words of its id, or the whole id of any model",
    )  # fmt: skip
    return given.strip()


def _fitting(known: Sequence[str], words: str) -> list[str]:
    """The known models in whose ids every word occurs; what looks like a whole id is looked up as well."""
    found = [model for model in known if all(word in model.lower() for word in words.lower().split())]
    if words and words not in found:
        try:
            check_model_id(words)
        except InputError:
            return found
        if "/" in words or not found:
            found.insert(0, words)
    return found


def _table(listed: Sequence[dict[str, Any]]) -> None:
    columns = [Column("Model", 220), Column("Price", 90)]
    columns += [Column(label, 100, right=True) for label in _RATES.values()]
    items = [Item(str(place), _cells(row)) for place, row in enumerate(listed)]
    rows_view(items, [*columns, Column("From")], key="settings-prices-rows", label="Prices of models")


def _cells(row: dict[str, Any]) -> list[str | tuple[str, Colour] | None]:
    own = row["set"] is not None
    status: tuple[str, Colour] = ("yours", "blue") if own else (row["status"], _STATUS[row["status"]])
    rates = [row[f"{name}_per_mtok"] or "unknown" for name in _RATES]
    return [row["model"], status, *rates, origin_words(row)]


def _own(home: Home) -> None:
    own = list(dict.fromkeys(override.model for override in overrides(home)))
    if not own:
        return
    st.markdown("##### Your own prices")
    rows_view(
        [Item(model, [model]) for model in own],
        [Column("Model")],
        key="settings-prices-own",
        label="Models with a price of your own",
        actions=("Withdraw",),
        on_action=lambda _, model: _withdraw(home, model),
    )


def _withdraw(home: Home, model: str) -> None:
    try:
        unset_price(home, model)
    except RLMScopeError as error:
        st.session_state[_SAID] = ("Problem", "red", error)
    else:
        st.session_state[_SAID] = ("Withdrawn", "gray", f"{model}: the table counts again, for later runs.")


def _form(home: Home, listed: Sequence[dict[str, Any]]) -> None:
    unknown = [row["model"] for row in listed if row["status"] == "unknown" and not is_demo(row["model"])]
    values: dict[str, str] = {}
    left, right = st.columns(2)
    with left:
        values["model"] = st.text_input(
            "Model id", unknown[0] if unknown else "", key=_MODEL, on_change="ignore",
            placeholder="exactly as runs name it, PROVIDER/NAME",
        ).strip()  # fmt: skip
    with right:
        values["note"] = st.text_input(
            "Note", key="settings-price-note", on_change="ignore", placeholder="why, or where it is written"
        ).strip()
    for name, label, column in zip(
        (*_RATES, "from"), (*_RATES.values(), "From day"), st.columns(5), strict=True
    ):
        with column:
            values[name] = st.text_input(
                label, key=f"settings-price-{name}", on_change="ignore", placeholder=_HINTS[name]
            ).strip()
    free = st.checkbox("The model costs nothing", key="settings-price-free")
    if st.button("Set the price", key="settings-price-set"):
        try:
            _set(home, values, free)
        except RLMScopeError as error:
            problem(error)
        else:
            st.session_state[_SAID] = (
                "Set",
                "green",
                f"The price of {values['model']} counts for later runs.",
            )
            st.rerun()


_HINTS: Final = {
    "input": "2.50",
    "output": "10",
    "cached_read": "as input",
    "cache_write": "as input",
    "from": "all days",
}


def _set(home: Home, values: dict[str, str], free: bool) -> None:
    """Raises InputError for what is no price, RecordError when it cannot be written."""
    rates = {name: _rate(label, values[name]) for name, label in _RATES.items() if values[name]}
    if free:
        if rates:
            raise InputError("a model that costs nothing has no other prices: leave them empty")
        rates = {"input": Decimal(0), "output": Decimal(0)}
    start = None
    if values["from"]:
        try:
            start = date.fromisoformat(values["from"])
        except ValueError:
            raise InputError("the first day must be a date like 2027-01-31 (UTC)") from None
    set_price(home, values["model"], rates, valid_from=start, note=values["note"] or None)


def _rate(label: str, given: str) -> Decimal:
    try:
        return Rate().convert(given, None, None)
    except click.BadParameter as error:
        raise InputError(f"{label}: {error.message}") from None
