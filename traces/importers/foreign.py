"""A run as the record of another engine tells it, before it is written down as one of ours.

Every number says how far it can be trusted (`rlm_core.semconv.TRUST`): reported by the record, derived from
what it reports, known to be wrong, or missing. Times are nanoseconds since the epoch, durations seconds,
money US dollars.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Generic, Literal, TypeVar

from rlm_core import semconv as sc
from rlm_core.telemetry import Attribute

Mark = Literal["reported", "derived", "known_wrong", "missing"]
T = TypeVar("T")
_LONG: Final = 8_000  # characters; attributes of all spans are read at once


@dataclass(frozen=True, slots=True)
class Told(Generic[T]):
    """A number with its mark, and a sentence about it where there is something to say.

    The value of one that is `known_wrong` is kept to be shown, and never counted.
    """

    value: T | None
    mark: Mark
    why: str | None = None


def reported(value: T, why: str | None = None) -> Told[T]:
    """A number that stands in the record."""
    return Told(value, "reported", why)


def derived(value: T, why: str | None = None) -> Told[T]:
    """A number that follows from others of the record; `why` says how."""
    return Told(value, "derived", why)


def known_wrong(value: T, why: str) -> Told[T]:
    """A number of the record that cannot be right; `why` says how that is known."""
    return Told(value, "known_wrong", why)


def missing(why: str | None = None) -> Told[T]:
    """A number that the record does not hold."""
    return Told(None, "missing", why)


@dataclass(frozen=True, slots=True)
class TokenUse:
    """Tokens of a call as billed: `input` includes what was read from and written to a cache, `output`
    reasoning."""

    input: int
    output: int
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


@dataclass(slots=True)
class ForeignSpan:
    """A span with those below it, in the order in which they happened.

    `attributes` are facts by the keys of `rlm_core.semconv`, without what the writer sets itself: kind, run
    path, depth, role, iteration and cell numbers, ordinals and hashes of calls, the phase of a cell, usage,
    cost, texts. `texts` are whole texts by payload prefix (`sc.PROMPT`, `sc.CODE`, ...). `messages` of a root
    call are all that were sent, as (role, text); None where the record does not say.
    `error` is (type, message) of a span that failed. `tokens` and `cost` count for calls only.
    """

    kind: sc.Kind
    name: str | None = None  # None: the usual name of its kind
    status: sc.Status = "ok"
    start: Told[int] = field(default_factory=missing)
    seconds: Told[float] = field(default_factory=missing)
    model: str | None = None
    attributes: dict[str, Attribute] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    messages: Sequence[tuple[str, str]] | None = None
    tokens: Told[TokenUse] = field(default_factory=missing)
    cost: Told[Decimal] = field(default_factory=missing)
    error: tuple[str, str] | None = None
    children: list[ForeignSpan] = field(default_factory=list)
    span_id: str | None = None  # 16 hex digits, where the record has such ids; else one is made

    def keep(self, name: str, value: str) -> None:
        """Keep what a record holds beside what is known of it: short as an attribute, long as a text, which
        is not read before it is asked for.
        """
        if len(value) > _LONG:
            self.texts[name] = value
        else:
            self.attributes[name] = value

    def walk(self) -> Iterator[ForeignSpan]:
        """This span and all below it, parents first."""
        waiting = [self]
        while waiting:
            span = waiting.pop()
            yield span
            waiting += reversed(span.children)


@dataclass(slots=True)
class ForeignRun:
    """One run of a source. `top` is its span of kind run, with question and answer among its texts.

    `format` is a key of `IMPORTERS`, `engine` the program that made it, with a version where the record says
    so ("rlms 0.1.3"). `key` is made of what its record holds, whatever a reader makes of that, and tells runs
    of one source apart that are equal in everything. `stem` names the states of a record that grows: how it
    begins, if no other run's record does so and that stays; None where nothing is known to, as in a record
    without any time or name, of which equal beginnings may be those of two runs.
    `missing` are sentences on what this record does not say, `problems` on what of it is unreadable.
    `closed` is False for a record that ends in the middle of the run.
    """

    format: str
    engine: str
    key: str
    top: ForeignSpan
    root_model: str | None = None
    sub_model: str | None = None
    missing: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    closed: bool = True
    stem: str | None = None
    trace_id: str | None = None  # 32 hex digits, where the record has such an id; else one is made


#: What everybody is told about a run without times.
NO_TIMES: Final = "The record holds no times: order is known, durations are not."
NO_CALLS: Final = (
    "Its code asks models, but the log holds none of these calls: not every environment logs them."
)
NO_PREDICTIONS: Final = "The code calls predict, and the engine recorded none of these calls."
#: Formats that hold every sub-call (fast-rlm: whatever code asks is a child run), but of runs of which one of
#: the sentences is said.
ALL_CALLS: Final = ("rlms", "fast-rlm", "predict-rlm")
NOT_ALL_CALLS: Final = (NO_CALLS, NO_PREDICTIONS)
