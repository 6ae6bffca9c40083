"""A corpus in the making: a hidden folder of its own that gets its final name when everything is in it.

corpora/.adding-<random>/       texts/, and reading/ for what is thrown away
corpora/.adding-<random>.lock   held by the process that adds; a folder whose lock is free is a left-over
"""

from __future__ import annotations

import errno
import filecmp
import os
import secrets
import shutil
import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from rlm_core.canonical import TEXTS, writing
from rlm_core.document import Document
from rlm_core.errors import CorpusError
from rlm_core.manifest import (
    MANIFEST,
    Contents,
    corpus_id_of,
    default_name,
    load_manifest,
    manifest_json,
    placed,
)
from rlm_core.readers.reading import Reading
from rlm_core.walk import Problem

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

CHECKPOINTS: Final = "checkpoints.bin"
REMOVED: Final = ".removed-"  # begins the name of a corpus that is being removed
_ADDING: Final = ".adding-"
_LOCK: Final = ".lock"
_TRIES: Final = 100


class Staging:
    """Collects documents; `publish` makes a corpus of them, and without it nothing is left behind.

    Raises `CorpusError` where the folder of corpora cannot be written to.
    """

    def __init__(self, corpora: Path) -> None:
        self._corpora = Path(os.path.abspath(corpora))
        self.documents: list[Document] = []
        self._checkpoints = array("Q")

    def __enter__(self) -> Staging:
        with writing(self._corpora):
            self._corpora.mkdir(parents=True, exist_ok=True)
            remove_stale(self._corpora)
            self._folder, self._lock = _claim(self._corpora)
        self.texts = self._folder / TEXTS
        self.work = self._folder / "reading"
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        _unlock(self._lock, _lock_file(self._folder))

    def take(self, name: str, path: str, reading: Reading) -> None:
        """One more document; `path` counts only when it is referenced in place."""
        measured = reading.measured
        self._checkpoints.extend(measured.checkpoints)
        self.documents.append(
            Document(
                len(self.documents), name, reading.media_type, reading.encoding, reading.reader,
                measured.chars, measured.bytes, measured.sha256,
                path if reading.in_place else "", reading.in_place, reading.mtime_ns, reading.remarks,
                reading.sections, reading.table, reading.picture, reading.original,
            )
        )  # fmt: skip

    def publish(self, problems: Sequence[Problem], name: str | None, fallback: str) -> tuple[Path, Contents]:
        """Give the corpus its id and its place; what another process has already put there is kept.

        Without a `name` it keeps the one it has if it was added before, else it is called `fallback`.
        """
        corpus_id = corpus_id_of(self.documents)
        folder = self._corpora / corpus_id
        documents = tuple(placed(document, folder) for document in self.documents)
        called = name or _name_of(folder) or fallback or default_name([d.name for d in documents])
        contents = Contents(called, documents, tuple(problems))
        with writing(folder):
            shutil.rmtree(self.work, ignore_errors=True)
            if self._checkpoints:
                (self._folder / CHECKPOINTS).write_bytes(little_endian(self._checkpoints).tobytes())
            (self._folder / MANIFEST).write_text(manifest_json(corpus_id, contents), "utf-8")
            try:
                os.rename(self._folder, folder)
            except OSError:
                if not folder.is_dir():
                    raise
                self._merge_into(folder)
        return folder, contents

    def _merge_into(self, folder: Path) -> None:
        """Put only what is missing or different; the manifest last: it never names what is not there."""
        files = [path for path in self._folder.rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: path.name == MANIFEST):
            target = folder / path.relative_to(self._folder)
            if not (target.is_file() and filecmp.cmp(path, target, shallow=False)):
                target.parent.mkdir(exist_ok=True)
                os.replace(path, target)


def remove_stale(corpora: Path) -> None:
    """Remove what killed processes left: corpora half removed, folders in the making that nobody locks."""
    for path in corpora.glob(f"{REMOVED}*"):
        shutil.rmtree(path, ignore_errors=True)
    for path in corpora.glob(f"{_ADDING}*"):
        folder = path.with_suffix("")
        try:
            lock = _lock(_lock_file(folder))
        except OSError:
            continue  # held by an add that goes on, or not ours to remove
        shutil.rmtree(folder, ignore_errors=True)
        _unlock(lock, _lock_file(folder))


def little_endian(table: array[int]) -> array[int]:
    """The table in the byte order of the file (or back): the same table on most machines."""
    if sys.byteorder == "big":
        table.byteswap()
    return table


def _claim(corpora: Path) -> tuple[Path, int]:
    """A new folder in the making, and the descriptor that holds its lock."""
    for _ in range(_TRIES):
        folder = corpora / f"{_ADDING}{secrets.token_hex(8)}"
        with suppress(BlockingIOError):  # another add, cleaning up, looked at the new lock first
            lock = _lock(_lock_file(folder))
            folder.mkdir(mode=0o700)
            return folder, lock
    raise BlockingIOError(errno.EAGAIN, "many adds at once")


def _name_of(folder: Path) -> str:
    with suppress(CorpusError):
        return load_manifest(folder).name
    return ""


def _lock_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{_LOCK}")


def _lock(path: Path) -> int:
    """A descriptor that holds the lock of this file; raises `OSError` while another process holds it.

    Also when it has just been removed by the one that held it: a lock on a file without a name is none.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not path.exists() or not os.path.samestat(os.fstat(descriptor), os.stat(path)):
            raise BlockingIOError
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _unlock(descriptor: int, path: Path) -> None:
    """Give the lock back and remove its file; in this order where an open file cannot be removed."""
    if sys.platform == "win32":
        os.close(descriptor)
        path.unlink(missing_ok=True)
    else:
        path.unlink(missing_ok=True)
        os.close(descriptor)
