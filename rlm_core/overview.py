"""What the root model is told about a corpus: counts, some names, the ends of some texts; at most 4 KB."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from rlm_core.prompts import fence

if TYPE_CHECKING:
    from rlm_core.corpus import Corpus, Document

MOST_BYTES: Final = 4096
_HEAD_CHARS: Final = (
    400,
    200,
    100,
    40,
    0,
)  # tried in turn until the whole fits; the tail shown is half of it
_LISTED: Final = 10
_KINDS: Final = 4
_NAME_CHARS: Final = 60


def describe(corpus: Corpus) -> str:
    """The description, at most `MOST_BYTES` of UTF-8. Raises `CorpusError` when a file has changed."""
    top = [_headline(corpus), *_separators(corpus), *_pictures(corpus), *_problems(corpus)]
    for head in _HEAD_CHARS:
        text = "\n".join([*top, *_listing(corpus), *_previews(corpus, head)])
        if len(text.encode("utf-8")) <= MOST_BYTES:
            return text
    return "\n".join(top)


def _headline(corpus: Corpus) -> str:
    kinds = Counter(document.media_type for document in corpus.documents)
    named = [f"{kind} {count:,}" for kind, count in kinds.most_common(_KINDS)]
    if len(kinds) > _KINDS:
        named.append(f"{len(kinds) - _KINDS} more kinds")
    count = len(corpus.documents)
    shape = "`context` is its text" if count == 1 else f"`context` is a sequence of {count:,} texts"
    documents = "1 document" if count == 1 else f"{count:,} documents"
    return f"{documents}, {corpus.chars:,} characters in all ({', '.join(named)}); {shape}."


def _separators(corpus: Corpus) -> list[str]:
    """How pages, slides and sheets stand in the texts, where there are any; in a few words."""
    kinds = {section.kind for document in corpus.documents for section in document.sections}
    tables = Counter(document.table for document in corpus.documents if document.table)
    lines = []
    if flat := [f"{kind}s" for kind in ("page", "slide") if kind in kinds]:
        lines.append(f'In a text, "\\f" stands between {" and between ".join(flat)}.')
    if any(document.reader == "sheets" for document in corpus.documents):
        lines.append('Workbooks: each sheet is a line "# Sheet: NAME" and CSV lines; "\\f" between sheets.')
    if tables:
        named = ", ".join(f"{kind} {count:,}" for kind, count in sorted(tables.items()))
        lines.append(f"Documents that read as tables (see `.tables`): {named}.")
    return lines


def _pictures(corpus: Corpus) -> list[str]:
    """How what can only be seen is shown to a sub-model, where there is any."""
    images = sum(document.is_image for document in corpus.documents)
    pages = sum(document.pages_shown for document in corpus.documents)
    lines, name = [], "context" if len(corpus.documents) == 1 else "document"
    if images:
        lines.append(
            f"Images: {images:,}; their text is empty. Show them to the sub-model (if it can see): "
            f"llm_query(prompt, images={name}.images)."
        )
    if pages:
        lines.append(
            f"PDF pages that can be shown as images, for scans and charts: {pages:,}. "
            f"llm_query(prompt, images=[{name}.page_image(n)]); {name}.pages: all, each with its .text."
        )
    return lines


def _problems(corpus: Corpus) -> list[str]:
    left_out = len(corpus.problems)
    remarks = sum(bool(document.problems) for document in corpus.documents)
    return [
        *([f"Files or folders that are not in the corpus: {left_out:,}."] if left_out else []),
        *([f"Documents read with a remark, such as a guessed encoding: {remarks:,}."] if remarks else []),
    ]


def _listing(corpus: Corpus) -> list[str]:
    """Numbers, names and sizes: of all documents if they are few, else of the first ones and the last."""
    documents = corpus.documents
    if len(documents) <= _LISTED:
        return [_line(document) for document in documents]
    left_out = len(documents) - _LISTED
    first = [_line(document) for document in documents[: _LISTED - 1]]
    return [*first, f"... {left_out:,} more ...", _line(documents[-1])]


def _line(document: Document) -> str:
    sections = Counter(section.kind for section in document.sections)
    if document.picture is not None:
        size = f"{document.picture.width:,} x {document.picture.height:,} pixels"
        return f"[{document.number}] {_short(document.name)} (image, {size})"
    parts = [f"{count:,} {kind}{'' if count == 1 else 's'}" for kind, count in sections.items()]
    size = ", ".join([*parts, f"{document.chars:,} characters"])
    return f"[{document.number}] {_short(document.name)} ({size})"


def _previews(corpus: Corpus, head: int) -> list[str]:
    """Head and tail of the first, the middle and the last document."""
    if not head:
        return []
    last = len(corpus.documents) - 1
    numbers = [n for n in sorted({0, last // 2, last}) if not corpus.documents[n].is_image]
    return [part for number in numbers for part in _preview(corpus, number, head)]


def _preview(corpus: Corpus, number: int, head: int) -> list[str]:
    document, tail = corpus.documents[number], head // 2
    if document.chars <= head + tail:
        return [f"[{number}] reads:", fence(corpus.text(number, 0, document.chars))]
    begins = fence(corpus.text(number, 0, head))
    ends = fence(corpus.text(number, document.chars - tail, document.chars))
    return [f"[{number}] begins:", begins, "and ends:", ends]


def _short(name: str) -> str:
    return name if len(name) <= _NAME_CHARS else f"{name[: _NAME_CHARS // 2]}…{name[-_NAME_CHARS // 2 :]}"
