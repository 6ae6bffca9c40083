"""What a prompt or snippet argument stands for."""

from __future__ import annotations

from rlm_core.texts.documents import Documents
from rlm_core.texts.mapped import MappedText
from rlm_core.texts.text import Text

Part = str | list[int]


def parts_of(value: object) -> list[Part]:
    """What a prompt or snippet argument stands for: plain strings and `[document, start, end]` places.

    Takes a text, a document or slice, `documents`, or a list or tuple of these, which is joined by blank
    lines. Raises `TypeError`, in one sentence, for anything else.
    """
    if not isinstance(value, (list, tuple)):
        return _merged(_parts_of_one(value, ""))
    parts: list[Part] = []
    for number, item in enumerate(value, 1):
        if number > 1:
            parts.append("\n\n")
        parts.extend(_parts_of_one(item, f"snippet {number} of {len(value)}"))
    return _merged(parts)


def _parts_of_one(value: object, which: str) -> list[Part]:
    if isinstance(value, (Text, MappedText)) and value.document >= 0:
        return [[value.document, value.start, value.start + len(value)]]
    if isinstance(value, str):
        return [str(value)]
    if isinstance(value, Documents):
        places: list[Part] = []
        for document, chars in value.places:
            places += ["\n\n", [document, 0, chars]]
        return places[1:]
    if type(value).__name__ == "SubCallError":
        advice = (
            "leave it out, for example [r for r in replies if r]"
            if which
            else "test `if reply:` before you use it"
        )
        raise TypeError(
            f"{which or 'this'} is a failed sub-call ({getattr(value, 'kind', 'unknown')}): {advice}"
        )
    kind = type(value).__name__
    raise TypeError(
        f"{which or 'this'} must be text (a str, a document, a slice), not {kind}: use str() or json.dumps()"
    )


def _merged(parts: list[Part]) -> list[Part]:
    """Neighbouring plain strings as one."""
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return merged
