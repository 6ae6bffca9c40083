"""What an answer may rest on, on a page: sub-calls, what they said, and the passages they were given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import streamlit as st

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from traces.evidence import Evidence, Support, evidence
from traces.home import Home
from traces.reading import RunView
from traces.shared_values import values_of
from traces.tree import outcome
from ui.answer_text import Cited
from ui.figures import counted
from ui.passages import Passage, passage_line, sources_of
from ui.visible import line
from ui.web import plain, stored
from ui.web.notices import said
from ui.web.places import document_link, run_link
from ui.web.run_record import Record
from ui.web.span_paths import title

FIRST: Final = 5  # calls that are shown at once
_MORE: Final = 10
MOST: Final = 205  # calls on one page; all of them are in the run's tree
_PASSAGES: Final = 3  # of one call
_TEXT_CHARS: Final = 320  # of a passage or response
_BEFORE_CHARS: Final = 80  # of them before the value that is shared
_SHOWN: Final = "passages"  # in the address: how many calls are shown
CANDIDATES: Final = (
    "These are candidates, found by the names of variables and by shared words: no proof that the answer "
    "follows from them."
)
_BASIS: Final = {
    "read": "The cell that set the answer read what came from {calls} of {cells}.",
    "printed": "The root model wrote the answer after {printed} had printed it, and that one read what came "
    "from {calls} of {cells}.",
    "shown": "No variable leads from a sub-call to the answer: the root model may have written it from what "
    "it had been shown, by any of the {calls} before it.",
    "code": "No sub-call leads to this answer: no model read a passage for it. Code in the cells worked "
    "it out of the documents, or the root model wrote it by itself.",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A call with what there is to show of it, and the corpus its passages can be opened in."""

    support: Support
    cited: Cited
    corpus_id: str | None


def basis_words(found: Evidence) -> str:
    """How these calls were found, in sentences of ours."""
    cells = [cell.cell for cell in found.cells if cell.cell is not None]
    named = ", ".join(f"{number:,}" for number in cells[:6]) + (", …" if len(cells) > 6 else "")
    words = _BASIS[found.basis].format(
        calls=counted(len(found.supports), "sub-call"),
        cells=f"{'cell' if len(cells) == 1 else 'cells'} {named}" if cells else "its cells",
        printed=title(found.printed) if found.printed is not None else "a cell",
    )
    return words if found.basis == "code" else f"{words} {CANDIDATES}"


def evidence_view(home: Home, record: Record) -> None:
    """Show the likeliest calls of a run that has an answer, each with its passages, and how many more there
    are."""
    found = _found(record)
    with st.container(key="evidence", gap="small"):
        st.markdown("##### What it may rest on")
        st.text(basis_words(found))
        if remark := _order_words(found):
            st.caption(remark)
        wanted = _wanted(len(found.supports))
        for number, one in enumerate(shown_of(home, record.view, found.supports[:wanted]), 1):
            _call(record.view, number, one)
        _rest(record.view, found, wanted)


def _found(record: Record) -> Evidence:
    with st.spinner("Looking for what the answer rests on", show_time=True):
        return record.once(evidence)


def _order_words(found: Evidence) -> str:
    """How many share something, and what was compared."""
    if not found.supports:
        return ""
    answer = sum(bool(one.answer or one.documents) for one in found.supports)
    question = sum(bool(one.question) for one in found.supports)
    shared = [
        f"the {count:,} that share a value with the {what}"
        for what, count in (("answer", answer), ("question", question))
        if count
    ]
    words = "None of them shares a value with answer or question."
    if shared:
        words = f"First {', then '.join(shared)}."
    return words if found.whole else f"{words} Of each response only the first 200 characters were compared."


def _wanted(most: int) -> int:
    given = st.query_params.get(_SHOWN, "")
    asked = int(given) if given.isdecimal() and len(given) < 6 else FIRST
    return min(max(asked, FIRST), most, MOST)


def _rest(view: RunView, found: Evidence, shown: int) -> None:
    left = len(found.supports) - shown
    with st.container(horizontal=True, vertical_alignment="center"):
        if left and shown < MOST:
            more = min(_MORE, left, MOST - shown)
            st.button(
                f"Show {more} more", key="evidence-more", on_click=_show_more, args=(shown + more,),
                help=f"{left:,} more sub-calls are candidates.",
            )  # fmt: skip
        if left:
            st.caption(f"{left:,} more; all of them are in the run's tree.", width="content")
        elif found.basis == "code" and found.cells:
            page, query = run_link(view.run_id, found.cells[-1].span_id)
            st.page_link(page, label="See the code", icon=":material/code:", query_params=query)


def _show_more(count: int) -> None:
    st.query_params[_SHOWN] = str(count)


# -- one call


def shown_of(home: Home, view: RunView, supports: Iterable[Support]) -> list[Shown]:
    """Calls with their responses and passages, read now: a corpus may be gone since the run."""
    listed = list(supports)
    digests = [_digest(one) for one in listed]
    texts = view.payloads({digest for digest in digests if digest})
    return [
        _shown(home, view, one, texts.get(digest, "")) for one, digest in zip(listed, digests, strict=True)
    ]


