"""What a question is asked over: paths become a corpus, a corpus id is looked up."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_core.errors import CorpusError

if TYPE_CHECKING:
    from rlm_core.corpus import Corpus
    from traces.home import Home


def open_corpus(home: Home, sources: Sequence[str]) -> Corpus:
    """The corpus of some files and folders, or the one that an id (or a unique prefix of one) names.

    What exists as a path is a path. Raises CorpusError when a source is neither, or ids and paths are mixed.
    """
    from rlm_core.corpus import Corpus

    missing = [source for source in sources if not source or not os.path.lexists(source)]
    if not missing:
        return Corpus.add([Path(source) for source in sources], home.corpora)
    if len(sources) == 1:
        return Corpus.load(home.corpora, _corpus_id(home, sources[0]))
    names = ", ".join(repr(name) for name in missing)
    raise CorpusError(f"no such file or folder: {names} (a corpus id can be given only alone)")


def _corpus_id(home: Home, ref: str) -> str:
    ids = sorted(manifest.parent.name for manifest in home.corpora.glob("*/manifest.json"))
    if ref in ids:
        return ref
    found = [name for name in ids if ref and name.startswith(ref)]
    if len(found) == 1:
        return found[0]
    if found:
        raise CorpusError(f"{ref!r} is the beginning of several corpora: {', '.join(found[:5])}")
    raise CorpusError(f"no file, folder or corpus is called {ref!r}")


def corpus_problems(corpus: Corpus) -> list[dict[str, str]]:
    """Files that are not in the corpus, and remarks on those that are: {path, message} each."""
    left_out = [{"path": problem.path, "message": problem.message} for problem in corpus.problems]
    remarks = [{"path": d.name, "message": message} for d in corpus.documents for message in d.problems]
    return left_out + remarks
