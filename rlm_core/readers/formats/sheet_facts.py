"""What calamine does not tell about the sheets of an .xlsx file, found in one pass over their XML.

The extent is needed before a sheet is read: calamine holds every cell between the first and the last filled
one, so that two far corners would take all memory. Source: ECMA-376 part 1, SpreadsheetML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from rlm_core.readers.formats.packages import Package, attribute, local
from rlm_core.readers.output import Unreadable

_REFERENCE: Final = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_DAMAGED: Final = "is damaged: open it in its program, save it again and add that"


@dataclass(slots=True)
class Facts:
    """The extent of a sheet (`rows` by `columns`, from its first cell to its last filled one), how many cells
    are `filled`, hold an error (`errors`), or a formula without its result (`unset`).
    """

    rows: int = 0
    columns: int = 0
    filled: int = 0
    errors: int = 0
    unset: int = 0

    @property
    def area(self) -> int:
        """Cells in the extent."""
        return self.rows * self.columns

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

    Raises `Unreadable` for a damaged file; all parts are unpacked once, so that their sizes are true.
    """
    with Package(path) as package:
        if "xl/workbook.bin" in package or "content.xml" in package:
            _unpack(package)
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
        _unpack(package)
        return facts


def _unpack(package: Package) -> None:
    """Read every part that calamine may read to its end: a size that lies is found here."""
    for name in package.names():
        if name.lower().endswith((".xml", ".bin", ".rels")):
            for _ in package.blocks(name):
                pass


def _measure(package: Package, target: str) -> Facts:
    from lxml import etree

    filled = etree.XPath("(*[*])[last()]")
    count, errors = etree.XPath("count(*[*])"), etree.XPath("count(*[@t='e'])")
    unset = etree.XPath("count(*[*[local-name()='f'] and not(*[local-name()='v'])])")
    facts = Facts()
    parser = etree.XMLPullParser(events=("end",), tag="{*}row", resolve_entities=False, no_network=True)
    seen = 0
    try:
        for block in package.blocks(target):
            parser.feed(block)
            for _, row in parser.read_events():
                seen = _row_number(row, seen)
                if last := filled(row):
                    facts.rows = seen
                    facts.columns = max(facts.columns, _column(last[0], row))
                    facts.filled += int(count(row))
                    facts.errors += int(errors(row))
                    facts.unset += int(unset(row))
                _forget(row)
    except etree.XMLSyntaxError:
        raise Unreadable(_DAMAGED) from None
    return facts


def _row_number(row: Any, before: int) -> int:
    text = row.get("r", "")
    return int(text) if text.isdecimal() and len(text) <= 7 else before + 1


def _column(cell: Any, row: Any) -> int:
    """The number of a cell's column, from 1; without a reference cells stand side by side."""
    match = _REFERENCE.fullmatch(cell.get("r", ""))
    if match is None:
        return len(row)
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
