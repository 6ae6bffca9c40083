"""Where two runs part: what the differences come to, the aligned trees, and both sides of one row.

Keys of the address: `row` (the id of a span of either run), `all` (rows that are the same too), `kind`, and
`with` (see `compare_hints`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.imported import is_foreign, not_again
from ui.figures import counted
from ui.web.address import put
from ui.web.compare_detail import compare_detail
from ui.web.compare_hints import WITH, hinted, hints
from ui.web.compare_pair import Pair
from ui.web.compare_rows import Lines, Shape, find_row, first_row, key_of, lines_of, only_in_b
from ui.web.compare_tree import compare_tree
from ui.web.compare_words import KINDS, is_difference, lacks_partners, plan_words, tally
from ui.web.notices import note, problem, said
from ui.web.places import diagnose_link

if TYPE_CHECKING:
    from traces.diff import Diff, Row

ROW: Final = "row"
_EVERYTHING: Final = "all"
_KIND: Final = "kind"
_ADDRESS_CHARS: Final = 60  # of a word in the address that is said to be unknown


def compare_trees(pair: Pair) -> None:
    """Draw the comparison of the trees of two runs that have ended, or say why there is none."""
    st.markdown("##### Where they part")
    if pair.live:
        note("The trees are compared once both runs have ended.")
        return
    try:
        with st.spinner("Comparing the trees"):
            diff = pair.diff
        _summary(pair, diff)
        if not diff.rows:
            note("Neither run recorded any spans.")
            return
        _list_and_row(pair, diff)
    except RLMScopeError as error:
        problem(error)


def _summary(pair: Pair, diff: Diff) -> None:
    """What differs, in counts, and what may be done about it."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="compare-tally"):
        for words, colour in tally(diff):
            st.badge(words, color=colour)
        _onward(pair, diff)
    if diff.plan is not None:
        said("Other code", "orange", plan_words(diff.plan))
        if lacks_partners(diff):
            twin = "" if is_foreign(pair.a.summary) else " A twin of A would have one for each."
            note(f"Calls without a partner cannot be compared one by one.{twin}")
    if _by_itself(diff):
        said("No difference", "green", "Every call and every cell of one run is the same in the other.")
    if diff.notes:
        note(" ".join(diff.notes))
    if diff.hints:
        hints(pair, diff, _go)


def _onward(pair: Pair, diff: Diff) -> None:
    """What may be done about the differences."""
    if diff.plan is not None and (diff.plan.a or diff.plan.b):
        first = diff.plan.a or only_in_b(diff.plan.b)
        st.button("Show the code that differs first", on_click=_go, args=(first,), key="compare-plan")
    if (why := not_again(pair.a.summary)) is not None:
        if lacks_partners(diff) or diff.frontier:
            st.caption(f"No twin and no proof: {why}")
        return
    if lacks_partners(diff) and st.button("Make a twin of A", key="compare-twin", help=_TWIN):
        page, query = diagnose_link(pair.a.run_id)
        st.switch_page(page, query_params=query)
    worth = diff.frontier and diff.answers.same is not True
    if worth and st.button("Find the minimal cause", key="compare-cause", type="primary", help=_CAUSE):
        page, query = diagnose_link(pair.a.run_id, good=pair.b.run_id)
        st.switch_page(page, query_params=query)


_TWIN: Final = "The same cells with all sub-calls asked again: its calls can be compared one by one with A's."
_CAUSE: Final = "Replays A with replies of B, to prove which of the differences changed the answer."


def _list_and_row(pair: Pair, diff: Diff) -> None:
    shape = _shape(diff)
    row = _chosen(diff, shape.kind)
    lines = pair.once("lines", shape, lambda: lines_of(diff, pair.a, pair.b, shape))
    stops = pair.once("stops", shape.kind, lambda: _stops(diff, shape.kind))
    _tools(pair, diff, lines, shape)
    if lines.listed:
        compare_tree(
            lines, runs=pair.name, shape=str(shape), selected=key_of(row) if row else "", on_select=_go
        )
    else:
        note("No row fits.")
    if row is None:
        return
    if key_of(row) not in pair.once("listed", shape, lambda: {line.key for line in lines.lines}):
        note("The row that is shown below is not in the list.")
    with st.container(border=True, key="compare-row"):
        compare_detail(pair, row, _ways(diff, row, stops), _go)


