"""One file and everything in it: text is read here, the rest by a child, contained files in their turn."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from rlm_core.canonical import ORIGINAL_SUFFIX, PICTURE_TYPES, PICTURES, text_file, writing
from rlm_core.document import Original, Picture
from rlm_core.readers.archives.members import FREE_BYTES, RATIO
from rlm_core.readers.output import TEXT as TEXT_FILE
from rlm_core.readers.output import Unreadable
from rlm_core.readers.process import Caps, run_child
from rlm_core.readers.reading import Reading
from rlm_core.readers.result import Result, Shown, take_result
from rlm_core.readers.signatures import TEXT, Kind, recognise
from rlm_core.readers.text import HEAD, open_regular, read_text
from rlm_core.walk import Found, Problem, printable

MOST_MEMBERS: Final = 100_000  # in one file, at all depths together
MOST_MEMBER_BYTES: Final = 10 << 30
MOST_DEPTH: Final = 2  # an archive in an archive is opened, one in that is not
_MODULES: Final = {
    "zip": "archives.zips", "tar": "archives.tars",
    "gzip": "archives.streams", "bzip2": "archives.streams", "xz": "archives.streams",
}  # fmt: skip
_UNPACKED_SUFFIX: Final = {".tgz": ".tar", ".tbz": ".tar", ".tbz2": ".tar", ".txz": ".tar"}


@dataclass(frozen=True, slots=True)
class Taken:
    """A file that became a document. `path` is the user's file, which counts when it is read in place."""

    name: str
    path: str
    reading: Reading


@dataclass(slots=True)
class _Budget:
    """What may still be unpacked from one file that was given."""

    members: int
    size: int


@dataclass(frozen=True, slots=True)
class _Source:
    """A file to read. `title` is the name that tells its kind; `ours`: unpacked by us, may be moved."""

    path: str
    name: str
    shown: str
    title: str
    ours: bool = False
    depth: int = 0
    in_stream: bool = False


