"""Workbooks (.xlsx, .xlsm, .xlsb, .xls, .ods): per sheet a heading, then CSV lines, "\\f" between sheets.

A section covers the table of a sheet: its header and its rows. Lines above the header (a title) stand before
it. Values are those stored in the file (of formulas: the last result). Numbers have at most 15 digits, as in
the programs; whole ones have no ".0"; dates are ISO 8601.
"""

from __future__ import annotations

import itertools
import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, Final

from rlm_core.readers.formats.packages import DAMAGED, PASSWORD
from rlm_core.readers.formats.sheet_facts import MOST_MEMORY, Facts, find_facts
from rlm_core.readers.formats.tables import common_kind, csv_lines, kind_of, letters, unique_names
from rlm_core.readers.output import Output, Unreadable

_HEADER_ROWS: Final = 10  # the header is one of the first rows with anything in them
_SAMPLE: Final = 50
_MOST_NAMED: Final = 3  # sheets in the line on a workbook of which nothing is read
_BATCH: Final = 1_000
_EMPTY_ROWS: Final = 1_000  # remarked when most of a sheet is that: something stands far out by mistake
_YEARS: Final = range(1900, 2101)
Cell = Any  # what calamine gives: str, float, int, bool, date, datetime, time, timedelta


def read(path: str, out: Output) -> None:
    """Read the workbook at `path` into `out`; see `rlm_core.readers.output`."""
    from python_calamine import SheetVisibleEnum

    facts = find_facts(path) if zipfile.is_zipfile(path) else {}
    workbook = _guarded(_open, path)
    out.table = "sheets"
    written = 0
    refused = []
    for sheet in workbook.sheets_metadata:
        name = " ".join(sheet.name.split())
        known = facts.get(sheet.name, Facts())
        table = None
        why = _refusal(sheet, known)
        if why is None:
            table = _guarded(workbook.get_sheet_by_name, sheet.name)
            why = None if table.width else "is empty"
        if why is not None:
            refused.append(f"sheet {name} {why}")
            continue
        if written:
            out.end_section()
            out.write("\f")
        written += 1
        _sheet(name, table, known, out)
        if sheet.visible != SheetVisibleEnum.Visible:
            out.remark(f"sheet {name} is hidden, but read")
    if not written:
        raise Unreadable("; ".join(refused[:_MOST_NAMED]) or "a workbook without sheets")
    for line in refused:
        out.remark(line)


def _refusal(sheet: Any, facts: Facts) -> str | None:
    """Why a sheet is not even tried, or None."""
    import python_calamine as calamine

    if sheet.typ != calamine.SheetTypeEnum.WorkSheet:
        return "is no table (a chart or a macro): not read"
    if facts.memory > MOST_MEMORY:
        return f"is not read: {facts.extent()} need too much memory; delete what stands far out, or split it"
    return None


def _open(path: str) -> Any:
    """A workbook, by its name's ending or, where that is none or wrong, by its content."""
    import python_calamine as calamine

    try:
        return calamine.CalamineWorkbook.from_path(path)
    except calamine.PasswordError:
        raise
    except calamine.CalamineError:
        with open(path, "rb") as file:
            return calamine.CalamineWorkbook.from_filelike(file)


def _guarded(call: Any, argument: str) -> Any:
    """A call of calamine. A Rust panic is an error of its own outside `Exception`: a damaged file to us."""
    import python_calamine as calamine

    try:
        return call(argument)
    except calamine.PasswordError:
        raise Unreadable(PASSWORD) from None
    except (calamine.CalamineError, OSError, ValueError):
        raise Unreadable(DAMAGED) from None
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise Unreadable(DAMAGED) from None
        raise


def _sheet(name: str, table: Any, facts: Facts, out: Output) -> None:
    """Write one sheet and say what was guessed about it."""
    first, offset = table.start
    sample = list(itertools.islice(_rows(table), _SAMPLE))
    at = find_header(sample)
    out.write(f"# Sheet: {name}\n")
    if at is None:
        names = [letters(offset + column) for column in range(len(sample[0]))]
        out.remark(f"sheet {name}: no header found, columns are named {names[0]} to {names[-1]}")
        start = 0
    else:
        names = unique_names([_written(cell, "") for cell in sample[at]], offset)
        out.write(csv_lines([_written(cell, "") for cell in row] for row in sample[:at] if any(_filled(row))))
        start = at + 1
        if at:
            out.remark(f"sheet {name}: row {first + at + 1} is taken as the header")
    kinds: list[set[str]] = [set() for _ in names]
    total = empty = 0
    for row in itertools.islice(_rows(table), start, None):
        total += 1
        empty += not any(_filled(row))
        for seen, cell in zip(kinds, row, strict=False):
            seen.add(kind_of(cell))
    columns = {column: common_kind(seen) for column, seen in zip(names, kinds, strict=True)}
    out.section("sheet", name, columns)
    out.write(csv_lines([names]))
    rows = itertools.islice(_rows(table), start, None)
    while batch := list(itertools.islice(rows, _BATCH)):
        out.write(
            csv_lines([_written(c, k) for c, k in zip(r, columns.values(), strict=False)] for r in batch)
        )
    if empty > _EMPTY_ROWS and empty * 2 > total:
        out.remark(f"sheet {name}: {empty:,} of its {total:,} rows are empty")
    for remark in facts.remarks():
        out.remark(f"sheet {name}: {remark}")


def _rows(table: Any) -> Iterator[list[Cell]]:
    """The rows from the first to the last with a filled cell, cut to the used columns."""
    first, left = table.start
    for row in itertools.islice(table.iter_rows(), first, None):
        yield row[left:]


def _filled(row: Sequence[Cell]) -> list[bool]:
    return [cell != "" for cell in row]


def find_header(rows: Sequence[Sequence[Cell]]) -> int | None:
    """Which of the first rows of a sheet names the columns; None when none does.

    Rows with at most half as many filled cells as the fullest are titles. The first other row is the header
    when it holds only texts (or years and dates, each once, beside at least one text).
    """
    counts = [sum(_filled(row)) for row in rows]
    for number, row in enumerate(rows[:_HEADER_ROWS]):
        if counts[number] * 2 > max(counts) or max(counts) == 1 == counts[number]:
            return number if _names_columns([cell for cell in row if cell != ""]) else None
    return None


def _names_columns(cells: Sequence[Cell]) -> bool:
    others = [cell for cell in cells if not isinstance(cell, str)]
    periods = {
        cell for cell in others if isinstance(cell, date) or (kind_of(cell) == "integer" and cell in _YEARS)
    }
    return len(others) < len(cells) and len(periods) == len(others)


def _written(cell: Cell, kind: str) -> str:
    """A cell as text; `kind` is that of its column ("" for a header)."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return _number(cell)
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, date):
        return f"{cell.isoformat()}T00:00:00" if kind == "datetime" else cell.isoformat()
    if isinstance(cell, time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return _duration(cell)
    return str(cell)


def _number(value: float) -> str:
    """15 digits, which is what spreadsheet programs show: 0.1 + 0.2 is 0.3 there."""
    text = f"{value:.15g}"
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else text


def _duration(value: timedelta) -> str:
    """Hours, minutes and seconds, the hours beyond 24 counted on."""
    seconds = value.total_seconds()
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{sign}{hours:02}:{minutes:02}:{rest:06.3f}".removesuffix(".000")
