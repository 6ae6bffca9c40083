"""Spool records -> span rows. The ingester and the live reader both use it, so both see the same rows.

Records are untrusted: whatever cannot be used is left out and counted in `problems`, nothing raises.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.pricing import DEMO_PREFIX
from rlm_core.telemetry import sha256_text
from traces.facts import LARGEST, Facts, token_counts
from traces.rows import SpanRow, ended_attempts, so_far
from traces.spool import Line, Record, payload_text, read_record

_END_STATUSES: Final = ("ok", "error", "cancelled", "lost")
_RUN_STATUSES: Final = ("ok", "error", "cancelled")
_SCALARS: Final = frozenset((str, int, float, bool, type(None)))
_SIDES: Final = ("input", "output")
_ROLES: Final = {"root_call": "root", "sub_call": "sub"}
#: Event -> facts of its span, and their type, that are known only after the span has ended.
_LATE: Final[dict[str, dict[str, type]]] = {
    sc.EV_SOURCES: {sc.SOURCE_RANGES: str, sc.SHOWN_RANGES: str},
    sc.EV_PLACED: {
        sc.KIND: str, sc.ROLE: str, sc.RUN_PATH: str, sc.DEPTH: int, sc.ITERATION: int, sc.CELL: int,
        sc.CALL_INDEX: int, sc.CALL_ORDINAL: int, sc.CALL_OCCURRENCE: int, sc.PHASE: str,
    },
    sc.EV_REPLAY: {
        sc.REPLAY_OUTCOME: str, sc.REPLAY_STOPPED: str, sc.REPLAY_ASSUMED: str,
        sc.REPLAY_HITS: int, sc.REPLAY_MISSES: int, sc.REPLAY_LIVE_CALLS: int,
    },
}  # fmt: skip
#: Facts that an event of the kind `sc.EV_PLACED` can change.
PLACED: Final = frozenset(_LATE[sc.EV_PLACED])


@dataclass(frozen=True, slots=True)
class PayloadPlace:
    """Where a payload's record stands in its spool, and how long its text is."""

    offset: int
    length: int
    chars: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened inside a span."""

    span_id: str
    seq: int
    name: str
    time_ns: int
    attributes: dict[str, Any]


@dataclass(slots=True)
class _Span:
    seq: int
    span_id: str
    parent_id: str | None
    kind: str
    name: str
    start_ns: int
    attributes: dict[str, Any]
    end_ns: int | None = None
    status: str | None = None


@dataclass(slots=True)
class Header:
    """What the first record says about the run's process."""

    trace_id: str | None = None
    started_ns: int | None = None
    pid: int | None = None
    host: str | None = None
    engine_version: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


class _Unusable(Exception):
    """This record cannot be used."""


