"""What a replay is asked for, and what came of it: the words that replay, diagnosis and their readers share.

Times are seconds, money is `Decimal` US dollars, None is "unknown". Design: replay modes and outcomes of
trials.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from traces.rows import money_json

Mode = Literal["strict", "recompute", "live", "frozen", "reask"]
Outcome = Literal["fixed", "moved", "unchanged", "reached_root", "undecided", "error"]
Status = Literal["replayable", "seed_dependent", "not_replayable"]

#: Mode -> what happens to a sub-call whose prompt the record does not hold, as a clause.
MODES: Final[dict[Mode, str]] = {
    "strict": "stops at the first prompt that the record does not hold",
    "recompute": "asks the model for every prompt that the record does not hold",
    "live": "asks the model for every sub-call again",
    "frozen": "gives every sub-call its old reply, whatever its prompt is now",
    "reask": "asks the root model again from the first turn in which it would have seen other output",
}
#: Outcome -> what it means, as a sentence.
OUTCOMES: Final[dict[Outcome, str]] = {
    "fixed": "The answer is now the one that it should be.",
    "moved": "The answer is another one, but not the one that it should be.",
    "unchanged": "The answer is the same as before.",
    "reached_root": "The root was shown other output than before, but the answer stands in its own code.",
    "undecided": "The record alone cannot tell.",
    "error": "The replay failed.",
}


@dataclass(frozen=True, slots=True)
class Patch:
    """A replaced response of a sub-call or child run, or the replaced code of a cell."""

    span_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Target:
    """The answer a replay should give: expected by a person or given by a good run; `how` they are compared
    (see `traces.opinions.HOW`).
    """

    text: str
    how: str = "normalised"
    origin: Literal["expected", "good run"] = "expected"


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent at most: replays, calls to a model (root and sub), dollars (None: no limit in
    dollars).
    """

    replays: int = 200
    live_calls: int = 0
    usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent so far; `usd` is None when a price is unknown."""

    replays: int = 0
    live_calls: int = 0
    usd: Decimal | None = Decimal(0)


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where a replay and its record part.

    `what` is shown (output as the root sees it), stdout, exception, call (another request), uncalled (a
    recorded call that was not made), cell (a cell that did not run as recorded) or answer. `cause` says the
    likely reason as a clause, where one can be told.
    """

    what: Literal["shown", "stdout", "exception", "call", "uncalled", "cell", "answer"]
    path: str = "0"
    iteration: int | None = None
    cell: int | None = None
    span_id: str | None = None
    old: str | None = None
    new: str | None = None
    cause: str | None = None

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {name: getattr(self, name) for name in Difference.__slots__}


@dataclass(frozen=True, slots=True)
class Replayability:
    """Whether a run without a patch comes out as recorded, in one sentence, and where it does not."""

    status: Status
    words: str
    difference: Difference | None = None
    warnings: tuple[str, ...] = ()  # such as libraries that changed since the record

    def to_json(self) -> dict[str, Any]:
        """All fields; `replayable` says whether verdicts may be drawn from replays."""
        return {
            "replayable": self.status == "replayable",
            "status": self.status,
            "words": self.words,
            "difference": None if self.difference is None else self.difference.to_json(),
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class Trial:
    """One replay and its outcome.

    `hits` counts sub-calls answered from the record, by a patch or from another record that was given;
    `misses` requests that none of them held; `live_calls` calls to a model, root calls included. `reached` is
    the first place where the root was shown something else; `shown` is all that it was shown, as (run path,
    cell, sha256), so that two trials can be compared. `influenced` are recorded spans that came out
    differently: sub-calls whose prompt changed, cells whose output changed. `assumed` are sentences.
    `stopped` says why it could not go on. `run_id` is set when it was recorded as a run.
    """

    patches: tuple[Patch, ...]
    mode: Mode
    outcome: Outcome
    answer: str | None
    original_answer: str | None
    how: str | None = None
    hits: int = 0
    misses: int = 0
    live_calls: int = 0
    cost_usd: Decimal | None = Decimal(0)
    seconds: float = 0.0
    reached: Difference | None = None
    differences: tuple[Difference, ...] = ()
    shown: tuple[tuple[str, int, str], ...] = ()
    influenced: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()  # spans whose equal requests were answered differently in the record
    assumed: tuple[str, ...] = ()
    stopped: str | None = None
    run_id: str | None = None

    @property
    def flipped(self) -> bool:
        """Whether anything came of it, as `rlmscope replay` says it."""
        return self.outcome != "unchanged"

    def to_json(self) -> dict[str, Any]:
        """The keys of `rlmscope replay`, without `replayable`, and more; texts whole."""
        return {
            "mode": self.mode,
            "match": self.how,
            "outcome": self.outcome,
            "flipped": self.flipped,
            "answer": self.answer,
            "original_answer": self.original_answer,
            "patches": [{"span_id": patch.span_id, "text": patch.text} for patch in self.patches],
            "hits": self.hits,
            "misses": self.misses,
            "live_calls": self.live_calls,
            "cost_usd": money_json(self.cost_usd),
            "seconds": round(self.seconds, 3),
            "reached": None if self.reached is None else self.reached.to_json(),
            "influenced": list(self.influenced),
            "ambiguous": list(self.ambiguous),
            "assumed": list(self.assumed),
            "stopped": self.stopped,
            "run_id": self.run_id,
        }
