"""A corpus: documents with their canonical texts, kept under an id that is a hash of names and contents.

    corpora/<id>/manifest.json       format, name, documents, problems
    corpora/<id>/texts/<sha256>.txt  texts that could not be referenced in place
    corpora/<id>/checkpoints.bin     code-point positions (8 bytes each, little endian) where they are needed

Python sees code points, files hold UTF-8. Texts are never held here: every slice is read from its file, after
a check that the file is still the one that was added.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

from rlm_core.add_progress import Progress, Watcher
from rlm_core.canonical import byte_offset, checkpoint_count
from rlm_core.corpora import (
    CorpusInfo,
    corpus_folder,
    find_corpus,
    list_corpora,
    remove_corpus,
    rename_corpus,
)
from rlm_core.document import Document, Section, place_of
from rlm_core.errors import CorpusError
from rlm_core.manifest import Contents, load_manifest, manifest_json, record_json
from rlm_core.overview import describe
from rlm_core.staging import CHECKPOINTS, little_endian
from rlm_core.texts import open_text
from rlm_core.walk import Problem

__all__ = ["Corpus", "CorpusInfo", "Document", "Problem", "Progress", "Section"]

# inside the class, `list` is its method
_Facts = list[dict[str, Any]]
_Names = list[str]


class Corpus:
    """Documents to ask about, and the problems: one line for every file that is not among them.

    Made by `add`, `from_texts` or `load`; safe to use from several threads.
    """

    def __init__(self, folder: Path, contents: Contents) -> None:
        self.folder = folder
        self.corpus_id = folder.name
        self.name = contents.name
        self.documents = contents.documents
        self.problems = contents.problems
        self.chars = sum(document.chars for document in self.documents)
        self._contents = contents
        self._mtimes = [{d.mtime_ns} if d.in_place else set() for d in self.documents]
        counts = (checkpoint_count(d.chars, d.bytes) for d in self.documents)
        self._first_checkpoint = list(accumulate(counts, initial=0))
        self._checkpoints: dict[int, Sequence[int]] = {}

    def __repr__(self) -> str:
        return f"<Corpus {self.corpus_id}: {len(self.documents):,} documents, {self.chars:,} characters>"

    @classmethod
    def add(
        cls,
        paths: Sequence[Path],
        corpora: Path,
        *,
        name: str | None = None,
        encoding: str | None = None,
        progress: Watcher | None = None,
    ) -> Corpus:
        """Read files and folders and keep the result in `corpora`; the same contents give the same id.

        `encoding` is taken instead of a guess, for every text that is not valid UTF-8 and has no byte order
        mark. `progress` is called in this thread, at most 20 times a second and once at the end; an error it
        raises (or Ctrl-C) ends the add, and nothing is left behind.
        Raises `CorpusError` for a path that does not exist, when nothing can be read, and when `corpora`
        cannot be written to. Every other problem is one line in `problems`.
        """
        from rlm_core.adding import add_files

        return cls(*add_files(paths, corpora, name, encoding, progress))

    @classmethod
    def from_texts(
        cls, texts: str | Sequence[str] | Mapping[str, str], corpora: Path, *, name: str | None = None
    ) -> Corpus:
        """A corpus of texts in memory, called "text", "text-1", "text-2", ... or by the names of the mapping.

        Raises `CorpusError` when there is no text, and for a value that is not a str.
        """
        from rlm_core.adding import add_texts

        return cls(*add_texts(texts, corpora, name))

    @classmethod
    def load(cls, corpora: Path, corpus_id: str) -> Corpus:
        """The corpus of this id. Raises `CorpusError` when it is not there or its manifest cannot be used."""
        folder = corpus_folder(corpora, corpus_id)
        return cls(folder, load_manifest(folder))

    list = staticmethod(list_corpora)
    find = staticmethod(find_corpus)
    remove = staticmethod(remove_corpus)
    rename = staticmethod(rename_corpus)

    def changed(self) -> _Names:
        """Names of documents whose files are gone or look different (size or time; they are not read)."""
        return [document.name for document in self.documents if not self._looks_the_same(document)]

    def check(self) -> None:
        """Make sure that every text is still the one that was added; only what looks different is read.

        Raises `CorpusError` with the first file that is gone or has changed, and how many there are.
        """
        suspects = [document for document in self.documents if not self._looks_the_same(document)]
        wrong = []
        for document in suspects:
            try:
                with self._open(document):
                    pass
            except CorpusError as error:
                wrong.append(str(error))
        if wrong:
            others = f" ({len(wrong) - 1:,} more changed too)" if len(wrong) > 1 else ""
            raise CorpusError(f"{wrong[0]}{others}")

    def _looks_the_same(self, document: Document) -> bool:
        try:
            status = os.stat(document.path)
        except OSError:
            return False
        known = self._mtimes[document.number]
        return status.st_size == document.bytes and (not known or status.st_mtime_ns in known)

    def place(self, document: int, start_byte: int, end_byte: int) -> str | None:
        """Where these bytes of a canonical text stand: "page 3", "pages 3-4", "slide 2", "sheet Costs".

        None when the document has no such parts, or is not there.
        """
        if not 0 <= document < len(self.documents):
            return None
        return place_of(self.documents[document].sections, start_byte, end_byte)

    def manifest_json(self) -> str:
        """What stands in manifest.json: paths of our own texts are relative to the folder."""
        return manifest_json(self.corpus_id, self._contents)

    def record_json(self) -> str:
        """The corpus as a run records it: what was read and how, without the places it has on this machine.

        `context` says what that name is in the REPL: one text, or the sequence of all documents.
        """
        return record_json(self.corpus_id, self._contents)

    def text(self, document: int, start: int, end: int) -> str:
        """The characters `start` to `end` of a document, counted in code points.

        Raises `CorpusError` for a range or document that does not exist, and when the file has changed.
        """
        first, last = self.byte_range(document, start, end)
        facts = self.documents[document]
        with self._open(facts) as file:
            file.seek(first)
            text = file.read(last - first).decode("utf-8", "replace")
        if len(text) != end - start:
            raise CorpusError(f"{facts.path} has changed while it was read: add the corpus again")
        return text

    def raw(self, document: int, start: int, end: int) -> bytes:
        """The bytes `start` to `end` of a canonical text. Raises as `text`."""
        if not (0 <= document < len(self.documents) and 0 <= start <= end <= self.documents[document].bytes):
            raise CorpusError(f"there are no bytes {start} to {end} of a document {document} in this corpus")
        facts = self.documents[document]
        with self._open(facts) as file:
            file.seek(start)
            block = file.read(end - start)
        if len(block) != end - start:
            raise CorpusError(f"{facts.path} has changed while it was read: add the corpus again")
        return block

    def byte_range(self, document: int, start: int, end: int) -> tuple[int, int]:
        """The bytes of the canonical text in which these characters stand. Raises as `text`."""
        if any(type(n) is not int for n in (document, start, end)) or not 0 <= document < len(self.documents):
            raise CorpusError(f"there is no document {document!r} in this corpus of {len(self.documents):,}")
        facts = self.documents[document]
        if not 0 <= start <= end <= facts.chars:
            raise CorpusError(f"{facts.name} has no characters {start} to {end}: it has {facts.chars:,}")
        if facts.chars == facts.bytes:
            return start, end
        checkpoints = self._checkpoints_of(facts)
        with self._open(facts) as file:
            return byte_offset(file, checkpoints, start), byte_offset(file, checkpoints, end)

    def is_ascii(self, document: int) -> bool:
        """Whether characters and bytes of a document have the same numbers; also where there is none."""
        return document >= len(self.documents) or (
            self.documents[document].chars == self.documents[document].bytes
        )

    def describe(self) -> str:
        """What the root model is told about the corpus: at most 4 KB whatever its size. Raises as `text`."""
        return describe(self)

    def worker_documents(self) -> _Facts:
        """What `rlm_core.texts.build_context` needs, as JSON values.

        Only where they apply: `checkpoints` (path, number of the first entry, count), `table`, and for tables
        `sections` (kind, label, start, end, columns); `image` (true), `pages` (start and end of each).
        """
        return [self._worker_document(document) for document in self.documents]

    def _worker_document(self, d: Document) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "number": d.number, "name": d.name, "path": d.path, "bytes": d.bytes, "chars": d.chars,
            "ascii": d.chars == d.bytes, "sha256": d.sha256, "mtime_ns": d.mtime_ns,
        }  # fmt: skip
        if count := checkpoint_count(d.chars, d.bytes):
            facts["checkpoints"] = [str(self.folder / CHECKPOINTS), self._first_checkpoint[d.number], count]
        if d.table:
            facts["table"] = d.table
            facts["sections"] = [[s.kind, s.label, s.start, s.end, s.columns] for s in d.sections]
        if d.is_image:
            facts["image"] = True
        if d.original is not None:
            facts["pages"] = [place for s in d.sections for place in (s.start, s.end)]
        return facts

    @contextmanager
    def _open(self, document: Document) -> Iterator[BinaryIO]:
        """The canonical text, open and checked."""
        try:
            with open_text(
                document.path, document.bytes, document.sha256, self._mtimes[document.number]
            ) as file:
                yield file
        except OSError as error:
            raise CorpusError(str(error)) from None

    def _checkpoints_of(self, document: Document) -> Sequence[int]:
        """The checkpoint table of one document (empty for a small one), read once."""
        count = checkpoint_count(document.chars, document.bytes)
        if not count:
            return ()
        if document.number not in self._checkpoints:
            first = self._first_checkpoint[document.number]
            table = array("Q")
            with suppress(OSError), open(self.folder / CHECKPOINTS, "rb") as file:
                file.seek(first * table.itemsize)
                data = file.read(count * table.itemsize)
                table.frombytes(data[: len(data) // table.itemsize * table.itemsize])
            if len(table) != count:
                raise CorpusError(f"the checkpoints of corpus {self.corpus_id} are damaged: add it again")
            self._checkpoints[document.number] = little_endian(table)
        return self._checkpoints[document.number]
