"""Archives and uploads as files in a folder of their own: bounded, and with no place outside of it."""

from __future__ import annotations

import lzma
import os
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from rlm_core.errors import InputError
from traces.importers.source import Source

MOST_ENTRIES: Final = 10_000
MOST_BYTES: Final = 2 << 30  # of all that is unpacked out of one archive and those inside it
_BLOCK: Final = 1 << 20
_LONGEST_NAME: Final = 240  # bytes of one part: what every file system takes
_ENCRYPTED: Final = 1
_GZIP: Final = b"\x1f\x8b"
_GZIP_FORM: Final = 31  # of zlib: with the head and the checksum of a gz file
_TAR: Final = b"ustar"
_TAR_MARK: Final = slice(257, 262)  # where that stands
_ZIPS: Final = (b"PK\x03\x04", b"PK\x05\x06")
#: What reading a damaged archive raises, an unknown method of packing (NotImplementedError) among it.
_BROKEN: Final = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, OverflowError, struct.error,
    NotImplementedError, OSError,
)  # fmt: skip


class Readable(Protocol):
    """What bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""
        ...


class TooMuch(InputError):
    """What an archive or upload holds is beyond every bound: nothing of it is taken."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What an archive holds, a folder (zip) or a file (gz), its size in bytes, and members that were left
    out, with why.
    """

    source: Source
    size: int
    refused: tuple[tuple[str, str], ...] = ()


def is_packed(source: Source) -> bool:
    """Whether a file is an archive, by how it begins. Raises InputError when it cannot be read, or is an
    archive of another kind.
    """
    head = source.head(_TAR_MARK.stop)
    if head[_TAR_MARK] == _TAR:
        raise InputError("it is a tar archive: unpack it, or give a zip of it")
    return head.startswith((_GZIP, *_ZIPS))


@contextmanager
def unpacked(source: Source, most: int) -> Iterator[Unpacked]:
    """What an archive holds, at most `most` bytes, in a folder that lives as long as the block. What is
    damaged or must not be unpacked is left out, and said.

    Raises InputError for one that is damaged as a whole, or holds too much.
    """
    with tempfile.TemporaryDirectory(prefix="rlmscope-import-") as made:
        folder, packed = Path(made), source.head(2)
        yield _gunzipped(source, folder, most) if packed == _GZIP else _unzipped(source, folder, most)


def place_in(folder: Path, name: str) -> Path:
    """Where a file of that name stands in a folder; the folders above it are made.

    Raises InputError for a name that leads out of the folder, is no name, or is taken.
    """
    parts = name.replace("\\", "/").split("/")
    if any(part in ("", ".", "..") or not _is_name(part) for part in parts):
        raise InputError(f"{name[:100]!r} is no name of a file inside a folder")
    target = folder.joinpath(*parts)
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{name[:100]!r} cannot be unpacked: {error.strerror or error}") from error
    if target.exists():
        raise InputError(f"{name[:100]!r} is there twice")
    return target


def copied(blocks: Iterable[bytes], target: Path, most: int | None = None) -> int:
    """Write blocks into a new file and return its size. Raises TooMuch above `most` bytes (`MOST_BYTES`),
    OSError when the file cannot be written, and whatever making the blocks raises.
    """
    size, most = 0, MOST_BYTES if most is None else most
    with target.open("xb") as out:
        for block in blocks:
            size += len(block)
            if size > most:
                raise TooMuch(f"it holds more than {MOST_BYTES >> 20:,} MB: import parts of it")
            out.write(block)
    return size


def blocks_of(stream: Readable) -> Iterator[bytes]:
    """What a stream holds."""
    while block := stream.read(_BLOCK):
        yield block


def _inflated(stream: Readable) -> Iterator[bytes]:
    """What a gz file of any number of members holds. Raises zlib.error where it is damaged and EOFError where
    it is cut off, after everything that comes before (which gzip.open holds back).
    """
    inflater = zlib.decompressobj(_GZIP_FORM)
    for packed in blocks_of(stream):
        while packed:
            if inflater.eof:
                inflater = zlib.decompressobj(_GZIP_FORM)
            yield inflater.decompress(packed, _BLOCK)
            packed = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    if not inflater.eof:
        raise EOFError


def _is_name(part: str) -> bool:
    return part.isprintable() and ":" not in part and len(part.encode()) <= _LONGEST_NAME


def _gunzipped(source: Source, folder: Path, most: int) -> Unpacked:
    target, refused = folder / "file", []
    try:
        with source.path.open("rb") as stream:
            copied(_inflated(stream), target, most)
    except _BROKEN:
        if not target.exists() or not target.stat().st_size:
            raise InputError("it is a gz file that is damaged or cut off") from None
        refused.append((source.name, "the gz file is damaged or cut off: what comes after is missing"))
    name = source.name.removesuffix(".gz")
    return Unpacked(Source(target, name), target.stat().st_size, tuple(refused))


def _unzipped(source: Source, folder: Path, most: int) -> Unpacked:
    try:
        archive = zipfile.ZipFile(source.path)
    except _BROKEN:
        raise InputError("it is a zip archive that is damaged or cut off") from None
    refused: list[tuple[str, str]] = []
    with archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]
        if len(infos) > MOST_ENTRIES:
            raise TooMuch(f"it holds more than {MOST_ENTRIES:,} files: import parts of it")
        left = most
        for info in infos:
            try:
                left -= _member(archive, info, folder, left)
            except TooMuch:
                raise
            except InputError as error:
                refused.append((f"{source.name}/{info.filename[:200]}", str(error)))
    return Unpacked(Source(folder, source.name), most - left, tuple(refused))


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path, left: int) -> int:
    """Unpack one file of a zip archive and return its size."""
    if stat.S_ISLNK(info.external_attr >> 16):
        raise InputError("a link in an archive is not followed")
    if info.flag_bits & _ENCRYPTED:
        raise InputError("it is encrypted: unpack it with its password and import the file")
    target = place_in(folder, info.filename)
    try:
        with archive.open(info) as stream:
            size = copied(blocks_of(stream), target, left)
    except _BROKEN:
        target.unlink(missing_ok=True)
        raise InputError("it is damaged in its archive") from None
    with suppress(ValueError, OverflowError, OSError):  # an archive need not say when
        moment = datetime(*info.date_time).timestamp()
        os.utime(target, (moment, moment))
    return size
