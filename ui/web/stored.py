"""The corpora of a home as pages need them at every interaction: read again only when something changed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import streamlit as st

from rlm_core.corpus import Corpus, CorpusInfo
from rlm_core.errors import CorpusError
from traces.home import Home
from ui.figures import counted
from ui.visible import fit, line

CHANGES_CHECKED: Final = 2_000  # documents: of a larger corpus a list does not look at every file
_CHECK_SECONDS: Final = 20.0  # how long a look at the files of a corpus is good for
_NAME_COLUMNS: Final = 48

Stamp = tuple[str, int, int, int]


def listed(home: Home) -> list[CorpusInfo]:
    """Every corpus, newest first."""
    stamps = (_stamp(path) for path in home.corpora.glob("[0-9a-f]*/manifest.json"))
    return _listed(str(home.corpora), tuple(sorted(stamp for stamp in stamps if stamp)))


def load(home: Home, corpus_id: str) -> Corpus:
    """A corpus. Raises CorpusError when it is not there or cannot be used."""
    stamp = _stamp(home.corpora / corpus_id / "manifest.json")
    return _load(str(home.corpora), corpus_id, stamp) if stamp else Corpus.load(home.corpora, corpus_id)


def is_known(home: Home, corpus_id: str | None) -> bool:
    """Whether the home holds a corpus of this id."""
    return any(info.corpus_id == corpus_id for info in listed(home))


def changed(home: Home, corpus_id: str) -> list[str]:
    """Names of documents whose files are gone or look different. Raises CorpusError."""
    stamp = _stamp(home.corpora / corpus_id / "manifest.json")
    return _changed(str(home.corpora), corpus_id, stamp) if stamp else []


def changes(home: Home, infos: Iterable[CorpusInfo]) -> list[str]:
    """For each corpus of a list, how many of its files have changed, in words."""
    return [_changes(home, info) for info in infos]


def _changes(home: Home, info: CorpusInfo) -> str:
    if info.broken is not None:
        return "unknown"
    if info.documents > CHANGES_CHECKED:
        return "open to check"
    try:
        count = len(changed(home, info.corpus_id))
    except CorpusError:
        return "unknown"
    return f"{count:,}" if count else "none"


def label(info: CorpusInfo) -> str:
    """A corpus in one line of a select box: its name, size and the beginning of its id."""
    if info.broken is not None:
        return f"{info.corpus_id} · cannot be used"
    size = f"{counted(info.documents, 'document')}, {info.chars:,} characters"
    return f"{fit(line(info.name), _NAME_COLUMNS)} · {size} · {info.corpus_id[:8]}"


def _stamp(manifest: Path) -> Stamp | None:
    """What differs when a manifest was written again; None when there is none."""
    try:
        found = manifest.stat()
    except (OSError, ValueError):  # an id from an address may be no name of a file
        return None
    return str(manifest), found.st_mtime_ns, found.st_ino, found.st_ctime_ns


@st.cache_data(max_entries=8, show_spinner=False)
def _listed(corpora: str, stamps: tuple[Stamp, ...]) -> list[CorpusInfo]:
    return Corpus.list(Path(corpora))


@st.cache_resource(max_entries=16, show_spinner=False)
def _load(corpora: str, corpus_id: str, stamp: Stamp) -> Corpus:
    return Corpus.load(Path(corpora), corpus_id)


@st.cache_data(max_entries=500, ttl=_CHECK_SECONDS, show_spinner=False)
def _changed(corpora: str, corpus_id: str, stamp: Stamp) -> list[str]:
    return _load(corpora, corpus_id, stamp).changed()
