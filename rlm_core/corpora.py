"""The folder that holds all corpora: what is in it, finding one, naming one, removing one."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Final

from rlm_core.canonical import writing
from rlm_core.errors import CorpusError
from rlm_core.manifest import MANIFEST, checked_name, load_manifest, manifest_json
from rlm_core.staging import REMOVED
from rlm_core.walk import printable

_ID: Final = re.compile(r"[0-9a-f]{16}")
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """One corpus in a list. `bytes` are of the canonical texts, `problems` counts what was left out.

    `added` is when it was last added, in UTC. `broken` says why its manifest cannot be used; then the counts
    are 0.
    """

    corpus_id: str
    name: str
    documents: int
    chars: int
    bytes: int
    problems: int
    added: datetime
    broken: str | None = None


def list_corpora(corpora: Path) -> list[CorpusInfo]:
    """Every corpus of the folder, newest first."""
    infos = [info for folder in _folders(corpora) if (info := _info(folder))]
    return sorted(infos, key=lambda info: (info.added, info.corpus_id), reverse=True)


def find_corpus(corpora: Path, text: str) -> str:
    """The id of the corpus meant by an id, the beginning of one, or a name; raises `CorpusError` unless it is
    exactly one.
    """
    ids = [folder.name for folder in _folders(corpora)]
    if text in ids:
        return text
    found = {name for name in ids if text and name.startswith(text)}
    found |= {info.corpus_id for info in list_corpora(corpora) if text and info.name == text}
    if len(found) == 1:
        return found.pop()
    if found:
        raise CorpusError(
            f"{printable(text)!r} means several corpora ({_few(sorted(found))}): give more of the id"
        )
    raise CorpusError(f"no corpus has the id or name {printable(text)!r}")


def remove_corpus(corpora: Path, corpus_id: str) -> None:
    """Remove a corpus and the texts kept in it; files referenced in place are not touched.

    It is gone at once. A run that uses it goes on with what it has read and with files in place; where it
    needs a text that is gone it says so. Raises `CorpusError` when it is not there or cannot be removed.
    """
    folder = corpus_folder(corpora, corpus_id)
    gone = folder.with_name(f"{REMOVED}{secrets.token_hex(8)}")
    try:
        os.rename(folder, gone)
        with suppress(FileNotFoundError):  # an add that tidies up was faster
            shutil.rmtree(gone)
    except OSError as error:
        raise CorpusError(
            f"corpus {corpus_id} cannot be removed ({error.strerror or error}): check the rights in {corpora}"
        ) from None


def rename_corpus(corpora: Path, corpus_id: str, name: str) -> None:
    """Give a corpus another name; its id and the time it was added stay. Raises `CorpusError`."""
    folder = corpus_folder(corpora, corpus_id)
    contents = replace(load_manifest(folder), name=checked_name(name) or name)
    draft = folder / f".{secrets.token_hex(8)}"
    with writing(folder):
        added = (folder / MANIFEST).stat()
        try:
            draft.write_text(manifest_json(corpus_id, contents), "utf-8")
            os.utime(draft, ns=(added.st_atime_ns, added.st_mtime_ns))
            os.replace(draft, folder / MANIFEST)
        finally:
            draft.unlink(missing_ok=True)


def corpus_folder(corpora: Path, corpus_id: str) -> Path:
    """The folder of a corpus that is there; raises `CorpusError` when it is not."""
    folder = Path(os.path.abspath(corpora)) / corpus_id
    if not _ID.fullmatch(corpus_id) or not (folder / MANIFEST).is_file():
        raise CorpusError(f"there is no corpus {printable(corpus_id)} in {corpora}: add it first")
    return folder


def _folders(corpora: Path) -> list[Path]:
    return [path.parent for path in corpora.glob(f"*/{MANIFEST}") if _ID.fullmatch(path.parent.name)]


def _info(folder: Path) -> CorpusInfo | None:
    """One line of the list; None for a corpus that is removed meanwhile."""
    try:
        status = (folder / MANIFEST).stat()
    except OSError:
        return None
    # another name leaves the time of the manifest, and maybe its size
    version = (status.st_size, status.st_ino, status.st_ctime_ns)
    return _counted(folder, status.st_mtime_ns, version)


@lru_cache(maxsize=256)  # a list is asked for again and again, and counting 50,000 documents takes a second
def _counted(folder: Path, mtime_ns: int, version: tuple[int, ...]) -> CorpusInfo:
    """The facts about one corpus, whose manifest has this time; another `version` is another manifest."""
    added = datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    try:
        contents = load_manifest(folder)
    except CorpusError as error:
        return CorpusInfo(folder.name, "", 0, 0, 0, 0, added, str(error))
    documents = contents.documents
    return CorpusInfo(
        folder.name, contents.name, len(documents), sum(document.chars for document in documents),
        sum(document.bytes for document in documents), len(contents.problems), added,
    )  # fmt: skip


def _few(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
