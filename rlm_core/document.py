"""One document of a corpus, and the parts it is divided into: pages, slides, sheets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from typing import Any, Final

SECTION_KINDS: Final = frozenset({"page", "slide", "sheet", "part"})
COLUMN_TYPES: Final = frozenset({"text", "integer", "number", "boolean", "datetime", "date"})
_LEFT_OUT: Final = ("sections", "table", "picture", "original")  # where they are empty
TABLES: Final = frozenset({"", "csv", "tsv", "json", "jsonl", "sheets"})


@dataclass(frozen=True, slots=True)
class Section:
    """A page, slide, sheet or part of a document: its characters `start` to `end` of the canonical text (code
    points), which are its bytes `start_byte` to `end_byte`.

    `columns`, of sheets and Parquet files only: name -> text, integer, number, boolean, datetime or date.
    """

    kind: str
    label: str
    start: int
    end: int
    columns: Mapping[str, str] | None
    start_byte: int
    end_byte: int


@dataclass(frozen=True, slots=True)
class Picture:
    """What an image file shows, written anew by its reader: `sha256` is of the file of so many `bytes` that
    stands among the pictures of the corpus, `width` and `height` are in pixels.
    """

    sha256: str
    mime: str
    bytes: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Original:
    """The file that a document was read from, where its pages can still be shown: `path` is the user's own
    file (`in_place`, of this `mtime_ns`), else a copy among the pictures of the corpus.
    """

    sha256: str
    bytes: int
    path: str
    in_place: bool
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Document:
    """One document. `chars`, `bytes` and `sha256` are of the canonical UTF-8 text, which stands in `path`.

    `in_place`: the text is the user's own file, of which `mtime_ns` is known; else it is ours, and 0.
    `problems` are remarks on how it was read, such as a guessed encoding. `sections` are in order and do not
    overlap. `table` says how the text reads as a table: csv, tsv, json, jsonl, sheets, or "" for not at all.
    An image file has no text but a `picture`; a document whose pages can be shown has an `original`.
    """

    number: int
    name: str
    media_type: str
    encoding: str
    reader: str
    chars: int
    bytes: int
    sha256: str
    path: str
    in_place: bool
    mtime_ns: int
    problems: tuple[str, ...]
    sections: tuple[Section, ...] = ()
    table: str = ""
    picture: Picture | None = None
    original: Original | None = None

    @property
    def is_image(self) -> bool:
        """Whether it is an image file: there is no text in it, so it can only be shown."""
        return self.picture is not None

    @property
    def pages_shown(self) -> int:
        """How many pages of it can be shown as pictures."""
        return len(self.sections) if self.original is not None else 0


def place_of(sections: Sequence[Section], start_byte: int, end_byte: int) -> str | None:
    """ "page 3", "pages 3-4", "sheet Costs" for a range of bytes; None when it touches no section."""
    first = bisect_right(sections, start_byte, key=lambda section: section.end_byte)
    last = bisect_left(sections, max(end_byte, start_byte + 1), key=lambda section: section.start_byte) - 1
    if first > last:
        return None
    begin, end = sections[first], sections[last]
    if begin is end:
        return f"{begin.kind} {begin.label}"
    if begin.kind == end.kind and begin.label.isdigit() and end.label.isdigit():
        return f"{begin.kind}s {begin.label}-{end.label}"
    return f"{begin.kind} {begin.label} to {end.kind} {end.label}"


def document_facts(document: Document) -> dict[str, Any]:
    """A document as JSON values; what its position says (`number`) and what is empty is left out."""
    facts = {field.name: getattr(document, field.name) for field in fields(document)[1:]}
    facts["sections"] = [list(astuple(section)) for section in document.sections]
    for key in ("picture", "original"):
        facts[key] = asdict(facts[key]) if facts[key] is not None else None
    return {key: value for key, value in facts.items() if value or key not in _LEFT_OUT}


def document_from(number: int, facts: Mapping[str, Any]) -> Document:
    """The document of these facts, which come from `document_facts`, also of earlier versions.

    Raises `TypeError` or `ValueError` for what is none.
    """
    known = {
        **facts,
        "number": number,
        "problems": tuple(facts["problems"]),
        "sections": tuple(Section(*values) for values in facts.get("sections", ())),
        "picture": Picture(**facts["picture"]) if facts.get("picture") else None,
        "original": Original(**facts["original"]) if facts.get("original") else None,
    }
    return Document(**known)
