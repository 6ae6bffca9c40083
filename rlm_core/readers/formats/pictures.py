"""Pictures as they are kept and sent: within the size that models look at, written anew as PNG or JPEG.

Writing them anew drops what a file says besides its picture (places, dates, devices) and whatever else was
put into it. What is larger than `LONGEST_EDGE` is made smaller. JPEG stays JPEG; the rest is PNG, unless that
takes more than `MOST_PICTURE_BYTES`.
"""

from __future__ import annotations

import io
from typing import Any, Final

from rlm_core.readers.output import LONGEST_EDGE, MOST_PICTURE_BYTES, Output, Unreadable

_QUALITIES: Final = (90, 75, 50)  # of a JPEG, tried in turn until it is small enough


def keep(image: Any, out: Output, *, photo: bool) -> None:
    """Hand over an image of Pillow's; `photo`: it came as JPEG. Raises `Unreadable` if it stays too large."""
    image = _plain(image)
    image.thumbnail((LONGEST_EDGE, LONGEST_EDGE))
    if not photo:
        data = _written(image, "PNG", optimize=False)
        if len(data) <= MOST_PICTURE_BYTES:
            out.picture(data, "image/png", image.width, image.height)
            return
    for quality in _QUALITIES:
        data = _written(_opaque(image), "JPEG", quality=quality)
        if len(data) <= MOST_PICTURE_BYTES:
            out.picture(data, "image/jpeg", image.width, image.height)
            return
    raise Unreadable("an image too rich to be sent: save it as a smaller JPEG and add that")


def _plain(image: Any) -> Any:
    """In a mode that both formats know; a palette or 16 bits a channel become what they look like."""
    if image.mode in ("L", "RGB", "RGBA"):
        return image
    if image.mode in ("I", "F") or image.mode.startswith("I;"):
        return image.convert("I").point(lambda value: value / 256).convert("L")
    return image.convert("RGBA" if image.mode in ("LA", "PA") or "transparency" in image.info else "RGB")


def _opaque(image: Any) -> Any:
    """On white: JPEG knows no transparency."""
    if image.mode != "RGBA":
        return image
    from PIL import Image

    ground = Image.new("RGB", image.size, "white")
    ground.paste(image, mask=image.getchannel("A"))
    return ground


def _written(image: Any, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.info = {}  # what the file said of itself
    image.save(file, kind, **options)
    return file.getvalue()
