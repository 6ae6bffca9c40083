"""One run as a reader sees it, from its spool or from the store."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol

from rlm_core.errors import RecordError
from traces.folding import Fold, spool_text
from traces.home import Home
from traces.locks import is_held
from traces.rows import RunSummary, SpanRow
from traces.spool import SpoolReader, read_record
from traces.summing import summarise

_SMALL_RUN_CHARS: Final = 16 * 1024 * 1024


class Source(Protocol):
    """Where a view's bulky parts come from."""

    def payloads(self, sha256s: Collection[str]) -> dict[str, str]:
        """The texts of those payloads that the record holds."""
        ...

    def events(self) -> dict[str, list[dict[str, Any]]]:
        """Events by span id, in order."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """What the beginning of the record says of the run, by the keys of `rlm_core.semconv`."""
        ...


class RunView:
    """A run: summary, spans in seq order, texts and events on request. `live`: its process runs."""

    def __init__(self, summary: RunSummary, spans: tuple[SpanRow, ...], live: bool, source: Source) -> None:
        self.summary = summary
        self.spans = spans
        self.live = live
        self._source = source

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.summary.run_id

    def payload(self, sha256: str) -> str | None:
        """The full text of a payload, or None when the record does not hold it."""
        return self.payloads([sha256]).get(sha256)

    def payloads(self, sha256s: Collection[str]) -> dict[str, str]:
        """The full texts of many payloads at once; those that the record does not hold are absent."""
        return self._source.payloads(sha256s) if sha256s else {}

    def seconds_of(self, span: SpanRow) -> float | None:
        """How long a span took; the run itself with what came before its first span, as its summary says."""
        whole = span.kind == "run" and span.depth == 0 and span.seconds is not None
        return self.summary.seconds if whole else span.seconds

    def events(self, span_id: str) -> list[dict[str, Any]]:
        """Events of a span in order: {name, time_ns, attributes}."""
        return self._events.get(span_id, [])

    @cached_property
    def _events(self) -> dict[str, list[dict[str, Any]]]:
        return self._source.events()

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """What the beginning of the record says of the run; what its span says stands on that."""
        return self._source.facts()

    @cached_property
    def by_id(self) -> dict[str, SpanRow]:
        """Spans by their id."""
        return {span.span_id: span for span in self.spans}


class _SpoolSource:
    def __init__(self, path: Path, fold: Fold) -> None:
        self._path = path
        self._fold = fold

    def payloads(self, sha256s: Collection[str]) -> dict[str, str]:
        found = ((sha256, spool_text(self._path, self._fold, sha256)) for sha256 in sha256s)
        return {sha256: text for sha256, text in found if text is not None}

    def events(self) -> dict[str, list[dict[str, Any]]]:
        return _by_span(
            (event.span_id, event.name, event.time_ns, event.attributes) for event in self._fold.events
        )

    def facts(self) -> Mapping[str, Any]:
        return self._fold.header.facts


class SpoolRun:
    """A run that is read from its spool. Each `poll` reads only what came since the last one."""

    def __init__(self, home: Home, run_id: str) -> None:
        self._path = home.spool_file(run_id)
        self._lock = home.liveness_lock(run_id)
        self._reader = SpoolReader(self._path)
        self._fold = Fold(run_id)

    @property
    def position(self) -> int:
        """How many bytes of the spool have been read: as long as it stays, polls give equal views."""
        return self._reader.offset

    def poll(self) -> RunView:
        """The run as it stands now. Raises RecordError when the spool is gone, unreadable or too new."""
        # asked before reading: when the process was gone by then, everything it wrote is there to be read
        alive = is_held(self._lock)
        fold = self._fold
        try:
            for line in self._reader.read(final=not alive):
                fold.feed(line)
        except OSError as error:
            raise RecordError(
                f"The spool {self._path.name} cannot be read: {error.strerror or error}."
            ) from error
        if fold.first is not None:
            fold.amend(read_record(self._path, fold.first.offset, fold.first.length))
        alive = alive and fold.final_status is None
        rows, problems = fold.span_rows(alive=alive)
        summary = summarise(
            fold, rows, problems, alive=alive, text=lambda sha256: spool_text(self._path, fold, sha256)
        )
        return RunView(summary, rows, alive, _SpoolSource(self._path, fold))


class StoreSource:
    """Texts, events and attributes of a stored run, fetched when asked for."""

    def __init__(self, home: Home, run_id: str) -> None:
        self._home = home
        self._run_id = run_id

    def payloads(self, sha256s: Collection[str]) -> dict[str, str]:
        """The texts of those payloads that the store holds. Those of a small run are all fetched at once:
        opening the store takes longer than reading them, and who reads one mostly reads the next."""
        known = self._all_payloads
        if known is None:
            sql = "SELECT sha256, text FROM payload WHERE run_id = ? AND list_contains(?::VARCHAR[], sha256)"
            return dict(self._rows(sql, [self._run_id, list(sha256s)]))
        return {sha256: known[sha256] for sha256 in sha256s if sha256 in known}

    @cached_property
    def _all_payloads(self) -> dict[str, str] | None:
        sql = "SELECT coalesce(sum(chars), 0) FROM payload WHERE run_id = ?"
        ((chars,),) = self._rows(sql, [self._run_id])
        if chars > _SMALL_RUN_CHARS:
            return None
        return dict(self._rows("SELECT sha256, text FROM payload WHERE run_id = ?", [self._run_id]))

    def events(self) -> dict[str, list[dict[str, Any]]]:
        """Events by span id, in order."""
        sql = "SELECT span_id, name, time_ns, attrs FROM span_event WHERE run_id = ? ORDER BY seq"
        return _by_span((*row[:3], json.loads(row[3])) for row in self._rows(sql, [self._run_id]))

    def facts(self) -> Mapping[str, Any]:
        """What the beginning of the record says of the run."""
        rows = self._rows("SELECT facts FROM run WHERE run_id = ?", [self._run_id])
        return json.loads(rows[0][0]) if rows and rows[0][0] else {}

    def attributes_of(self, span_id: str) -> Mapping[str, Any]:
        """All attributes of a span; the first look fetches those of the whole run."""
        return _LazyAttributes(self, span_id)

    @cached_property
    def raw_attributes(self) -> dict[str, str]:
        """Attributes by span id, as JSON."""
        return dict(self._rows("SELECT span_id, attrs FROM span WHERE run_id = ?", [self._run_id]))

    def _rows(self, sql: str, values: list[Any]) -> list[tuple[Any, ...]]:
        from traces import store

        with store.reader(self._home, store.deadline_in()) as con:
            if con is None:
                raise RecordError(f"The store of {self._home.root} is gone.")
            return store.rows_of(con, sql, values)


class _LazyAttributes(Mapping[str, Any]):
    """Attributes of a stored span, read at first use."""

    __slots__ = ("_source", "_span_id", "_values")

    def __init__(self, source: StoreSource, span_id: str) -> None:
        self._source = source
        self._span_id = span_id
        self._values: dict[str, Any] | None = None

    def _loaded(self) -> dict[str, Any]:
        if self._values is None:
            raw = self._source.raw_attributes.get(self._span_id)
            if raw is None:
                raise RecordError("The run is no longer in the store.")
            self._values = json.loads(raw)
        return self._values

    def __getitem__(self, key: str) -> Any:
        return self._loaded()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded())

    def __len__(self) -> int:
        return len(self._loaded())


def _by_span(events: Iterator[tuple[str, str, int, dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for span_id, name, time_ns, attributes in events:
        grouped.setdefault(span_id, []).append({"name": name, "time_ns": time_ns, "attributes": attributes})
    return grouped
