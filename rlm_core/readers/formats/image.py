"""Images (PNG, JPEG, WebP, GIF): a document without text that can be shown to a model that sees."""

from __future__ import annotations

import warnings
from typing import Final

from rlm_core.readers.formats.pictures import keep
from rlm_core.readers.output import LONGEST_EDGE, Output, Unreadable

MOST_PIXELS: Final = 100_000_000
_FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF")  # no other decoder of the library is ever tried


def read(path: str, out: Output) -> None:
    """Read the image at `path` into `out`; see `rlm_core.readers.output`."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None  # our own limit says it in a sentence
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(path, formats=_FORMATS) as image:
                width, height = image.size
                if width * height > MOST_PIXELS:
                    raise Unreadable(
                        f"an image of {width:,} x {height:,} pixels, at most {MOST_PIXELS // 1_000_000} "
                        "million are read: save it smaller and add that"
                    )
                photo = image.format == "JPEG"
                if (pictures := getattr(image, "n_frames", 1)) > 1:
                    out.remark(f"an animation of {pictures:,} pictures: the first one is kept")
                if photo:
                    image.draft("RGB", (2 * LONGEST_EDGE, 2 * LONGEST_EDGE))
                image.load()
                keep(ImageOps.exif_transpose(image), out, photo=photo)
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise Unreadable(
                "an image that is damaged or cut off: open it, save it again and add that"
            ) from None
    if max(width, height) > LONGEST_EDGE:
        out.remark(f"{width:,} x {height:,} pixels, kept with {LONGEST_EDGE:,} on its longest edge")
