"""Tables as CSV files to take along."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

import streamlit as st

from traces.exporters.spreadsheet import cell


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """The rows under a line of names; None is an empty cell. A text that a spreadsheet would take for a
    formula begins with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([cell(row.get(name)) for name in columns] for row in rows)
    return out.getvalue()


def csv_button(columns: Sequence[str], rows: Sequence[Mapping[str, object]], *, key: str, name: str) -> None:
    """A button that downloads all rows as `name`.csv (ours)."""
    st.download_button(
        "CSV",
        lambda: csv_text(columns, rows).encode("utf-8", "backslashreplace"),
        file_name=f"{name}.csv",
        mime="text/csv",
        key=key,
        on_click="ignore",
        icon=":material/download:",
        help="All rows of this table, exact amounts, as a CSV file.",
    )
