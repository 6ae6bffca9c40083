"""A corpus: documents with their canonical texts, kept under an id that is a hash of names and contents.

    corpora/<id>/manifest.json       format, documents, problems
    corpora/<id>/texts/<sha256>.txt  texts that could not be referenced in place
    corpora/<id>/checkpoints.bin     code-point positions (8 bytes each, little endian) where they are needed

Python sees code points, files hold UTF-8. Texts are never held here: every slice is read from its file, after
a check that the file is still the one that was added.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from rlm_core.canonical import (
    TEXTS,
    CanonicalWriter,
    byte_offset,
    checkpoint_count,
    text_file,
    writing,
)
from rlm_core.errors import CorpusError
from rlm_core.overview import describe
from rlm_core.readers import READER, READER_VERSION, Reading, Unreadable, read_file, replace_surrogates
from rlm_core.texts import open_text
from rlm_core.walk import Problem, find_files, numbered, printable

__all__ = ["Corpus", "Document", "Problem"]

FORMAT: Final = "rlmscope-corpus"
FORMAT_VERSION: Final = 1
_MANIFEST: Final = "manifest.json"
_CHECKPOINTS: Final = "checkpoints.bin"
_ID: Final = re.compile(r"[0-9a-f]{16}")
_PROBLEMS_SHOWN: Final = 5
_WRITE_CHARS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Document:
    """One document. `chars`, `bytes` and `sha256` are of the canonical UTF-8 text, which stands in `path`.

    `in_place`: the text is the user's own file, of which `mtime_ns` is known; else it is ours, and 0.
    `problems` are remarks on how it was read, such as a guessed encoding.
    """

    number: int
    name: str
    media_type: str
    encoding: str
    reader: str
    chars: int
    bytes: int
    sha256: str
    path: str
    in_place: bool
    mtime_ns: int
    problems: tuple[str, ...]


class Corpus:
    """Documents to ask about, and the problems: one line for every file that is not among them.

    Made by `add`, `from_texts` or `load`; safe to use from several threads.
    """

    def __init__(self, folder: Path, documents: Sequence[Document], problems: Sequence[Problem]) -> None:
        self.folder = folder
        self.corpus_id = folder.name
        self.documents = tuple(documents)
        self.problems = tuple(problems)
        self.chars = sum(document.chars for document in self.documents)
        self._mtimes = [{d.mtime_ns} if d.in_place else set() for d in self.documents]
        self._checkpoints: dict[int, Sequence[int]] = {}

    def __repr__(self) -> str:
        return f"<Corpus {self.corpus_id}: {len(self.documents):,} documents, {self.chars:,} characters>"

    @classmethod
    def add(cls, paths: Sequence[Path], corpora: Path) -> Corpus:
        """Read files and folders and keep the result in `corpora`; the same contents give the same id.

        Raises `CorpusError` for a path that does not exist, when nothing can be read, and when `corpora`
        cannot be written to. Every other problem is one line in `problems`.
        """
        found, problems = find_files(paths, corpora)
        with _Staging(corpora) as staging:
            for file in found:
                try:
                    staging.take(file.name, file.path, read_file(file.path, staging.texts))
                except Unreadable as error:
                    problems.append(Problem(file.shown, str(error)))
            if not staging.documents:
                where = ", ".join(printable(str(path)) for path in paths)
                raise CorpusError(f"there is no document to read in {where}: {_listed(problems)}")
            return staging.publish(problems)

    @classmethod
    def from_texts(cls, texts: str | Sequence[str] | Mapping[str, str], corpora: Path) -> Corpus:
        """A corpus of texts in memory, called "text", "text-1", "text-2", ... or by the names of the mapping.

        Raises `CorpusError` when there is no text, and for a value that is not a str.
        """
        problems: list[Problem] = []
        with _Staging(corpora) as staging:
            for name, text in _named_texts(texts):
                if text:
                    staging.take(name, "", _write_text(text, staging.texts))
                else:
                    problems.append(Problem(name, "an empty text: nothing to read"))
            if not staging.documents:
                raise CorpusError("there is no text to read: every text is empty, or none was given")
            return staging.publish(problems)

    @classmethod
    def load(cls, corpora: Path, corpus_id: str) -> Corpus:
        """The corpus of this id. Raises `CorpusError` when it is not there or its manifest cannot be used."""
        folder = Path(os.path.abspath(corpora)) / corpus_id
        if not _ID.fullmatch(corpus_id) or not (folder / _MANIFEST).is_file():
            raise CorpusError(f"there is no corpus {printable(corpus_id)} in {corpora}: add it first")
        try:
            manifest = json.loads((folder / _MANIFEST).read_text("utf-8"))
            if (manifest["format"], manifest["version"]) != (FORMAT, FORMAT_VERSION):
                raise CorpusError(f"corpus {corpus_id} was written by another version: add it again")
            documents = [
                _document_from(number, facts, folder) for number, facts in enumerate(manifest["documents"])
            ]
            return cls(folder, documents, [Problem(**facts) for facts in manifest["problems"]])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorpusError(
                f"the manifest of corpus {corpus_id} cannot be used ({error}): add it again"
            ) from None

    def manifest_json(self) -> str:
        """What stands in manifest.json: paths of our own texts are relative to the folder."""
        documents = []
        for document in self.documents:
            facts = asdict(document)
            del facts["number"]
            if not document.in_place:
                facts["path"] = f"{TEXTS}/{text_file(document.sha256)}"
            documents.append(facts)
        return json.dumps(
            {
                "format": FORMAT,
                "version": FORMAT_VERSION,
                "reader_version": READER_VERSION,
                "corpus_id": self.corpus_id,
                "chars": self.chars,
                "documents": documents,
                "problems": [asdict(problem) for problem in self.problems],
            },
            indent=1,
        )

    def record_json(self) -> str:
        """The corpus as a run records it: what was read and how, without the places it has on this machine.

        `context` says what that name is in the REPL: one text, or the sequence of all documents.
        """
        kept = ("name", "media_type", "encoding", "reader", "chars", "bytes", "sha256", "problems")
        return json.dumps(
            {
                "format": FORMAT,
                "version": FORMAT_VERSION,
                "reader_version": READER_VERSION,
                "corpus_id": self.corpus_id,
                "chars": self.chars,
                "context": "text" if len(self.documents) == 1 else "documents",
                "documents": [{key: getattr(d, key) for key in kept} for d in self.documents],
                "problems": [asdict(problem) for problem in self.problems],
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )

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

    def describe(self) -> str:
        """What the root model is told about the corpus: at most 4 KB whatever its size. Raises as `text`."""
        return describe(self)

    def worker_documents(self) -> list[dict[str, Any]]:
        """What `rlm_core.texts.build_context` needs, as JSON values."""
        return [
            {
                "number": d.number, "name": d.name, "path": d.path, "bytes": d.bytes, "chars": d.chars,
                "ascii": d.chars == d.bytes, "sha256": d.sha256, "mtime_ns": d.mtime_ns,
            }
            for d in self.documents
        ]  # fmt: skip

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
            before = sum(checkpoint_count(d.chars, d.bytes) for d in self.documents[: document.number])
            table = array("Q")
            with suppress(OSError), open(self.folder / _CHECKPOINTS, "rb") as file:
                file.seek(before * table.itemsize)
                data = file.read(count * table.itemsize)
                table.frombytes(data[: len(data) // table.itemsize * table.itemsize])
            if len(table) != count:
                raise CorpusError(f"the checkpoints of corpus {self.corpus_id} are damaged: add it again")
            self._checkpoints[document.number] = _little_endian(table)
        return self._checkpoints[document.number]


class _Staging:
    """A corpus in the making: a folder of its own that gets its final name when everything is in it."""

    def __init__(self, corpora: Path) -> None:
        self._corpora = Path(os.path.abspath(corpora))
        self.documents: list[Document] = []
        self._checkpoints = array("Q")

    def __enter__(self) -> _Staging:
        with writing(self._corpora):
            self._corpora.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix=".adding-", dir=self._corpora))
        self.texts = self._folder / TEXTS
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def take(self, name: str, path: str, reading: Reading) -> None:
        """One more document; `path` counts only when it is referenced in place."""
        measured = reading.measured
        self._checkpoints.extend(measured.checkpoints)
        self.documents.append(
            Document(
                len(self.documents), name, reading.media_type, reading.encoding, READER,
                measured.chars, measured.bytes, measured.sha256,
                path, reading.in_place, reading.mtime_ns, reading.remarks,
            )
        )  # fmt: skip

    def publish(self, problems: Sequence[Problem]) -> Corpus:
        """Give the corpus its id and its place; what another process has already put there is kept."""
        contents = json.dumps([READER_VERSION, [[d.name, d.sha256] for d in self.documents]])
        folder = self._corpora / hashlib.sha256(contents.encode()).hexdigest()[:16]
        corpus = Corpus(folder, [_placed(document, folder) for document in self.documents], problems)
        with writing(folder):
            if self._checkpoints:
                (self._folder / _CHECKPOINTS).write_bytes(_little_endian(self._checkpoints).tobytes())
            (self._folder / _MANIFEST).write_text(corpus.manifest_json(), "utf-8")
            try:
                os.rename(self._folder, folder)
            except OSError:
                if not folder.is_dir():
                    raise
                self._merge_into(folder)
        return corpus

    def _merge_into(self, folder: Path) -> None:
        """Put only what is missing or different; the manifest last: it never names what is not there."""
        files = [path for path in self._folder.rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: path.name == _MANIFEST):
            target = folder / path.relative_to(self._folder)
            if not (target.is_file() and filecmp.cmp(path, target, shallow=False)):
                target.parent.mkdir(exist_ok=True)
                os.replace(path, target)


def _placed(document: Document, folder: Path) -> Document:
    """The document with the path of its text, if that is ours."""
    if document.in_place:
        return document
    return replace(document, path=str(folder / TEXTS / text_file(document.sha256)))


def _document_from(number: int, facts: dict[str, Any], folder: Path) -> Document:
    return _placed(Document(number=number, **{**facts, "problems": tuple(facts["problems"])}), folder)


def _named_texts(texts: str | Sequence[str] | Mapping[str, str]) -> list[tuple[str, str]]:
    if isinstance(texts, str):
        named: list[tuple[Any, Any]] = [("text", texts)]
    elif isinstance(texts, Mapping):
        named = list(texts.items())
    else:
        named = [(f"text-{number}", text) for number, text in enumerate(texts, 1)]
    for name, text in named:
        if not isinstance(name, str) or not isinstance(text, str):
            raise CorpusError(f"{name} is {type(text).__name__}: names and texts must be str")
    return list(
        zip(numbered([printable(name) for name, _ in named]), (text for _, text in named), strict=True)
    )


def _write_text(text: str, folder: Path) -> Reading:
    """One text in memory as a canonical text."""
    clean, surrogates = replace_surrogates(text)
    writer = CanonicalWriter(folder)
    try:
        for start in range(0, len(clean), _WRITE_CHARS):
            writer.write(clean[start : start + _WRITE_CHARS])
        measured = writer.close()
    finally:
        writer.discard()
    count = f"{surrogates:,} lone surrogate{'' if surrogates == 1 else 's'}"
    return Reading(
        measured, "text/plain", "utf-8", False, 0, (f"{count} shown as U+FFFD",) if surrogates else ()
    )


def _little_endian(table: array[int]) -> array[int]:
    """The table in the byte order of the file (or back): the same table on most machines."""
    if sys.byteorder == "big":
        table.byteswap()
    return table


def _listed(problems: Sequence[Problem]) -> str:
    """The first problems in one line."""
    shown = [f"{problem.path}: {problem.message}" for problem in problems[:_PROBLEMS_SHOWN]]
    if len(problems) > _PROBLEMS_SHOWN:
        shown.append(f"and {len(problems) - _PROBLEMS_SHOWN:,} more")
    return "; ".join(shown) or "the folder is empty"
