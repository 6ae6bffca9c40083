"""A foreign run written as a spool of a home: whole or not at all, once for each thing that is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.errors import RecordError
from rlm_core.pricing import PriceTable
from rlm_core.telemetry import Attribute, as_json, preview, sha256_text
from traces.facts import LARGEST
from traces.home import Home
from traces.importers.foreign import ForeignRun, ForeignSpan, Told
from traces.importers.names import Names
from traces.importers.placing import (
    Codes,
    Place,
    RunPlace,
    facts_of,
    name_of,
    numbers,
    phases,
    previews,
    tidy,
)
from traces.spool import FORMAT, Record, SpoolWriter

_STEP_NS: Final = 1_000  # between spans whose times nobody reported: they stand in order


@dataclass(frozen=True, slots=True)
class Written:
    """A run of a source in the home: `new` is False when it was there already. `missing` and `problems` are
    what its record does not say, and what of it is unreadable, in sentences.
    """

    run_id: str
    new: bool
    missing: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    engine: str = "unknown"
    question: str | None = None


def write_run(
    home: Home, run: ForeignRun, file_name: str, otherwise_ns: int, names: Names | None = None
) -> Written:
    """Put a run into the spool of a home. `file_name` says where it comes from; `otherwise_ns` is when it
    began where its record does not say. Who writes many runs gives the `names` of the home to all of them.

    Raises RecordError when it cannot be written.
    """
    for span in run.top.walk():
        tidy(span)
    names = Names(home) if names is None else names
    key, prices = _key_of(run), names.prices
    started = _time(run.top.start.value, otherwise_ns)

    def records(run_id: str) -> Iterator[Record]:
        return run_records(run, run_id, started, key, file_name, prices)

    status = run.top.status if run.closed else None
    run_id, new = put(names, lambda: names.free(started, key), records, status)
    question = run.top.texts.get(sc.QUESTION)
    return Written(run_id, new, tuple(run.missing), tuple(run.problems), run.engine, question)


def run_records(
    run: ForeignRun, run_id: str, started_ns: int, key: str, file_name: str, prices: PriceTable,
    codes: Codes | None = None,
) -> Iterator[Record]:  # fmt: skip
    """All records of a run but the last one, for spans that are tidy. `key` says what it was read from;
    `codes` keeps what was read of its cells for the next time.
    """
    header = _header(run, run_id, started_ns, key, file_name)
    return _Records(run, run_id, started_ns, key, prices, codes).all(header)


def put(
    names: Names, claim: Callable[[], tuple[str, bool]], records: Callable[[str], Iterator[Record]],
    status: str | None,
) -> tuple[str, bool]:  # fmt: skip
    """Write the records of a run as a spool that is closed with `status`; None: it has no last record, and
    counts as interrupted. The file appears when it is whole.

    `claim` says the id and whether the run is there already; it is asked again before the file gets its
    name, when no other import can bring the run. Returns the id, and whether the run is new. Raises
    RecordError when it cannot be written.
    """
    while True:
        run_id, there = claim()
        if there or _written(names, run_id, records(run_id), status, claim):
            return run_id, not there


def stem_of(run: ForeignRun) -> str:
    """What is equal for all states of a record that grows, and however it is read (`sc.IMPORT_STEM`)."""
    return sha256_text(f"{run.format}\n{run.key if run.stem is None else run.stem}")


def _written(
    names: Names, run_id: str, records: Iterator[Record], status: str | None,
    claim: Callable[[], tuple[str, bool]],
) -> bool:  # fmt: skip
    """Write a spool; False: the run is there meanwhile, or somebody else has its name."""
    home = names.home
    home.create()
    final, part = home.spool_file(run_id), home.spool / f"{run_id}.{os.getpid()}-{token_hex(4)}.part"
    try:
        writer, last_ns = SpoolWriter(part), 0
        try:
            for record in records:
                last_ns = max(last_ns, moment) if type(moment := record.get("t")) is int else last_ns
                writer.write(record)
        finally:
            writer.finish(last_ns, status if status in (None, "ok", "cancelled") else "error")
        if writer.problems:
            raise RecordError(f"The run could not be written to {home.spool}: the disk may be full.")
        with names.alone():
            return claim() == (run_id, False) and _publish(part, final)
    except OSError as error:
        raise RecordError(f"The run could not be written to {home.spool}: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _publish(part: Path, final: Path) -> bool:
    """Give the file its name, unless somebody else has it."""
    try:
        os.link(part, final)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if final.exists():
            return False
        part.rename(final)
    return True


def _key_of(run: ForeignRun) -> str:
    """What tells a run from every other one: its format, its key and all that its record says. Times that
    follow from it are left out: they may depend on the time zone of this computer.
    """
    said = sha256(f"{run.format}\n{run.key}\n".encode("utf-8", "surrogatepass"))
    for span in run.top.walk():
        facts = (
            span.kind, span.name, span.status, _said(span.start), span.seconds, span.model, span.tokens,
            span.cost, span.error, span.messages, sorted(span.texts.items()), sorted(span.attributes.items()),
            len(span.children),
        )  # fmt: skip
        said.update(repr(facts).encode("utf-8", "surrogatepass"))
    return said.hexdigest()


def _said(moment: Told[int]) -> object:
    return moment if moment.mark == "reported" else moment.mark


def _header(run: ForeignRun, run_id: str, started: int, key: str, file_name: str) -> Record:
    facts: dict[str, Attribute | None] = {
        sc.IMPORT_FORMAT: run.format,
        sc.IMPORT_ENGINE: run.engine,
        sc.IMPORT_FILE: file_name,
        sc.IMPORT_KEY: key,
        sc.IMPORT_STEM: stem_of(run),
        sc.IMPORT_MISSING: as_json(run.missing),
        sc.IMPORT_PROBLEMS: as_json(run.problems),
        sc.ROOT_MODEL: run.root_model,
        sc.SUB_MODEL: run.sub_model,
    }
    return {
        "format": FORMAT,
        "v": sc.RECORD_VERSION,
        "kind": "run",
        "run_id": run_id,
        "trace_id": run.trace_id or key[:32],
        "started_ns": started,
        "pid": None,
        "host": None,
        "engine_version": run.engine,
        "facts": {name: value for name, value in facts.items() if value is not None},
    }


@dataclass(slots=True)
class _Open:
    """A span whose inside is being written."""

    span: ForeignSpan
    span_id: str
    start_ns: int
    place: Place
    left: Iterator[ForeignSpan]
    last_ns: int  # the latest end inside it
    phases: list[str] = field(default_factory=list)  # of its cells


class _Records:
    """The records of a run in order: payloads before the spans that cite them, ends after what is inside."""

    def __init__(
        self, run: ForeignRun, run_id: str, started: int, key: str, prices: PriceTable, codes: Codes | None
    ) -> None:
        self._run, self._run_id, self._key, self._prices, self._codes = run, run_id, key, prices, codes
        self._now = started
        self._ids: set[str] = set()
        self._stored: set[str] = set()

    def all(self, header: Record) -> Iterator[Record]:
        """Everything but the last record."""
        yield header
        stack: list[_Open] = []
        top = Place(RunPlace("0", 0, codes=self._codes))
        yield from self._start(self._run.top, top, None, stack)
        while stack:  # records may be deeper than recursion goes
            outer = stack[-1]
            child = next(outer.left, None)
            if child is not None:
                inside = outer.place
                yield from self._start(child, inside.of(child), inside, stack)
                continue
            stack.pop()
            end = self._end_of(outer)
            if stack:
                stack[-1].last_ns = max(stack[-1].last_ns, end)
            if outer.span is not self._run.top or self._run.closed:
                yield {"kind": "e", "span_id": outer.span_id, "t": end, "status": outer.span.status,
                       "a": phases(outer.phases) if outer.span.kind == "iteration" else {}}  # fmt: skip

    def _start(
        self, span: ForeignSpan, place: Place, caller: Place | None, stack: list[_Open]
    ) -> Iterator[Record]:
        parent = stack[-1] if stack else None
        floor = self._now if parent is None else max(parent.start_ns, parent.last_ns)
        start = _time(span.start.value, floor if parent is None else floor + _STEP_NS)
        facts = facts_of(span, place, caller) | numbers(span, self._prices, start) | previews(span.texts)
        facts |= {sc.RUN_ID: self._run_id} if parent is None else {}
        for prefix, text in span.texts.items():
            digest = sha256_text(text)
            facts |= {
                f"{prefix}.sha256": digest,
                f"{prefix}.chars": len(text),
                f"{prefix}.preview": preview(text),
            }
            yield from self._payload(digest, text)
        if span.messages is not None:
            prior, added = _delta(place, tuple(span.messages))
            facts |= {
                sc.MESSAGES_PRIOR: prior,
                sc.MESSAGES_ADDED: as_json([[r, sha256_text(t)] for r, t in added]),
            }
            for _, text in added:
                yield from self._payload(sha256_text(text), text)
        if parent is not None and span.kind == "cell":
            parent.phases.append(str(facts[sc.PHASE]))
        span_id = self._id(span)
        said = {**{name: value for name, value in facts.items() if value is not None}, **span.attributes}
        yield {
            "kind": "s",
            "span_id": span_id,
            "parent_id": None if parent is None else parent.span_id,
            "span_kind": span.kind,
            "name": name_of(span),
            "t": start,
            "a": said,
        }
        stack.append(_Open(span, span_id, start, place.below(span), iter(span.children), start))

    def _payload(self, digest: str, text: str) -> Iterator[Record]:
        if digest not in self._stored:
            self._stored.add(digest)
            yield {"kind": "b", "sha256": digest, "text": text}

    def _end_of(self, outer: _Open) -> int:
        seconds = outer.span.seconds.value
        if seconds is None or not 0 <= seconds < LARGEST / 1e9:
            return outer.last_ns
        return min(outer.start_ns + round(seconds * 1e9), LARGEST - 1)

    def _id(self, span: ForeignSpan) -> str:
        wanted, number = span.span_id, len(self._ids)
        if wanted is None or wanted in self._ids:
            wanted = sha256(f"{self._key}/{number}".encode()).hexdigest()[:16]
        self._ids.add(wanted)
        return wanted


def _delta(place: Place, messages: tuple[tuple[str, str], ...]) -> tuple[int, tuple[tuple[str, str], ...]]:
    """How many messages stand from the last root call of this run, and the others."""
    prior = 0
    for old, new in zip(place.run.messages, messages, strict=False):
        if old != new:
            break
        prior += 1
    place.run.messages = messages
    return prior, messages[prior:]


def _time(value: Any, otherwise: int) -> int:
    return value if type(value) is int and 0 <= value < LARGEST else max(0, min(otherwise, LARGEST - 1))
