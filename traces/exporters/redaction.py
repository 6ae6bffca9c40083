"""One run on its way out of a home: what looks like a key is taken out of its texts and attributes.

A payload is named by its hash, so one that changes gets a new name, everywhere the same; hashes by which
calls are recognised (`rlm.hash.*`) stay those of what was sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from rlm_core.telemetry import MESSAGE_CHARS, PREVIEW_CHARS, preview, sha256_text
from traces.exporters.secrets import REDACTED, redacted

_HASH: Final = re.compile(r"\b[0-9a-f]{64}\b")
_SUFFIX: Final = ".sha256"


class Redactor:
    """Redacts a run; `replaced` counts the places. Feed all payloads before attributes that cite them."""

    def __init__(self) -> None:
        self.replaced = 0
        self._renamed: dict[str, tuple[str, str]] = {}  # old hash -> new hash, new text
        self._previews: dict[str, str] = {}  # of those texts, old -> new: a key may be cut off in one

    def text(self, text: str) -> str:
        """A text without what looks like a key."""
        if text in self._previews:
            self.replaced += 1
            return self._previews[text]
        clean, places = redacted(text, cut=_may_be_cut(text))
        self.replaced += places
        return clean

    def payload(self, sha256: str, text: str) -> tuple[str, str]:
        """The name and text of a payload, both new where something was taken out of it."""
        clean = self.text(text)
        if clean == text:
            return sha256, text
        self._renamed[sha256] = (sha256_text(clean), clean)
        self._previews[preview(text)] = _preview(clean)
        return self._renamed[sha256]

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Attributes with clean names and strings, and what is new of renamed payloads that they cite."""
        clean = {self.text(key): self._value(value) for key, value in attributes.items()}
        for key, value in attributes.items():
            if key.endswith(_SUFFIX) and isinstance(value, str) and value in self._renamed:
                prefix, text = self.text(key.removesuffix(_SUFFIX)), self._renamed[value][1]
                clean |= {f"{prefix}.chars": len(text), f"{prefix}.preview": _preview(text)}
        return clean

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return _HASH.sub(self._name, self.text(value)) if self._renamed else self.text(value)
        return [self._value(item) for item in value] if isinstance(value, list) else value

    def _name(self, found: re.Match[str]) -> str:
        old = found.group()
        return self._renamed[old][0] if old in self._renamed else old


def _preview(clean: str) -> str:
    """The preview of a clean text, which is to stay as it is when it leaves once more."""
    shown = preview(clean)
    return redacted(shown, cut=_may_be_cut(shown))[0]


def _may_be_cut(text: str) -> bool:
    """Whether a text has a length at which the record cuts texts off (previews lose spaces afterwards). One
    that was cleaned has no longer the length it had on record.
    """
    if REDACTED in text:
        return False
    return PREVIEW_CHARS // 2 <= len(text) <= PREVIEW_CHARS or len(text) == MESSAGE_CHARS
