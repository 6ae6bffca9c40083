"""What every reader sees of a run: `RunSummary`, `SpanRow`, and their JSON forms.

A running run (read from its spool) and a stored run (read from DuckDB) give equal rows.
Times are integer nanoseconds since the epoch, money is `Decimal` US dollars, None is "unknown".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple

CALL_KINDS: Final = ("root_call", "sub_call")
NUMBERS: Final = ("tokens", "cost", "start", "seconds")
MARKS: Final = ("reported", "derived", "known_wrong", "missing")
_UNTOLD: Final = ("known_wrong", "missing")
Tokens = dict[str, int]  # {"input", "output", "total"}


def money_json(amount: Decimal | None) -> str | None:
    """A plain decimal string without exponent and trailing zeros, or None for unknown."""
    if amount is None:
        return None
    text = format(amount, "f")
    return (text.rstrip("0").rstrip(".") or "0") if "." in text else text


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of a run list.

    `status` is running, ok, error, cancelled or interrupted. `cost_usd` is None when any call's cost is
    unknown; `known_usd` is then the lower bound and `cost_status` "unknown" or "partial". `complete` says
    that the run closed its own record and nothing is missing in it; `problems` counts records that are
    missing, unreadable or unusable. `started` is ISO 8601 in UTC ("" when not recorded), `seconds` wall time
    up to the last thing recorded. `replay_of` is the id of the run that this one plays again, if it does,
    `resumed_from` that of the dead run that it continues. `strategy` is None where the record does not say.
    `imported_from` names the format of the record of another engine that this run was read from, and
    `imported_file` the file. Of such a run `seconds` is None and `started` "" where its record does not say,
    `untold_calls` counts the calls whose tokens it does not say (those that it does not hold count as one,
    where some are known to lack or it holds no call at all): `tokens` are then the least of them; and
    `untold_sub_calls` says that it holds no sub-call, which does not say that there was none.
    `refused_sub_calls` counts those that a limit of the run refused: they never took place, and are neither
    among `sub_calls` nor among `failed_sub_calls`.
    """

    run_id: str
    question: str | None
    status: str
    answer: str | None
    stop_reason: str | None
    forced: bool
    root_model: str | None
    sub_model: str | None
    sub_calls: int
    failed_sub_calls: int
    iterations: int
    cost_usd: Decimal | None
    cost_status: str
    known_usd: Decimal
    tokens: Tokens
    started: str
    started_ns: int
    seconds: float | None
    sandbox: str | None
    corpus_id: str | None
    demo: bool
    complete: bool
    problems: int
    spans: int
    trace_id: str | None
    engine_version: str | None
    replay_of: str | None
    resumed_from: str | None
    strategy: str | None
    imported_from: str | None
    untold_calls: int = 0
    imported_file: str | None = None
    untold_sub_calls: bool = False
    refused_sub_calls: int = 0

    @property
    def has_gaps(self) -> bool:
        """Whether calls may lack in the record: what it cost is then not known."""
        return self.cost_usd is None and (self.problems > 0 or self.untold_calls > 0)

    @property
    def plays_a_record(self) -> bool:
        """Whether calls of this run may have been answered from the record of another one."""
        return self.replay_of is not None or self.resumed_from is not None

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values; money as decimal strings."""
        out = {name: getattr(self, name) for name in RunSummary.__slots__}
        out["cost_usd"] = money_json(self.cost_usd)
        out["known_usd"] = money_json(self.known_usd)
        return out


class SpanRow(NamedTuple):
    """One span. `iteration` and `cell` are inherited from the nearest ancestor of the same (child) run.

    `seq` is the number of its start record (rows are in this order). `orphan` says that `parent_id` names a
    span that is not in the record. `tokens["input"]` includes `cached_read` and `cache_write`.
    `response_chars` is None where no response was recorded. `attributes` are all recorded attributes; those
    of a stored run are loaded at first use. (A named tuple: ten thousand frozen dataclasses take twice the
    time of reading them.)

    A call that has not ended, or of which no end is on record, has the tokens of its attempts that ended.
    `so_far_usd` is what is known of their cost: a part of one that is not known. None for all other spans.
    `trust` is None where this engine recorded the span, else JSON: see `rlm_core.semconv.TRUST`.
    """

    run_id: str
    span_id: str
    parent_id: str | None
    seq: int
    kind: str
    name: str
    role: str | None
    depth: int
    status: str
    start_ns: int
    end_ns: int | None
    model: str | None
    model_returned: str | None
    tokens: Tokens | None
    cost_usd: Decimal | None
    cost_status: str | None
    iteration: int | None
    cell: int | None
    call_index: int | None
    phase: str | None
    preview: str | None
    orphan: bool
    error_type: str | None
    response_chars: int | None
    cached_read: int | None
    cache_write: int | None
    trust: str | None
    attributes: Mapping[str, Any]
    so_far_usd: Decimal | None = None

    @property
    def seconds(self) -> float | None:
        """Wall time, None while the span is open, when it was lost, and where its record does not say."""
        if self.end_ns is None or self.trusted.get("seconds") in _UNTOLD:
            return None
        return (self.end_ns - self.start_ns) / 1e9

    @property
    def trusted(self) -> dict[str, str]:
        """How far the numbers of this span can be trusted, by what they are; empty where this engine
        recorded it.
        """
        return marks(self.trust) if self.trust is not None else {}

    @property
    def start_told(self) -> bool:
        """Whether the record says when it began; else `start_ns` only keeps it in order."""
        return self.trusted.get("start") not in _UNTOLD

    @property
    def tokens_untold(self) -> bool:
        """Whether it is a call whose tokens the record of another engine does not say."""
        return self.trust is not None and self.tokens is None

    @property
    def own_tokens(self) -> Tokens | None:
        """Its own tokens: 0 where no model was asked or nothing is billed, None where unknown."""
        if self.tokens is None and (self.kind not in _ASKING or self.cost_status == "free"):
            return dict.fromkeys(("input", "output", "total"), 0)
        return self.tokens

    @property
    def is_child_run(self) -> bool:
        """Whether this is the span of a run that code of another run started."""
        return self.kind == "run" and self.parent_id is not None

    @property
    def phases(self) -> list[str]:
        """The phase of a cell, or those of an iteration's cells; none where none was recorded."""
        if self.phase is None:
            return []
        try:
            listed = json.loads(self.phase) if self.phase.startswith("[") else None
        except (ValueError, RecursionError):
            return [self.phase]
        texts = isinstance(listed, list) and all(isinstance(each, str) for each in listed)
        return listed if texts and listed is not None else [self.phase]

    def to_json(self) -> dict[str, Any]:
        """The keys of `rlmscope show` for one span (without attributes).

        `phase` is as it was recorded (of an iteration a JSON list in a text), `phases` the same as a list.
        `tokens` are the span's own: 0 where no model was asked or nothing is billed, null where unknown.
        """
        out = {name: getattr(self, name) for name in _SHOWN}
        out["phases"] = self.phases
        out["trust"] = None if self.trust is None else self.trusted
        out["tokens"] = self.own_tokens
        out["cost_usd"] = money_json(self.cost_usd)
        return out


