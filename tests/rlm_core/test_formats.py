"""Readers of documents that other programs made: the exact text, its pages and tables, what is remarked."""

from __future__ import annotations

import importlib
import json
import zipfile
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core.readers import Unreadable
from rlm_core.readers.formats.html import decode, visible_text
from rlm_core.readers.formats.sheets import find_header
from rlm_core.readers.formats.tables import common_kind, csv_lines, kind_of, unique_names

DOCUMENTS = Path(__file__).parent.parent / "fixtures" / "documents"
GOOD = DOCUMENTS / "good"
READERS = {
    ".docx": "docx", ".pptx": "pptx", ".xlsx": "sheets", ".xls": "sheets", ".ods": "sheets", ".pdf": "pdf",
    ".parquet": "parquet", ".html": "html", ".eml": "mail",
}  # fmt: skip
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
WORDS = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT_WORDS = "http://purl.oclc.org/ooxml/wordprocessingml/main"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


class Recorder:
    """An output that keeps what it is given."""

    def __init__(self) -> None:
        self.text = ""
        self.table = ""
        self.media_type = ""
        self.sections: list[list[Any]] = []
        self.remarks: list[str] = []
        self.problems: list[tuple[str, str]] = []
        self.attached: dict[str, bytes] = {}
        self._open = False

    def write(self, text: str) -> None:
        self.text += text

    def section(self, kind: str, label: str, columns: dict[str, str] | None = None) -> None:
        self.end_section()
        self.sections.append([kind, label, len(self.text), -1, columns])
        self._open = True

    def end_section(self) -> None:
        if self._open:
            self.sections[-1][3] = len(self.text)
        self._open = False

    def remark(self, text: str) -> None:
        self.remarks.append(text)

    def problem(self, name: str, text: str) -> None:
        self.problems.append((name, text))

    def attach(self, name: str, data: bytes) -> None:
        self.attached[name] = data

    @property
    def parts(self) -> dict[str, str]:
        """Label of a section -> its text."""
        return {label: self.text[start:end] for _, label, start, end, _ in self.sections}

    @property
    def columns(self) -> dict[str, Any]:
        """Label of a section -> its columns."""
        return {label: columns for _, label, _, _, columns in self.sections}


def read(path: Path) -> Recorder:
    out = Recorder()
    importlib.import_module(f"rlm_core.readers.formats.{READERS[path.suffix]}").read(str(path), out)
    out.end_section()
    return out


def refusal(path: Path) -> str:
    with pytest.raises(Unreadable) as caught:
        read(path)
    return str(caught.value)


# -- PDF


def test_each_page_of_a_pdf_is_a_section_with_its_own_facts() -> None:
    out = read(GOOD / "contract.pdf")
    facts = {"1": "fog signal", "2": "48,600 euros", "3": "73 days", "4": "910,000 euros"}
    assert {label: [n for n, text in out.parts.items() if fact in text] for label, fact in facts.items()} == {
        label: [label] for label in facts
    }
    assert [kind for kind, *_ in out.sections] == ["page"] * 4
    assert list(out.parts.values()) == [
        f"{page}\n" for page in out.text[:-1].replace("\n\f", "\f").split("\f")
    ]
    assert out.remarks == []


def test_words_divided_at_the_end_of_a_line_are_joined() -> None:
    text = read(GOOD / "manual.pdf").text
    for word in ("commissioning", "unconditionally", "terminology", "electromagnetic", "well-known"):
        assert word in text
    assert not set(text) & set(map(chr, [*range(9), 11, *range(13, 32), 0xFFFE]))


def test_filled_form_fields_stand_after_the_text_of_their_page() -> None:
    assert read(GOOD / "form.pdf").text.endswith("berth: Berth 42\nelectricity: yes\n")


def test_files_attached_to_a_pdf_are_taken_out() -> None:
    assert read(GOOD / "attached.pdf").attached == {
        "costs.csv": (DOCUMENTS / "sources/costs.csv").read_bytes()
    }


