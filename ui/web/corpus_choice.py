"""Choosing what a question is asked over: a sample, uploads, a path on this machine, a known corpus."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import streamlit as st

from rlm_core.corpus import Corpus
from rlm_core.errors import InputError
from traces.home import Home
from ui.figures import counted
from ui.sources import corpus_problems
from ui.web import launch, plain, samples, uploads
from ui.web.notices import problem, said

Ready = Callable[[], Corpus]  # gives the chosen corpus; raises InputError, which says what to do
SOURCES: Final = {
    "sample": "Sample",
    "upload": "Upload",
    "path": "Path",
    "saved": "Known corpus",
}
SOURCE_KEY: Final = "ask-source"
SAVED_KEY: Final = "ask-saved"
QUESTION_KEY: Final = "ask-question"
MAX_UPLOAD_MB: Final = 200
_FIRST_SAMPLE: Final = "contracts"
_PROBLEMS_HEIGHT: Final = 150  # pixels
_NAMES_SHOWN: Final = 6


def choose(home: Home) -> Ready:
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
    fields = {"sample": _sample, "upload": _upload, "path": _path, "saved": _saved}
    return fields[source or "sample"](home)


def choose_saved(corpus_id: str) -> None:
    """Put the fields on a corpus of the home. To be called before they are shown, as in a callback."""
    st.session_state[SOURCE_KEY] = "saved"
    st.session_state[SAVED_KEY] = corpus_id


def is_known(home: Home, corpus_id: str | None) -> bool:
    """Whether the home holds a corpus of this id."""
    return corpus_id is not None and any(path.parent.name == corpus_id for path in _manifests(home))


def _manifests(home: Home) -> list[Path]:
    return list(home.corpora.glob("*/manifest.json"))


# -- samples


def _sample(home: Home) -> Ready:
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
        key="ask-sample",
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
    return lambda: Corpus.add([sample.folder], home.corpora)


def _take_question(key: str) -> None:
    if st.session_state[key]:
        st.session_state[QUESTION_KEY] = st.session_state[key]


# -- uploads


@dataclass
class _Uploaded:
    """What this session has uploaded: where the files are, and the corpus of those listed at the moment."""

    ticket: str
    kept: dict[str, Path]
    listed: tuple[str, ...] = ()
    corpus: Corpus | None = None
    error: str | None = None


def _upload(home: Home) -> Ready:
    state: _Uploaded = st.session_state.setdefault("ask-upload", _Uploaded(launch.new_ticket(), {}))
    files = st.file_uploader(
        "Documents",
        accept_multiple_files=True,
        max_upload_size=MAX_UPLOAD_MB,
        key="ask-files",
        on_change=_files_changed,
        help="For more than that, or for a whole folder, give its path instead.",
    )
    listed = tuple(file.file_id for file in files)
    if files and listed != state.listed:
        with st.spinner(f"Reading {counted(len(files), 'file')}"):
            _read(home, state, files)
        state.listed = listed
    if state.error is not None:
        problem(state.error)
    if state.corpus is not None:
        _card(home, state.corpus)
    return lambda: _uploaded(state)


def _files_changed() -> None:
    """Files that the user takes off the list are no longer meant; leaving the page takes nothing off."""
    if not st.session_state["ask-files"]:
        state = st.session_state["ask-upload"]
        state.listed, state.corpus, state.error = (), None, None


def _read(home: Home, state: _Uploaded, files: list[Any]) -> None:
    state.corpus = state.error = None
    try:
        state.corpus = Corpus.add(uploads.keep(home, state.ticket, files, state.kept), home.corpora)
    except InputError as error:
        state.error = str(error)


def _uploaded(state: _Uploaded) -> Corpus:
    if state.corpus is None:
        raise InputError(state.error or "No documents are uploaded yet.")
    return state.corpus


# -- a path, a known corpus


def _path(home: Home) -> Ready:
    given = st.text_input(
        "File or folder on the machine where this app runs",
        key="ask-path",
        placeholder="/data/contracts",
        persist_state="session",
        on_change="ignore",
    )
    known: dict[str, Corpus] = st.session_state.setdefault("ask-read", {})
    if st.button("Read it now", key="ask-read-now", help="Starting does this too, if it was not done."):
        try:
            _corpus_at(home, given or "", known)
        except InputError as error:
            problem(error)
    if given in known:
        _card(home, known[given])
    return lambda: known[given] if given in known else _corpus_at(home, given or "", known)


def _corpus_at(home: Home, given: str, known: dict[str, Corpus]) -> Corpus:
    known.clear()
    if not given.strip():
        raise InputError("Give the path of a file or folder.")
    with st.spinner("Reading the documents"):
        known[given] = Corpus.add([Path(given.strip()).expanduser()], home.corpora)
    return known[given]


def _saved(home: Home) -> Ready:
    found = sorted(_manifests(home), key=lambda path: path.stat().st_mtime, reverse=True)
    if not found:
        st.text("No corpus was added to this home yet: upload documents, or give a path.")
        return _nothing("There is no known corpus yet: choose another source.")
    labels = {path.parent.name: _label(str(path), path.stat().st_mtime_ns) for path in found}
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
        corpus = Corpus.load(home.corpora, chosen)
    except InputError as error:
        return _nothing(str(error))
    _card(home, corpus)
    return lambda: corpus


@st.cache_data(max_entries=2000, show_spinner=False)
def _label(manifest: str, _changed_ns: int) -> str:
    """A corpus in a list: its id and size, no names. `_changed_ns` makes a changed manifest be read again."""
    corpus_id = Path(manifest).parent.name
    try:
        facts = json.loads(Path(manifest).read_text("utf-8"))
        size = f"{counted(len(facts['documents']), 'document')}, {facts['chars']:,} characters"
    except (OSError, ValueError, LookupError, TypeError):
        size = "cannot be read"
    return f"{corpus_id} · {size}"


def _nothing(sentence: str) -> Ready:
    def refuse() -> Corpus:
        raise InputError(sentence)

    return refuse


# -- what is in it


def _card(home: Home, corpus: Corpus) -> None:
    """What a corpus holds, and one line for each file that could not be read as it should."""
    names = [document.name for document in corpus.documents[:_NAMES_SHOWN]]
    more = "" if len(names) == len(corpus.documents) else ", …"
    size = f"{counted(len(corpus.documents), 'document')}, {corpus.chars:,} characters"
    said(size, "green", ", ".join(names) + more)
    problems = corpus_problems(corpus)
    if not problems:
        return
    ours = home.root / uploads.FOLDER  # a user knows an uploaded file by its name alone
    paths = [Path(found["path"]) for found in problems]
    names = [path.name if path.is_relative_to(ours) else str(path) for path in paths]
    lines = [f"{name}: {found['message']}" for name, found in zip(names, problems, strict=True)]
    st.badge(counted(len(lines), "file with a problem", "files with a problem"), color="orange")
    with st.container(height=_PROBLEMS_HEIGHT if len(lines) > 4 else "content", border=False):
        plain.text("\n".join(lines))
