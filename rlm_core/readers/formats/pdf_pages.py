"""Pages of a PDF document as pictures, drawn when somebody wants to see them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Final

from rlm_core.readers.formats.pictures import keep
from rlm_core.readers.output import LONGEST_EDGE, Output, Unreadable

_MOST_SCALE: Final = 4.0  # of 72 dpi: small pages are not blown up beyond 288 dpi


def read(path: str, out: Output) -> None:
    """Draw the pages `out.wanted` of the document at `path`, in that order."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(Path(path))
        with closing(document):
            document.init_forms()
            for index in out.wanted:
                with closing(document[index]) as page:
                    longest = max(page.get_size())
                    scale = min(_MOST_SCALE, LONGEST_EDGE / longest) if longest > 0 else 1.0
                    bitmap = page.render(scale=scale)
                    keep(bitmap.to_pil(), out, photo=False)
    except (pypdfium2.PdfiumError, IndexError):
        raise Unreadable("has a page that cannot be drawn: the file may be damaged") from None
