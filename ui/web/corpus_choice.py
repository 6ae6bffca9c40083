"""Choosing what a question is asked over: a sample, uploads, a path on this machine, a known corpus.

The address says what is chosen: `corpus` (its id), `reading` (the ticket of documents that are being read) or
`sample` (its name). A page that is loaded anew, or in another tab, begins with that.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from rlm_core.corpus import Corpus
from rlm_core.errors import InputError
from traces.home import Home
from ui.figures import counted
from ui.web import additions, new_documents, samples, stored
from ui.web.address import keep
from ui.web.corpus_card import card
from ui.web.new_documents import Chosen
from ui.web.notices import problem

SOURCES: Final = {
    "sample": "Sample",
    "upload": "Upload",
    "path": "Path",
    "saved": "Known corpus",
}
SOURCE_KEY: Final = "ask-source"
SAVED_KEY: Final = "ask-saved"
QUESTION_KEY: Final = "ask-question"
_SAMPLE_KEY: Final = "ask-sample"
_FIRST_SAMPLE: Final = "contracts"
_ADDRESS: Final = ("corpus", "reading", "sample")
_UNKNOWN: Final = {
    "corpus": "there is no corpus {!r} here (any more); choose another",
    "sample": "there is no sample corpus {!r}; choose another",
    "reading": "what the address calls reading {!r} is not known (any more); add the documents again",
}


def choose(home: Home) -> Chosen:
    """The fields for the corpus; what they give is asked for when the run is started."""
    source = st.segmented_control(
        "Corpus",
        list(SOURCES),
        default="sample",
        required=True,
        format_func=lambda name: SOURCES[name],
        key=SOURCE_KEY,
        persist_state="session",
    )
    fields = {"sample": _sample, "upload": new_documents.upload, "path": new_documents.path, "saved": _saved}
    chosen = fields[source or "sample"](home)
    for name in _ADDRESS:
        if chosen.address is not None and name == chosen.address[0]:
            keep(name, chosen.address[1])
        else:
            st.query_params.pop(name, None)
    return chosen


def as_addressed(home: Home) -> bool:
    """In a new session: put the fields on what the address names. False when it names nothing.

    What is not there (any more) is said in one sentence. To be called before the fields are shown.
    """
    given = next(((name, st.query_params[name]) for name in _ADDRESS if name in st.query_params), None)
    if given is None:
        return False
    name, value = given
    if name == "corpus" and stored.is_known(home, value):
        choose_saved(value)
    elif name == "sample" and any(sample.name == value for sample in samples.samples()):
        st.session_state[SOURCE_KEY], st.session_state[_SAMPLE_KEY] = "sample", value
    elif name == "reading" and (state := additions.look_at(home, value)) is not None:
        st.session_state[SOURCE_KEY] = new_documents.resume(home, state)
    else:
        problem(_UNKNOWN[name].format(value))
    return True


def choose_saved(corpus_id: str) -> None:
    """Put the fields on a corpus of the home. To be called before they are shown, as in a callback."""
    st.session_state[SOURCE_KEY] = "saved"
    st.session_state[SAVED_KEY] = corpus_id


# -- samples


def _sample(home: Home) -> Chosen:
    known = {sample.name: sample for sample in samples.samples()}
    if not known:
        st.text("This installation has no sample corpora.")
        return _nothing("There is no sample corpus: choose another source.")
    names = list(known)
    name = st.selectbox(
        "Sample corpus",
        names,
        index=names.index(_FIRST_SAMPLE) if _FIRST_SAMPLE in known else 0,
        format_func=lambda name: f"{name.replace('_', ' ')} · {counted(known[name].documents, 'document')}",
        key=_SAMPLE_KEY,
        persist_state="session",
    )
    sample = known[name]
    st.selectbox(
        "Suggested questions",
        sample.questions,
        index=None,
        placeholder=f"{counted(len(sample.questions), 'question')} to begin with",
        key=f"ask-suggested-{name}",
        on_change=_take_question,
        args=(f"ask-suggested-{name}",),
    )
    return Chosen(
        lambda: Corpus.add([sample.folder], home.corpora),
        chars=sample.bytes,
        address=None if name == _FIRST_SAMPLE else ("sample", name),
    )


def _take_question(key: str) -> None:
    if st.session_state[key]:
        st.session_state[QUESTION_KEY] = st.session_state[key]


# -- a known corpus


def _saved(home: Home) -> Chosen:
    found = stored.listed(home)
    if not found:
        st.text("No corpus was added to this home yet: upload documents, or give a path.")
        return _nothing("There is no known corpus yet: choose another source.")
    labels = {info.corpus_id: stored.label(info) for info in found}
    if st.session_state.get(SAVED_KEY) not in labels:
        st.session_state.pop(SAVED_KEY, None)
    chosen = st.selectbox(
        "Known corpora, newest first",
        list(labels),
        format_func=lambda corpus_id: labels[corpus_id],
        key=SAVED_KEY,
        persist_state="session",
    )
    try:
        corpus = stored.load(home, chosen)
    except InputError as error:
        problem(error)
        return _nothing(str(error))
    card(home, corpus)
    return Chosen(lambda: corpus, corpus_id=corpus.corpus_id, chars=corpus.chars, address=("corpus", chosen))


def _nothing(sentence: str) -> Chosen:
    def refuse() -> Corpus:
        raise InputError(sentence)

    return Chosen(refuse)
