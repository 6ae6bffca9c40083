"""The seam through which a recorded run is played again by the same engine.

A run with a `Playback` asks it before it asks a model or runs a cell. What it knows is taken, marked as
served on its span and billed to nobody; where it answers None the engine does the real thing.
`traces.replay` makes one out of a record; the engine knows nothing of records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from rlm_core.errors import RLMScopeError
from rlm_core.lm_handler import Completion, Request
from rlm_core.wire import CellReport


class PlaybackStopped(RLMScopeError):
    """The run cannot be played any further: the message says what its record does not hold."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call stands: the run path and cell that make it, its ordinal in the cell by submission."""

    path: str
    cell: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class Played:
    """A reply as code gets it, `{"ok": text}` or `{"err": kind, "msg": text}`, and where it came from."""

    reply: dict[str, Any]
    source: str = "record"  # record | patch


@dataclass(frozen=True, slots=True)
class Summed:
    """The reply of a root that was asked to sum up its oldest turns, and how many those were."""

    completion: Completion
    turns: int


class Playback(Protocol):
    """What a run that is played again takes from its record. Any method may raise `PlaybackStopped`."""

    def turn(self, path: str, iteration: int, forced: bool) -> Completion | None:
        """The root's reply in a turn; raises `LimitReached` or `TimeoutError` where the recorded run was
        stopped by a limit before this turn.
        """
        ...

    def summary(self, path: str, iteration: int) -> Summed | None:
        """The summary of older turns that was made before a turn, None when none is on record."""
        ...

    def root_beside(self) -> None:
        """A root call that is no turn is about to be asked of a model."""
        ...

    def cell(self, path: str, iteration: int, number: int) -> str | None:
        """What the root was shown of a cell that is not to be run again, None to run it."""
        ...

    def ran(self, path: str, number: int, report: CellReport | None, shown: str) -> None:
        """What came of a cell: its report (None: the worker died in it) and what the root is shown."""
        ...

    def sub_call(self, place: Place, request: Request, prompt_hash: str) -> Played | None:
        """The reply of a sub-call."""
        ...

    def answered(self, request: Request, prompt_hash: str, reply: dict[str, Any]) -> None:
        """A model has answered a sub-call that was not served."""
        ...

    def refused(self, why: str) -> None:
        """The budget allows no call that a model would have to answer."""
        ...

    def unsent(self) -> None:
        """A call that was not served has ended before its first attempt: no model was asked."""
        ...

    def child(self, place: Place, key: tuple[str, int], question_hash: str | None) -> Played | None:
        """The answer of a child run (`key`: its request hash and occurrence) that need not run again.

        `question_hash` None: its question cannot be read or is too large, and it will be turned away.
        """
        ...

    def child_path(self, place: Place, key: tuple[str, int]) -> str:
        """The run path of a child run that is to run: the recorded one, or one that is not in the record."""
        ...

    def budget(self, path: str, cell: int) -> dict[str, Any] | None:
        """The next reply of `budget()` in a cell."""
        ...
