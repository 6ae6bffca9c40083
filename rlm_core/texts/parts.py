"""What a prompt or snippet argument stands for."""

from __future__ import annotations

import binascii

from rlm_core.texts.documents import Documents
from rlm_core.texts.mapped import MappedText
from rlm_core.texts.pictures import Picture
from rlm_core.texts.text import Text

Part = str | list[int]
ImagePart = str | list[int]  # a file in base64, or [document, page] with page 0 for an image file


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


def image_parts_of(value: object) -> list[ImagePart]:
    """What an `images` argument stands for: images of the corpus, documents that can be seen, and the bytes
    of PNG or JPEG files; one, a list or tuple of them, or None. Raises `TypeError` for anything else.
    """
    if value is None:
        return []
    items = value if isinstance(value, (list, tuple)) else [value]
    return [part for item in items for part in _image_parts_of_one(item)]


def _image_parts_of_one(value: object) -> list[ImagePart]:
    if isinstance(value, Picture):
        return [[value.document, value.page]]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return [binascii.b2a_base64(value, newline=False).decode("ascii")]
    if isinstance(value, (Text, MappedText, Documents)):
        if pictures := value.images:
            return [[picture.document, picture.page] for picture in pictures]
        raise TypeError(
            f"{value.name} is text, there is no image in it: images are those of image files and PDFs"
        )
    kind = type(value).__name__
    raise TypeError(
        f"an image must be one of .images, .pages or .page_image(n), or the bytes of a PNG or JPEG file, not "
        f"{kind}: addresses and paths are not followed"
    )


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