class Fold:
    """Takes the lines of one spool in order; gives its spans, payload places and events at any time."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.header = Header()
        self.payloads: dict[str, PayloadPlace] = {}
        self.events: list[Event] = []
        self.final_status: str | None = None
        self.first: PayloadPlace | None = None  # where the first record stands, to be read again by `amend`
        self.last_ns: int | None = None  # the latest time in any record
        self._spans: dict[str, _Span] = {}
        self._next_seq = 0
        self._unreadable = 0  # lines since the last readable record
        self._missing = 0  # records that the writer numbered and that are not there
        self._unwritten = 0  # records that the writer says it could not write
        self._lost_status: str | None = None  # of a run whose last record could not be written
        self._rejected = 0

    def feed(self, line: Line) -> str | None:
        """Take one line. For a payload that is new to the run its text is returned."""
        record = line.record
        if record is None:
            self._unreadable += 1
            return None
        seq = record["seq"]
        if seq < self._next_seq or self.final_status is not None:
            self._rejected += 1
            return None
        # an unreadable line is the very record whose number is missing
        self._missing += max(seq - self._next_seq, self._unreadable)
        self._next_seq, self._unreadable = seq + 1, 0
        try:
            return self._take(record, line)
        except _Unusable:
            self._rejected += 1
            return None

    def amend(self, first: Record | None) -> None:
        """Take note of what the writer added to the first record since it was fed: see `SpoolWriter`."""
        with suppress(_Unusable):
            self._lost(first or {})

    @property
    def status(self) -> str | None:
        """How the run ended, as far as its record says so."""
        return self.final_status or self._lost_status

    @property
    def problems(self) -> int:
        """Records that are missing, unreadable or unusable; `span_rows` adds unusable facts of spans."""
        return max(self._missing + self._unreadable, self._unwritten) + self._rejected

    def span_rows(self, *, alive: bool) -> tuple[tuple[SpanRow, ...], int]:
        """All spans in seq order, and the number of problems with them included.

        Open spans are `running` while the run's process lives (`alive`) and `lost` when it is gone.
        """
        # an empty spool lacks at least its first record
        unusable = int(not alive and self._next_seq == 0 and not self._unreadable and not self._rejected)
        rows: dict[str, SpanRow] = {}
        for span in self._ordered():
            facts = Facts(span.attributes)
            parent = rows.get(span.parent_id) if span.parent_id is not None else None
            rows[span.span_id] = self._row(span, facts, parent, alive)
            unusable += facts.unusable
        for call, attempts in ended_attempts(rows.values()).items():
            told = [attempt.tokens for attempt in attempts if attempt.tokens is not None]
            row, tokens = rows[call], token_counts(*(sum(one[side] for one in told) for side in _SIDES))
            rows[call] = row._replace(
                tokens=tokens if told and row.tokens is None else row.tokens, so_far_usd=so_far(attempts)
            )
        return tuple(rows.values()), self.problems + unusable

    @property
    def _as_they_came(self) -> bool:
        """Whether spans stand in the order in which they came (`sc.IMPORT_ORDER`), so that what is known of
        one may change: the last start and end record of a span count.
        """
        return self.header.facts.get(sc.IMPORT_ORDER) == "arrival"

    def _ordered(self) -> Iterable[_Span]:
        """The spans as they started. Where they stand as they came, each is put behind its parent and what
        started before it, and numbered anew.
        """
        if not self._as_they_came:
            return self._spans.values()
        below: dict[str | None, list[_Span]] = {}
        for span in sorted(self._spans.values(), key=lambda span: span.start_ns, reverse=True):
            below.setdefault(span.parent_id if span.parent_id in self._spans else None, []).append(span)
        waiting, found = below.pop(None, []), list[_Span]()
        while waiting or below:
            if not waiting:  # parents that lead round in a circle
                waiting = below.pop(next(iter(below)))
            span = waiting.pop()
            found.append(span)
            waiting += below.pop(span.span_id, [])
        return [replace(span, seq=number) for number, span in enumerate(found)]

    def _row(self, span: _Span, facts: Facts, parent: SpanRow | None, alive: bool) -> SpanRow:
        depth, iteration, cell = _place(facts, parent)
        role = facts.text(sc.ROLE)
        model = facts.text(sc.REQUEST_MODEL) or facts.text(sc.OI_MODEL)
        cost_usd, cost_status = facts.cost()
        if cost_status is None and span.kind in (*_ROLES, "attempt"):
            cost_usd, cost_status = _unsaid_cost(span, model)
        return SpanRow(
            run_id=self.run_id,
            span_id=span.span_id,
            parent_id=span.parent_id,
            seq=span.seq,
            kind=span.kind,
            name=span.name,
            role=role if role in ("root", "sub") else _ROLES.get(span.kind),
            depth=depth,
            status=span.status or ("running" if alive else "lost"),
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            model=model,
            model_returned=facts.text(sc.RESPONSE_MODEL),
            tokens=facts.tokens(),
            cost_usd=cost_usd,
            cost_status=cost_status,
            iteration=iteration,
            cell=cell,
            call_index=facts.count(sc.CALL_INDEX),
            phase=facts.text(sc.PHASE),
            preview=facts.preview(span.kind),
            orphan=span.parent_id is not None and span.parent_id not in self._spans,
            error_type=facts.text(sc.ERROR_TYPE),
            response_chars=facts.count(sc.RESPONSE + ".chars"),
            cached_read=facts.count(sc.USAGE_CACHE_READ),
            cache_write=facts.count(sc.USAGE_CACHE_WRITE),
            trust=facts.text(sc.TRUST),
            attributes=span.attributes,
        )

    def _take(self, record: Record, line: Line) -> str | None:
        kind = record["kind"]
        if kind == "b":
            return self._payload(record, line)
        if kind == "fin":
            self._fin(record)
            return None
        takers = {"run": self._run, "s": self._start, "e": self._end, "ev": self._event}
        if kind not in takers:
            raise _Unusable
        takers[kind](record, line.escaped)
        if kind == "run":
            self.first = PayloadPlace(line.offset, line.length, 0)
            self._lost(record)
        return None

    def _run(self, record: Record, escaped: bool) -> None:
        if record["seq"] != 0 or record.get("run_id") != self.run_id:
            raise _Unusable
        self.header = Header(
            trace_id=_optional_text(record, "trace_id"),
            started_ns=self._time(record, "started_ns"),
            pid=_optional_count(record, "pid"),
            host=_optional_text(record, "host"),
            engine_version=_optional_text(record, "engine_version"),
            facts=_attributes(record.get("facts", {}), escaped),
        )

    def _start(self, record: Record, escaped: bool) -> None:
        span_id, parent_id = _text(record, "span_id"), _optional_text(record, "parent_id")
        kind, name = record.get("span_kind"), _text(record, "name")
        attributes = _attributes(record.get("a", {}), escaped)
        known = self._spans.get(span_id)
        if (known is not None and not self._as_they_came) or kind not in sc.KINDS:
            raise _Unusable
        start = self._time(record, "t")
        span = _Span(record["seq"], span_id, parent_id, kind, name, start, attributes)
        if known is not None:  # said anew, when what stands around it had come
            span.seq, span.end_ns, span.status = known.seq, known.end_ns, known.status
        self._spans[span_id] = span

    def _end(self, record: Record, escaped: bool) -> None:
        span = self._spans.get(_text(record, "span_id"))
        status, attributes = record.get("status"), _attributes(record.get("a", {}), escaped)
        if span is None or status not in _END_STATUSES:
            raise _Unusable
        if span.status is not None and not self._as_they_came:
            raise _Unusable
        end = self._time(record, "t")
        span.status, span.end_ns = status, max(end, span.start_ns)
        span.attributes = {**span.attributes, **attributes}
        if end < span.start_ns:
            self._rejected += 1  # time ran backwards: the span is kept with no duration

    def _event(self, record: Record, escaped: bool) -> None:
        span_id, name = _text(record, "span_id"), _text(record, "name")
        attributes = _attributes(record.get("a", {}), escaped)
        time_ns = self._time(record, "t")
        if name == sc.EV_WITHDRAWN and self._as_they_came:
            self._spans.pop(span_id, None)
        elif name in _LATE:
            self._late(span_id, attributes, _LATE[name])
        else:
            self.events.append(Event(span_id, record["seq"], name, time_ns, attributes))

    def _late(self, span_id: str, attributes: dict[str, Any], known: dict[str, type]) -> None:
        """What was found out after the end of a span: it is a fact of it, no event."""
        found = {key: value for key, kind in known.items() if type(value := attributes.get(key)) is kind}
        span = self._spans.get(span_id)
        if span is None or not found:
            raise _Unusable
        kind = str(found.get(sc.KIND, span.kind))
        if kind not in sc.KINDS:
            raise _Unusable
        span.kind = kind
        span.attributes = {**span.attributes, **found}

    def _payload(self, record: Record, line: Line) -> str | None:
        sha256, text = _text(record, "sha256"), payload_text(record)
        if text is None or sha256_text(text) != sha256:
            raise _Unusable
        if sha256 in self.payloads:
            return None
        self.payloads[sha256] = PayloadPlace(line.offset, line.length, len(text))
        return printable(text)

    def _fin(self, record: Record) -> None:
        status, unwritten = record.get("status"), record.get("problems", 0)
        if status not in _RUN_STATUSES or type(unwritten) is not int or not 0 <= unwritten < LARGEST:
            raise _Unusable
        self._time(record, "t")
        self.final_status = status
        self._unwritten = max(self._unwritten, unwritten)

    def _lost(self, first: Record) -> None:
        lost = first.get("lost")
        if lost is None:
            return
        records = lost.get("records") if isinstance(lost, dict) else None
        if type(records) is not int or not 0 <= records < LARGEST:
            raise _Unusable
        self._unwritten = max(self._unwritten, records)
        if lost.get("status") in _RUN_STATUSES:
            self._time(lost, "t")
            self._lost_status = lost["status"]

    def _time(self, record: Record, key: str) -> int:
        value = record.get(key)
        if type(value) is not int or not 0 <= value < LARGEST:
            raise _Unusable
        self.last_ns = value if self.last_ns is None else max(self.last_ns, value)
        return value


def _unsaid_cost(span: _Span, model: str | None) -> tuple[Decimal | None, str | None]:
    """Cost and status of a call or attempt of which the record says neither: it may not have ended."""
    if model is not None and model.startswith(DEMO_PREFIX):  # costs nothing, whatever became of it
        return Decimal(0), "demo"
    return None, "unknown" if span.kind in _ROLES else None


def _place(facts: Facts, parent: SpanRow | None) -> tuple[int, int | None, int | None]:
    """Depth, iteration and cell of a span: its parent's, unless it says otherwise."""
    depth, iteration, cell = facts.count(sc.DEPTH), facts.count(sc.ITERATION), facts.count(sc.CELL)
    if parent is None:
        return depth or 0, iteration, cell
    if parent.kind != "run":  # below a run, iterations and cells start anew
        iteration = parent.iteration if iteration is None else iteration
        cell = parent.cell if cell is None else cell
    return parent.depth if depth is None else depth, iteration, cell


