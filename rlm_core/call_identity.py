"""What makes two calls the same; see the glossary of hashes in `rlm_core.semconv`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from rlm_core.telemetry import as_json, sha256_text
from rlm_core.wire import Slot

_DIGITS: Final = re.compile(r"\d+")
_CORPUS_MARK: Final = (
    "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}corpus\N{MATHEMATICAL RIGHT WHITE SQUARE BRACKET}"
)


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes two calls the same; see the glossary of hashes in `rlm_core.semconv`."""

    prompt: str
    prompt_hash: str
    template_hash: str
    request_hash: str
    occurrence: int


def hash_of_request(prompt_hash: str, model: str, max_tokens: int | None, schema: Any) -> str:
    """The request hash of a sub-call, see `rlm_core.semconv.REQUEST_HASH`."""
    return sha256_text(as_json([prompt_hash, model, max_tokens, schema]))


def template(slot: Slot) -> str:
    """The prompt with corpus places and digits masked: equal for equal questions on different places."""
    parts = [_DIGITS.sub("0", part) if isinstance(part, str) else _CORPUS_MARK for part in slot.prompt]
    parts.append("\n\n")
    parts += [_DIGITS.sub("0", part) if isinstance(part, str) else _CORPUS_MARK for part in slot.snippet]
    return "".join(parts)
