"""The list of regression sets, with what the last check of each found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import streamlit as st

from traces.check_log import PastCheck, checks
from traces.home import Home
from traces.regression import set_sizes
from ui.figures import counted
from ui.web.listing import listing, moment
from ui.web.notices import Colour
from ui.web.places import href
from ui.web.rows_view import Cell

OPEN: Final = "sets-open"  # in the session: the set to go to, "" for the list
_WIDTHS: Final = {"Set": 220, "Runs": 70, "Last check": 140, "Mode": 80, "Result": 260, "Passed before": 200}
_EMPTY: Final = (
    "There are no sets yet. A set is a tag: give runs a tag and the answer that they should have, on their "
    "pages or with `rlmscope mark RUN --tag billing --expected 22`. Then this page asks them again, with the "
    "models of today, and says which answers are still right and which call moved those that are not."
)

_WHAT: Final = (
    "A set is a tag of runs whose right answers are known. Open one to ask its runs again with the models of "
    "today. To put a run in, give it the tag and its right answer."
)


def overview(home: Home) -> None:
    """Every set, by name."""
    sizes = set_sizes(home)
    if not sizes:
        st.markdown(_EMPTY)
        return
    past = checks(home)
    st.caption(f"{counted(len(sizes), 'set')}. {_WHAT}")
    listing(
        list(sizes), lambda shown: _rows(shown, sizes, past), key="sets-table", alt="Sets", widths=_WIDTHS,
        right=("Runs",), button=("Open", _open), address="page",
        href=lambda name: href(("pages/sets.py", {"set": name})),
    )  # fmt: skip


def _open(name: str) -> None:
    st.session_state[OPEN] = name


def _rows(names: Sequence[str], sizes: Mapping[str, int], past: Sequence[PastCheck]) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        own = [check for check in past if check.name == name]
        last = own[-1] if own else None
        rows.append(
            {
                "Set": name,
                "Runs": f"{sizes[name]:,}",
                "Last check": "never" if last is None else when(last),
                "Mode": "" if last is None else last.mode,
                "Result": None if last is None else verdict(last),
                "Passed before": ", ".join(
                    f"{one.count(True):,} of {one.members:,}" for one in own[-4:-1][::-1]
                ),
            }
        )
    return rows


def when(check: PastCheck) -> str:
    """When a check was started, in the time zone of the browser; "unknown" where its file lacks that."""
    try:
        return moment(datetime.fromisoformat(check.started), st.context.timezone)
    except ValueError:
        return "unknown"


def verdict(check: PastCheck) -> Cell:
    """How a check ended, in a word or two and a colour."""
    if check.status != "done":
        colours: dict[str, Colour] = {"running": "blue", "failed": "red"}
        return check.status, colours.get(check.status, "gray")
    passed, failed, open_ = (check.count(one) for one in (True, False, None))
    if not failed and not open_:
        return f"all {passed:,} passed", "green"
    parts = [f"{failed:,} failed"] * bool(failed) + [f"{open_:,} undecided"] * bool(open_)
    return f"{', '.join(parts)}, {passed:,} passed", "red" if failed else "orange"
