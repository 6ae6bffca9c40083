"""PDF documents: one section a page, "\\f" between pages, the text in the order that PDFium gives.

A word that is divided at the end of a line is joined again. The values of form fields and the notes of
reviewers stand after the text of their page; attached files become documents of their own.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from rlm_core.readers.formats.attachments import Attachments
from rlm_core.readers.formats.packages import PASSWORD
from rlm_core.readers.formats.pages import PageNumbers
from rlm_core.readers.output import Output, Unreadable

_REFUSALS: Final = {  # by PDFium's error codes
    3: "is damaged or no PDF at all: open it in a viewer, save or print it to PDF again and add that",
    4: PASSWORD,
    5: "is protected in a way that cannot be opened: save it without protection and add that",
    6: "is damaged: its pages cannot be found",
}
_MOST_FIELD: Final = 1 << 20  # bytes of one form field or note
_MOST_NOTES: Final = 10_000  # fields and notes of one page
# PDFium writes U+0002 (U+FFFE in other calls) for the hyphen of a word that goes on in the next line, without
# the line end. Between small letters it divides a word; elsewhere it is the hyphen of a name or number.
_DIVIDED: Final = re.compile("(?<=[^\\W\\d_])[\x02\ufffe](?=[^\\W\\d_])")
_HYPHEN: Final = re.compile("[\x02\ufffe]")
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\uffff]")
_LINE_END: Final = re.compile("[ \t]*(?:\r\n?|\n|\f)")


def read(path: str, out: Output) -> None:
    """Read the document at `path` into `out`; see `rlm_core.readers.output`."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(Path(path))
    except pypdfium2.PdfiumError as error:
        raise Unreadable(_REFUSALS.get(error.err_code or 0, "has no pages")) from None
    with closing(document):
        total = len(document)
        form = _form(document)
        pages = PageNumbers("page", total)
        unknown = 0
        for index in range(total):
            out.end_section()
            if index:
                out.write("\f")
            out.section("page", str(index + 1))
            text = _page(document, index, form)
            if text is None:
                pages.broken(index + 1)
                continue
            text, controls = clean(text)
            unknown += controls
            if text.strip():
                out.write(text)
            else:
                pages.empty(index + 1)
        out.end_section()
        pages.finish(out, shown=True)
        if unknown:
            out.remark(f"{unknown:,} characters left out that its fonts do not name: parts may be unreadable")
        _attachments(document, out)


def clean(text: str) -> tuple[str, int]:
    """The text of a page with plain line ends and hyphens, and how many other control characters it held."""
    text = _LINE_END.sub("\n", text)
    text = _DIVIDED.sub(lambda found: "" if text[found.end()].islower() else "-", text)
    text = _HYPHEN.sub("-", text)
    text, controls = _CONTROLS.subn("", text)
    return f"{text.rstrip()}\n" if text.strip() else "", controls


def _form(document: Any) -> Any:
    """PDFium's handle of the form, None where there is none or it cannot be opened."""
    import pypdfium2

    try:
        document.init_forms()
    except pypdfium2.PdfiumError:
        return None
    return document.formenv


def _page(document: Any, index: int, form: Any) -> str | None:
    """The text of a page; None when it cannot be read."""
    import pypdfium2

    try:
        with closing(document[index]) as page, closing(page.get_textpage()) as textpage:
            lines = [textpage.get_text_bounded(), *_notes(page, form)]
    except pypdfium2.PdfiumError:
        return None
    return "\n".join(filter(None, lines))


def _notes(page: Any, form: Any) -> Iterator[str]:
    """ "name: value" of every filled form field of a page, and what reviewers noted on it."""
    import pypdfium2.raw as pdfium

    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MOST_NOTES)):
        note = pdfium.FPDFPage_GetAnnot(page, index)
        if not note:
            continue
        try:
            kind = pdfium.FPDFAnnot_GetSubtype(note)
            if kind == pdfium.FPDF_ANNOT_WIDGET and form:
                yield _field(form, note)
            elif kind not in (pdfium.FPDF_ANNOT_WIDGET, pdfium.FPDF_ANNOT_POPUP, pdfium.FPDF_ANNOT_LINK):
                text = _string(lambda *to, note=note: pdfium.FPDFAnnot_GetStringValue(note, b"Contents", *to))
                yield f"Note: {text}" if text else ""
        finally:
            pdfium.FPDFPage_CloseAnnot(note)


def _field(form: Any, note: Any) -> str:
    import pypdfium2.raw as pdfium

    name = _string(lambda *to: pdfium.FPDFAnnot_GetFormFieldName(form, note, *to))
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, note)
    if kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON):
        value = "yes" if pdfium.FPDFAnnot_IsChecked(form, note) else ""
    else:
        value = _string(lambda *to: pdfium.FPDFAnnot_GetFormFieldValue(form, note, *to))
    return f"{name}: {value}" if value else ""


def _string(get: Callable[[Any, int], int]) -> str:
    """A string by a function of PDFium that fills a buffer: (buffer or None, its bytes) -> bytes needed."""
    import pypdfium2.raw as pdfium

    size = get(None, 0)
    if not 2 < size <= _MOST_FIELD:
        return ""
    buffer = ctypes.create_string_buffer(size)
    get(ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), size)
    return buffer.raw.decode("utf-16-le", "replace").partition("\0")[0]


def _attachments(document: Any, out: Output) -> None:
    import pypdfium2

    attachments = Attachments(out)
    for index in range(document.count_attachments()):
        try:
            attached = document.get_attachment(index)
            name = attached.get_name()
            data = bytes(attached.get_data())
        except pypdfium2.PdfiumError:
            attachments.broken()
            continue
        if not attachments.add(name, data):
            break
    attachments.finish()
