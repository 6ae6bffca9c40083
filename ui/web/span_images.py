"""The images that a call was shown, and those among the documents: decoded, bounded, and written anew.

What a record or a corpus holds may have been made by anybody, so no address of it and no file as it is ever
reaches the browser.
"""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from rlm_core.canonical import PICTURE_TYPES, PICTURES
from traces.reading import RunView
from traces.span_images import image_file
from ui.web import plain
from ui.web.notices import note

if TYPE_CHECKING:
    from rlm_core.corpus import Corpus, Document

_MOST_EDGE: Final = 4_000  # pixels; the engine keeps and sends at most half of it
_SHOWN_EDGE: Final = 1_400  # wider than the column on most screens, and a tenth of the work
_MOST_SHOWN: Final = 20  # a call is sent no more; a record may hold anything
_KEPT: Final = 40  # images written anew, for the next time that the page runs
_BROKEN: Final = "This image cannot be shown: it is damaged, or larger than any that is sent."


def images(view: RunView, found: list[dict[str, Any]]) -> None:
    """The images of a call (`traces.span_images.span_images`), each under a line that says what it is."""
    if len(found) > _MOST_SHOWN:
        note(f"The record names {len(found):,} images for this call; the first {_MOST_SHOWN} are shown.")
    for number, image in enumerate(found[:_MOST_SHOWN], 1):
        plain.text(words(image))
        if image["sha256"] is None:
            continue
        stored = image_file(view, image["sha256"])
        if stored is None:
            note("This image is not in the record.")
        else:
            _show(stored[1], f"Image {number} of {len(found)}")


def words(image: dict[str, Any]) -> str:
    """`report.pdf, page 3: 1,414 x 2,000 pixels, 181,044 bytes, image/png`."""
    name = image["name"] or "an image"
    if image["sha256"] is None:
        return f"{name}: not sent, the reply came from the record"
    width, height, size = (image[key] or 0 for key in ("width", "height", "bytes"))
    return f"{name}: {width:,} x {height:,} pixels, {size:,} bytes, {image['mime'] or 'of unknown type'}"


def document_image(corpus: Corpus, document: Document) -> None:
    """An image file of a corpus."""
    picture = document.picture
    assert picture is not None
    path = corpus.folder / PICTURES / f"{picture.sha256}{PICTURE_TYPES[picture.mime]}"
    try:
        data = path.read_bytes()
    except OSError as error:
        note(f"This image is not in the corpus any more ({error.strerror}): add it again.")
        return
    _show(data, "The image as it is shown to a sub-model")


def _show(data: bytes, caption: str) -> None:
    made = _kept(data)
    if made is None:
        note(_BROKEN)
        return
    st.image(made, caption=caption, width="content", output_format="PNG")  # never wider than its column


@st.cache_data(max_entries=_KEPT, show_spinner=False)
def _kept(data: bytes) -> bytes | None:
    return _written_anew(data)


def _written_anew(data: bytes) -> bytes | None:
    """The picture as a PNG of ours; None for what is no picture of a sensible size."""
    from PIL import Image, UnidentifiedImageError

    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
                if max(image.size) > _MOST_EDGE:
                    return None
                image.draft("RGB", (_SHOWN_EDGE, _SHOWN_EDGE))  # a JPEG is decoded in a smaller size at once
                kept = image.convert("RGBA" if "A" in image.mode else "RGB")
                kept.thumbnail((_SHOWN_EDGE, _SHOWN_EDGE))
                kept.info = {}
                kept.save(file, "PNG", compress_level=1)
                return file.getvalue()
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError):
            return None
