"""What a format hands back while it reads a file: text, sections, remarks, contained files.

A format is a module `rlm_core.readers.formats.<name>` with `read(path: str, out: Output) -> None`. It runs in
a child process of its own (`rlm_core.readers.child`), which gives it a `StagedOutput`. What that leaves
behind is untrusted: `rlm_core.readers.result` checks all of it before any of it counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

from rlm_core.errors import CorpusError

TEXT: Final = "text"  # the file with the text, in the folder of one reading
PICTURE: Final = "picture-"  # begins the names of pictures there; a number follows
MOST_PICTURE_BYTES: Final = 3_600_000  # in base64 below the 5 MB that providers take
LONGEST_EDGE: Final = 2_000  # pixels: what providers look at; they shrink what is larger
MOST_WANTED: Final = 100  # pages shown by one reader
MOST_TEXT_BYTES: Final = 2 << 30
_NAME_CHARS: Final = 1000
_MOST_PROBLEMS: Final = 1000
_UNFIT: Final = re.compile("[\0\ud800-\udfff]")


class Unreadable(CorpusError):
    """One file that cannot become a document; the message is a clause without the file's name."""


class Output(Protocol):
    """Where a format writes to. Positions are counted in code points of everything written so far."""

    table: str
    media_type: str

    def write(self, text: str) -> None:
        """The next characters of the canonical text. Raises `Unreadable` when it grows beyond 2 GB."""
        ...

    def section(self, kind: str, label: str, columns: dict[str, str] | None = None) -> None:
        """Begin a section here, and end the one before. `kind`: page, slide, sheet or part; `label`: "3",
        "Costs"; `columns` (sheets): name -> text, integer, number, boolean, datetime or date.
        """
        ...

    def end_section(self) -> None:
        """End the section here, for text that belongs to none."""
        ...

    def remark(self, text: str) -> None:
        """One line on how the document was read, for the person who added it."""
        ...

    def problem(self, name: str, text: str) -> None:
        """One line on something contained in the file that does not become a document."""
        ...

    def attach(self, name: str, data: bytes) -> None:
        """A contained file that becomes a document of its own, such as an attachment."""
        ...

    def picture(self, data: bytes, mime: str, width: int, height: int) -> None:
        """What is to be seen in the document: a PNG or JPEG file, of so many pixels."""
        ...

    @property
    def wanted(self) -> Sequence[int]:
        """Indexes of the pages that are to be shown as pictures; only readers of pages are asked."""
        ...


class StagedOutput:
    """An `Output` that writes into an empty folder. Use it as a context manager, then take `result`.

    It takes at most `members` contained files of `member_bytes` in all. `wanted`: as `Output.wanted`.

    Lone surrogates and NUL characters become U+FFFD, which is said in a remark.
    """

    def __init__(self, folder: Path, members: int, member_bytes: int, wanted: Sequence[int] = ()) -> None:
        self.wanted = wanted
        self.table = ""
        self.media_type = ""
        self._folder = folder
        self._members = members
        self._member_bytes = self._room = member_bytes
        self._chars = 0
        self._bytes = 0
        self._replaced = 0
        self._sections: list[list[Any]] = []
        self._open = False
        self._remarks: list[str] = []
        self._problems: list[list[str]] = []
        self._more_problems = 0
        self._attached: list[list[str]] = []
        self._pictures: list[list[Any]] = []

    def __enter__(self) -> StagedOutput:
        self._file: BinaryIO = open(self._folder / TEXT, "wb")
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def write(self, text: str) -> None:
        """As `Output.write`."""
        text, unfit = _UNFIT.subn("\ufffd", text)
        data = text.encode("utf-8")
        self._bytes += len(data)
        if self._bytes > MOST_TEXT_BYTES:
            raise Unreadable(
                f"holds more than {MOST_TEXT_BYTES >> 30} GB of text: split it and add the parts"
            )
        self._replaced += unfit
        self._chars += len(text)
        self._file.write(data)

    def section(self, kind: str, label: str, columns: dict[str, str] | None = None) -> None:
        """As `Output.section`."""
        self.end_section()
        self._sections.append([kind, label, self._chars, self._chars, columns])
        self._open = True

    def end_section(self) -> None:
        """As `Output.end_section`."""
        if self._open:
            self._sections[-1][3] = self._chars
        self._open = False

    def remark(self, text: str) -> None:
        """As `Output.remark`."""
        self._remarks.append(text)

    def problem(self, name: str, text: str) -> None:
        """As `Output.problem`; beyond 1,000 they are only counted."""
        if len(self._problems) < _MOST_PROBLEMS:
            self._problems.append([name[:_NAME_CHARS], text])
        else:
            self._more_problems += 1

    @property
    def has_problems(self) -> bool:
        """Whether there was any."""
        return bool(self._problems)

    def attach(self, name: str, data: bytes) -> None:
        """As `Output.attach`."""
        self.attach_blocks(name, [data])

    def attach_blocks(self, name: str, blocks: Iterable[bytes]) -> None:
        """As `attach`, for a file that comes in blocks; nothing of it stays when they raise an error."""
        if len(self._attached) >= self._members:
            raise Unreadable(f"holds more than {self._members:,} files: unpack it and add the folder")
        path = self._folder / str(len(self._attached))
        room = self._room
        try:
            with open(path, "wb") as file:
                for block in blocks:
                    room -= len(block)
                    if room < 0:
                        raise Unreadable(
                            f"unpacks to more than {self._member_bytes >> 20:,} MB, as files made to fill a "
                            "disk do: if you trust it, unpack it and add the folder"
                        )
                    file.write(block)
        except BaseException:
            path.unlink()
            raise
        self._room = room
        self._attached.append([name[:_NAME_CHARS], path.name])

    def picture(self, data: bytes, mime: str, width: int, height: int) -> None:
        """As `Output.picture`."""
        name = f"{PICTURE}{len(self._pictures)}"
        (self._folder / name).write_bytes(data)
        self._pictures.append([name, mime, width, height])

    def result(self) -> dict[str, Any]:
        """Everything but the text and the contained files, as JSON values. Call it once, at the end."""
        self.end_section()
        if self._replaced:
            count = "1 character that cannot be stored is" if self._replaced == 1 else (
                f"{self._replaced:,} characters that cannot be stored are"
            )  # fmt: skip
            self.remark(f"{count} shown as U+FFFD")
        if self._more_problems:
            self._problems.append(["", f"{self._more_problems:,} more of its files are not read"])
        return {
            "media_type": self.media_type, "table": self.table, "sections": self._sections,
            "remarks": self._remarks, "problems": self._problems, "attached": self._attached,
            "pictures": self._pictures,
        }  # fmt: skip
