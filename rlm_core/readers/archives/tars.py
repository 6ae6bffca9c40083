"""Tar archives; a compressed one has been unpacked before."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import Final

from rlm_core.readers.archives.members import DAMAGED, Members, TooLarge, bounded
from rlm_core.readers.output import StagedOutput

_BLOCK: Final = 1 << 18
_BROKEN: Final = (tarfile.TarError, EOFError, ValueError, OverflowError)


def read(path: str, out: StagedOutput) -> None:
    """Unpack every member; raises `Unreadable` when the archive as a whole cannot be read."""
    members = Members(out)
    try:
        with tarfile.open(path, "r:") as archive, open(path, "rb") as file:
            for info in archive:
                if not info.isdir() and members.accept(info.name):
                    _unpack(archive, info, out)
                archive.members = []  # type: ignore[attr-defined]  # it would keep them all
            file.seek(archive.offset)
            if any(file.read(tarfile.BLOCKSIZE)):  # a header that is none passes for the end
                raise tarfile.ReadError
    except _BROKEN:
        out.problem("", "damaged or cut off: what comes after the members read is missing")
    members.close()


def _unpack(archive: tarfile.TarFile, info: tarfile.TarInfo, out: StagedOutput) -> None:
    if info.issym() or info.islnk():
        out.problem(info.name, "a link in an archive: not followed")
    elif not info.isreg():
        out.problem(info.name, "a device or pipe in an archive: not read")
    else:
        try:
            out.attach_blocks(info.name, bounded(_blocks(archive, info), 0 if info.issparse() else info.size))
        except TooLarge as error:
            out.problem(info.name, str(error))
        except _BROKEN:
            out.problem(info.name, DAMAGED)


def _blocks(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Iterator[bytes]:
    member = archive.extractfile(info)
    left = info.size
    while member and (block := member.read(_BLOCK)):
        left -= len(block)
        yield block
    if left:
        raise EOFError