@dataclass(slots=True)
class FileReader:
    """Reads files one after another; several threads may use one reader.

    Texts go to `texts`; `work` is for what is thrown away. `tick` is called with the number of bytes read
    since the last call, and may raise to end the reading.
    """

    texts: Path
    work: Path
    encoding: str | None
    tick: Callable[[int], None] = field(default=lambda count: None)

    def read(self, found: Found) -> list[Taken | Problem]:
        """The documents in a file, and a line for everything in it that became none.

        Raises `CorpusError` when the folder of texts cannot be written to.
        """
        return self._read(_given(found), None)

    def read_text(self, found: Found) -> list[Taken | Problem] | None:
        """As `read`, if the file is text or cannot be read at all; None if it takes a child to read it."""
        source = _given(found)
        try:
            taken = self._read_text(source)
            return [taken] if isinstance(taken, Taken) else None
        except (Unreadable, OSError) as error:
            return [_problem(source, error)]

    def _check(self, count: int = 0) -> None:
        self.tick(0)

    def _read(self, source: _Source, budget: _Budget | None) -> list[Taken | Problem]:
        try:
            taken = self._read_text(source)
            if isinstance(taken, Taken):
                return [taken]
            kind, remark, size = taken
            if budget is None:
                budget = _Budget(MOST_MEMBERS, min(MOST_MEMBER_BYTES, FREE_BYTES + RATIO * size))
            return self._read_by_child(source, kind, remark, size, budget)
        except (Unreadable, OSError) as error:
            return [_problem(source, error)]

    def _read_text(self, source: _Source) -> Taken | tuple[Kind, str | None, int]:
        """The document if the file is text, else its kind, a remark, and its size in bytes."""
        with open_regular(source.path) as file:
            head = file.read(HEAD)
            if not head:
                raise Unreadable("an empty file: nothing to read")
            kind, remark = recognise(file, head, source.title)
            if kind is not TEXT:
                return kind, remark, os.fstat(file.fileno()).st_size
            try:
                tick = self._check if source.ours else self.tick
                reading = read_text(file, source.path, source.title, head, self.texts, self.encoding, tick)
            except Unreadable as error:
                if remark:
                    suffix = os.path.splitext(source.title)[1]
                    raise Unreadable(f"named {printable(suffix)}, but it is {error}") from None
                raise
        return Taken(source.name, source.path, self._placed(source, reading, remark))

    def _placed(self, source: _Source, reading: Reading, remark: str | None) -> Reading:
        """The reading with its remark; what we unpacked moves to the texts."""
        if remark:
            reading = replace(reading, remarks=(remark, *reading.remarks))
        if not (source.ours and reading.in_place):
            return reading
        with writing(self.texts):
            self.texts.mkdir(parents=True, exist_ok=True)
            os.replace(source.path, self.texts / text_file(reading.measured.sha256))
        return replace(reading, in_place=False, mtime_ns=0)

    def _read_by_child(
        self, source: _Source, kind: Kind, remark: str | None, size: int, budget: _Budget
    ) -> list[Taken | Problem]:
        _refuse_deep(source, kind)
        with writing(self.work):
            self.work.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(dir=self.work))
        try:
            before = os.stat(source.path)
            module = _MODULES.get(kind.reader, f"formats.{kind.reader}")
            caps = Caps.of(size, budget.members, budget.size)
            run_child(module, source.path, folder, caps, self._check)
            result = take_result(folder)
            after = os.stat(source.path)
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise Unreadable("was written to while it was read: add a copy of it, or add it again")
            items: list[Taken | Problem] = []
            if not kind.is_archive:
                items.append(self._document(source, kind, remark, result, folder))
            elif remark:
                items.append(Problem(source.shown, remark))
            items += [Problem(_below(source.shown, name), text) for name, text in result.problems]
            return items + self._members(source, kind, result, budget)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _document(
        self, source: _Source, kind: Kind, remark: str | None, result: Result, folder: Path
    ) -> Taken | Problem:
        shown = result.pictures[0] if result.pictures else None
        pages = kind.reader == "pdf" and bool(result.sections)
        can_be_seen = shown is not None or pages
        if not result.measured.bytes and not can_be_seen:
            return Problem(source.shown, f"{kind.title} without text: there is nothing in it to read")
        with writing(self.texts):
            self.texts.mkdir(parents=True, exist_ok=True)
            os.replace(folder / TEXT_FILE, self.texts / text_file(result.measured.sha256))
        remarks = (remark, *result.remarks) if remark else result.remarks
        media_type = shown.mime if shown is not None else result.media_type or kind.media_type
        reading = Reading(
            result.measured, media_type, "", False, 0, remarks,
            kind.reader, result.sections, result.table,
            None if shown is None else self._picture(shown),
            self._original(source) if pages else None,
        )  # fmt: skip
        return Taken(source.name, source.path, reading)

    def _picture(self, shown: Shown) -> Picture:
        """Put what an image shows among the pictures of the corpus."""
        folder = self.texts.with_name(PICTURES)
        sha256 = hashlib.sha256(shown.data).hexdigest()
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{sha256}{PICTURE_TYPES[shown.mime]}").write_bytes(shown.data)
        return Picture(sha256, shown.mime, len(shown.data), shown.width, shown.height)

    def _original(self, source: _Source) -> Original:
        """The file whose pages can be shown: the user's own where it is, one that we unpacked among the
        pictures.
        """
        with open_regular(source.path) as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
            status = os.fstat(file.fileno())
        if not source.ours:
            return Original(sha256, status.st_size, source.path, True, status.st_mtime_ns)
        folder = self.texts.with_name(PICTURES)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.path, folder / f"{sha256}{ORIGINAL_SUFFIX}")
        return Original(sha256, status.st_size, "", False, 0)

    def _members(self, source: _Source, kind: Kind, result: Result, budget: _Budget) -> list[Taken | Problem]:
        """What the contained files become, read under names below that of the container."""
        if result.attached and not kind.is_stream and source.depth >= MOST_DEPTH:
            count = len(result.attached)
            return [Problem(source.shown, f"{count:,} files in it, too deep inside others: not read")]
        budget.members -= len(result.attached)
        budget.size -= sum(os.lstat(file.path).st_size for file in result.attached)
        items: list[Taken | Problem] = []
        for file in result.attached:
            if kind.is_stream:
                stem, suffix = os.path.splitext(source.title)
                title = stem + _UNPACKED_SUFFIX.get(suffix.lower(), "")
                member = replace(source, path=file.path, title=title, ours=True, in_stream=True)
            else:
                name = _member_name(file.name)
                member = _Source(
                    file.path, _below(source.name, name), _below(source.shown, name),
                    os.path.basename(name), True, source.depth + 1,
                )  # fmt: skip
            items += self._read(member, budget)
        return items


def _given(found: Found) -> _Source:
    return _Source(found.path, found.name, found.shown, os.path.basename(found.path))


def _problem(source: _Source, error: Unreadable | OSError) -> Problem:
    if isinstance(error, Unreadable):
        return Problem(source.shown, str(error))
    return Problem(source.shown, f"cannot be read ({error.strerror or error}): check its permissions")


def _refuse_deep(source: _Source, kind: Kind) -> None:
    if kind.is_stream and source.in_stream:
        raise Unreadable(f"{kind.title} in a compressed file: unpack it and add what is in it")
    if kind.is_archive and not kind.is_stream and source.depth >= MOST_DEPTH:
        raise Unreadable(f"{kind.title} inside {MOST_DEPTH} others: unpack it and add the folder")


def _member_name(name: str) -> str:
    """A name that only names: printable, relative, no step upwards."""
    parts = [part for part in printable(name).split("/") if part not in ("", ".", "..")]
    return "/".join(parts) or "file"


def _below(container: str, name: str) -> str:
    return f"{container}/{name}" if name else container
