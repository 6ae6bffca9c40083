"""The images that a call was shown, as its span says, and their files out of the record."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any, Final

from rlm_core import semconv as sc
from traces.rows import SpanRow
from traces.view import RunView

_DATA_URL: Final = re.compile(r"data:(image/(?:png|jpeg));base64,", re.ASCII)
_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MOST: Final = 1_000
_NUMBERS: Final = ("bytes", "width", "height")
_TEXTS: Final = ("name", "key", "mime")


def span_images(span: SpanRow) -> list[dict[str, Any]]:
    """The images that a call was to be shown, in order, each as `image_facts`; none for other spans."""
    try:
        found = json.loads(str(span.attributes.get(sc.IMAGES, "[]")))
    except (ValueError, RecursionError):
        return []
    images = [image for image in found if isinstance(image, dict)] if isinstance(found, list) else []
    return [image_facts(image) for image in images[:_MOST]]


def image_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """An image as it is recorded (`rlm_core.semconv.IMAGES`), checked: `name`, `key` (part of what identifies
    its call), `document` and `page` (None for one that code made; page 0 is an image file), and of one that
    was sent `sha256` (of its payload), `mime`, `bytes`, `width` and `height`; None is not known, or not sent.
    """
    source = facts.get("source")
    placed = isinstance(source, list) and len(source) == 2 and all(type(n) is int for n in source)
    document, page = source if placed and source else (None, None)
    sha256 = facts.get("sha256")
    return {
        **{key: facts[key] if isinstance(facts.get(key), str) else None for key in _TEXTS},
        **{key: facts[key] if type(facts.get(key)) is int else None for key in _NUMBERS},
        "document": document,
        "page": page,
        "sha256": sha256 if isinstance(sha256, str) and _SHA256.fullmatch(sha256) else None,
    }


def image_file(view: RunView, sha256: str) -> tuple[str, bytes] | None:
    """Media type (PNG or JPEG) and bytes of an image, out of its payload; None when the record holds no such
    image. The bytes are as untrusted as the rest of a record: decode them with care.
    """
    text = view.payload(sha256)
    if text is None or (head := _DATA_URL.match(text)) is None:
        return None
    try:
        return head[1], base64.b64decode(text[head.end() :], validate=True)
    except (binascii.Error, ValueError):
        return None
