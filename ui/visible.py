"""Untrusted text (from models, corpora, errors) made safe to print on a terminal: see `traces.visible`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ui.of_traces import by_place

__all__ = ["block", "fit", "line"]

_found: Final = by_place("visible")
block: Final[Callable[[str], str]] = _found.block
line: Final[Callable[[object], str]] = _found.line


def fit(text: str, width: int) -> str:
    """A one-line text cut to `width` terminal columns, with an ellipsis where something was cut."""
    if len(text) * 2 <= width:
        return text
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…" if width > 0 else ""
