"""What can be seen of a document: an image file, or the pages of a PDF. Only places: nothing is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from rlm_core.texts.files import Source
    from rlm_core.texts.mapped import MappedText
    from rlm_core.texts.text import Text


class Picture:
    """An image of the corpus, to be given to a sub-call: `llm_query(prompt, images=[picture])`.

    `page` is the number of the page that it shows (from 1), 0 for an image file; `name` is that of its
    document.
    """

    __slots__ = ("_place", "_whole", "document", "name", "page")

    def __init__(self, whole: Text | MappedText, page: int, place: tuple[int, int]) -> None:
        self._whole = whole
        self._place = place
        self.document = whole.document
        self.name = whole.name
        self.page = page

    @property
    def text(self) -> Text | MappedText:
        """The text of the page, which is empty for an image and for a page that was scanned."""
        piece: Text | MappedText = self._whole[slice(*self._place)]  # type: ignore[assignment]
        return piece

    def __repr__(self) -> str:
        return f"<page {self.page} of {self.name!r}>" if self.page else f"<image {self.name!r}>"


def pictures_of(whole: Text | MappedText, source: Source | None) -> list[Picture]:
    """All that can be seen of a document, in order; nothing for a text. Raises `ValueError` for a piece."""
    if source is None:
        of_a_piece(whole.name)
    return pages_of(whole, source) or ([Picture(whole, 0, (0, 0))] if source.is_image else [])


def pages_of(whole: Text | MappedText, source: Source | None) -> list[Picture]:
    """The pages of a document that can be shown. Raises as `pictures_of`."""
    if source is None:
        of_a_piece(whole.name)
    places = zip(source.pages[::2], source.pages[1::2], strict=True)
    return [Picture(whole, page, place) for page, place in enumerate(places, 1)]


def page_of(whole: Text | MappedText, source: Source | None, number: int) -> Picture:
    """One page by its number, from 1. Raises `ValueError` for one that is not there, `TypeError` for what is
    no number.
    """
    if type(number) is not int:
        raise TypeError(f"page_image needs the number of a page, not {type(number).__name__}")
    pages: Sequence[Picture] = pages_of(whole, source)
    if not pages:
        raise ValueError(f"{whole.name} has no pages that can be shown: those of PDF documents can")
    if not 1 <= number <= len(pages):
        raise ValueError(f"{whole.name} has no page {number}: its pages are 1 to {len(pages):,}")
    return pages[number - 1]


def of_a_piece(name: str) -> NoReturn:
    """A piece of a document has no pictures. Raises `ValueError`."""
    raise ValueError(f"images and pages are those of whole documents: use documents[{name!r}]")
