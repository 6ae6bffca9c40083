"""Runs as a folder of Parquet files, one per table: run, span, span_event, payload, opinion.

The columns are those of `traces.tables`, and as JSON the attributes of spans and events and the facts that
the record of a run begins with. A table without rows is a file too. Rows are written while runs are read, so
a large run needs little memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa
from pyarrow import parquet

from traces.each_run import each_run
from traces.exporters.cited import clean_payloads
from traces.exporters.files import STILL_RUNNING, ExportDone, new_folder
from traces.exporters.redaction import Redactor
from traces.home import Home
from traces.opinions import Opinion, Opinions, opinions
from traces.reading import Warn
from traces.tables import EVENTS, OPINIONS, PAYLOADS, RUNS, SPANS, run_row, span_row, table
from traces.view import RunView

_ROWS: Final = 10_000  # in memory before they are written
_CHARS: Final = 32 * 1024 * 1024  # and characters of their texts
#: Name of a file -> its columns.
TABLES: Final[dict[str, Any]] = {
    "run": RUNS.append(pa.field("facts", pa.string())),
    "span": SPANS.append(pa.field("attributes", pa.string())),
    "span_event": EVENTS,
    "payload": PAYLOADS,
    "opinion": OPINIONS,
}
Row = dict[str, Any]


def export(home: Home, run_ids: Sequence[str], out: Path, *, warn: Warn | None = None) -> ExportDone:
    """Write runs as the new folder `out`; see `traces.exporters.export_runs`."""
    said, replaced, notes = opinions(home), 0, list[str]()
    with new_folder(out) as folder, ExitStack() as stack:
        files = {
            name: stack.enter_context(_File(folder / f"{name}.parquet", schema))
            for name, schema in TABLES.items()
        }
        for view in each_run(home, run_ids, warn):
            redactor = Redactor()
            for name, rows in _rows(view, said, redactor):
                files[name].add(rows)
            replaced += redactor.replaced
            notes += [STILL_RUNNING.format(view.run_id)] if view.live else []
    return ExportDone(out.expanduser().absolute(), tuple(run_ids), replaced, tuple(notes))


class _File:
    """A Parquet file that is written while rows come."""

    def __init__(self, path: Path, schema: Any) -> None:
        self._schema = schema
        self._writer = parquet.ParquetWriter(path, schema, compression="zstd")
        self._rows: list[Row] = []
        self._chars = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._writer.close()

    def add(self, rows: Iterable[Row]) -> None:
        """Take rows; what has come is written when there is enough of it."""
        for row in rows:
            self._rows.append(row)
            self._chars += len(row.get("text") or row.get("attributes") or "")
            if len(self._rows) >= _ROWS or self._chars >= _CHARS:
                self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(table(self._schema, self._rows))
        self._rows, self._chars = [], 0


def _rows(view: RunView, said: Opinions, redactor: Redactor) -> Iterator[tuple[str, Iterator[Row]]]:
    """The rows of a run by table. Payloads come first: their new names stand in attributes."""
    yield "payload", _payloads(view, redactor)
    yield "span", _spans(view, redactor)
    yield "span_event", _events(view, redactor)
    yield "opinion", _opinions(view.run_id, said, redactor)
    facts = {"facts": _json(redactor.attributes(view.facts))}
    yield "run", iter([_clean(_run(view, said), redactor) | facts])


def _payloads(view: RunView, redactor: Redactor) -> Iterator[Row]:
    for sha256, text in clean_payloads(view, redactor):
        yield {"run_id": view.run_id, "sha256": sha256, "chars": len(text), "text": text}


def _spans(view: RunView, redactor: Redactor) -> Iterator[Row]:
    for span in view.spans:
        attributes = _json(redactor.attributes(span.attributes))
        yield _clean(span_row(span), redactor) | {"attributes": attributes}


def _events(view: RunView, redactor: Redactor) -> Iterator[Row]:
    for span in view.spans:
        for number, event in enumerate(view.events(span.span_id)):
            yield {
                "run_id": view.run_id,
                "span_id": span.span_id,
                "number": number,
                "name": redactor.text(event["name"]),
                "time_ns": event["time_ns"],
                "attributes": _json(redactor.attributes(event["attributes"])),
            }


def _opinions(run_id: str, said: Opinions, redactor: Redactor) -> Iterator[Row]:
    run = said.of(run_id)
    about: list[tuple[str | None, Opinion]] = [] if run is None else [(None, run)]
    for span_id, opinion in about + list(said.spans(run_id).items()):
        facts = {name: getattr(opinion, name) for name in Opinion.__slots__}
        yield _clean({"run_id": run_id, "span_id": span_id, **facts}, redactor)


def _run(view: RunView, said: Opinions) -> Row:
    opinion = said.of(view.run_id)
    told = {} if opinion is None else {"verdict": opinion.verdict, "expected": opinion.expected}
    return run_row(view.summary) | told | {"tags": list(said.tags(view.run_id))}


def _clean(row: Mapping[str, Any], redactor: Redactor) -> Row:
    return {name: _clean_value(value, redactor) for name, value in row.items()}


def _clean_value(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, list):
        return [_clean_value(one, redactor) for one in value]
    return redactor.text(value) if isinstance(value, str) else value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
