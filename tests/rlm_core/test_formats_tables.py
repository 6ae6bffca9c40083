"""Readers of workbooks and Parquet files: the exact table, the kinds of its columns, what is remarked."""

from __future__ import annotations

import csv
import io
import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core.readers.formats.sheets import find_header
from rlm_core.readers.formats.tables import common_kind, csv_lines, kind_of, unique_names
from tests.support.documents import DOCUMENTS, GOOD, OFFICE, package, read, refusal, relations

SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


# -- workbooks

ORDERS = {
    "Code": "text", "Ordered": "date", "Units": "integer", "Price": "number", "Paid": "boolean",
    "Booked at": "datetime", "Note": "text",
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["xlsx", "xls", "ods"])
def test_a_workbook_reads_the_same_in_every_format(suffix: str) -> None:
    out = read(GOOD / f"orders.{suffix}")
    assert out.parts["Orders"] == (
        "Code,Ordered,Units,Price,Paid,Booked at,Note\n"
        '00417,2025-03-02,12,4.5,true,2025-03-02T14:30:00,"said ""yes"", twice"\n'
        "00418,2025-03-09,7,19.99,false,2025-03-10T00:00:00,\n"
        ",,,,,,\n"
        '00431,2025-04-21,1250,3,true,2025-04-21T08:05:00,"line one\nline two"\n'
        "Sum,,1269,27.49,,,\n"
    )
    assert out.text.startswith("# Sheet: Orders\nOrders of the cannery,,,,,,\nCode,")
    assert out.text.count("\f") == 3
    assert out.columns == {
        "Orders": ORDERS,
        "Rates": {"A": "text", "B": "number", "C": "text"},
        "Catch by year": {"Species": "text", "2022": "integer", "2023": "integer"},
        "Suppliers": {"Supplier": "text", "Town": "text"},
    }
    assert out.parts["Rates"] == "A,B,C\nEUR,11.43,06:45\nSEK,1.02,06:45:00\n"
    assert out.table == "sheets"
    said = [
        "sheet Orders: row 5 is taken as the header",
        "sheet Rates: no header found, columns are named A to C",
        "sheet Suppliers is hidden, but read",
        "sheet Empty is empty",
    ]
    if suffix == "xlsx":
        said.insert(1, "sheet Orders: 1 cell with an error (such as #DIV/0!), shown empty")
    assert out.remarks == said


def workbook(path: Path, rows: str) -> Path:
    return package(
        path,
        {
            "_rels/.rels": relations(("officeDocument", "xl/workbook.xml")),
            "xl/_rels/workbook.xml.rels": relations(("worksheet", "worksheets/sheet1.xml")),
            "xl/workbook.xml": f'<workbook xmlns="{SHEETS}" xmlns:r="{OFFICE}"><sheets>'
            '<sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEETS}"><sheetData>{rows}</sheetData>'
            "</worksheet>",
        },
    )


def test_formulas_without_a_stored_result_are_told(tmp_path: Path) -> None:
    rows = '<row r="1"><c r="A1"><v>0.30000000000000004</v></c><c r="B1"><f>A1*2</f></c></row>'
    out = read(workbook(tmp_path / "a.xlsx", rows))
    assert out.parts["S"] == "A\n0.3\n"
    assert out.remarks[-1].startswith(
        "sheet S: 1 cell with a formula whose result is not stored, shown empty"
    )


def test_a_sheet_that_is_mostly_empty_rows_is_told(tmp_path: Path) -> None:
    rows = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1500"><c r="B1500"><v>2</v></c></row>'
    out = read(workbook(tmp_path / "a.xlsx", rows))
    assert out.remarks[-1] == "sheet S: 1,498 of its 1,500 rows are empty"


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        ([["a", "b"], ["c", "d"]], 0),
        ([["Title", "", ""], ["", "", ""], ["a", "b", "c"], [1.0, 2.0, 3.0]], 2),
        ([["", "2023", "2024"], ["x", 1.0, 2.0]], 0),
        ([["Region", 2023.0, 2024.0], ["x", 1.0, 2.0]], 0),
        ([["Region", date(2024, 1, 1)], ["x", 1.0]], 0),
        ([["x", 2023.0, 2023.0], ["y", 1.0, 2.0]], None),
        ([["x", 12.5], ["y", 1.0]], None),
        ([["x", True], ["y", False]], None),
        ([[1.0], [2.0]], None),
        ([["only"], [2.0]], 0),
    ],
)
def test_which_row_names_the_columns(rows: list[list[Any]], header: int | None) -> None:
    assert find_header(rows) == header


