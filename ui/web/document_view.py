"""One document of a corpus as plain text: a page, slide or sheet at a time, in pieces of bounded size.

The address names it: `document` (its number), `section`, and `from` and `to`, the bytes of a passage to show
marked in the text around it. An address that changes by a link or by going back is followed.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from rlm_core.corpus import Corpus, Document, Section
from rlm_core.errors import CorpusError
from ui.corpora import kind
from ui.figures import counted
from ui.visible import fit, line
from ui.web import plain
from ui.web.address import keep
from ui.web.notices import note, problem
from ui.web.passage_view import MOST, passage, passage_of
from ui.web.places import DOCUMENT, FROM, TO
from ui.web.span_images import document_image

PIECE_CHARS: Final = 5_000  # shown at a time
_TEXT_HEIGHT: Final = 520  # pixels
_NAMED: Final = 40  # sections whose labels stand in one line
_LABEL_COLUMNS: Final = 40
_SECTION: Final = "section"  # in the address


def choose(corpus_id: str, number: int) -> None:
    """Put the fields on a document. To be called before they are shown, as in a callback."""
    st.session_state[_key(corpus_id)] = number
    _from_its_beginning()


def chosen(corpus: Corpus) -> int:
    """The number of the document to show, as in code: the chosen one, else the one that the address names."""
    key, seen = _key(corpus.corpus_id), _seen(corpus.corpus_id)
    given = st.query_params.get(DOCUMENT)
    if given is not None and given != st.session_state.get(seen, given):
        st.session_state.pop(key, None)  # the address was changed by something else than the field
    st.session_state[seen] = given
    asked = _asked(DOCUMENT, 0, len(corpus.documents) - 1)
    if key not in st.session_state and given not in (None, str(asked)):
        note(f"there is no document {given} in this corpus; this is document {asked:,}")
        _from_its_beginning()
    number: int = st.session_state.setdefault(key, asked)
    return number


def _key(corpus_id: str) -> str:
    return f"document-{corpus_id}"


def _seen(corpus_id: str) -> str:
    return f"document-seen-{corpus_id}"


def _asked(name: str, least: int, most: int) -> int:
    """The number that stands in the address under that name, or the least."""
    asked = st.query_params.get(name, "")
    return min(max(int(asked), least), most) if asked.isdecimal() and len(asked) < 10 else least


def choice(corpus: Corpus) -> int:
    """The field for the number of a document; what it gives is put into the address."""
    most = len(corpus.documents) - 1
    if not most:
        return 0
    number: int = st.number_input(
        f"Document, from 0 to {most:,}", 0, most, key=_key(corpus.corpus_id), on_change=_from_its_beginning
    )
    if number or DOCUMENT in st.query_params:
        st.session_state[_seen(corpus.corpus_id)] = str(number)
        keep(DOCUMENT, str(number))
    return number


def _from_its_beginning() -> None:
    for name in (_SECTION, FROM, TO):
        st.query_params.pop(name, None)


def document(corpus: Corpus, number: int) -> None:
    """Show one document: how it was read, and its text. What cannot be read any more says so."""
    found = corpus.documents[number]
    with st.container(key="document-name"):
        plain.text(found.name)
    where = "read in place" if found.in_place else "kept as a copy of its text"
    if found.picture is not None:
        where = "an image has no text; it can be shown to a sub-model that sees"
    st.caption(f"{found.chars:,} characters · {where}")
    with st.container(key="document-kind"):
        plain.text(", ".join(filter(None, (kind(found), found.encoding))))  # only texts have an encoding
    for remark in found.problems:
        note(remark)
    if found.picture is not None:
        document_image(corpus, found)
        return
    if (asked := _passage_asked(found)) is not None:
        _passage(corpus, found, *asked)
        return
    start, end = 0, found.chars
    section = _section(corpus.corpus_id, found)
    if section is not None:
        start, end = section.start, section.end
    _text(corpus, found, start, end)


def _passage_asked(found: Document) -> tuple[int, int] | None:
    """The bytes that the address asks for; None when it asks for none, or for some that are not there."""
    given = [st.query_params.get(name) for name in (FROM, TO)]
    if given == [None, None]:
        return None
    start, end = (int(n) if n and n.isdecimal() and len(n) < 16 else -1 for n in given)
    if 0 <= start < end <= found.bytes:
        return start, end
    words = " to ".join(n if n else "?" for n in given)
    note(f"there is no passage {words} in this document of {found.bytes:,} bytes; this is its beginning")
    return None


def _passage(corpus: Corpus, found: Document, start: int, end: int) -> None:
    """One passage, marked in the text around it."""
    place = corpus.place(found.number, start, end)
    where = f"bytes {start:,} to {end:,} of {found.bytes:,}"
    with st.container(horizontal=True, vertical_alignment="center", key="document-passage"):
        with st.container(width="stretch"):
            plain.text(f"The passage is marked: {f'{line(place)}, ' if place else ''}{where}.")
        st.button(
            "Show the document", key="document-whole", icon=":material/article:", on_click=_leave_passage,
            args=(corpus.corpus_id, found, start), help="All of its text, in pieces, without the mark.",
        )  # fmt: skip
    try:
        shown = passage_of(corpus, found.number, start, end)
    except CorpusError as error:
        problem(error)
        return
    passage(shown, key=f"passage-{corpus.corpus_id}-{found.number}-{start}-{end}")
    cut = f" Of the passage the first {MOST:,} bytes are shown." if end - start > MOST else ""
    st.caption(f"Bytes {shown.first:,} to {shown.last:,} of the document.{cut}")


def _leave_passage(corpus_id: str, found: Document, start: int) -> None:
    """Go to the section, and to the piece of it where the passage begins if that is known without reading."""
    _from_its_beginning()
    sections = enumerate(found.sections, 1)
    number, section = next(
        ((n, part) for n, part in sections if part.start_byte <= start < part.end_byte), (0, None)
    )
    if section is not None:
        st.query_params[_SECTION] = str(number)
    if found.chars == found.bytes:
        first = section.start if section is not None else 0
        st.session_state[_piece(corpus_id, found, first)] = (start - first) // PIECE_CHARS + 1


def _piece(corpus_id: str, found: Document, start: int) -> str:
    return f"document-piece-{corpus_id}-{found.number}-{start}"


def _section(corpus_id: str, found: Document) -> Section | None:
    """The page, slide, sheet or part that is chosen; None for a document without them."""
    sections = found.sections
    if not sections:
        st.query_params.pop(_SECTION, None)
        return None
    word, number = sections[0].kind.capitalize(), 1
    if len(sections) > 1:
        number, given = _asked(_SECTION, 1, len(sections)), st.query_params.get(_SECTION)
        if given not in (None, str(number)):
            note(f"there is no {sections[0].kind} {given} in this document; this is number {number:,}")
        key = f"document-section-{corpus_id}-{found.number}"
        if st.session_state.get(key) != number:
            st.session_state[key] = number  # the address leads, also after a step back
        st.number_input(
            f"{word}, from 1 to {len(sections):,}", 1, len(sections), key=key,
            on_change=_section_chosen, args=(key,),
        )  # fmt: skip
    section = sections[number - 1]
    if section.label != str(number):
        plain.text(f"{section.kind}: {fit(line(section.label), _LABEL_COLUMNS * 2)}")
    if 1 < len(sections) <= _NAMED and any(not section.label.isdigit() for section in sections):
        labels = (f"{n} {fit(line(s.label), _LABEL_COLUMNS)}" for n, s in enumerate(sections, 1))
        plain.text(f"All {sections[0].kind}s: {' · '.join(labels)}")
    return section


def _section_chosen(key: str) -> None:
    st.query_params[_SECTION] = str(st.session_state[key])


def _text(corpus: Corpus, found: Document, start: int, end: int) -> None:
    """The characters of a range, in pieces."""
    if start == end:
        st.text("There is no text here.")
        return
    pieces = -(-(end - start) // PIECE_CHARS)
    key = _piece(corpus.corpus_id, found, start)
    piece = min(st.session_state.get(key) or 1, pieces)
    first = start + (piece - 1) * PIECE_CHARS
    last = min(first + PIECE_CHARS, end)
    try:
        text = corpus.text(found.number, first, last)
    except CorpusError as error:
        problem(error)
        return
    plain.code(text, height=_TEXT_HEIGHT if len(text) > 1_000 else None)
    if pieces > 1:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.pagination(pieces, key=key, max_visible_pages=5)
            shown = f"characters {first - start + 1:,} to {last - start:,} of {end - start:,}"
            st.caption(f"{counted(pieces, 'piece')}; {shown}", width="content")