def test_a_page_that_was_scanned_is_named() -> None:
    out = read(GOOD / "mixed.pdf")
    assert out.parts["2"] == ""
    assert "73 days" in out.parts["3"]
    assert out.remarks == ["no text on page 2"]


# -- Word


def test_a_word_document_in_the_order_of_its_text() -> None:
    out = read(GOOD / "minutes.docx")
    assert out.text.splitlines() == [
        "Board of the Eider Rowing Club",
        "Minutes of 14 January 2025",
        "The boathouse key is kept by Sanne Vork from now on.[1]",  # inserted in, deleted out
        "The fee is 210 euros\ta year.",
        "1. Repair the jetty.",
        "a) Ask two carpenters.",
        "b) Decide in March.",
        "2. Paint boat no. 4.",
        "- A loose point.",
        "Boat and year\tPrice",  # merged cells once
        "Vega\t2019\t1,400 euros",
        "\t2021\t2,050",
        "Next to this stands a box.",
        "Regatta on 21 June.",
        "",
        "End of the minutes.",
        "Minutes are kept for ten years.",
        "[1] The spare key hangs in the harbour office.",
        "Comment by Jorn: Is this the new fee?",
    ]
    assert out.remarks == ["hidden text is left out (1 place)"]


def test_nothing_that_python_docx_sees_is_missing() -> None:
    import docx

    for name in ("minutes.docx", "contract.docx"):
        text = read(GOOD / name).text
        document = docx.Document(str(GOOD / name))
        seen = [p.text for p in document.paragraphs if "nobody" not in p.text]
        seen += [cell.text for table in document.tables for row in table.rows for cell in row.cells]
        words = {word for piece in seen for word in piece.split()} - {
            "on."
        }  # a mark of a note stands after it
        assert words and {word for word in words if word not in text} == set()


