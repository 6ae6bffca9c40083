"""Where a text stands in a run: names and facts of its spans, and every text that they cite."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from rlm_core import semconv as sc
from traces.rows import SpanRow
from traces.view import RunView

_AT_ONCE: Final = 500  # texts read together
_CITED: Final = ".sha256"
_IN_PART: Final = (".preview", _CITED, ".chars", sc.OI_INPUT, sc.OI_OUTPUT, sc.PREVIEW, sc.MESSAGES_ADDED)


def find_text(view: RunView, text: str) -> list[tuple[SpanRow, list[str]]]:
    """The spans of a run in which a text stands, in order, each with the names of the places it stands in.

    Upper and lower case are the same. Places are called as in the record, without the prefix `rlm.`, such as
    `prompt` or `error.message`; `name` is the span's own name, `messages` what was new in those of a root
    call. Every text of the run is read once, some hundreds at a time.
    """
    wanted = text.casefold()
    cited = {span.span_id: list(_cited(span)) for span in view.spans}
    holding = _holding(view, {sha256 for each in cited.values() for _, sha256 in each}, wanted)
    found = []
    for span in view.spans:
        places = [place for place, sha256 in cited[span.span_id] if sha256 in holding]
        places += [place for place, fact in _facts(span) if wanted in fact.casefold()]
        if places:
            found.append((span, list(dict.fromkeys(places))))
    return found


def _cited(span: SpanRow) -> Iterator[tuple[str, str]]:
    """Place and hash of every text that a span cites."""
    for key, value in span.attributes.items():
        if key.endswith(_CITED) and isinstance(value, str):
            yield key.removeprefix("rlm.").removesuffix(_CITED), value
    for sha256 in _added(span.attributes.get(sc.MESSAGES_ADDED)):
        yield "messages", sha256


def _added(raw: Any) -> list[str]:
    """The hashes of a root call's new messages; none when the record holds something else there."""
    try:
        pairs = json.loads(raw) if isinstance(raw, str) else []
        return [sha256 for _, sha256 in pairs if isinstance(sha256, str)]
    except (ValueError, TypeError, RecursionError):
        return []


def _facts(span: SpanRow) -> Iterator[tuple[str, str]]:
    yield "name", span.name
    yield "id", span.span_id
    for key, value in span.attributes.items():
        if isinstance(value, str) and not key.endswith(_IN_PART):
            yield key.removeprefix("rlm."), value


def _holding(view: RunView, sha256s: set[str], wanted: str) -> set[str]:
    """Those of the texts in which the wanted one stands."""
    ordered, holding = sorted(sha256s), set()
    for start in range(0, len(ordered), _AT_ONCE):
        texts = view.payloads(ordered[start : start + _AT_ONCE])
        holding |= {sha256 for sha256, text in texts.items() if wanted in text.casefold()}
    return holding