def spool_text(path: Path, fold: Fold, sha256: str) -> str | None:
    """The text of a payload out of its spool, as readers see it; None when it is not there."""
    place = fold.payloads.get(sha256)
    record = read_record(path, place.offset, place.length) if place is not None else None
    text = payload_text(record) if record is not None else None
    return printable(text) if text is not None else None


def printable(text: str) -> str:
    """The text with lone surrogates as backslash escapes: they can be neither stored nor printed."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _text(record: Record, key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise _Unusable
    return printable(value)


def _optional_text(record: Record, key: str) -> str | None:
    return None if record.get(key) is None else _text(record, key)


def _optional_count(record: Record, key: str) -> int | None:
    value = record.get(key)
    if value is not None and (type(value) is not int or not 0 <= value < LARGEST):
        raise _Unusable
    return value


def _attributes(raw: object, escaped: bool) -> dict[str, Any]:
    """Attributes as OpenTelemetry allows them: scalars and flat lists of scalars under string keys."""
    if not isinstance(raw, dict):
        raise _Unusable
    if not escaped and set(map(type, raw.values())) <= _SCALARS:
        return raw
    return {printable(key): _value(value) for key, value in raw.items()}


def _value(value: object) -> object:
    if isinstance(value, str):
        return printable(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list) and not any(isinstance(item, list | dict) for item in value):
        return [printable(item) if isinstance(item, str) else item for item in value]
    raise _Unusable
