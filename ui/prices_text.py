"""Price rows as text for a terminal. Notes are what a person wrote; they pass `ui.visible` all the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ui.render import table
from ui.visible import line

_CLASSES: Final = ("input", "cached_read", "cache_write", "output")


def prices_table(listed: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each row; unknown is a word, never a figure."""
    rows = [(row["model"], *_rates(row), origin_words(row)) for row in listed]
    lines = table(("model", *(name.replace("_", " ") for name in _CLASSES), "from"), rows, right=_RIGHT)
    day = f", as of {listed[0]['as_of']}" if listed else ""
    lines.append(f"dollars for a million tokens{day} (UTC)")
    unknown = next((row["model"] for row in listed if row["status"] == "unknown"), None)
    if unknown is not None:
        lines.append(f"set a price with: rlmscope prices set {line(unknown)} --input USD --output USD")
    return lines


_RIGHT: Final = frozenset(range(1, len(_CLASSES) + 1))


def _rates(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[f"{name}_per_mtok"] or "unknown" for name in _CLASSES)


def origin_words(row: Mapping[str, Any]) -> str:
    """Where a price row of `traces.prices.price_list` comes from and what is special about it; untrusted."""
    words = [row["source"] or "no price is known"]
    if row["priced_as"] not in (None, row["model"]):
        words.append(row["priced_as"])
    if row["above_input_tokens"]:
        words.append(f"above {row['above_input_tokens']:,} input tokens")
    if row["valid_from"] is not None:
        words.append(f"from {row['valid_from']} on" + ("" if row["in_force"] else " (not yet)"))
    if row["status"] == "free":
        words.append("free")
    if row["note"]:
        words.append(row["note"])
    return ", ".join(words)
