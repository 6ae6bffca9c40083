"""Where the text of a sub-call came from: documents and byte ranges, or why they are not known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import streamlit as st

from rlm_core import semconv as sc
from traces.reading import RunView
from ui.web import plain
from ui.web.run_words import top_span

_HOW: Final = {
    "reference": "The prompt holds these passages of the corpus, word for word.",
    "not_searched": "Not searched: the code built this prompt from texts of its own.",
    "not_verbatim": "Not verbatim: no passage of the corpus stands in this prompt word for word.",
}


def sources(view: RunView, value: Any) -> None:
    """The passages that a prompt was made of, by document name and byte range."""
    how = value.get("how") if isinstance(value, Mapping) else None
    if not isinstance(how, str):
        plain.json(value)
        return
    plain.text(_HOW.get(how, how))
    ranges = value.get("ranges")
    names = _document_names(view)
    rows = [_passage(item, names) for item in ranges] if isinstance(ranges, list) else []
    if rows:
        plain.table(rows)
    elif how == "reference":
        st.text("No passage is recorded.")


def _passage(item: object, names: dict[int, str]) -> dict[str, object]:
    if not (isinstance(item, list) and len(item) == 3 and all(type(part) is int for part in item)):
        return {"passage": item}
    document, start, end = item
    return {
        "document": names.get(document, f"document {document}"),
        "from byte": start,
        "to byte": end,
        "bytes": end - start,
    }


def _document_names(view: RunView) -> dict[int, str]:
    """Names by number, from the document table on the run's span."""
    top = top_span(view)
    digest = None if top is None else top.attributes.get(sc.CORPUS + ".sha256")
    rows = document_rows(view.payload(digest) if isinstance(digest, str) else None)
    return {number: str(row["document"]) for number, row in enumerate(rows)}


def document_rows(corpus: object) -> list[dict[str, object]]:
    """The documents of a run from its corpus table (JSON, untrusted), in order; none when it is unusable."""
    try:
        documents = json.loads(corpus)["documents"] if isinstance(corpus, str) else []
        return [
            {
                "document": str(item["name"]),
                "characters": item.get("chars"),
                "type": item.get("media_type"),
                "encoding": item.get("encoding"),
                "problems": "; ".join(map(str, item.get("problems") or ())) or None,
            }
            for item in documents
        ]
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return []