def _tools(pair: Pair, diff: Diff, lines: Lines, shape: Shape) -> None:
    """Which rows are listed, and how many are not."""
    kinds = pair.once("kinds", None, lambda: {row.kind for row in diff.rows})
    offered = ["", *(kind for kind in KINDS if kind in kinds)]
    st.session_state["compare-kind"] = shape.kind
    st.session_state["compare-all"] = not shape.everything
    with st.container(horizontal=True, gap="medium", vertical_alignment="center", key="compare-tools"):
        st.segmented_control(
            "Kind of row", offered, format_func=lambda kind: KINDS.get(kind, "All"), key="compare-kind",
            required=True, on_change=_kind_chosen, label_visibility="collapsed",
        )  # fmt: skip
        st.toggle("Only differences", key="compare-all", on_change=_all_chosen, args=(diff,))
        words = counted(lines.listed, "row")
        if lines.hidden:
            words += f"; {lines.hidden:,} more not listed"
        if lines.attempts:
            words += f"; {counted(lines.attempts, 'attempt')} in the rows of their calls"
        st.caption(words, width="content")


def _shape(diff: Diff) -> Shape:
    """The rows that the address asks for; a kind that is not there is said, and left out."""
    kind = st.query_params.get(_KIND, "")
    if kind and kind not in KINDS:
        problem(f"There are no rows of the kind “{kind[:_ADDRESS_CHARS]}”; all are listed.")
        kind = ""
    asked = st.query_params.get(_EVERYTHING)
    if asked is None:
        return Shape(_by_itself(diff), kind)
    if asked not in ("0", "1"):
        problem(f"“all” is 0 or 1, not “{asked[:_ADDRESS_CHARS]}”; the differences are listed.")
    return Shape(asked == "1", kind)


def _chosen(diff: Diff, kind: str) -> Row | None:
    """The row of the address, else the one to begin with."""
    ref = st.query_params.get(ROW, "")
    if ref:
        found = find_row(diff, ref)
        if found is not None:
            return hinted(diff, found)
        problem(f"Neither run has a span “{ref[:_ADDRESS_CHARS]}”.")
    return first_row(diff, kind)


def _stops(diff: Diff, kind: str) -> list[int]:
    """The places of the rows that differ, of one kind or of all."""
    return [
        place
        for place, row in enumerate(diff.rows)
        if (row.kind == kind if kind else True) and (is_difference(row) or (kind and row.status != "same"))
    ]


def _ways(diff: Diff, row: Row, stops: list[int]) -> tuple[str, str | None, str | None]:
    """Where a row stands among those that differ, and which of them come before and after it."""
    place = next(at for at, other in enumerate(diff.rows) if key_of(other) == key_of(row))
    before, after = bisect_left(stops, place), bisect_right(stops, place)
    words = f"{counted(len(stops), 'difference')}"
    if after > before:
        words = f"Difference {after:,} of {len(stops):,}"
    return (
        words,
        key_of(diff.rows[stops[before - 1]]) if before else None,
        key_of(diff.rows[stops[after]]) if after < len(stops) else None,
    )


def _go(key: str) -> None:
    st.query_params[ROW] = key
    st.query_params.pop(WITH, None)


def _kind_chosen() -> None:
    put(_KIND, st.session_state["compare-kind"])


def _all_chosen(diff: Diff) -> None:
    everything = not st.session_state["compare-all"]
    put(_EVERYTHING, None if everything == _by_itself(diff) else str(int(everything)))


def _by_itself(diff: Diff) -> bool:
    """Whether everything is listed without being asked for."""
    return not any(map(is_difference, diff.rows))
