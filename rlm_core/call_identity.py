"""What makes two calls the same; see the glossary of hashes in `rlm_core.semconv`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rlm_core.lm_handler import ToolSpec
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


def hash_of_prompt(prompt: str, images: Sequence[str] = ()) -> str:
    """The prompt hash of a sub-call, see `rlm_core.semconv.PROMPT_HASH`; `images` are the keys of those that
    are shown with it (`rlm_core.images.Named`).
    """
    digest = sha256_text(prompt)
    return sha256_text(as_json([digest, {"images": list(images)}])) if images else digest


def hash_of_request(
    prompt_hash: str,
    model: str,
    max_tokens: int | None,
    schema: Any,
    tools: Sequence[ToolSpec] = (),
    corpus_id: str | None = None,
) -> str:
    """The request hash of a sub-call, see `rlm_core.semconv.REQUEST_HASH`; what a call has not is not in it,
    so that the hashes of calls without tools are those of earlier versions. `corpus_id` names what tools
    read: a child run that has documents of its own asks something else with the same words.
    """
    parts: list[Any] = [prompt_hash, model, max_tokens, schema]
    if tools:
        declared = [[tool.name, tool.description, tool.parameters] for tool in tools]
        parts.append({"tools": declared, "corpus": corpus_id})
    return sha256_text(as_json(parts))


def template(slot: Slot) -> str:
    """The prompt with corpus places and digits masked: equal for equal questions on different places."""
    parts = [_DIGITS.sub("0", part) if isinstance(part, str) else _CORPUS_MARK for part in slot.prompt]
    parts.append("\n\n")
    parts += [_DIGITS.sub("0", part) if isinstance(part, str) else _CORPUS_MARK for part in slot.snippet]
    return "".join(parts)
