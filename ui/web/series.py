"""Runs that one process carries out in turn: a question asked several times, or by several strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from traces.home import Home, is_run_id
from traces.locks import is_held
from traces.reading import RunSummary, list_runs
from ui.web import launch
from ui.web.notices import Colour
from ui.web.order import StartFiles
from ui.web.run_words import COLOURS, status_word

MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Member:
    """A run of a series. `summary` is None while nothing of it is recorded; then it may still `wait`."""

    run_id: str
    summary: RunSummary | None
    waits: bool

    @property
    def at_work(self) -> bool:
        """Whether more is to come of it."""
        return self.waits if self.summary is None else self.summary.status == "running"

    @property
    def word(self) -> tuple[str, Colour]:
        """How it stands, as a badge."""
        if self.summary is None:
            return ("waiting", "gray") if self.waits else ("not started", "orange")
        word = status_word(self.summary)
        return word, COLOURS[word]


def ids_of(text: str) -> tuple[str, ...]:
    """The run ids of an address, each once; what can be none is left out, as are those beyond `MOST`."""
    return tuple(dict.fromkeys(one for one in text.split(",") if is_run_id(one)))[:MOST]


def members(home: Home, run_ids: Sequence[str]) -> list[Member]:
    """How the runs of a series stand, in their order. Raises RecordError."""
    if not run_ids:
        return []
    # in this order: a run whose process has ended is on record by now
    alive = is_held(StartFiles(home, run_ids[0]).lock)
    known = {run.run_id: run for run in list_runs(home, replays=True)}
    return [Member(run_id, known.get(run_id), alive) for run_id in run_ids]


def failure(home: Home, run_ids: Sequence[str]) -> str | None:
    """The sentence that the process of a series left, if it failed."""
    return launch.launch_state(home, run_ids[0]).error if run_ids else None
