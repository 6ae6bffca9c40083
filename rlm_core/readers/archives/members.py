"""Which members of an archive are unpacked, and how much of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from rlm_core.readers.output import StagedOutput, Unreadable
from rlm_core.walk import GENERATED

FREE_BYTES: Final = 64 << 20  # this much may come out of anything
RATIO: Final = 200  # beyond it, so many times the packed size: texts seldom reach 50
DAMAGED: Final = "damaged or cut off: not read"
_MOST_NAME: Final = 1000
_PASSED_OVER: Final = GENERATED | {"__MACOSX"}
_DRIVE: Final = re.compile(r"[A-Za-z]:")


class TooLarge(Exception):
    """A member that unpacks to far more than its packed size."""


class Members:
    """The names of one archive as they come: what is not read gets its line in `out`."""

    def __init__(self, out: StagedOutput) -> None:
        self._out = out
        self._seen: set[str] = set()
        self._passed_over = 0

    def accept(self, name: str) -> bool:
        """Whether a file of this name is read."""
        parts = name.split("/")
        if not name or len(name) > _MOST_NAME:
            self._out.problem(name, "a name that is empty or too long: not read")
        elif name.startswith("/") or _DRIVE.match(name) or ".." in parts:
            self._out.problem(name, "a name that leads out of the archive: not read")
        elif any(part.startswith(".") and part != "." or part in _PASSED_OVER for part in parts):
            self._passed_over += 1
        elif name in self._seen:
            self._out.problem(name, "a second file of this name in the archive: only the first is read")
        else:
            self._seen.add(name)
            return True
        return False

    def close(self) -> None:
        """After the last name. Raises `Unreadable` for an archive without any file."""
        if self._passed_over:
            entries = "entry" if self._passed_over == 1 else "entries"
            self._out.problem("", f"{self._passed_over:,} hidden or generated {entries} passed over")
        elif not self._seen and not self._out.has_problems:
            raise Unreadable("an archive without files: nothing to read")


def bounded(blocks: Iterable[bytes], packed: int) -> Iterator[bytes]:
    """The blocks; raises `TooLarge` once they are out of all proportion to the `packed` size."""
    room = FREE_BYTES + RATIO * packed
    for block in blocks:
        room -= len(block)
        if room < 0:
            raise TooLarge(
                f"unpacks to more than {RATIO} times its size, as files made to fill a disk do: not read"
            )
        yield block
