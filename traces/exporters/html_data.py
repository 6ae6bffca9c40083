"""Data inside an HTML page: JSON that no parser of HTML can take for anything else, and texts by number."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from traces.detail import added_messages
from traces.exporters.redaction import Redactor
from traces.report_parts import WHOLE_CHARS, left_out, middle_out
from traces.rows import SpanRow
from traces.view import RunView
from traces.visible import block

MOST_CHARS: Final = 64_000_000  # of all texts of a page: a browser opens that from disk
HASH: Final = ".sha256"  # what the attribute ends in that names a text
_CHUNK_CHARS: Final = 256_000  # of texts that are read together when one of them is asked for
_AT_ONCE: Final = 200  # payloads that are fetched together
_UNSAFE: Final = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def as_script(value: Any, kind: str, first: int = 0) -> bytes:
    """A value as an element that holds it as JSON: data for a script, which a browser never runs. `kind` says
    what it is, `first` the number of the first thing in it.

    >>> as_script(["</script>"], "texts")
    b'<script type="application/json" class="texts" data-first="0">["\\\\u003c/script\\\\u003e"]</script>\\n'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    safe = _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return f'<script type="application/json" class="{kind}" data-first="{first}">{safe}</script>\n'.encode()


class Texts:
    """The texts of a run, each once, by number; `cut` and `dropped` count those not whole in the page.

    Their scripts are made first: only then it is known which texts held what looks like a key.
    """

    def __init__(self, view: RunView, redactor: Redactor) -> None:
        self._view = view
        self._redactor = redactor
        hashes = (sha256 for span in view.spans for sha256 in (*texts_of(span).values(), *_messages(span)))
        self._numbers = {sha256: number for number, sha256 in enumerate(dict.fromkeys(hashes))}
        self._keyed: set[str] = set()
        self.cut = 0
        self.dropped = 0

    def number(self, sha256: str) -> int:
        """The number of a text by its hash."""
        return self._numbers[sha256]

    def held_key(self, span: SpanRow) -> bool:
        """Whether something was taken out of a text of a span: its preview may hold a part of a key."""
        return bool(self._keyed) and not self._keyed.isdisjoint(texts_of(span).values())

    def scripts(self, most: int = MOST_CHARS) -> Iterator[bytes]:
        """All of them in elements that say the number of their first text. A text is null where the record
        does not hold it, and a number (of its characters) where the page would have more than `most`.
        """
        chunk: list[str | int | None] = []
        first, size, left = 0, 0, most
        for text in self._each():
            shown = self._bounded(text, left)
            chunk.append(shown)
            length = len(shown) if isinstance(shown, str) else 0
            size, left = size + length, left - length
            if size >= _CHUNK_CHARS or len(chunk) >= 2 * _AT_ONCE:
                yield as_script(chunk, "texts", first)
                chunk, first, size = [], first + len(chunk), 0
        if chunk:
            yield as_script(chunk, "texts", first)

    def _each(self) -> Iterator[str | None]:
        hashes = list(self._numbers)
        for start in range(0, len(hashes), _AT_ONCE):
            group = hashes[start : start + _AT_ONCE]
            found = self._view.payloads(group)
            for sha256 in group:
                text = found.get(sha256)
                clean = None if text is None else self._redactor.payload(sha256, text)[1]
                if clean != text:
                    self._keyed.add(sha256)
                yield clean

    def _bounded(self, text: str | None, left: int) -> str | int | None:
        if text is None:
            return None
        if min(len(text), WHOLE_CHARS) > left:
            self.dropped += 1
            return len(text)
        begin, end, cut = middle_out(text, WHOLE_CHARS)
        self.cut += bool(cut)
        return f"{block(begin)}\n{left_out(cut)}\n{block(end)}" if cut else block(begin)


def texts_of(span: SpanRow) -> dict[str, str]:
    """The hashes of the texts that a span names, by the prefix of their attributes."""
    return {
        key.removesuffix(HASH): value
        for key, value in span.attributes.items()
        if key.endswith(HASH) and isinstance(value, str)
    }


def _messages(span: SpanRow) -> list[str]:
    return [each["sha256"] for each in added_messages(span) or ()] if span.kind == "root_call" else []
