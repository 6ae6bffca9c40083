"""Documents as strips: a table whose rows show, from the first byte to the last, what became of each part.

Drawn by a view of its own; texts become text nodes, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import streamlit as st

from traces.coverage import Part
from ui.visible import line
from ui.web.rows_view import CELL_CHARS

MOST: Final = 240  # parts of a strip; a document with more is drawn in so many steps
WORDS: Final[Mapping[str, str]] = {
    "sent": "sent to a sub-call",
    "shown": "shown to the root",
    "unanswered": "sent, never answered",
    "given": "given to code",
    "never": "never touched",
}
_RANK: Final = {how: place for place, how in enumerate(WORDS)}
_HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Strip:
    """A row: `name` (any text), the parts of its strip, and texts for the columns behind it."""

    key: str
    name: str
    parts: Sequence[Part]
    cells: Sequence[str]


def _source(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


_view = st.components.v2.component(
    "rlmscope.strips", css=_source("strips_view.css"), js=_source("strips_view.js")
)


def strips_view(
    strips: Sequence[Strip],
    columns: Sequence[str],
    *,
    key: str,
    label: str,
    chosen: str | None,
    on_choose: Callable[[str], None],
    on_part: Callable[[str, int, int], None],
) -> None:
    """Draw the rows. `columns` are names of figures, `label` says what the table is; both are ours.

    `on_choose(key)` is called for a click on a name, `on_part(key, start, end)` for one on a part of a strip.
    """
    known = {strip.key for strip in strips}

    def did() -> None:
        told = getattr(st.session_state[key], "did", None)
        if not isinstance(told, Mapping) or told.get("key") not in known:
            return
        start, end = told.get("start"), told.get("end")
        if isinstance(start, int) and isinstance(end, int):
            on_part(str(told["key"]), start, end)
        else:
            on_choose(str(told["key"]))

    data: dict[str, Any] = {
        "label": label,
        "columns": list(columns),
        "words": WORDS,
        "rows": [_row(strip) for strip in strips],
        "chosen": chosen,
    }
    _view(key=key, data=data, on_did_change=did)


def _row(strip: Strip) -> dict[str, Any]:
    drawn = strip.parts if len(strip.parts) <= MOST else coarse(strip.parts)
    name = line(strip.name)
    return {
        "key": strip.key,
        "name": name if len(name) <= CELL_CHARS else name[: CELL_CHARS - 1] + "…",
        "parts": [list(part) for part in drawn],
        "cells": list(strip.cells),
    }


def coarse(parts: Sequence[Part], steps: int = MOST) -> list[Part]:
    """The parts in at most so many equal steps: each has the fate that tells most of what lies in it.

    So nothing that was read vanishes, however short it is. Parts are in order and leave no gap.
    """
    end = parts[-1].end
    found: list[Part] = []
    at = 0
    for step in range(steps):
        first, last = end * step // steps, end * (step + 1) // steps
        while parts[at].end <= first:
            at += 1
        here, best = at, parts[at].how
        while here < len(parts) and parts[here].start < last:
            best = min(best, parts[here].how, key=_RANK.__getitem__)
            here += 1
        if found and found[-1].how == best:
            found[-1] = found[-1]._replace(end=last)
        else:
            found.append(Part(first, last, best))
    return found
