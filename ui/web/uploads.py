"""Uploaded files on their way to a corpus: kept under the home, under names of our making.

A browser says what a file is called, and may say anything: path parts, control characters, names that a file
system treats specially, the same name twice. Nothing of that reaches the disk.
"""

from __future__ import annotations

import os
import re
import tempfile
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from rlm_core.errors import InputError
from ui.corpora import UPLOADS

if TYPE_CHECKING:
    from traces.home import Home

_NAME_BYTES: Final = 150  # of a file name; every common file system takes 255
_SUFFIX_CHARS: Final = 16
_COPY_BYTES: Final = 1 << 20
# what a path, a shell or Windows reads as more than a letter; controls; marks that hide or reorder text
_UNFIT: Final = re.compile(
    '[\x00-\x1f\x7f-\x9f<>:"|?*\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]'
)
_RESERVED: Final = frozenset(
    ["con", "prn", "aux", "nul", *(f"{device}{n}" for device in ("com", "lpt") for n in range(1, 10))]
)


class Upload(Protocol):
    """A file as the upload widget gives it."""

    name: str
    file_id: str

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """As of a binary file."""
        ...

    def read(self, size: int | None = -1, /) -> bytes:
        """As of a binary file."""
        ...


def safe_names(given: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """One file name for each given one: no path, printable, short, none that differs from another, or from
    those `taken` (casefolded), only in case.

    >>> safe_names(["../../etc/passwd", "C:\\\\notes.txt", "notes.TXT", ".."])
    ['passwd', 'notes.txt', 'notes (2).TXT', 'file']
    """
    used = set(taken)
    return [_free(_safe(name), used) for name in given]


def _safe(given: str) -> str:
    name = re.split(r"[/\\]", unicodedata.normalize("NFC", given))[-1]
    name = _UNFIT.sub("_", name).strip(" .")
    stem, dot, suffix = name.rpartition(".")
    if not dot or not stem or len(suffix) > _SUFFIX_CHARS:
        stem, dot, suffix = name, "", ""
    if stem.split(".")[0].lower() in _RESERVED:
        stem = f"_{stem}"
    space = _NAME_BYTES - len((dot + suffix).encode())
    stem = stem.encode()[:space].decode(errors="ignore").rstrip(" .")
    return f"{stem}{dot}{suffix}" if stem else "file"


def _free(name: str, taken: set[str]) -> str:
    stem, dot, suffix = name.rpartition(".")
    if not stem:
        stem, dot, suffix = name, "", ""
    number, candidate = 1, name
    while candidate.casefold() in taken:
        number += 1
        candidate = f"{stem} ({number}){dot}{suffix}"
    taken.add(candidate.casefold())
    return candidate


def keep(home: Home, ticket: str, files: Sequence[Upload], kept: dict[str, Path]) -> list[Path]:
    """The places of the files under `uploads/<ticket>/` of the home; those not `kept` there are written.

    `kept` (file id -> place) is added to. Nothing is ever overwritten: a run may be reading it. A kept file
    whose text was copied into a corpus, or whose corpus was removed, is gone and is written again.
    Raises InputError when a file cannot be written.
    """
    folder = home.root / UPLOADS / ticket
    there = {file.file_id for file in files if file.file_id in kept and kept[file.file_id].exists()}
    new = [file for file in files if file.file_id not in there]
    if new:
        taken = {kept[file_id].name.casefold() for file_id in there}
        names = safe_names((file.name for file in new), taken)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            batch = Path(tempfile.mkdtemp(prefix="batch-", dir=folder))
            for file, name in zip(new, names, strict=True):
                _write(file, batch / name)
                kept[file.file_id] = batch / name
        except OSError as error:
            raise InputError(
                f"The files could not be kept in {folder}: {error.strerror or error}."
            ) from error
    return [kept[file.file_id] for file in files]


def _write(file: Upload, path: Path) -> None:
    out: BinaryIO
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        file.seek(0)
        while piece := file.read(_COPY_BYTES):
            out.write(piece)
