"""Tracebacks as the writer of a cell needs them: from the cell on, without the worker's own frames."""

from __future__ import annotations

import os
import traceback
from typing import Any, Final

_OWN: Final = (
    os.path.dirname(os.path.dirname(__file__)) + os.sep
)  # this package: its frames say nothing about the cell
_MAX_CHARS: Final = 20_000


def traceback_text(error: BaseException) -> str:
    """The traceback of an error a cell raised; head and tail kept. May run code of the error."""
    told = traceback.TracebackException(type(error), error, error.__traceback__, compact=True)
    _trim(told)
    text = "".join(told.format())
    if "MappedText" in text or "Documents" in text:
        from rlm_core.texts.re_functions import refused

        text += refused(text)
    half = _MAX_CHARS // 2
    return text if len(text) <= _MAX_CHARS else f"{text[:half]}\n[...]\n{text[-half:]}"


def _trim(told: Any) -> None:
    """Drop frames of this package from an error and from those it came from."""
    seen: set[int] = set()
    queue = [told]
    while queue:
        one = queue.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.stack[:] = [frame for frame in one.stack if not frame.filename.startswith(_OWN)]
        queue += [one.__cause__, one.__context__, *(one.exceptions or ())]
