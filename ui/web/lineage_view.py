"""From the answer back to where it comes from, as a strip: answer, cells, calls, passages.

Edges that replays have shown are told apart from candidates, which names and shared words suggest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.diagnosis_state import State
from traces.lineage import ANSWER, BASES, Edge, Lineage, lineage
from traces.reading import RunView
from ui.figures import counted
from ui.web import plain
from ui.web.culprit_view import sources_of_span
from ui.web.findings_view import place
from ui.web.notices import problem
from ui.web.places import document_link, run_link
from ui.web.run_record import Record

_CULPRITS: Final = 4
_LEGEND: Final = (
    "From the answer back to the document. Proven: a replay in which only this was replaced came out "
    "differently there. Candidate: names of variables or shared words suggest it."
)


def strip(record: Record, state: State) -> None:
    """Draw the way from the answer to each culprit of a diagnosis, and on to the passages it read."""
    found = state.diagnosis or {}
    culprits = [one for one in _ids(found.get("culprits")) if one in record.view.by_id]
    if not culprits:
        return
    try:
        known = record.once(lineage).with_edges(proven_edges(found, record.view))
        with st.container(key="lineage", gap="xsmall"):
            for number, span_id in enumerate(culprits[:_CULPRITS]):
                _line(record, known, span_id, number)
            more = len(culprits) - _CULPRITS
            st.caption(_LEGEND + (f" {counted(more, 'more culprit')} below." if more > 0 else ""))
    except RLMScopeError as error:
        problem(error)


def proven_edges(found: Mapping[str, Any], view: RunView) -> tuple[Edge, ...]:
    """What the trials of a diagnosis (as JSON) prove: what came out differently when only one span was
    replaced; and that the answer hangs on each member of a minimal set."""
    edges = list(_of_trials(found.get("trials")))
    if found.get("proven") is True:
        edges += [Edge(span_id, ANSWER, "changed", True) for span_id in _ids(found.get("culprits"))]
    known = [edge for edge in edges if edge.source in view.by_id and edge.target in {*view.by_id, ANSWER}]
    return tuple(dict.fromkeys(known))


def _of_trials(trials: object) -> Iterator[Edge]:
    for trial in trials if isinstance(trials, list) else []:
        patches = trial.get("patches") if isinstance(trial, Mapping) else None
        if not isinstance(patches, list) or len(patches) != 1 or not isinstance(patches[0], Mapping):
            continue
        source = str(patches[0].get("span_id"))
        for target in _ids(trial.get("influenced")):
            yield Edge(source, target, "changed", True)
        if trial.get("outcome") in ("fixed", "moved"):
            yield Edge(source, ANSWER, "changed", True)


def _ids(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def way_back(known: Lineage, span_id: str) -> list[tuple[str, bool]]:
    """The spans from the answer back to a span, which comes last, each with whether it is proven that what
    stands before it depends on that span or, for those between, on the last one.

    The way is that of the candidates, which names the cells between; a proven edge straight from the span to
    one of them, or to the answer, makes that step proven.
    """
    proven = {edge.target for edge in known.edges if edge.proven and edge.source == span_id}
    steps = Lineage(tuple(edge for edge in known.edges if not edge.proven), known.whole).path(span_id)
    if not steps:
        return [(span_id, ANSWER in proven)]
    return [(edge.source, edge.target in proven) for edge in reversed(steps)]


def _line(record: Record, known: Lineage, span_id: str, number: int) -> None:
    view = record.view
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"lineage-{number}"):
        st.badge("answer", color="gray")
        with st.container(width="content"):
            plain.text(_short(view.summary.answer or "(none)"))
        for source, proven in way_back(known, span_id):
            _arrow(proven)
            page, query = run_link(view.run_id, source)
            st.page_link(page, label=f":blue[{place(view, source)}]", query_params=query)
        _passage(record, span_id)


def _arrow(proven: bool) -> None:
    if proven:
        st.badge("← proven", color="green", help=BASES["changed"])
    else:
        st.badge("← candidate", color="gray")


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
