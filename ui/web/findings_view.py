"""The view `findings` of a run: what in it a person should know, and the suspects with their evidence."""

from __future__ import annotations

from typing import Final

import streamlit as st

from traces.finding import Finding
from traces.findings import findings
from traces.narrow import SUSPECT
from traces.reading import RunView
from traces.suspects import Suspect, unseen_words
from ui.web import plain
from ui.web.notices import Colour, note
from ui.web.places import diagnose_link, href, run_link
from ui.web.rows_view import Column, Item, rows_view
from ui.web.run_record import Record, Select
from ui.web.span_paths import title
from ui.web.ways import narrow_tree, open_view, way

COLOURS: Final[dict[str, Colour]] = {"serious": "red", "check": "orange", "note": "gray"}
_LEGEND: Final = (
    "From the record alone; no model was asked. Serious: the answer lacks something or stands on something "
    "broken. Check: it may. What is not listed may still be wrong."
)
_NOTHING: Final = (
    "Nothing was found. That is no proof: the rules know broken, empty and odd replies, limits and gaps, not "
    "whether a plausible reply is true."
)
_SPANS: Final = 5  # of one finding that are linked by name
_SUSPECTS: Final = 50
_TESTED: Final = "suspect-tested"  # in the session: the suspect whose reply is to be tested
_COVERAGE: Final = ("never_sent", "unanswered", "unread")


def found_in(record: Record) -> tuple[Finding, ...]:
    """The findings of a run, worked out once."""

    def make(view: RunView) -> tuple[Finding, ...]:
        return findings(view, record.suspects)

    return record.once(make, "findings")


def show(record: Record, select: Select) -> None:
    """Draw the findings, the serious ones first, and the suspects, the most suspicious first."""
    with st.spinner("Looking for what is wrong …", show_time=False):
        found = found_in(record)
    st.caption(_LEGEND)
    if record.view.live:
        note("The run goes on: what needs its end is not looked for yet.")
    if not found:
        plain.text(_NOTHING)
    for number, finding in enumerate(found):
        _finding(record.view, finding, number, select)
    if record.suspects:
        _suspects(record.view, record.suspects, select)


def _finding(view: RunView, finding: Finding, number: int, select: Select) -> None:
    with st.container(horizontal=True, gap="small", key=f"finding-{number}"):
        with st.container(width=76):
            st.badge(finding.severity, color=COLOURS[finding.severity])
        with st.container(width="stretch", gap=None):
            plain.text(finding.words)
            with st.container(horizontal=True, gap="small"):
                _ways(view, finding, number, select)


def _ways(view: RunView, finding: Finding, number: int, select: Select) -> None:
    """To the spans of a finding, and to all of them where the tree can be narrowed to them."""
    key = f"to-{number}"
    for span_id in finding.spans[:_SPANS]:
        way(f":blue[{place(view, span_id)}]", f"{key}-{span_id}", select, span_id)
    more = len(finding.spans) - _SPANS
    if finding.signal is not None:
        label = f"all {finding.count:,} in the tree" if more > 0 else "in the tree"
        way(f":blue[{label}]", f"{key}-tree", narrow_tree, finding.signal)
    elif more > 0:
        st.caption(f"and {more:,} more", width="content")
    if finding.kind in _COVERAGE:
        way(":blue[Coverage]", f"{key}-coverage", open_view, "coverage")


def _test(span_id: str) -> None:
    st.session_state[_TESTED] = span_id


def place(view: RunView, span_id: str) -> str:
    """Where a span is, in words of ours and numbers: `llm_query 17 in cell 1`."""
    span = view.by_id[span_id]
    if span.kind == "root_call" and span.iteration is not None:
        inside = f" of iteration {span.iteration}"
    else:
        inside = f" in cell {span.cell}" if span.cell is not None and span.kind != "cell" else ""
    below = f", depth {span.depth}" if span.depth and span.kind != "run" else ""
    return f"{title(span)}{inside}{below}"


def _suspects(view: RunView, suspects: dict[str, Suspect], select: Select) -> None:
    st.markdown("##### Suspects")
    st.caption(
        "Sub-calls that look wrong, the most suspicious first: places to look at first, not proofs. Siblings "
        "are the calls that the same line of the same cell made. Suspicion counts less where the answer does "
        f"not seem to rest on the call. {unseen_words(len(suspects))}"
    )
    rows = [
        Item(
            span_id,
            (
                place(view, span_id),
                f"{suspect.score:.2f}",
                _evidence(suspect),
                view.by_id[span_id].preview if view.by_id[span_id].response_chars else "",
            ),
            href(run_link(view.run_id, span_id)),
        )
        for span_id, suspect in list(suspects.items())[:_SUSPECTS]
    ]
    columns = (
        Column("Sub-call", 170),
        Column("Suspicion", 80, right=True),
        Column("Evidence"),
        Column("Reply"),
    )
    rows_view(
        rows, columns, key="suspects", label="Suspects", on_open=select, actions=("Test",),
        on_action=lambda _, span_id: _test(span_id),
    )  # fmt: skip
    if (wanted := st.session_state.pop(_TESTED, None)) in suspects:
        page, query = diagnose_link(view.run_id, span_id=wanted)
        st.switch_page(page, query_params=query)
    if len(suspects) > _SUSPECTS:
        way(f":blue[All {len(suspects):,} suspects in the tree]", "to-suspects", narrow_tree, SUSPECT)


def _evidence(suspect: Suspect) -> str:
    """What speaks against a call and how the answer may rest on it, as sentences."""
    words = " ".join(signal.words for signal in suspect.signals)
    return f"{words.removesuffix('.')}. {suspect.reach}" if suspect.reach else words
