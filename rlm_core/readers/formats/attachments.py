"""Files contained in a document (mail, PDF): each becomes a document of its own, within limits."""

from __future__ import annotations

from typing import Final

from rlm_core.readers.output import Output

_MOST_FILES: Final = 1_000
_MOST_BYTES: Final = 1 << 30  # all contained files of one document


class Attachments:
    """Hands the files contained in one document to its output, and says at the end what was left out."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._files = 0
        self._bytes = 0
        self._broken = 0
        self._left = False

    def add(self, name: str, data: bytes) -> bool:
        """One more file; False when the limit is reached, after which no more can be added."""
        if not data:
            self._out.problem(name, "an empty file: nothing to read")
            return True
        self._files += 1
        self._bytes += len(data)
        self._left = self._files > _MOST_FILES or self._bytes > _MOST_BYTES
        if not self._left:
            self._out.attach(name, data)
        return not self._left

    def broken(self) -> None:
        """One file that could not be taken out."""
        self._broken += 1

    def finish(self) -> None:
        """Say what is missing."""
        if self._left:
            self._out.remark(
                f"only the first attachments are read: at most {_MOST_FILES:,} files, {_MOST_BYTES >> 30} GB"
            )
        if self._broken:
            files = "1 attachment is" if self._broken == 1 else f"{self._broken:,} attachments are"
            self._out.remark(f"{files} damaged and not read")
