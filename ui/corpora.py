"""What the home knows about a corpus: facts for scripts, words for people, runs, removal."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlm_core.errors import CorpusError, InputError
from ui.figures import counted

if TYPE_CHECKING:
    from rlm_core.corpus import Corpus, Document
    from traces.home import Home
    from traces.reading import RunSummary

UPLOADS: Final = "uploads"  # in the home folder: files that came through the browser
PAGES: Final = frozenset({"page", "slide"})  # kinds of sections that count as pages
SHEETS: Final = frozenset({"sheet"})
_KINDS: Final = {
    "pdf": "PDF",
    "docx": "Word",
    "pptx": "presentation",
    "xlsx": "workbook",
    "xls": "workbook",
    "ods": "workbook",
    "sheets": "workbook",
    "parquet": "Parquet",
    "html": "HTML",
    "mail": "mail",
    "image": "image",
}
_TEXTS: Final = {
    "text/plain": "text",
    "text/markdown": "Markdown",
    "text/csv": "CSV",
    "text/tab-separated-values": "TSV",
    "application/json": "JSON",
    "application/x-ndjson": "JSONL",
    "text/html": "HTML source",
    "text/x-log": "log",
}


def kind(document: Document) -> str:
    """What a document is, in a word: by its reader, for plain texts by its media type."""
    if document.reader in _KINDS:
        return _KINDS[document.reader]
    known = _TEXTS.get(document.media_type)
    return known or document.media_type.rpartition("/")[2].removeprefix("x-")


def sections(document: Document, kinds: frozenset[str]) -> int | None:
    """How many sections of these kinds a document has; None when it has none."""
    return sum(section.kind in kinds for section in document.sections) or None


def parts(document: Document) -> str:
    """What it is divided into, in words: `12 pages`, `3 sheets`, or nothing; of an image its size."""
    if document.picture is not None:
        return f"{document.picture.width:,} x {document.picture.height:,} pixels"
    found = Counter(section.kind for section in document.sections)
    return ", ".join(counted(count, word) for word, count in found.items())


def problems(corpus: Corpus) -> list[dict[str, str]]:
    """Files that are not in the corpus, and remarks on those that are: {path, message} each."""
    left_out = [{"path": problem.path, "message": problem.message} for problem in corpus.problems]
    remarks = [{"path": d.name, "message": message} for d in corpus.documents for message in d.problems]
    return left_out + remarks


def facts(corpus: Corpus) -> dict[str, Any]:
    """A corpus in short: the JSON document of `corpus add`."""
    return {
        "corpus_id": corpus.corpus_id,
        "name": corpus.name,
        "documents": len(corpus.documents),
        "chars": corpus.chars,
        "bytes": sum(document.bytes for document in corpus.documents),
        "problems": problems(corpus),
    }


def details(corpus: Corpus) -> dict[str, Any]:
    """A corpus with all its documents: the JSON document of `corpus show`."""
    return {
        **facts(corpus),
        "pages": pages(corpus.documents),
        "readers": dict(Counter(document.reader for document in corpus.documents)),
        "changed": corpus.changed(),
        "document_list": [_document_facts(document) for document in corpus.documents],
    }


def pages(documents: Iterable[Document]) -> int | None:
    """Pages and slides of all documents together; None when none has any."""
    return sum(sections(document, PAGES) or 0 for document in documents) or None


def _document_facts(document: Document) -> dict[str, Any]:
    return {
        "name": document.name,
        "kind": kind(document),
        "media_type": document.media_type,
        "reader": document.reader,
        "encoding": document.encoding,
        "chars": document.chars,
        "bytes": document.bytes,
        "parts": parts(document),
        "pages": sections(document, PAGES),
        "sheets": sections(document, SHEETS),
        "in_place": document.in_place,
        "remarks": list(document.problems),
    }


def runs_over(
    home: Home, corpus_id: str, warn: Callable[[str], None], *, replays: bool = False
) -> list[RunSummary]:
    """The recorded runs that were asked over a corpus, newest first; with `replays` also those that play
    another one again."""
    from traces.reading import list_runs

    return [run for run in list_runs(home, replays=replays, warn=warn) if run.corpus_id == corpus_id]


def remove(home: Home, corpus_id: str, runs: Iterable[RunSummary]) -> None:
    """Remove a corpus, and the uploaded files that no other corpus reads; files of the user stay.

    `runs` are those over it, replays too. Raises InputError while one of them is at work, CorpusError when
    the corpus cannot be removed.
    """
    from rlm_core.corpus import Corpus

    at_work = [run.run_id for run in runs if run.status == "running"]
    if at_work:
        raise InputError(f"run {at_work[0]} is at work over this corpus: wait for its end or cancel it first")
    uploaded: set[str] = set()
    with suppress(CorpusError):  # what a broken manifest named is not known
        uploaded = uploaded_files(home, Corpus.load(home.corpora, corpus_id))
    Corpus.remove(home.corpora, corpus_id)
    with suppress(CorpusError):  # another one that is broken may need them
        for info in Corpus.list(home.corpora) if uploaded else ():
            uploaded -= uploaded_files(home, Corpus.load(home.corpora, info.corpus_id))
        drop(home, uploaded)


def uploaded_files(home: Home, corpus: Corpus) -> set[str]:
    """The uploaded files that a corpus reads in place, or shows pages of."""
    ours = os.path.realpath(home.root / UPLOADS) + os.sep
    originals = (d.original for d in corpus.documents if d.original is not None)
    paths = [d.path for d in corpus.documents if d.in_place] + [o.path for o in originals if o.in_place]
    return {path for path in paths if path.startswith(ours)}


def drop(home: Home, uploaded: Iterable[str]) -> None:
    """Delete uploaded files, and folders that are empty then; one that cannot be deleted stays."""
    top = home.root / UPLOADS
    for path in map(Path, uploaded):
        with suppress(OSError):
            path.unlink(missing_ok=True)
            for folder in path.parents:
                if folder == top:
                    break
                folder.rmdir()


def shown_path(home: Home, path: str) -> str:
    """A path as a person knows it: an uploaded file by its name alone, with what is inside it."""
    ours = home.root / UPLOADS
    if not Path(path).is_relative_to(ours):
        return path
    inner = Path(path).relative_to(ours).parts[2:]  # below the folders of an upload and of one batch of it
    return "/".join(inner) or Path(path).name
