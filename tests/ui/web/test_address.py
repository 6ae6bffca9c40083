"""What people choose is written into the address."""

from __future__ import annotations

import pytest
from streamlit.runtime.state import query_params
from streamlit.testing.v1 import AppTest


def script() -> None:
    import streamlit as st

    from ui.web.address import put, put_choice

    st.button("tree", on_click=put_choice, args=("view", "tree", "tree"))
    st.button("steps", on_click=put_choice, args=("view", "steps", "tree"))
    st.button("nothing", on_click=put_choice, args=("view", None, "tree"))
    st.button("words", on_click=put, args=("q", "a b"))


def test_a_choice_is_written_and_the_first_one_left_out_beside_what_else_stands_there() -> None:
    page = AppTest.from_function(script, default_timeout=60)
    page.query_params["run"] = ["a", "b"]
    page.run()
    seen = []
    for place in (1, 3, 0, 1, 2):
        page.button[place].click().run()
        seen.append({**page.query_params})
    runs, steps, words = {"run": ["a", "b"]}, {"view": "steps"}, {"q": "a b"}
    assert seen == [runs | steps, runs | steps | words, runs | words, runs | words | steps, runs | words]


def test_the_browser_is_told_also_where_the_address_is_as_it_should_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An address of the click before may be on its way to the browser."""
    told: list[str] = []
    send = query_params.QueryParams._send_query_param_msg

    def noted(self: query_params.QueryParams) -> None:
        told.append(str(self.to_dict()))
        send(self)

    monkeypatch.setattr(query_params.QueryParams, "_send_query_param_msg", noted)
    page = AppTest.from_function(script, default_timeout=60).run()
    page.button[0].click().run()
    assert told == ["{}"]
