"""The texts of a run without what looks like a key, a portion at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from traces.exporters.redaction import Redactor
from traces.view import RunView

_HASH: Final = re.compile(r"\b[0-9a-f]{64}\b")
_AT_ONCE: Final = 500  # texts held in memory together


def clean_payloads(view: RunView, redactor: Redactor) -> Iterator[tuple[str, str]]:
    """Name and text of every payload that a span or event of the run cites, each once, in the order of their
    first mention; both new where something was taken out.
    """
    named, given = list(dict.fromkeys(_hashes(view))), set[str]()
    for at in range(0, len(named), _AT_ONCE):
        portion = named[at : at + _AT_ONCE]
        texts = view.payloads(portion)
        for sha256 in portion:
            if sha256 in texts:
                name, text = redactor.payload(sha256, texts[sha256])
                if name not in given:  # two texts may differ in nothing but a key
                    given.add(name)
                    yield name, text


def _hashes(view: RunView) -> Iterator[str]:
    for span in view.spans:
        facts = [span.attributes, *(event["attributes"] for event in view.events(span.span_id))]
        for value in (value for each in facts for value in each.values()):
            if isinstance(value, str) and len(value) >= 64:
                yield from _HASH.findall(value)
