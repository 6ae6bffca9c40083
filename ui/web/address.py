"""What is chosen stands in the address of a page, which leads what the page shows."""

from __future__ import annotations

import streamlit as st


def keep(name: str, value: str) -> None:
    """See to it, while a page is drawn, that a parameter stands in the address. One that does is not written
    again: that would meet the page that a step back has led to meanwhile.
    """
    if st.query_params.get(name) != value:
        st.query_params[name] = value


def put(name: str, value: str | None) -> None:
    """Write what somebody chose into the address, or take it out when there is no value.

    The browser is told in any case: where a click finds the address as it is wanted already, an address that
    one before wrote may be on its way to the browser, and would stay there.
    """
    told = {key: st.query_params.get_all(key) for key in st.query_params}
    wanted = told | {name: [value] if value else []}
    st.query_params.from_dict({key: each for key, each in wanted.items() if each})


def put_choice(name: str, chosen: str | None, first: str) -> None:
    """Write what was chosen of several into the address; the first is left out, as is nothing chosen: fast
    clicks draw another view meanwhile.
    """
    put(name, None if chosen == first else chosen)
