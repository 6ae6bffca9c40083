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
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rlm_core.corpus import Corpus
from rlm_core.document import Original
from rlm_core.errors import CorpusError, ModelError
from rlm_core.image_files import Drawn, original, read_pictures, stored
from rlm_core.lm_handler import Image
from rlm_core.readers.output import Unreadable
from rlm_core.wire import ImagePart, Part

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


def unshown(corpus: Corpus, parts: Sequence[Part], images: Sequence[Named] = ()) -> str | None:
    """A sentence on documents whose places stand in a text, but which have none: they can only be shown, and
    are not among these images. None when there is no such one. A model would be sent nothing of them, and
    could only make something up.
    """
    seen = {image.source[0] for image in images if image.source is not None}
    numbers = dict.fromkeys(part[0] for part in parts if not isinstance(part, str))
    known = [corpus.documents[n] for n in numbers if n not in seen and n < len(corpus.documents)]
    found = [each for each in known if not each.chars and (each.is_image or each.pages_shown)]
    if not found:
        return None
    name, more = found[0].name, len(found) - 1
    what = "is an image" if found[0].is_image else "has no text, only pages that can be shown"
    if more:
        what = f"and {more:,} more have no text and can only be shown"
    return f"{name} {what}: show {'each' if more else 'it'} with images=documents[{name!r}].images"


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
        key = _page_key(facts.original, page)
        return Named(key, f"{facts.name}, page {page}", (document, page))
    raise ModelError("image", f"{facts.name} has no {f'page {page}' if page else 'image'} that can be shown")


def _page_key(file: Original, page: int) -> str:
    return hashlib.sha256(f"{file.sha256}:{page}:{_DRAWING}".encode()).hexdigest()


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
    """The images of one run, drawn once while they are kept in memory; what could not be drawn is not tried
    again.
    """

    shown: set[str] = field(default_factory=set)  # keys of those that a model was shown when it answered
    payloads: dict[str, str] = field(default_factory=dict)  # by key: the hash under which the record has it
    _kept: dict[str, Drawn] = field(default_factory=dict)
    _kept_bytes: int = 0
    _undrawn: dict[str, str] = field(default_factory=dict)  # key -> why
    _wanted: dict[tuple[str, int], Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
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
        total = sum(len(one.image.data) for one in drawn)
        if total > MOST_BYTES:
            raise ModelError(
                "too_large", f"images of {total:,} bytes in one call: at most {MOST_BYTES:,}; send fewer"
            )
        return tuple(drawn)

    def unseen(self, corpus: Corpus) -> str | None:
        """A sentence on the image files of a corpus that no call was shown; None when there is none."""
        images = [d.picture.sha256 for d in corpus.documents if d.picture is not None]
        unseen = sum(sha256 not in self.shown for sha256 in images)
        if not unseen:
            return None
        what, them = f"{unseen:,} images of the corpus were", "them"
        if unseen == 1:
            what, them = "1 image of the corpus was", "it"
        return f"{what} shown to no sub-model, so the answer does not rest on what is in {them}"

    async def _one(self, corpus: Corpus, image: Named) -> Drawn:
        try:
            if (known := self._known(image.key)) is not None:
                return known
            if image.source is None:
                return await self._made(image)
            document, page = image.source
            if page == 0:
                return self._keep(image.key, await asyncio.to_thread(stored, corpus, document))
            return await self._page(corpus, document, page)
        except CorpusError as error:
            raise ModelError("image", f"{image.name} cannot be shown: {error}") from None

    def _known(self, key: str) -> Drawn | None:
        """An image that was drawn before; raises `CorpusError` for one that could not be."""
        if (why := self._undrawn.get(key)) is not None:
            raise CorpusError(why)
        return self._kept.get(key)

    async def _made(self, image: Named) -> Drawn:
        async with self._processes:
            if (known := self._known(image.key)) is not None:  # by an equal call, while this one waited
                return known
            return (await self._read("formats.image", image.made, {0: image.key}))[0]

    async def _page(self, corpus: Corpus, document: int, page: int) -> Drawn:
        """A page, drawn together with others of its document that wait."""
        file = corpus.documents[document].original
        assert file is not None
        place, key = (corpus.corpus_id, document), _page_key(file, page)
        wanted = self._wanted[place]
        wanted[page] += 1
        try:
            async with self._locks[place]:
                if (known := self._known(key)) is not None:
                    return known
                path = await asyncio.to_thread(original, corpus, document)
                keys = {number: _page_key(file, number) for number in wanted}
                others = [n for n, k in keys.items() if k not in self._kept and k not in self._undrawn]
                together = dict.fromkeys([page, *others])  # page first, and once
                numbers = list(together)[:_PAGES_AT_ONCE]
                async with self._processes:
                    return await self._draw_pages(path, {number: keys[number] for number in numbers})
        finally:
            wanted[page] -= 1
            if not wanted[page]:
                del wanted[page]

    async def _draw_pages(self, path: str, keys: Mapping[int, str]) -> Drawn:
        """The first of these pages; the others are kept. Where one cannot be drawn, each is drawn alone."""
        try:
            return (await self._read("formats.pdf_pages", path, keys))[0]
        except Unreadable:
            if len(keys) == 1:
                raise
        alone: list[Drawn | Unreadable] = []
        for page, key in keys.items():
            try:
                alone += await self._read("formats.pdf_pages", path, {page: key})
            except Unreadable as error:
                alone.append(error)
        if isinstance(alone[0], Unreadable):
            raise alone[0]
        return alone[0]

    async def _read(self, module: str, given: str | bytes, keys: Mapping[int, str]) -> list[Drawn]:
        """What a reader makes of a file, in a thread that ends with whoever waits for it; kept by its key."""
        stopped = threading.Event()
        pages = [page - 1 for page in keys if page]
        try:
            drawn = await asyncio.to_thread(read_pictures, module, given, pages, stopped)
        except Unreadable as error:
            if len(keys) == 1:
                self._undrawn.update(dict.fromkeys(keys.values(), str(error)))
            raise
        finally:
            stopped.set()
        return [self._keep(key, one) for key, one in zip(keys.values(), drawn, strict=True)]

    def _keep(self, key: str, drawn: Drawn) -> Drawn:
        if (before := self._kept.pop(key, None)) is not None:
            self._kept_bytes -= len(before.image.data)
        self._kept[key] = drawn
        self._kept_bytes += len(drawn.image.data)
        while self._kept_bytes > _KEPT_BYTES:
            self._kept_bytes -= len(self._kept.pop(next(iter(self._kept))).image.data)
        return drawn
