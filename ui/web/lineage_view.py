"""From the answer back to where it comes from, as a strip: answer, cells, calls, passages."""

from __future__ import annotations

from traces.diagnosis_state import State
from ui.web.run_record import Record


def strip(record: Record, state: State) -> None:
    """Draw the way from the answer to the passages of a diagnosis."""
