"""Word documents (.docx, .docm, .dotx): paragraphs, tables and boxes in the order of the text.

Inserted text of tracked changes is in, deleted and hidden text is out. Headers stand first and footers after
the text, each once; then footnotes, endnotes and comments. Source: ECMA-376 part 1, WordprocessingML.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from rlm_core.readers.formats.docx_numbers import Numbers
from rlm_core.readers.formats.packages import Package, attribute, child, local
from rlm_core.readers.output import Output, Unreadable

# Properties; what tracked changes took away; the code of fields (their results are text).
_SKIPPED: Final = frozenset({
    "pPr", "rPr", "sectPr", "tblPr", "tblGrid", "trPr", "tcPr", "sdtPr", "del", "moveFrom",
    "instrText", "delText", "delInstrText",
})  # fmt: skip
_TEXTS: Final = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_NOTES: Final = ("footnote", "endnote")


def read(path: str, out: Output) -> None:
    """Read the document at `path` into `out`; see `rlm_core.readers.output`."""
    with Package(path) as package:
        main = package.main_part()
        parts = list(package.related(main).values())
        body = package.xml(main)
        if local(body) != "document":
            raise Unreadable("is not a Word document, whatever its name says")
        reading = _Reading(Numbers(*(_first(package, parts, kind) for kind in ("numbering", "styles"))))
        lines = [
            *_once(reading, package, parts, "header"), *reading.blocks(body),
            *_once(reading, package, parts, "footer"),
            *_notes(reading, package, parts), *_comments(reading, package, parts),
        ]  # fmt: skip
        text = "\n".join(lines)
        if not text.strip():
            raise Unreadable("a document without any text (only pictures?)")
        out.write(text.rstrip("\n") + "\n")
        if reading.hidden:
            places = "1 place" if reading.hidden == 1 else f"{reading.hidden:,} places"
            out.remark(f"hidden text is left out ({places})")
        if any(kind == "aFChunk" for kind, _ in parts):
            out.remark("holds documents in other formats that are not read")


class _Reading:
    """The state of one reading: list numbers, and the notes met so far in their order."""

    def __init__(self, numbers: Numbers) -> None:
        self.notes: dict[tuple[str, str], int] = {}
        self.hidden = 0
        self._numbers = numbers

    def blocks(self, container: Any) -> Iterator[str]:
        """The lines of whatever holds paragraphs and tables."""
        for element in container:
            name = local(element)
            if name == "p":
                yield from self._paragraph(element)
            elif name == "tbl":
                yield from self._table(element)
            elif name == "AlternateContent":
                yield from self.blocks(_alternative(element))
            elif name not in _SKIPPED:
                yield from self.blocks(element)

    def _paragraph(self, paragraph: Any) -> Iterator[str]:
        pieces: list[str] = []
        boxes: list[Any] = []
        label = self._numbers.label(child(paragraph, "pPr"))
        self._inline(paragraph, pieces, boxes)
        text = "".join(pieces)
        yield label + text if text.strip() else text
        for box in boxes:
            yield from self.blocks(box)

    def _inline(self, element: Any, pieces: list[str], boxes: list[Any]) -> None:
        for inner in element:
            name = local(inner)
            if name == "t":
                pieces.append(inner.text or "")
            elif name in _TEXTS:
                pieces.append(_TEXTS[name])
            elif name in ("footnoteReference", "endnoteReference"):
                key = (name.removesuffix("Reference"), attribute(inner, "id") or "")
                pieces.append(f"[{self.notes.setdefault(key, len(self.notes) + 1)}]")
            elif name == "txbxContent":
                boxes.append(inner)
            elif name == "AlternateContent":
                self._inline(_alternative(inner), pieces, boxes)
            elif name == "r" and _is_hidden(inner):
                self.hidden += 1
            elif name not in _SKIPPED:
                self._inline(inner, pieces, boxes)

    def _table(self, table: Any) -> Iterator[str]:
        """One line a row; a merged cell is written once, where it begins."""
        for row in _inside(table, "tr"):
            properties = child(row, "trPr")
            if properties is None or child(properties, "del") is None:
                yield "\t".join(" ".join(" ".join(self.blocks(cell)).split()) for cell in _inside(row, "tc"))


def _inside(element: Any, name: str) -> Iterator[Any]:
    """The rows of a table or cells of a row, also those in content controls and the like."""
    for inner in element:
        if local(inner) == name:
            yield inner
        elif local(inner) not in _SKIPPED:
            yield from _inside(inner, name)


def _alternative(element: Any) -> Any:
    """Of one thing in two forms, such as a text box for new and for old programs, the first."""
    return next(iter(element), ())


def _is_hidden(run: Any) -> bool:
    properties = child(run, "rPr")
    mark = None if properties is None else child(properties, "vanish")
    if mark is None or attribute(mark, "val") in ("0", "false", "off"):
        return False
    return any(local(inner) == "t" and inner.text for inner in run)


def _first(package: Package, parts: Iterable[tuple[str, str]], kind: str) -> Any:
    return next((package.xml(target) for found, target in parts if found == kind), ())


def _once(reading: _Reading, package: Package, parts: Iterable[tuple[str, str]], kind: str) -> list[str]:
    """The lines of all headers or footers: every section has its own, most say the same."""
    targets = sorted(target for found, target in parts if found == kind)
    lines = [line.strip() for target in targets for line in reading.blocks(package.xml(target))]
    return list(dict.fromkeys(filter(None, lines)))


def _notes(reading: _Reading, package: Package, parts: list[tuple[str, str]]) -> Iterator[str]:
    """The footnotes and endnotes that the text refers to, under its numbers."""
    found: dict[tuple[str, str], Any] = {}
    for kind in _NOTES:
        found |= {(kind, attribute(note, "id") or ""): note for note in _first(package, parts, f"{kind}s")}
    waiting = list(reading.notes.items())
    for key, number in waiting:
        if key in found:
            yield f"[{number}] " + " ".join(" ".join(reading.blocks(found[key])).split())


def _comments(reading: _Reading, package: Package, parts: list[tuple[str, str]]) -> Iterator[str]:
    for comment in _first(package, parts, "comments"):
        author = attribute(comment, "author") or "unknown"
        yield f"Comment by {author}: " + " ".join(" ".join(reading.blocks(comment)).split())