_ASKING = ("root_call", "sub_call", "attempt", "tool")
_SHOWN = tuple(name for name in SpanRow._fields if name not in ("attributes", "so_far_usd"))


@lru_cache(maxsize=256)
def marks(trust: str) -> dict[str, str]:
    """The marks of `rlm_core.semconv.TRUST`; what is none is left out."""
    try:
        said = json.loads(trust)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(said, dict):
        return {}
    return {name: mark for name, mark in said.items() if name in NUMBERS and mark in MARKS}


def ended_attempts(rows: Iterable[SpanRow]) -> dict[str, list[SpanRow]]:
    """The attempts that ended, by the id of a call that did not and has no cost of its own."""
    found: dict[str, list[SpanRow]] = {}
    tries: list[SpanRow] = []
    for row in rows:
        if row.end_ns is None and row.cost_usd is None and row.kind in CALL_KINDS:
            found[row.span_id] = []
        elif row.kind == "attempt" and row.end_ns is not None:
            tries.append(row)
    for row in tries if found else ():
        if row.parent_id in found:
            found[row.parent_id].append(row)
    return found


def so_far(attempts: Iterable[SpanRow]) -> Decimal | None:
    """What is known of the cost of these attempts; None where nothing is."""
    known = [attempt.cost_usd for attempt in attempts if attempt.cost_usd is not None]
    return sum(known, Decimal(0)) if known else None
