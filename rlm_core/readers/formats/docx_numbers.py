"""The numbers of Word's lists ("1.", "2.1", "a)"), which are no text in the file: programs compute them.

Source: ECMA-376 part 1, 17.9 (numbering).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from rlm_core.readers.formats.packages import attribute, child, local

_LEVELS: Final = 9
_PLACEHOLDER: Final = re.compile(r"%([1-9])")
_ROMAN: Final = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_LARGEST: Final = 10_000  # a larger number is written in digits, whatever its format


@dataclass(frozen=True, slots=True)
class _Level:
    format: str
    text: str
    start: int


class Numbers:
    """Counts the lists of one document; ask for the label of every paragraph, in order."""

    def __init__(self, numbering: Any, styles: Any) -> None:
        """`numbering` and `styles` are the root elements of those parts, or empty."""
        abstract = {
            attribute(entry, "abstractNumId"): _levels(entry)
            for entry in numbering
            if local(entry) == "abstractNum"
        }
        self._lists: dict[str | None, tuple[str | None, dict[int, int]]] = {
            attribute(entry, "numId"): (_value(entry, "abstractNumId"), _restarts(entry))
            for entry in numbering
            if local(entry) == "num"
        }
        self._abstract = abstract
        self._styles = {attribute(style, "styleId"): style for style in styles if local(style) == "style"}
        self._counts: dict[str | None, list[int | None]] = {}
        self._restarted: set[str | None] = set()

    def label(self, properties: Any) -> str:
        """The label of a paragraph with a blank after it, or ""; `properties` is its pPr element or None."""
        number, level = self._place(properties)
        identity, restarts = self._lists.get(number, (None, {}))
        levels = self._abstract.get(identity, {})
        if level not in levels:
            return ""
        counts = self._counts.setdefault(identity, [None] * _LEVELS)
        if restarts and number not in self._restarted:
            self._restarted.add(number)
            for at, start in restarts.items():
                counts[at] = start - 1
        before = counts[level]
        counts[level] = levels[level].start if before is None else before + 1
        counts[level + 1 :] = [None] * (_LEVELS - level - 1)
        return _label(levels, counts, level)

    def _place(self, properties: Any) -> tuple[str | None, int]:
        """The list and level of a paragraph, from itself or from its styles."""
        number: str | None = None
        level: str | None = None
        style = properties
        for _ in range(_LEVELS):  # styles may be based on each other in a circle
            if style is None:
                break
            entry = child(style, "numPr")
            if entry is not None:
                number = number or _value(entry, "numId")
                level = level or _value(entry, "ilvl")
            parent = _value(style, "pStyle") or _value(style, "basedOn")
            owner = self._styles.get(parent) if parent else None
            style = _style_properties(owner)
        return number, int(level) if level and level.isdecimal() and int(level) < _LEVELS else 0


def _style_properties(style: Any) -> Any:
    """The paragraph properties of a style, with its `basedOn` where `_place` looks for it."""
    if style is None:
        return None
    properties = child(style, "pPr")
    inherited = child(style, "basedOn")
    return [*(() if properties is None else properties), *(() if inherited is None else (inherited,))]


def _value(element: Any, name: str) -> str | None:
    found = child(element, name)
    return None if found is None else attribute(found, "val")


def _whole(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else otherwise


def _levels(entry: Any) -> dict[int, _Level]:
    levels = (element for element in entry if local(element) == "lvl")
    return {
        _whole(attribute(level, "ilvl"), 0): _Level(
            _value(level, "numFmt") or "decimal",
            _value(level, "lvlText") or "",
            _whole(_value(level, "start"), 1),
        )
        for level in levels
        if _whole(attribute(level, "ilvl"), 0) < _LEVELS
    }


def _restarts(entry: Any) -> dict[int, int]:
    found = {}
    for override in entry:
        start = _value(override, "startOverride") if local(override) == "lvlOverride" else None
        level = _whole(attribute(override, "ilvl"), 0)
        if start is not None and level < _LEVELS:
            found[level] = _whole(start, 1)
    return found


def _label(levels: dict[int, _Level], counts: list[int | None], level: int) -> str:
    if levels[level].format == "bullet":
        return "- "
    if levels[level].format == "none":
        return ""

    def number(match: re.Match[str]) -> str:
        at = int(match[1]) - 1
        shown = levels.get(at)
        if shown is None:
            return ""
        count = counts[at]
        return _written(shown.start if count is None else count, shown.format)

    label = _PLACEHOLDER.sub(number, levels[level].text).strip()
    return f"{label} " if label else ""


def _written(number: int, form: str) -> str:
    if not 0 < number < _LARGEST:
        return str(number)
    if form.endswith("Roman"):
        text = ""
        for value, letters in _ROMAN:
            text += letters * (number // value)
            number %= value
        return text.upper() if form.startswith("upper") else text
    if form in ("lowerLetter", "upperLetter"):  # after z come aa, bb
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return text.upper() if form == "upperLetter" else text
    return f"{number:02}" if form == "decimalZero" else str(number)
