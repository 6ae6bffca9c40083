"""Zip archives."""

from __future__ import annotations

import errno
import lzma
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final

from rlm_core.readers.archives.members import DAMAGED, Members, TooLarge, bounded
from rlm_core.readers.output import StagedOutput, Unreadable

_BLOCK: Final = 1 << 18
_ENCRYPTED: Final = 1
_UTF8_NAME: Final = 0x800
_BROKEN: Final = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, OverflowError, struct.error,
)  # fmt: skip


def read(path: str, out: StagedOutput) -> None:
    """Unpack every member; raises `Unreadable` when the archive as a whole cannot be read."""
    try:
        archive = zipfile.ZipFile(path)
    except (*_BROKEN, NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # that is a place before the file
            raise
        raise Unreadable(
            "a zip archive, damaged or cut off: it has no table of contents that can be used"
        ) from None
    with archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]
        if infos and all(info.flag_bits & _ENCRYPTED for info in infos):
            raise Unreadable("an encrypted archive: unpack it with its password and add the folder")
        members = Members(out)
        size = os.stat(path).st_size
        for info in infos:
            name = _name(info)
            if members.accept(name):
                _unpack(archive, info, name, min(info.compress_size, size), out)
        members.close()


def _unpack(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, packed: int, out: StagedOutput
) -> None:
    if stat.S_ISLNK(info.external_attr >> 16):
        out.problem(name, "a link in an archive: not followed")
        return
    if info.flag_bits & _ENCRYPTED:
        out.problem(name, "encrypted: unpack it with its password and add the file")
        return
    try:
        out.attach_blocks(name, bounded(_blocks(archive, info), packed))
    except TooLarge as error:
        out.problem(name, str(error))
    except NotImplementedError:
        out.problem(name, f"packed by a method that is not known here ({info.compress_type}): unpack it")
    except MemoryError:
        out.problem(name, "needs too much memory to unpack")
    except _BROKEN:
        out.problem(name, DAMAGED)
    except (
        OSError
    ) as error:  # bz2 raises it, without a number, for broken data; seek for a place before the file
        if error.errno not in (None, errno.EINVAL):
            raise
        out.problem(name, DAMAGED)


def _blocks(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    left = info.file_size
    with archive.open(info) as member:
        while block := member.read(_BLOCK):
            left -= len(block)
            yield block
    if left:
        raise EOFError


def _name(info: zipfile.ZipInfo) -> str:
    """The name with slashes; many programs write UTF-8 without saying so, and Windows ones backslashes."""
    name = info.filename
    if not info.flag_bits & _UTF8_NAME:
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeError:
            name = info.filename
    return name.replace("\\", "/")
