"""What a corpus folder says about itself (manifest.json), what a run records about it, and its id."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from rlm_core.canonical import ORIGINAL_SUFFIX, PICTURES, TEXTS, text_file
from rlm_core.document import Document, document_facts, document_from
from rlm_core.errors import CorpusError
from rlm_core.readers.reading import READER_VERSION, TEXT_READER
from rlm_core.readers.signatures import VERSIONS
from rlm_core.walk import Problem, printable

FORMAT: Final = "rlmscope-corpus"
FORMAT_VERSION: Final = 2
_READABLE: Final = (1, 2)  # version 1 had no name, no sections and no tables
MANIFEST: Final = "manifest.json"
_MOST_NAME_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Contents:
    """What a corpus holds: its name, its documents in order, and one line for every file that is not one."""

    name: str
    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]


def corpus_id_of(documents: Sequence[Document]) -> str:
    """The id of a corpus: a hash of names, texts, and how they were read where that is not plain text."""
    material: list[list[Any]] = []
    for document in documents:
        facts: list[Any] = [document.name, document.sha256]
        if document.reader != TEXT_READER:
            sections = [[s.kind, s.label, s.start, s.end, s.columns] for s in document.sections]
            facts += [document.reader, VERSIONS.get(document.reader, 1), sections, *_seen_only(document)]
        material.append(facts)
    return hashlib.sha256(json.dumps([READER_VERSION, material]).encode()).hexdigest()[:16]


def _seen_only(document: Document) -> list[str]:
    """The hash of what can only be seen: of an image, and of a document none of whose pages holds text."""
    if document.picture is not None:
        return [document.picture.sha256]
    if document.original is not None and all(s.start == s.end for s in document.sections):
        return [document.original.sha256]
    return []


def manifest_json(corpus_id: str, contents: Contents) -> str:
    """The text of manifest.json: paths of our own texts are relative to the folder."""
    documents = []
    for document in contents.documents:
        facts = document_facts(document)
        if not document.in_place:
            facts["path"] = f"{TEXTS}/{text_file(document.sha256)}"
        if document.original is not None and not document.original.in_place:
            facts["original"]["path"] = f"{PICTURES}/{document.original.sha256}{ORIGINAL_SUFFIX}"
        documents.append(facts)
    return _json(corpus_id, contents, documents, name=contents.name)


def load_manifest(folder: Path) -> Contents:
    """What stands in the manifest of a corpus folder. Raises `CorpusError` when it cannot be used."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        if manifest["format"] != FORMAT or manifest["version"] not in _READABLE:
            raise CorpusError(f"corpus {folder.name} was written by another version: add it again")
        documents = [document_from(number, facts) for number, facts in enumerate(manifest["documents"])]
        return Contents(
            str(manifest.get("name") or default_name([d.name for d in documents])),
            tuple(placed(document, folder) for document in documents),
            tuple(Problem(**facts) for facts in manifest["problems"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorpusError(
            f"the manifest of corpus {folder.name} cannot be used ({_why(error)}): add it again"
        ) from None


def record_json(corpus_id: str, contents: Contents) -> str:
    """The corpus as a run records it: what was read and how, without the places it has on this machine.

    `context` says what that name is in the REPL: one text, or the sequence of all documents.
    """
    kept = ("name", "media_type", "encoding", "reader", "chars", "bytes", "sha256", "problems")
    documents = []
    for document in contents.documents:
        facts = {key: getattr(document, key) for key in kept}
        if document.sections:
            facts["sections"] = [[s.kind, s.label, s.start_byte, s.end_byte] for s in document.sections]
        if document.picture is not None:
            facts["picture"] = asdict(document.picture)
        documents.append(facts)
    context = "text" if len(documents) == 1 else "documents"
    return _json(corpus_id, contents, documents, name=contents.name, context=context)


def placed(document: Document, folder: Path) -> Document:
    """The document with the paths of its text and its original in this corpus folder, where they are ours."""
    original = document.original
    if original is not None and not original.in_place:
        path = os.path.join(folder, PICTURES, f"{original.sha256}{ORIGINAL_SUFFIX}")
        document = replace(document, original=replace(original, path=path))
    if document.in_place:
        return document
    return replace(document, path=os.path.join(folder, TEXTS, text_file(document.sha256)))


def checked_name(name: str) -> str:
    """A name for a corpus in one printable line. Raises `CorpusError` when it is empty or too long."""
    if not name.strip():
        raise CorpusError("the name of a corpus is empty or blank: give it one that can be seen")
    if len(name) > _MOST_NAME_CHARS:
        raise CorpusError(f"the name of a corpus has 1 to {_MOST_NAME_CHARS} characters, not {len(name):,}")
    return printable(name.strip())


def default_name(names: Sequence[str]) -> str:
    """What a corpus is called that nobody named: after the first of these."""
    more = len(names) - 1
    return f"{names[0]} and {more:,} more" if more > 0 else names[0] if names else ""


def _json(corpus_id: str, contents: Contents, documents: Sequence[Mapping[str, Any]], **more: str) -> str:
    return json.dumps(
        {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "reader_version": READER_VERSION,
            "corpus_id": corpus_id,
            **more,
            "chars": sum(document.chars for document in contents.documents),
            "documents": documents,
            "problems": [asdict(problem) for problem in contents.problems],
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
