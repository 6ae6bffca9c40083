"""Links that pages of the app give each other: a page script, and the query of its address.

`st.page_link` and `st.switch_page` take them as they are, `href` makes an address of them.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final
from urllib.parse import urlencode

Link = tuple[str, dict[str, str]]  # "pages/run.py" and what stands behind the question mark

CORPUS: Final = "corpus"  # in the address of the Corpora page, as are the next
DOCUMENT: Final = "document"
FROM: Final = "from"
TO: Final = "to"


def document_link(corpus_id: str, document: int, start: int | None = None, end: int | None = None) -> Link:
    """A document of a corpus, by its number from 0; with `start` and `end` opened at that passage.

    Both are bytes of the document's canonical UTF-8 text, as a record's source ranges count.

    >>> document_link("0123456789abcdef", 3, 120, 180)[1]["from"]
    '120'
    """
    query = {CORPUS: corpus_id, DOCUMENT: str(document)}
    if start is not None and end is not None:
        query |= {FROM: str(start), TO: str(end)}
    return "pages/corpora.py", query


def run_link(run_id: str, span_id: str | None = None) -> Link:
    """A run on its page, with one of its spans chosen if one is given."""
    return "pages/run.py", {"run": run_id} | ({"span": span_id} if span_id is not None else {})


def href(link: Link) -> str:
    """A link as an address inside the app, relative to its root.

    >>> href(run_link("20270115T080000-00000001"))
    'run?run=20270115T080000-00000001'
    """
    page, query = link
    return f"{PurePosixPath(page).stem}?{urlencode(query)}"


def diagnose_link(run_id: str, good: str | None = None, span_id: str | None = None) -> Link:
    """The page that looks for what broke the answer of a run; with a good run, with a span to be tested.

    >>> href(diagnose_link("20270115T080000-00000001", span_id="1234567890abcdef"))
    'diagnose?run=20270115T080000-00000001&span=1234567890abcdef'
    """
    query = {"run": run_id, "good": good, "span": span_id}
    return "pages/diagnose.py", {name: value for name, value in query.items() if value is not None}
