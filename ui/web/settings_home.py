"""Settings: where everything is kept, and how much room it takes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import streamlit as st

from traces.home import Home
from ui.figures import size
from ui.web import plain
from ui.web.rows_view import Column, Item, rows_view

_WHAT: Final = {
    "spool": "Records of runs, one file for each: the truth about them",
    "traces.duckdb": "The store that lists and reports read; it can be made anew from the records",
    "corpora": "Texts of documents, and what each corpus consists of",
    "uploads": "Files that were uploaded, as they were",
    "user.jsonl": "What you said about runs: verdicts, notes, tags, deletions, prices",
    "checks": "What checks of sets found",
    "settings.toml": "These settings",
    "keys.json": "Keys of providers, readable by you alone",
    "logs": "What went wrong, in detail",
}


def show(home: Home) -> None:
    """The folder, its parts with their sizes, and the room that is left."""
    plain.code(str(home.root))
    st.caption("Another one: `rlmscope app --home DIR`, or RLMSCOPE_HOME in the environment.")
    with st.spinner("Measuring", show_time=False):
        sizes = _sizes(home.root)
    rows = [(name, what, sizes.pop(name, 0)) for name, what in _WHAT.items()]
    rows.append(("", "Everything else: requests, locks, additions, trials", sum(sizes.values())))
    items = [Item(f"{place}", [name, what, size(count)]) for place, (name, what, count) in enumerate(rows)]
    columns = [Column("Name", 160), Column("What it holds"), Column("Size", 110, right=True)]
    rows_view(items, columns, key="settings-home", label="What the home holds")
    free = shutil.disk_usage(home.root).free
    st.text(f"Together {size(sum(count for *_, count in rows))}; {size(free)} are free on that disk.")
    st.caption(
        "`rlmscope prune` removes old runs, `rlmscope backup DIR` copies the record. Keys are in no backup."
    )


def _sizes(root: Path) -> dict[str, int]:
    """Bytes by name of what lies directly in the home; what vanishes meanwhile counts nothing."""
    found: dict[str, int] = {}
    for folder, _, files in os.walk(root):
        inside = Path(folder).relative_to(root).parts
        for name in files:
            try:
                count = os.lstat(os.path.join(folder, name)).st_size
            except OSError:
                continue
            top = inside[0] if inside else name
            found[top] = found.get(top, 0) + count
    return found