def package(path: Path, parts: Mapping[str, str]) -> Path:
    """An Office file of these parts; the relations are those to the main part unless given."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def relations(*entries: tuple[str, str]) -> str:
    inner = "".join(
        f'<Relationship Id="r{n}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(entries, 1)
    )
    return f'<Relationships xmlns="{PACKAGE}">{inner}</Relationships>'


def word(path: Path, body: str, namespace: str = WORDS, **parts: str) -> Path:
    """A Word document with this body; more parts by the kind of their relation."""
    document = f'<w:document xmlns:w="{namespace}"><w:body>{body}</w:body></w:document>'
    others = {
        f"word/{kind}.xml": f'<w:{kind} xmlns:w="{WORDS}">{inner}</w:{kind}>' for kind, inner in parts.items()
    }
    return package(
        path,
        {
            "_rels/.rels": relations(("officeDocument", "/word/document.xml")),
            "word/_rels/document.xml.rels": relations(
                ("image", "NULL"), *((kind, f"{kind}.xml") for kind in parts)
            ),
            "word/document.xml": document,
            **others,
        },
    )


def test_numbers_of_headings_come_from_their_styles(tmp_path: Path) -> None:
    levels = "".join(
        f'<w:lvl w:ilvl="{n}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
        for n, (form, text) in enumerate(
            [("upperRoman", "%1."), ("decimal", "%1.%2"), ("lowerLetter", "(%3)")]
        )
    )
    numbering = (
        f'<w:abstractNum w:abstractNumId="7">{levels}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
    )
    styles = (
        '<w:style w:styleId="Base"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
        '<w:style w:styleId="H2"><w:basedOn w:val="Base"/>'
        '<w:pPr><w:numPr><w:ilvl w:val="1"/></w:numPr></w:pPr></w:style>'
    )

    def paragraph(style: str, text: str) -> str:
        return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'

    order = ["Base", "H2", "H2", "Base", "H2", "None"]
    body = "".join(paragraph(style, f"p{n}") for n, style in enumerate(order))
    text = read(word(tmp_path / "a.docx", body, numbering=numbering, styles=styles)).text
    assert text.splitlines() == ["I. p0", "I.1 p1", "I.2 p2", "II. p3", "II.1 p4", "p5"]


def test_strict_namespaces_and_dangling_relations_are_no_obstacle(tmp_path: Path) -> None:
    body = "<w:sdt><w:sdtContent><w:p><w:r><w:t>in a control</w:t></w:r></w:p></w:sdtContent></w:sdt>"
    assert read(word(tmp_path / "a.docx", body, STRICT_WORDS)).text == "in a control\n"


def test_a_word_document_nested_beyond_reason_is_refused(tmp_path: Path) -> None:
    deep = "<w:ins>" * 5_000 + "</w:ins>" * 5_000
    assert refusal(word(tmp_path / "a.docx", f"<w:p>{deep}</w:p>")).startswith("is damaged")


def test_a_document_of_pictures_only(tmp_path: Path) -> None:
    assert "without any text" in refusal(word(tmp_path / "a.docx", "<w:p><w:r><w:drawing/></w:r></w:p>"))


# -- presentations


def test_slides_with_groups_and_notes() -> None:
    out = read(GOOD / "deck.pptx")
    assert out.parts == {
        "1": "Built in 1911\nThe Nordby windmill\nHeight: 23 metres\nSails: four\n"
        "Notes: The miller was Asta Lund.\n",
        "2": "",
        "3": "Repairs\nThe sails were renewed in 1987.\n",
    }
    assert out.remarks == ["no text on slide 2", "hidden, but read: slide 3"]


def test_the_title_comes_first_and_tables_are_rows() -> None:
    out = read(GOOD / "slides.pptx")
    assert out.parts["3"] == "Delays\nCause\tHours\nFog\t31\nEngine\t12\n"
    assert out.parts["2"].startswith("Passengers\n")
    assert [kind for kind, *_ in out.sections] == ["slide"] * 4


def test_the_values_of_a_chart_are_read(tmp_path: Path) -> None:
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE

    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Sales"
    data = CategoryChartData()
    data.categories = ["East", "West"]
    data.add_series("Q1", (1.5, 2))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, 100, 100, data)
    deck.save(str(tmp_path / "chart.pptx"))
    assert read(tmp_path / "chart.pptx").text == "Sales\n\tEast\tWest\nQ1\t1.5\t2\n"


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
    import csv
    import io

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
    import csv

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


# -- HTML


def test_a_page_by_pandoc() -> None:
    assert read(GOOD / "page.html").text.splitlines() == [
        "Museum hours", "Museum hours", "Museum hours", "The Kvarn museum opens at 10:30 from May to August.",
        "Day\tOpens\tCloses", "Weekday\t10:30\t17:00", "Sunday\t12:00\t16:00",
        "1. Tickets at the mill door.", "2. Groups ring https://example.org/kvarn.",
        "  indented", "    code stays",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "fact", "remarks"),
    [
        ("cp1252.html", "A maré sobe às 7h15 — 3 €", []),
        ("utf16.html", "O farol apaga às 6h40", []),
        (
            "lying.html",
            "Avó pagou a conta em março",
            ["declares utf-8, but is not: read as cp1252 (guessed)"],
        ),
        ("minutes-by-writer.html", "Sanne Vork", []),
    ],
)
def test_pages_in_their_encodings(name: str, fact: str, remarks: list[str]) -> None:
    out = read(GOOD / name)
    assert fact in out.text
    assert out.remarks == remarks


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>a<b>b</b> c</p>d", "ab c\nd\n"),
        ("a<br>b<br><br>c", "a\nb\n\nc\n"),
        ("<ul><li><p>a</p><p>b</p><li>c<ol start=3><li>d</ol></ul>", "- a\nb\n- c\n3. d\n"),
        (
            "<table><tr><th></th><th>Q1</th></tr><tr><td>E<br>W</td><td><p>1</p><p>2</p></table>",
            "\tQ1\nE W\t1 2\n",
        ),
        ("<table><tr><td>left<table><tr><td>x<td>y</table><td>right</table>", "left\nx\ty\nright\n"),
        ("<pre>\n  a\n\n b</pre>c", "  a\n\n b\nc\n"),
        ("<p>&lt;b&gt; &amp;&nbsp;&euro;</p>", "<b> &\xa0€\n"),
        ("<body><script>x()</script><style>y{}</style><template>t</template><noscript>n</noscript>v", "v\n"),
        (
            "<p hidden>h</p><div style='color:red; display: none'>h<p>h</p></div><p aria-hidden=true>v</p>",
            "v\n",
        ),
        ("<title>T</title><h1>H</h1>", "T\nH\n"),
        ("<!-- nothing -->", ""),
        ("<div>" * 3000 + "deep", "deep\n"),
    ],
)
def test_visible_text(markup: str, text: str) -> None:
    assert visible_text(markup) == text


MARKUP = st.sampled_from([
    "<p>", "</p>", "<table>", "<tr>", "<td>", "</table>", "<ul>", "<li>", "</ul>", "<pre>", "a", "<br>",
    "<div hidden>", "</div>", "<svg>", "<template>", "<select><option>", "<math>", "&#0;", "<body>",
    "</html>",
])  # fmt: skip


@given(st.lists(st.one_of(MARKUP, st.sampled_from(" \n")), max_size=30))
def test_any_markup_has_a_visible_text(pieces: list[str]) -> None:
    text = visible_text("".join(pieces))
    assert not text or (text.endswith("\n") and text.strip())


@given(st.binary(max_size=300))
def test_any_bytes_are_decoded(data: bytes) -> None:
    markup, remark = decode(data)
    assert isinstance(markup, str) and "\n" not in (remark or "")


# -- mail


def test_a_letter_with_two_forms_of_its_text_and_attachments() -> None:
    out = read(GOOD / "letter.eml")
    assert out.text == (
        "From: Åse Lund <ase@example.org>\nTo: Pål <pal@example.org>\nSubject: Kaldt vann på brygga\n"
        "Date: Mon, 03 Mar 2025 10:00:00 +0100\n\nThe pump on pier 9 froze on 2 March.\n\n"
        "---- Message in the message ----\nFrom: harbour@example.org\nSubject: Forecast\n\n"
        "Minus fourteen degrees.\n\nAttachments: kostnader å.csv, ../../manual.pdf\n"
    )
    assert list(out.attached) == ["kostnader å.csv", "../../manual.pdf"]
    assert out.attached["../../manual.pdf"] == (GOOD / "manual.pdf").read_bytes()


def test_letters_with_odd_charsets() -> None:
    out = read(GOOD / "odd-charsets.eml")
    assert "From: Jörg <jorg@example.org>\nSubject: Äpfelä" in out.text
    assert "Die Mühle steht seit 1743 still." in out.text
    assert out.remarks == ["a part declares us-ascii, read as cp1252"]
    assert read(GOOD / "only-html.eml").text == "Subject: Invoice 5512\n\nRope\t€ 48\n"


HEADS = st.sampled_from(
    [
        b"Content-Type: multipart/mixed; boundary=b\n",
        b"Content-Type: multipart/alternative; boundary=\n",
        b"Content-Type: message/rfc822\n",
        b"Content-Type: text/html; charset=utf-7\n",
        b"Content-Type: text/plain; charset*=x''%ff\n",
        b"Content-Disposition: attachment; filename*=utf-8''%ff%00\n",
        b"Content-Transfer-Encoding: base64\n",
        b"Content-Transfer-Encoding: x-uuencode\n",
        b"Subject: =?utf-8?b?w4?= =?x?q?=ff?=\n",
        b"From: \xff\xfe <\n",
        b"\n",
        b"--b\n",
        b"--b--\n",
        b"begin 644 x\n",
    ]
)


@given(st.lists(st.one_of(HEADS, st.binary(max_size=20)), max_size=20))
def test_any_message_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("mail") / "a.eml"
    path.write_bytes(b"".join(pieces))
    try:
        out = read(path)
    except Unreadable as error:
        assert "\n" not in str(error)
    else:
        assert out.text.strip()
