"""The views of the Run page below its head, chosen by `?view=`.

A view is a function of the run and of the way to go to a span. It is drawn anew at every interaction, and by
itself while the run goes on; it reads its own keys of the address.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import streamlit as st

from ui.web import coverage_view, findings_view, live, overview_view, run_tree, step_view
from ui.web.address import put_choice
from ui.web.notices import problem
from ui.web.run_header import onward
from ui.web.run_record import Record, Select

_KEY: Final = "run-view"
FIRST: Final = "tree"


@dataclass(frozen=True, slots=True)
class View:
    """A view: its title (ours), and what draws it."""

    title: str
    show: Callable[[Record, Select], None]


VIEWS: Final[dict[str, View]] = {
    FIRST: View("Spans", run_tree.show),
    "overview": View("Overview", overview_view.show),
    "steps": View("Steps", step_view.show),
    "coverage": View("Coverage", coverage_view.show),
    "findings": View("Findings", findings_view.show),
}


def view_of_address() -> str:
    """The name of the view that the address asks for; one that is not there is said to be so."""
    name = st.query_params.get("view", FIRST)
    if name in VIEWS:
        return name
    problem(f"There is no view “{name[:60]}” of a run; this is its tree.")
    return FIRST


def choose_view(record: Record) -> View:
    """Draw the choice of views, beside what else may be done about a run; returns the view that is chosen."""
    name = view_of_address()
    st.session_state[_KEY] = name  # the address leads, also after a step back
    with st.container(
        horizontal=True, gap="medium", vertical_alignment="center", horizontal_alignment="distribute"
    ):
        st.segmented_control(
            "View",
            list(VIEWS),
            format_func=lambda view: VIEWS[view].title,
            key=_KEY,
            required=True,
            on_change=_chosen,
            label_visibility="collapsed",
            width="content",
        )
        if record.view.live:
            live.cancel(record.home, record.view.run_id)
        onward(record)
    return VIEWS[name]


def _chosen() -> None:
    put_choice("view", st.session_state[_KEY], FIRST)
