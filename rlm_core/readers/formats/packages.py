"""The zip container of Office files: its parts and their relations. Source: ECMA-376 part 2.

python-docx and python-pptx hold every picture and film of a file in memory, and refuse files with a dangling
relation, which the programs themselves open. Here only the parts asked for are unpacked, within limits.
"""

from __future__ import annotations

import lzma
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final

from rlm_core.readers.output import Unreadable

PASSWORD: Final = "is protected by a password: remove it and add the file again"
DAMAGED: Final = "is damaged: open it in its program, save it again and add that"
ENTITIES: Final = "its XML declares entities, which no Office program writes: not read"
_BLOCK: Final = 1 << 20
_MOST_MEMBERS: Final = 100_000
_MOST_BYTES: Final = 4 << 30  # unpacked, all parts
_MOST_PART: Final = 128 << 20  # unpacked, one part that is held as a tree: about ten times that in memory
_HARMLESS: Final = 32 << 20  # unpacked: below, no ratio is suspicious
_MOST_RATIO: Final = 200  # unpacked to packed; tables of equal rows reach 50, a bomb 1,000
# Whatever zipfile raises for a member that is broken, encrypted or packed in an unknown way (RuntimeError).
_ZIP_ERRORS: Final = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError,
)  # fmt: skip


class Package:
    """One Office file. Use it as a context manager. Every method raises `Unreadable` for a damaged file."""

    def __init__(self, path: str) -> None:
        try:
            self._zip = zipfile.ZipFile(path)
        except _ZIP_ERRORS:
            raise Unreadable(DAMAGED) from None
        self._names = {name.lower().lstrip("/"): name for name in reversed(self._zip.namelist())}
        self._refuse_bomb()

    def __enter__(self) -> Package:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def _refuse_bomb(self) -> None:
        members = self._zip.infolist()
        size = sum(member.file_size for member in members)
        packed = sum(member.compress_size for member in members) or 1
        if len(members) > _MOST_MEMBERS or size > _MOST_BYTES:
            raise Unreadable(
                f"unpacks to {len(members):,} parts of {size >> 20:,} MB in all: too large to read"
            )
        if size > _HARMLESS and size > packed * _MOST_RATIO:
            raise Unreadable(f"unpacks from {packed >> 10:,} KB to {size >> 20:,} MB (a zip bomb?): not read")

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._names

    def names(self) -> list[str]:
        """The names of all parts."""
        return list(self._names.values())

    def blocks(self, name: str) -> Iterator[bytes]:
        """A part in blocks of at most 1 MB, checked against its checksum at the end."""
        try:
            with self._zip.open(self._names[name.lower()]) as file:
                while block := file.read(_BLOCK):
                    yield block
        except (KeyError, *_ZIP_ERRORS):
            raise Unreadable(DAMAGED) from None

    def xml(self, name: str) -> Any:
        """A part as an lxml element. Entities are never expanded and nothing outside is ever opened."""
        from lxml import etree

        size = self._zip.getinfo(self._names[name.lower()]).file_size if name in self else 0
        if size > _MOST_PART:
            raise Unreadable(f"its part {posixpath.basename(name)} has {size >> 20:,} MB: too large to read")
        parser = etree.XMLParser(
            resolve_entities=False, load_dtd=False, no_network=True, remove_comments=True, remove_pis=True
        )
        try:
            for block in self.blocks(name):
                parser.feed(block)
            root = parser.close()
        except etree.XMLSyntaxError:
            raise Unreadable(DAMAGED) from None
        if root.getroottree().docinfo.internalDTD is not None:
            raise Unreadable(ENTITIES)
        return root

    def related(self, name: str) -> dict[str, tuple[str, str]]:
        """The relations of a part ("" for the whole file): id -> (last word of the type, name of the part).

        Relations to what is outside the file, or not in it, are left out.
        """
        folder, base = posixpath.split(name)
        relations = posixpath.join(folder, "_rels", f"{base}.rels")
        found: dict[str, tuple[str, str]] = {}
        for relation in self.xml(relations) if relations in self else ():
            target = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")
            if relation.get("TargetMode") != "External" and target in self:
                kind = relation.get("Type", "").rpartition("/")[2]
                found[relation.get("Id", "")] = (kind, target)
        return found

    def main_part(self) -> str:
        """The name of the part with the document itself."""
        for kind, target in self.related("").values():
            if kind == "officeDocument":
                return target
        raise Unreadable(DAMAGED)


def local(element: Any) -> str:
    """The name of an element without its namespace (there are two for each, transitional and strict); ""
    for what is no element."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute(element: Any, name: str) -> str | None:
    """An attribute by its name without namespace."""
    for key, value in element.items():
        if key.rpartition("}")[2] == name:
            return str(value)
    return None


def child(element: Any, name: str) -> Any:
    """The first child of this name without namespace, or None."""
    return next((inner for inner in element if local(inner) == name), None)
