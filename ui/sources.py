"""What a question is asked over: paths become a corpus, an id or a name is looked up."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_core.errors import CorpusError
from ui.common import say
from ui.corpora import problems as corpus_problems

if TYPE_CHECKING:
    from rlm_core.corpus import Corpus
    from traces.home import Home

__all__ = ["corpus_problems", "open_corpus"]


def open_corpus(home: Home, sources: Sequence[str]) -> Corpus:
    """The corpus of some files and folders, or the one that an id, a prefix of one, or a name stands for.

    What exists as a path is a path; that a corpus has that name too is said. Raises CorpusError when a source
    is neither, when a name or prefix stands for several corpora, when a file of the corpus has changed, or
    when corpora and paths are mixed.
    """
    from rlm_core.corpus import Corpus
    from ui.adding import add_corpus

    missing = [source for source in sources if not source or not os.path.lexists(source)]
    if not missing:
        namesake = _corpus_called(home, sources)
        corpus = add_corpus(home, [Path(source) for source in sources])
        if namesake not in (None, corpus.corpus_id):
            say(f"{sources[0]} is read as the path of that name; for the corpus give its id, {namesake}")
        return corpus
    if len(sources) == 1:
        corpus = Corpus.load(home.corpora, _corpus_id(home, sources[0]))
        corpus.check()
        return corpus
    names = ", ".join(repr(name) for name in missing)
    raise CorpusError(f"no such file or folder: {names} (a corpus can be given only alone)")


def _corpus_called(home: Home, sources: Sequence[str]) -> str | None:
    """The corpus that a single path would stand for if it did not exist."""
    from rlm_core.corpus import Corpus

    if len(sources) == 1:
        with suppress(CorpusError):
            return Corpus.find(home.corpora, sources[0])
    return None


def _corpus_id(home: Home, ref: str) -> str:
    from rlm_core.corpus import Corpus

    if not ref:
        raise CorpusError("an empty text names no file, folder or corpus")
    try:
        return Corpus.find(home.corpora, ref)
    except CorpusError as error:
        raise CorpusError(f"{ref!r} is no file or folder here, and as a corpus: {error}") from None
