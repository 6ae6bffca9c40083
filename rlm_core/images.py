"""Images that sub-calls are shown: what identifies them, and their bytes when a model is to be asked.

An image is named before it is drawn: identity comes from the corpus (or from the bytes that code made), so a
call whose reply is in the record needs no image at all. Pages of PDF documents, and files that code made, are
read in a locked-down process of their own, as all files are; what that writes is a PNG or JPEG file within
the size that models look at.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError, ModelError
from rlm_core.image_files import Drawn, original, read_pictures, stored
from rlm_core.lm_handler import Image
from rlm_core.wire import ImagePart

MOST_IMAGES: Final = 20  # of one call: what all large providers take
MOST_BYTES: Final = 20_000_000  # of all images of one call, as they are sent
_KEPT_BYTES: Final = 64_000_000
_AT_ONCE: Final = 2  # processes that read images
_PAGES_AT_ONCE: Final = 8  # drawn by one process, when several wait
_DRAWING: Final = 1  # of how pages are drawn, see `rlm_core.readers.formats.pdf_pages`


@dataclass(frozen=True, slots=True)
class Named:
    """An image that a call asks to be shown. `key` is a hash of what it is; `source` is [document, page], or
    None for one that code made, whose file is `made`.
    """

    key: str
    name: str
    source: tuple[int, int] | None
    made: bytes = b""


def named(corpus: Corpus, parts: Sequence[ImagePart]) -> tuple[Named, ...]:
    """What the images of a slot are; nothing is read. Raises `ModelError` for too many of them, and for one
    that is not there.
    """
    if len(parts) > MOST_IMAGES:
        raise ModelError("too_large", f"{len(parts):,} images in one call: at most {MOST_IMAGES} are sent")
    return tuple(
        _made(part, number) if isinstance(part, str) else _of_corpus(corpus, part[0], part[1])
        for number, part in enumerate(parts, 1)
    )


def _made(text: str, number: int) -> Named:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ModelError("image", f"image {number} of this call is no file in base64") from None
    return Named(hashlib.sha256(data).hexdigest(), f"image {number}", None, data)


def _of_corpus(corpus: Corpus, document: int, page: int) -> Named:
    if document >= len(corpus.documents):
        raise ModelError("image", f"there is no document {document} in this corpus to be shown")
    facts = corpus.documents[document]
    if page == 0 and facts.picture is not None:
        return Named(facts.picture.sha256, facts.name, (document, 0))
    if facts.original is not None and 1 <= page <= facts.pages_shown:
        material = f"{facts.original.sha256}:{page}:{_DRAWING}"
        key = hashlib.sha256(material.encode()).hexdigest()
        return Named(key, f"{facts.name}, page {page}", (document, page))
    raise ModelError("image", f"{facts.name} has no {f'page {page}' if page else 'image'} that can be shown")


def facts_of(image: Named, drawn: Drawn | None = None, payload: str | None = None) -> dict[str, Any]:
    """An image as a span records it, see `rlm_core.semconv.IMAGES`; `drawn` is None for one not sent."""
    facts: dict[str, Any] = {"name": image.name, "key": image.key, "source": image.source}
    if drawn is not None:
        sent = drawn.image
        facts |= {
            "sha256": payload, "mime": sent.mime, "bytes": len(sent.data), "width": drawn.width,
            "height": drawn.height,
        }  # fmt: skip
    return facts


def data_url(image: Image) -> str:
    """The image as a text: how providers take it, and how the record keeps it."""
    return f"data:{image.mime};base64,{base64.b64encode(image.data).decode('ascii')}"


def blind(model: str) -> str | None:
    """A sentence on a model of which LiteLLM's table says that it takes no images; None when it does, or
    when nothing is known. It is asked all the same: the table may be wrong.
    """
    from rlm_core.context_window import known_facts

    facts = known_facts(model)
    if not facts or facts.get("supports_vision") is True:
        return None
    return f"{model} was shown images, but by LiteLLM's table it takes none: look at what it says of them"


@dataclass
class Images:
    """The images of one run, drawn once while they are kept in memory."""

    sent: set[str] = field(default_factory=set)  # keys of those that were drawn for a call
    _kept: dict[str, Drawn] = field(default_factory=dict)
    _wanted: dict[tuple[str, int], dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    _locks: dict[tuple[str, int], asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    def __post_init__(self) -> None:
        self._processes = asyncio.Semaphore(_AT_ONCE)

    async def draw(self, corpus: Corpus, images: Sequence[Named]) -> tuple[Drawn, ...]:
        """The images as they are sent. Raises `ModelError` of the kind "image" for one that cannot be drawn,
        "too_large" when all together are too large.
        """
        found = await asyncio.gather(*(self._one(corpus, image) for image in images), return_exceptions=True)
        drawn = []
        for one in found:
            if isinstance(one, BaseException):
                raise one
            drawn.append(one)
        self.sent.update(image.key for image in images)
        total = sum(len(one.image.data) for one in drawn)
        if total > MOST_BYTES:
            raise ModelError(
                "too_large", f"images of {total:,} bytes in one call: at most {MOST_BYTES:,}; send fewer"
            )
        return tuple(drawn)

    def unseen(self, corpus: Corpus) -> str | None:
        """A sentence on the image files of a corpus that no call was shown; None when there is none."""
        images = [d.picture.sha256 for d in corpus.documents if d.picture is not None]
        unseen = sum(sha256 not in self.sent for sha256 in images)
        if not unseen:
            return None
        count = f"{unseen:,} image{'' if unseen == 1 else 's'}"
        return f"{count} of the corpus: shown to no sub-model, so the answer does not rest on what is in them"

    async def _one(self, corpus: Corpus, image: Named) -> Drawn:
        if (known := self._kept.get(image.key)) is not None:
            return known
        try:
            if image.source is None:
                return self._keep(image.key, (await self._read("formats.image", image.made))[0])
            document, page = image.source
            if page == 0:
                return self._keep(image.key, await asyncio.to_thread(stored, corpus, document))
            return await self._page(corpus, document, page, image.key)
        except CorpusError as error:
            raise ModelError("image", f"{image.name} cannot be shown: {error}") from None

    async def _page(self, corpus: Corpus, document: int, page: int, key: str) -> Drawn:
        """A page, drawn together with others of its document that wait."""
        place = (corpus.corpus_id, document)
        wanted = self._wanted[place]
        wanted[page] = key
        try:
            async with self._locks[place]:
                if (known := self._kept.get(key)) is not None:
                    return known
                path = await asyncio.to_thread(original, corpus, document)
                together = [page, *(other for other in wanted if other != page)][:_PAGES_AT_ONCE]
                keys = [wanted[number] for number in together]
                try:
                    drawn = await self._read("formats.pdf_pages", path, [number - 1 for number in together])
                except CorpusError:
                    if len(together) == 1:
                        raise
                    drawn = await self._read(
                        "formats.pdf_pages", path, [page - 1]
                    )  # one of the others it was
                for other, one in zip(keys, drawn, strict=False):
                    self._keep(other, one)
                return drawn[0]
        finally:
            wanted.pop(page, None)

    async def _read(self, module: str, given: str | bytes, pages: Sequence[int] = ()) -> list[Drawn]:
        """What a reader makes of a file, in a thread that ends with whoever waits for it."""
        stopped = threading.Event()
        async with self._processes:
            try:
                return await asyncio.to_thread(read_pictures, module, given, pages, stopped)
            finally:
                stopped.set()

    def _keep(self, key: str, drawn: Drawn) -> Drawn:
        self._kept[key] = drawn
        total = sum(len(one.image.data) for one in self._kept.values())
        while total > _KEPT_BYTES:
            total -= len(self._kept.pop(next(iter(self._kept))).image.data)
        return drawn
