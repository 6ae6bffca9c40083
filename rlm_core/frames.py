"""The wire format between engine and worker: a 4-byte little-endian length, then one JSON object in UTF-8.

Both sides import this module; it holds no policy. Lone surrogates travel (`surrogatepass`), pickle never
does.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Final

MAX_FRAME: Final = 8 << 20  # bytes of one body
MAX_BATCH: Final = 256 << 20  # weight of all slots of one batch together
MAX_SLOTS: Final = 20_000  # prompts in one batch
MAX_IMAGES: Final = 1_000  # of one prompt on the wire; how many are sent is for the engine to say
MODEL_CHARS: Final = 500  # of a model's name
_PART: Final = 150  # bytes of memory for a part, besides its characters
HEADER: Final = struct.Struct("<I")
_DUMPS: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class FrameError(ValueError):
    """Bytes that are not a frame of this protocol, or an object too large to be one."""


def encode_body(message: dict[str, Any]) -> bytes:
    """The JSON bytes of a message or of a part of one, whatever their size."""
    return _DUMPS(message).encode("utf-8", "surrogatepass")


def encode(message: dict[str, Any]) -> bytes:
    """Header and body of one message; raises `FrameError` when the body would exceed `MAX_FRAME`."""
    body = encode_body(message)
    if len(body) > MAX_FRAME:
        raise FrameError(f"a message of {len(body):,} bytes exceeds the limit of {MAX_FRAME:,} bytes")
    return HEADER.pack(len(body)) + body


def decode(body: bytes) -> dict[str, Any]:
    """The message in a body; raises `FrameError` for anything but a JSON object with a text `t`."""
    try:
        message = json.loads(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a frame is not JSON: {type(error).__name__}") from None
    if not isinstance(message, dict) or not isinstance(message.get("t"), str):
        raise FrameError("a frame is not an object with a type")
    return message


def body_size(header: bytes) -> int:
    """The length a header announces; raises `FrameError` when it is no header, or over the limit."""
    if len(header) != HEADER.size:
        raise FrameError(f"a header of {len(header)} bytes; it has {HEADER.size}")
    size: int = HEADER.unpack(header)[0]
    if size > MAX_FRAME:
        raise FrameError(f"a frame announces {size:,} bytes; the limit is {MAX_FRAME:,}")
    return size


def slot_weight(slot: dict[str, Any]) -> int:
    """About what a well-typed slot takes in memory, in bytes; both sides hold a batch to `MAX_BATCH`."""
    lists = [slot.get("p", ()), slot.get("s", ()), slot.get("i", ()), *(slot.get("c") or ())]
    texts = sum(len(part) for parts in lists for part in parts if isinstance(part, str))
    return texts + _PART * (len(lists) + sum(map(len, lists)))
