"""From the answer back to where it comes from, as a strip: answer, cells, calls, passages.

Edges that replays have shown are told apart from candidates, which names and shared words suggest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.diagnosis_state import State
from traces.lineage import BASES, Lineage, lineage, other_replies
from traces.proving import kept_edges, proven_edges, tried_spans
from ui.figures import counted
from ui.web import plain
from ui.web.culprit_view import sources_of_span
from ui.web.diagnose_history import kept_diagnoses
from ui.web.findings_view import place
from ui.web.notices import problem
from ui.web.places import document_link, run_link
from ui.web.run_record import Record

_CULPRITS: Final = 4
_LEGEND: Final = (
    "From the answer back to the document. Proven: a replay in which only this was replaced came out "
    "differently there. Candidate: names of variables or shared words suggest it."
)
_PROVING: Final = (
    "Plays the run again with the reply of one call changed and all others as recorded, once for each call "
    "whose way is not proven."
)
_TRIED: Final = "A replay with another reply changed nothing that can be seen here; that proves nothing."
Prove = Callable[[Sequence[str]], None]


def strip(record: Record, state: State, prove: Prove) -> None:
    """Draw the way from the answer to each culprit of a diagnosis (to each span of a proof), and on to the
    passages it read. `prove` starts a proof of the candidates that stand on these ways."""
    shown = [one for one in _spans(state) if one in record.view.by_id]
    if not shown:
        return
    try:
        kept = [one for one in kept_diagnoses(record.home, record.view.run_id) if one.status != "running"]
        edges = (*proven_edges(state.diagnosis or {}, record.view), *kept_edges(kept, record.view))
        known, tried = record.once(lineage).with_edges(edges), tried_spans(kept)
        with st.container(key="lineage", gap="xsmall"):
            for number, span_id in enumerate(shown[:_CULPRITS]):
                _line(record, known, span_id, number, span_id in tried)
            more = len(shown) - _CULPRITS
            st.caption(_LEGEND + (f" {counted(more, 'more culprit')} below." if more > 0 else ""))
            _offer(record, known, [one for one in shown[:_CULPRITS] if one not in tried], prove)
    except RLMScopeError as error:
        problem(error)


def _spans(state: State) -> list[str]:
    """The culprits of a diagnosis, the spans of a proof."""
    if state.task == "prove":
        return [patch["span_id"] for trial in state.trials for patch in trial["patches"]]
    found = (state.diagnosis or {}).get("culprits")
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _offer(record: Record, known: Lineage, span_ids: list[str], prove: Prove) -> None:
    """The button that proves what is not proven yet, of the calls whose reply can be changed."""
    unproven = [one for one in span_ids if not all(proven for _, proven in known.way(one))]
    if unproven and (unproven := list(other_replies(record.view, unproven))):
        label = f"Prove these edges ({counted(len(unproven), 'replay')}, no model call)"
        if st.button(label, key="lineage-prove", help=_PROVING):
            prove(unproven)


def way_back(known: Lineage, span_id: str) -> list[tuple[str, bool]]:
    """The spans from the answer back to a span, which comes last, each with whether it is proven that what
    stands before it depends on that span or, for those between, on the last one.

    See `Lineage.way`.
    """
    steps = known.way(span_id)
    return [(edge.source, proven) for edge, proven in reversed(steps)] or [(span_id, False)]


def _line(record: Record, known: Lineage, span_id: str, number: int, tried: bool) -> None:
    view = record.view
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"lineage-{number}"):
        st.badge("answer", color="gray")
        with st.container(width="content"):
            plain.text(_short(view.summary.answer or "(none)"))
        for source, proven in way_back(known, span_id):
            _arrow(proven, tried)
            page, query = run_link(view.run_id, source)
            st.page_link(page, label=f":blue[{place(view, source)}]", query_params=query)
        _passage(record, span_id)


def _arrow(proven: bool, tried: bool) -> None:
    if proven:
        st.badge("← proven", color="green", help=BASES["changed"])
    else:
        st.badge("← candidate", color="gray", help=_TRIED if tried else None)


def _passage(record: Record, span_id: str) -> None:
    found = sources_of_span(record, record.view.by_id[span_id])
    if found is None or not found.passages:
        return
    first = found.passages[0]
    st.badge("← read", color="gray")
    with st.container(width="content"):
        plain.text(_short(", ".join(part for part in (first.document, first.place or "") if part)))
    if found.corpus_id is not None and first.problem is None:
        page, query = document_link(found.corpus_id, first.number, first.start, first.end)
        st.page_link(page, label=":blue[Open]", query_params=query)


def _short(text: str) -> str:
    even = " ".join(text.split())
    return even if len(even) <= 60 else even[:59] + "…"