def _digest(support: Support) -> str:
    prefix = sc.ANSWER if support.span.kind == "run" else sc.RESPONSE
    digest = support.span.attributes.get(prefix + ".sha256")
    return digest if isinstance(digest, str) else ""


def _shown(home: Home, view: RunView, support: Support, response: str) -> Shown:
    def load(_corpora: Path, corpus_id: str) -> Corpus:
        return stored.load(home, corpus_id)

    try:
        raw = support.span.attributes.get(sc.SOURCE_RANGES)
        value = json.loads(raw) if isinstance(raw, str) else None
    except (ValueError, RecursionError):
        value = None
    sources = sources_of(view, support.span, value, home.corpora, load)
    passages = sources.passages if sources is not None else []
    remarks = sources.words if sources is not None else ["It is not recorded where its text came from."]
    if passages:
        remarks = remarks[1:]  # that they stand there word for word is what a passage is
        if len(passages) > _PASSAGES:
            more = counted(len(passages) - _PASSAGES, "more passage")
            remarks = [*remarks, f"{more}: open the sub-call."]
    cited = Cited(
        title(support.span),
        support.span.span_id,
        why(support),
        response,
        _telling(passages, support),
        remarks,
    )
    return Shown(support, cited, sources.corpus_id if sources is not None else None)


def _telling(passages: Sequence[Passage], support: Support) -> list[Passage]:
    """The passages that are shown. Those that say what the response shares with the answer go before those
    that do not, then those with what it shares with the question: a prompt often holds the head of a document
    beside the place that matters. Of one document they stand in the order of its text."""
    wanted = [values_of(" ".join(texts)).keys() for texts in (support.answer, support.question)]

    def rank(one: Passage) -> tuple[int, ...]:
        values = values_of(one.text).keys()
        return tuple(-len(values & some) for some in wanted)

    chosen = sorted(passages, key=rank)[:_PASSAGES]
    documents = list(dict.fromkeys(one.number for one in chosen))
    return sorted(chosen, key=lambda one: (documents.index(one.number), one.start))


def why(support: Support) -> str:
    """Why this call stands where it stands; holds words of a model."""
    parts = []
    if support.answer:
        parts.append(f"says {_quoted(support.answer)}, as the answer does")
    if support.documents:
        parts.append(f"read {_quoted(support.documents)}, which the answer names")
    if support.question and not parts:
        parts.append(f"says {_quoted(support.question)}, as the question does")
    words = " and ".join(parts) or "shares no value with the answer or the question"
    return words[0].upper() + words[1:] + "."


def _quoted(values: Sequence[str]) -> str:
    return ", ".join(f"“{line(value)[:60]}”" for value in values)


def _call(view: RunView, number: int, shown: Shown) -> None:
    span, cited = shown.support.span, shown.cited
    with st.container(border=True, gap="xsmall", key=f"evidence-{number}"):
        with st.container(horizontal=True, vertical_alignment="center"):
            with st.container(width="stretch"):
                plain.text(f"{number}. {cited.call}: {cited.why}")
            page, query = run_link(view.run_id, span.span_id)
            st.page_link(
                page, label=f"Open call {number}", icon=":material/account_tree:", query_params=query
            )
        if (came := outcome(span)) not in ("ok", "empty"):
            said(came, "red", "This call gave no answer that code could use.")
        _quote("Said", cited.response or "(nothing)")
        for place, passage in enumerate(cited.passages, 1):
            _passage(shown, f"{number}.{place}", passage)
        for remark in cited.remarks:
            verbatim = "not verbatim" if remark.startswith("Not verbatim") else "sources"
            word = "not searched" if remark.startswith("Not searched") else verbatim
            said(word, "gray", remark)


def _passage(shown: Shown, number: str, passage: Passage) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(width="stretch"):
            plain.text(passage_line(passage))
        if passage.problem is None and shown.corpus_id is not None:
            page, query = document_link(shown.corpus_id, passage.number, passage.start, passage.end)
            st.page_link(
                page, label=f"Open passage {number}", icon=":material/find_in_page:", query_params=query
            )
    support = shown.support
    _quote("Passage", passage.text or f"({passage.problem})", (*support.answer, *support.question))


def _quote(label: str, text: str, about: Sequence[str] = ()) -> None:
    """Of a text its beginning, or the piece with the first value of `about` in it, under a label of ours."""
    whole = text.strip()
    found = (whole.find(value) for value in about)
    at = next((place for place in found if place >= 0), 0)
    first = max(0, at - _BEFORE_CHARS) if at > _TEXT_CHARS - _BEFORE_CHARS else 0
    last = first + _TEXT_CHARS
    with st.container(gap=None):
        st.caption(label)
        plain.code(("…" if first else "") + whole[first:last] + ("…" if last < len(whole) else ""))
