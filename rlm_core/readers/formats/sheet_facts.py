"""What calamine does not tell about the sheets of a workbook, found in one pass over their XML.

The extent is needed before a sheet is read: calamine holds every cell between the first and the last filled
one, so that two far corners would take all memory. Source: ECMA-376 part 1, SpreadsheetML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from xml.parsers import expat

from rlm_core.readers.formats.packages import DAMAGED, ENTITIES, Package, attribute, local
from rlm_core.readers.output import Unreadable

MOST_MEMORY: Final = 1600 << 20
"""Bytes that calamine may take for one sheet, or for an .ods file."""

_ODS: Final = "content.xml"
_TABLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_VALUE_TYPE: Final = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}value-type"
_REFERENCE: Final = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")


@dataclass(slots=True)
class Facts:
    """The extent of a sheet (`rows` by `columns`, from its first cell to its last filled one), how many cells
    are `filled` (at most), hold an error (`errors`), or a formula without its result (`unset`).
    """

    rows: int = 0
    columns: int = 0
    filled: int = 0
    errors: int = 0
    unset: int = 0

    @property
    def memory(self) -> int:
        """Bytes that calamine takes for the sheet without its texts, as measured with version 0.9."""
        return 32 * self.rows * self.columns + 48 * self.filled

    def extent(self) -> str:
        """The extent in words."""
        return f"{self.rows:,} rows by {self.columns:,} columns, {self.filled:,} of the cells filled,"

    def remarks(self) -> Iterator[str]:
        """What the person who adds the file should know."""
        if self.errors:
            yield f"{_cells(self.errors)} with an error (such as #DIV/0!), shown empty"
        if self.unset:
            yield (
                f"{_cells(self.unset)} with a formula whose result is not stored, shown empty: open and save "
                "the file in a spreadsheet program"
            )


def find_facts(path: str) -> dict[str, Facts]:
    """Name of the sheet -> facts, of an .xlsx or .xlsm file; nothing for other kinds of workbooks.

    Raises `Unreadable` for a damaged file. All parts that calamine reads are read to their end here, so that
    their sizes are true, and are proper XML: it never comes to an end with some that is not.
    """
    with Package(path) as package:
        for name in package.names():
            _check(package, name)
        if _ODS in package:
            _refuse_large(_measure_ods(package))
            return {}
        if "xl/workbook.bin" in package:
            return {}
        main = package.main_part()
        root = package.xml(main)
        if local(root) != "workbook":
            raise Unreadable("is not a workbook, whatever its name says")
        relations = package.related(main)
        facts = {}
        for sheets in root:
            for sheet in sheets if local(sheets) == "sheets" else ():
                identity = next((value for key, value in sheet.items() if key.endswith("}id")), "")
                kind, target = relations.get(identity, ("", ""))
                if kind == "worksheet":
                    facts[attribute(sheet, "name") or ""] = _measure(package, target)
        return facts


def _check(package: Package, name: str) -> None:
    """Read a part to its end; raises `Unreadable` when it is no proper XML or declares entities."""
    suffix = name.lower().rpartition(".")[2]
    if suffix not in ("xml", "rels", "bin"):
        return
    parser = expat.ParserCreate() if suffix != "bin" else None
    if parser is not None:
        parser.EntityDeclHandler = _refuse_entities
    try:
        for block in package.blocks(name):
            if parser is not None:
                parser.Parse(block, False)
        if parser is not None:
            parser.Parse(b"", True)
    except (expat.ExpatError, LookupError, ValueError):  # LookupError: an encoding that does not exist
        raise Unreadable(DAMAGED) from None


def _refuse_entities(*declaration: object) -> None:
    raise Unreadable(ENTITIES)


def _refuse_large(sheets: list[Facts]) -> None:
    """An .ods file is held whole, all sheets at once."""
    if sum(facts.memory for facts in sheets) > MOST_MEMORY:
        largest = max(sheets, key=lambda facts: facts.memory)
        raise Unreadable(f"{largest.extent()} need too much memory; delete what stands far out, or split it")


def _measure_ods(package: Package) -> list[Facts]:
    """The extents of the sheets of an .ods file. Source: OpenDocument 1.3 part 3, 9.1."""
    from lxml import etree

    sheets: list[Facts] = []
    facts = Facts()
    tags = (f"{_TABLE}table-row", f"{_TABLE}table")
    parser = etree.XMLPullParser(events=("end",), tag=tags, resolve_entities=False, no_network=True)
    for block in package.blocks(_ODS):
        parser.feed(block)
        for _, element in parser.read_events():
            if element.tag == tags[0]:
                _count_row(element, facts)
            else:
                sheets.append(facts)
                facts = Facts()
            _forget(element)
    return sheets


def _count_row(row: Any, facts: Facts) -> None:
    """Add a row of an .ods file, which stands for as many as it says."""
    times = _whole(row.get(f"{_TABLE}number-rows-repeated"))
    column = used = filled = 0
    for cell in row:
        repeated = _whole(cell.get(f"{_TABLE}number-columns-repeated"))
        column += repeated
        if cell.get(_VALUE_TYPE) is not None:
            used = column
            filled += repeated
    if used:
        facts.rows += times
        facts.columns = max(facts.columns, used)
        facts.filled += filled * times


def _whole(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else 1


def _measure(package: Package, target: str) -> Facts:
    from lxml import etree

    odd = etree.XPath("*[@t='e' or (*[local-name()='f'] and not(*[local-name()='v']))]")
    facts = Facts()
    parser = etree.XMLPullParser(events=("end",), tag="{*}row", resolve_entities=False, no_network=True)
    number = 0
    try:
        for block in package.blocks(target):
            parser.feed(block)
            for _, row in parser.read_events():
                number = _row_number(row, number)
                used = next((at for at in range(len(row), 0, -1) if len(row[at - 1])), 0)
                if used:
                    facts.rows = number
                    facts.columns = max(facts.columns, _column(row[used - 1], used))
                    facts.filled += used
                    found = odd(row)
                    facts.errors += sum(cell.get("t") == "e" for cell in found)
                    facts.unset += sum(cell.get("t") != "e" for cell in found)
                _forget(row)
    except etree.XMLSyntaxError:
        raise Unreadable(DAMAGED) from None
    return facts


def _row_number(row: Any, before: int) -> int:
    text = row.get("r", "")
    return int(text) if text.isdecimal() and len(text) <= 7 else before + 1


def _column(cell: Any, position: int) -> int:
    """The number of a cell's column, from 1; without a reference cells stand side by side."""
    match = _REFERENCE.fullmatch(cell.get("r", ""))
    if match is None:
        return position
    number = 0
    for letter in match[1]:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _forget(row: Any) -> None:
    """Free a row that was read, and the empty shells of those before it."""
    row.clear()
    while row.getprevious() is not None:
        del row.getparent()[0]


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count:,} cells"
