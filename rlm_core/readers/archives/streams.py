"""Files compressed as a whole: gzip (also of several members), bzip2 and xz."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from rlm_core.readers.archives.members import TooLarge, bounded
from rlm_core.readers.output import StagedOutput, Unreadable

_BLOCK: Final = 1 << 18
_OPENERS: Final[tuple[tuple[bytes, Callable[[str], Any]], ...]] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\x00", lzma.open),
)


def read(path: str, out: StagedOutput) -> None:
    """Unpack the one file, which has no name here. Raises `Unreadable` when it is damaged or too large."""
    with open(path, "rb") as file:
        head = file.read(8)
    opener = next((opener for mark, opener in _OPENERS if head.startswith(mark)), gzip.open)
    try:
        out.attach_blocks("", bounded(_blocks(opener, path), os.stat(path).st_size))
    except TooLarge as error:
        raise Unreadable(str(error)) from None
    except (EOFError, zlib.error, lzma.LZMAError):
        raise Unreadable("a compressed file, damaged or cut off: it does not unpack to its end") from None
    except OSError as error:  # the gzip and bz2 modules raise it, without a number, for broken data
        if error.errno is not None:
            raise
        raise Unreadable("a compressed file, damaged: it does not unpack to its end") from None


def _blocks(opener: Callable[[str], Any], path: str) -> Iterator[bytes]:
    with opener(path) as stream:
        while block := stream.read(_BLOCK):
            yield block
