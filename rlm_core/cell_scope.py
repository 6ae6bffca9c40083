"""The cell that is running, as the calls that it makes see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlm_core.telemetry import RunSpan

if TYPE_CHECKING:
    from rlm_core.sub_calls import SubCalls

REFUSALS_PER_CELL: Final = 8
HOST_REPLIES_PER_CELL: Final = 1_000
TURNED_AWAY_PER_CELL: Final = 1_000


@dataclass
class CellScope:
    """The cell that is running: parent of the spans of its calls."""

    number: int
    span: RunSpan
    host: SubCalls
    interrupt: Callable[[str], None]
    ended: bool = False
    submitted: int = 0
    refusals: int = 0  # by the budget
    turned_away: int = 0  # for other reasons, before they were requests
    host_replies: int = 0

    def note_host_reply(self) -> None:
        """Each is recorded, so a cell that asks for ever is stopped."""
        self.host_replies += 1
        if self.host_replies == HOST_REPLIES_PER_CELL:
            self.interrupt(f"budget() was called {HOST_REPLIES_PER_CELL:,} times")

    def note_refusal(self) -> None:
        """A refused call costs nothing, so a cell that asks again and again is stopped."""
        self.refusals += 1
        if self.refusals == REFUSALS_PER_CELL:
            # of a batch, others may have been asked for already: they are refused too
            self.interrupt(f"{REFUSALS_PER_CELL} or more sub-calls refused by the budget")

    def note_turned_away(self) -> None:
        """The same for calls that can never be answered, such as those that name a foreign model."""
        self.turned_away += 1
        if self.turned_away == TURNED_AWAY_PER_CELL:
            self.interrupt(f"{TURNED_AWAY_PER_CELL:,} sub-calls could not be made")
