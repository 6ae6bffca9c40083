"""Untrusted text (from models, corpora, errors) made safe to print on a terminal: see `traces.visible`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

__all__ = ["block", "fit", "line"]


def _ours() -> Any:
    """`traces.visible`, found by its place: the sentence that another project's `traces` was imported is
    printed through it, and that package must not run for it.
    """
    spec = spec_from_file_location(
        "ui._visible", Path(__file__).resolve().parents[1] / "traces" / "visible.py"
    )
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_found: Final = _ours()
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
