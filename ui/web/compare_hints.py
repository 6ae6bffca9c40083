"""Calls of two runs that have no partner and were given the same passages: where to look, and never more.

Key of the address: `with`, the call of B that stands beside the one of A that `row` names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import streamlit as st

from ui.figures import counted
from ui.web.compare_pair import Pair
from ui.web.notices import problem
from ui.web.rows_view import Column, Item, rows_view
from ui.web.span_paths import title

if TYPE_CHECKING:
    from traces.diff import Diff, Row
    from traces.reading import RunView

WITH: Final = "with"
_MOST: Final = 100
_ADDRESS_CHARS: Final = 60
_COLUMNS: Final = (
    Column("Call of A", None), Column("Call of B", None), Column("Bytes of both", 110, right=True),
    Column("Share of the smaller", 140, right=True),
)  # fmt: skip


def hints(pair: Pair, diff: Diff, go: Callable[[str], None]) -> None:
    """Offer the pairs; `go` is called with the key of A's row, and `with` stands in the address then."""
    box = st.expander(
        f"Calls that read the same ({len(diff.hints):,})", key="compare-hints", on_change="rerun"
    )
    if not box.open:
        return
    partners = {hint.a: hint.b for hint in diff.hints}

    def beside(_word: str, a: str) -> None:
        go(a)
        st.query_params[WITH] = partners[a]

    with box:
        st.caption(
            f"{counted(len(diff.hints), 'pair')} of calls without a partner that were given the same "
            "passages. They may do the same work; nothing more is known."
        )
        rows = [
            Item(
                hint.a,
                [_called(pair.a, hint.a), _called(pair.b, hint.b), f"{hint.shared:,}", f"{hint.share:.0%}"],
            )
            for hint in diff.hints[:_MOST]
        ]
        rows_view(
            rows, _COLUMNS, key="compare-hint-rows", label="Calls that read the same", actions=("Compare",),
            on_action=beside,
        )  # fmt: skip
        if len(diff.hints) > _MOST:
            st.caption(f"The first {_MOST} of {len(diff.hints):,} are listed.")


def hinted(diff: Diff, row: Row) -> Row:
    """A row as it is, or, where the address asks for it, with the call of B that a hint pairs it with."""
    other = st.query_params.get(WITH)
    if other is None:
        return row
    if all((hint.a, hint.b) != (row.a, other) for hint in diff.hints):
        problem(f"“{other[:_ADDRESS_CHARS]}” read nothing that this row read too.")
        return row
    return replace(row, b=other, usd=None, seconds=None, tokens=None)


def _called(view: RunView, span_id: str) -> str:
    span = view.by_id.get(span_id)
    return "(not in the record)" if span is None else " · ".join(filter(None, (title(span), span.preview)))
