"""Readers of documents that other programs made: the exact text, its pages, what is remarked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core.readers import Unreadable
from rlm_core.readers.formats.html import decode, visible_text
from tests.support.documents import DOCUMENTS, GOOD, package, read, refusal, relations

WORDS = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT_WORDS = "http://purl.oclc.org/ooxml/wordprocessingml/main"


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
