"""Files behind the images of calls: those that a corpus keeps, and what readers draw from others.

Everything here blocks; readers run in a locked-down process each.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rlm_core.canonical import PICTURE_TYPES, PICTURES
from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError, RunCancelled
from rlm_core.lm_handler import Image
from rlm_core.readers.output import Unreadable

_SECONDS: Final = 60  # for what a reader draws at once; a run waits for it
_MEMORY: Final = 2 << 30
_FILE_BYTES: Final = 16 << 20  # of one picture, with room to spare


@dataclass(frozen=True, slots=True)
class Drawn:
    """An image as it is sent, with its size in pixels."""

    image: Image
    width: int
    height: int


def stored(corpus: Corpus, document: int) -> Drawn:
    """An image file of the corpus. Raises `CorpusError`."""
    picture = corpus.documents[document].picture
    assert picture is not None
    path = corpus.folder / PICTURES / f"{picture.sha256}{PICTURE_TYPES[picture.mime]}"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorpusError(f"it is not in the corpus any more ({error.strerror}): add it again") from None
    if hashlib.sha256(data).hexdigest() != picture.sha256:
        raise CorpusError("the image kept in the corpus has changed: add it again")
    return Drawn(Image(picture.mime, data), picture.width, picture.height)


def original(corpus: Corpus, document: int) -> str:
    """The path of the file whose pages are to be drawn, which is still the one that was added. Raises
    `CorpusError`.
    """
    from rlm_core.texts import open_text

    facts = corpus.documents[document].original
    assert facts is not None
    try:
        times = {facts.mtime_ns} if facts.in_place else set()
        open_text(facts.path, facts.bytes, facts.sha256, times).close()
    except OSError as error:
        raise CorpusError(str(error)) from None
    return facts.path


def read_pictures(
    module: str, given: str | bytes, pages: Sequence[int], stopped: threading.Event
) -> list[Drawn]:
    """Have a reader look at a file (a path, or its bytes). Blocks; raises `Unreadable` for a file of which no
    picture can be made, `CorpusError` for what may be otherwise the next time, and `RunCancelled` once
    `stopped` is set.
    """
    try:
        return _read_pictures(module, given, pages, stopped)
    except OSError as error:
        raise CorpusError(
            f"there is no place to draw it in ({error.strerror or error}): free space for temporary files"
        ) from None


def _read_pictures(
    module: str, given: str | bytes, pages: Sequence[int], stopped: threading.Event
) -> list[Drawn]:
    from rlm_core.readers.process import Caps, run_child
    from rlm_core.readers.result import take_result

    def check() -> None:
        if stopped.is_set():
            raise RunCancelled("nobody waits for this image any more")

    with tempfile.TemporaryDirectory(prefix="rlmscope-image-") as work:
        folder = Path(work, "reading")
        folder.mkdir()
        path = given if isinstance(given, str) else os.path.join(work, "given")
        if isinstance(given, bytes):
            Path(path).write_bytes(given)
        run_child(module, path, folder, Caps(_SECONDS, _MEMORY, _FILE_BYTES, 0, 0), check, pages)
        shown = take_result(folder).pictures
    if len(shown) != max(1, len(pages)):
        raise Unreadable("its reader gave no proper result, it may be damaged")
    return [Drawn(Image(one.mime, one.data), one.width, one.height) for one in shown]
