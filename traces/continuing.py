"""What a resumed run takes from the record of the dead one: everything up to where that record ends.

Root turns, replies of sub-calls and child runs, and what `budget()` said are served; cells run again. Past
the end of the record the engine does the real thing. A cell that did not come to its end is run anew with
those of its calls that were answered; what failed in it is asked again, since nobody has seen that yet.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rlm_core.lm_handler import Completion, Request
from rlm_core.playback import Place, PlaybackStopped, Played, Summed
from rlm_core.telemetry import sha256_text
from rlm_core.wire import CellReport
from traces.program import Program, RecordedCall, RecordedCell, Reply

Where = tuple[str, int]  # run path, and cell or iteration
_UNANSWERED = ("cancelled", "record")  # kinds of errors that no model and no limit gave


@dataclass
class Continuing:
    """The `rlm_core.playback.Playback` of one resumed run. `texts` gives payloads of the record, `struck` are
    cells that the record has to its end but that are run as if it had not: a limit refused their calls.

    Where a cell comes out otherwise than recorded, the recorded turns after it were written for something
    else: the run stops there, or (`anyway`) the root is asked anew from there on.
    """

    program: Program
    texts: Callable[[str], str | None]
    struck: frozenset[Where] = frozenset()
    anyway: bool = False
    served_calls: int = 0
    served_turns: int = 0
    diverged: str | None = None  # where, in one sentence
    _left: set[str] = field(default_factory=set)  # run paths on which the record no longer holds
    _served: set[str] = field(default_factory=set)  # span ids
    _budgets: Counter[Where] = field(default_factory=Counter)
    _fresh: Counter[str] = field(default_factory=Counter)
    _skipped: list[int] = field(default_factory=list)  # cells that are not run again

    def __post_init__(self) -> None:
        self._calls: dict[tuple[str, int, str], list[RecordedCall]] = defaultdict(list)
        for call in sorted(self.program.calls.values(), key=lambda call: call.key[3]):
            self._calls[call.key[:3]].append(call)
        self._paths = {path for path, _ in (*self.program.turns, *self.program.cells)}
        self._paths |= {call.child_path for call in self.program.calls.values() if call.child_path}

    # -- the root

    def turn(self, path: str, iteration: int, forced: bool) -> Completion | None:
        """The recorded reply. One that a limit forced was never the root's own choice: it is not served."""
        self._check()
        turn = None if path in self._left else self.program.turns.get((path, iteration))
        if turn is None or turn.forced or forced:
            return None
        self.served_turns += 1
        return Completion(turn.text, turn.finish_reason)

    def summary(self, path: str, iteration: int) -> Summed | None:
        """The recorded one, as long as the record holds."""
        return None if path in self._left else self.program.summaries.get((path, iteration))

    def root_beside(self) -> None:
        """Any model may be asked here."""

    # -- cells

    def cell(self, path: str, iteration: int, number: int) -> str | None:
        """What the root was shown of a cell that was killed or interrupted: it would be again."""
        recorded = self._whole(path, number)
        if recorded is None or recorded.again:
            return None
        self._skipped.append(number)
        return self.texts(recorded.shown or "") or ""

    def ran(self, path: str, number: int, report: CellReport | None, shown: str) -> None:
        """Whether what came of a cell is what the recorded turns after it were written for."""
        recorded = self._whole(path, number)
        if recorded is None or sha256_text(shown) == recorded.shown:
            return
        if (path, recorded.iteration + 1) in self.program.turns:
            self._part(path, number, "shows the root something else than it did")

    # -- calls

    def sub_call(self, place: Place, request: Request, prompt_hash: str) -> Played | None:
        """The recorded reply to the next equal request of its cell, None to ask the model."""
        return self._reply(place, request.request_hash)

    def child(self, place: Place, key: tuple[str, int], question_hash: str | None) -> Played | None:
        """The recorded answer of a child run; one that did not come to its end is played from its start."""
        if question_hash is None:
            return None
        if self._whole(place.path, place.cell) is not None and not self._open(place, key[0]):
            refused = self.program.turned_away(place.path, place.cell, question_hash, place.ordinal)
            if refused is not None:
                return self._serve(None, refused)
        return self._reply(place, key[0])

    def child_path(self, place: Place, key: tuple[str, int]) -> str:
        """The path of the recorded child run that goes on, else one that the record does not have."""
        for call in self._open(place, key[0]):
            if call.child_path is not None:
                self._served.add(call.span_id)
                return call.child_path
        while True:
            self._fresh[place.path] += 1
            path = f"{place.path}.{self._fresh[place.path]}"
            if path not in self._paths:
                return path

    def answered(self, request: Request, prompt_hash: str, reply: dict[str, Any]) -> None:
        """The run keeps its own record of it."""

    def refused(self, why: str) -> None:
        """The limits hold as in any run."""

    def unsent(self) -> None:
        """The ledger of the run knows."""

    def budget(self, path: str, cell: int) -> dict[str, Any] | None:
        """The next recorded reply of `budget()` in a cell, unless limits that hold no longer were told of."""
        where = (path, cell)
        if path in self._left or where in self.struck:
            return None
        replies, at = self.program.budgets.get(where, ()), self._budgets[where]
        self._budgets[where] += 1
        return replies[at] if at < len(replies) else None

    # -- inside

    def _whole(self, path: str, number: int) -> RecordedCell | None:
        """The recorded cell, if the record has it to its end and still holds on its path."""
        cell = self.program.cells.get((path, number))
        known = cell is not None and cell.ended and (path, number) not in self.struck
        return cell if known and path not in self._left else None

    def _open(self, place: Place, digest: str) -> list[RecordedCall]:
        """Recorded calls with this request in this cell that were not served yet."""
        calls = self._calls.get((place.path, place.cell, digest), ())
        return [call for call in calls if call.span_id not in self._served]

    def _reply(self, place: Place, digest: str) -> Played | None:
        self._check()
        whole = self._whole(place.path, place.cell) is not None
        calls = self._open(place, digest)
        for call in calls:
            if call.reply is not None and _counts(call.reply, whole):
                return self._serve(call, call.reply)
        if whole and not calls:
            self._part(place.path, place.cell, "makes a call that its record does not hold")
            self._check()
        return None

    def _serve(self, call: RecordedCall | None, reply: Reply) -> Played:
        self.served_calls += 1
        if call is not None:
            self._served.add(call.span_id)
        return Played(reply)

    def _part(self, path: str, number: int, what: str) -> None:
        """The record holds no longer on a path."""
        self._left.add(path)
        child = "" if path == "0" else f" of child run {path}"
        lost = ", ".join(str(number) for number in self._skipped[:5])
        why = f" (what cell {lost}, killed or interrupted, had set is gone)" if lost else ""
        self.diverged = self.diverged or f"cell {number}{child}, run again, {what}{why}"

    def _check(self) -> None:
        if self.diverged is not None and not self.anyway:
            _stop(
                f"{self.diverged}, so the recorded turns after it do not fit; --anyway asks anew from there"
            )


def _counts(reply: Reply, whole: bool) -> bool:
    """Whether a recorded reply is served: in a cell that came to its end every one that code acted on, else
    answers only.
    """
    return "err" not in reply or (whole and reply["err"] not in _UNANSWERED)


def _stop(why: str) -> NoReturn:
    raise PlaybackStopped(why)
