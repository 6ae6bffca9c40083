"""The list of runs as rows of a table: filtered, every value safe to show."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from traces.reading import RunSummary
from ui.figures import duration
from ui.web.listing import moment
from ui.web.run_words import cost_words, status_word

_TEXT_SHOWN: Final = 300  # characters of a question or answer in a cell


def matching(runs: Iterable[RunSummary], text: str, status: str | None) -> list[RunSummary]:
    """The runs of a status (None: any) in which every word of `text` occurs, whatever its case.

    Words are looked for in question, answer, models and run id.
    """
    words = text.casefold().split()
    return [
        run
        for run in runs
        if status in (None, status_word(run)) and all(word in _searched(run) for word in words)
    ]


def _searched(run: RunSummary) -> str:
    fields = (run.question, run.answer, run.root_model, run.sub_model, run.run_id)
    return "\n".join(field for field in fields if field).casefold()


def row(run: RunSummary, zone: str | None) -> dict[str, Any]:
    """One run as a row; `zone` names the time zone in which its start is told (None: UTC)."""
    return {
        "Status": status_word(run),
        "Question": _short(run.question or "(not recorded)"),
        "Answer": _answer(run),
        "Models": f"{run.root_model or '?'} / {run.sub_model or '?'}",
        "Sub-calls": run.sub_calls,
        "Failed": run.failed_sub_calls,
        "Cost": cost_words(run),
        "Time": duration(run.seconds),
        "Started": started(run, zone),
    }


def _answer(run: RunSummary) -> str:
    if run.answer is not None:
        remarks = ("forced, " if run.forced else "") + ("record incomplete, " if not run.complete else "")
        return (f"({remarks[:-2]}) " if remarks else "") + _short(run.answer)
    return "" if run.status == "running" else "(no answer)"


def _short(text: str) -> str:
    return " ".join(text[: _TEXT_SHOWN * 2].split())[:_TEXT_SHOWN]


def started(run: RunSummary, zone: str | None) -> str:
    """When a run started, `2027-01-15 09:00` in the given time zone; unknown when it is not recorded."""
    if not run.started_ns:
        return "unknown"
    return moment(datetime.fromtimestamp(run.started_ns // 10**9, UTC), zone)