def test_an_ods_file_that_repeats_its_cells_without_end_is_refused(tmp_path: Path) -> None:
    names = " ".join(
        f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{prefix}:1.0"'
        for prefix in ("office", "table")
    )
    rows = (
        '<table:table-row table:number-rows-repeated="1048576"><table:table-cell '
        'table:number-columns-repeated="16384" office:value-type="float" office:value="1"/></table:table-row>'
    )
    content = (
        f"<office:document-content {names}><office:body><office:spreadsheet>"
        f'<table:table table:name="A">{rows}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )
    path = package(tmp_path / "a.ods", {"content.xml": content})
    assert "17,179,869,184 of the cells filled, need too much memory" in refusal(path)


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"))), max_size=4
    )
)
def test_csv_lines_read_back(rows: list[list[str]]) -> None:
    rows = [row for row in rows if row]
    assert list(csv.reader(io.StringIO(csv_lines(rows), newline=""))) == rows


@given(st.lists(st.text(max_size=3), max_size=8))
def test_names_of_columns_are_unique_lines(names: list[str]) -> None:
    made = unique_names(names)
    assert len(set(made)) == len(names) == len(made)
    assert all(name and len(name.splitlines()) == 1 for name in made)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.0, ""], "integer"), ([1.0, 2.5], "number"), ([True, False], "boolean"), ([True, 1.0], "text"),
        ([date(2024, 1, 1)], "date"), ([date(2024, 1, 1), datetime(2024, 1, 1, 2)], "datetime"),
        (["007", 1.0], "text"), (["", ""], "text"), ([2.0**60], "number"), ([timedelta(1)], "text"),
    ],
)  # fmt: skip
def test_the_kind_of_a_column(values: list[Any], kind: str) -> None:
    assert common_kind(set(map(kind_of, values))) == kind


# -- Parquet


def test_parquet_written_by_duckdb() -> None:
    out = read(GOOD / "rates.parquet")
    assert out.text == (DOCUMENTS / "sources/rates.csv").read_text()
    assert out.columns == {"table": {"code": "text", "currency": "text", "rate": "number"}}
    assert (out.table, out.remarks) == ("sheets", [])


def test_parquet_values_are_exact(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    moment = datetime(2024, 5, 1, 13, 45, 0, 123456)
    table = pa.table(
        {
            "whole": [2**60, None],
            "decimal": pa.array([Decimal("123.4500"), Decimal("-0.1")]),
            "zone": pa.array([moment, None], pa.timestamp("us", "Europe/Berlin")),
            "day": [moment.date(), None],
            "fine": pa.array([1_714_571_100_123_456_789, 1_714_571_100_000_000_000], pa.timestamp("ns")),
            "bytes": [b"text", b"\xff\0"],
            "list": [[1, 2], None],
            "record": [{"at": moment, "price": Decimal("1.10")}, None],
            "word": pa.array(["a,b", 'say "c"']).dictionary_encode(),
            "yes": [True, False],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    out = read(tmp_path / "a.parquet")
    header, first, second = csv.reader(out.text.splitlines())
    assert first == [
        "1152921504606846976", "123.4500", "2024-05-01T13:45:00.123456Z", "2024-05-01",
        "2024-05-01T13:45:00.123456789", "text", "[1, 2]",
        json.dumps({"at": "2024-05-01T13:45:00.123456", "price": "1.10"}), "a,b", "true",
    ]  # fmt: skip
    assert second == [
        "", "-0.1000", "", "", "2024-05-01T13:45:00", "<2 bytes>", "", "", 'say "c"', "false",
    ]  # fmt: skip
    assert out.columns["table"] == dict(
        zip(
            header,
            ["integer", "number", "datetime", "date", "datetime", *["text"] * 4, "boolean"],
            strict=True,
        )
    )
    assert out.remarks == [
        "times are shown in UTC (stored for Europe/Berlin)",
        "1 value is no text: shown by the number of bytes",
    ]
