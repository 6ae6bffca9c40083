"""Runs, spans and calls as Arrow tables: the columns that Parquet files and data frames have in common.

Money is decimal(38,18), times are nanoseconds in UTC, unknown is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from traces.facts import LARGEST
from traces.imported import failed_sub_calls_told, iterations_told, sub_calls_told, tokens_told
from traces.rows import RunSummary, SpanRow

Row = Mapping[str, Any]
_TEXT: Final = pa.string()
_COUNT: Final = pa.int64()
_FLAG: Final = pa.bool_()
_FLOAT: Final = pa.float64()
_USD: Final = pa.decimal128(38, 18)
_TIME: Final = pa.timestamp("ns", tz="UTC")


def _schema(**columns: Any) -> Any:
    return pa.schema(list(columns.items()))


RUNS: Final = _schema(
    run_id=_TEXT, question=_TEXT, answer=_TEXT, status=_TEXT, stop_reason=_TEXT, forced=_FLAG,
    start=_TIME, start_ns=_COUNT, seconds=_FLOAT, root_model=_TEXT, sub_model=_TEXT, iterations=_COUNT,
    sub_calls=_COUNT, failed_sub_calls=_COUNT, input_tokens=_COUNT, output_tokens=_COUNT,
    cost_usd=_USD, cost_status=_TEXT, known_usd=_USD, sandbox=_TEXT, corpus_id=_TEXT, strategy=_TEXT,
    replay_of=_TEXT, resumed_from=_TEXT, imported_from=_TEXT, imported_file=_TEXT, untold_calls=_COUNT,
    untold_sub_calls=_FLAG, refused_sub_calls=_COUNT, demo=_FLAG,
    complete=_FLAG, problems=_COUNT, spans=_COUNT, trace_id=_TEXT, engine_version=_TEXT,
    verdict=_TEXT, expected=_TEXT, tags=pa.list_(_TEXT),
)  # fmt: skip
SPANS: Final = _schema(
    run_id=_TEXT, span_id=_TEXT, parent_id=_TEXT, seq=_COUNT, kind=_TEXT, name=_TEXT, role=_TEXT,
    depth=_COUNT, iteration=_COUNT, cell=_COUNT, call_index=_COUNT, phase=_TEXT, status=_TEXT,
    error_type=_TEXT, start=_TIME, start_ns=_COUNT, end_ns=_COUNT, seconds=_FLOAT, model=_TEXT,
    model_returned=_TEXT, input_tokens=_COUNT, output_tokens=_COUNT, cached_read_tokens=_COUNT,
    cache_write_tokens=_COUNT, cost_usd=_USD, cost_status=_TEXT, response_chars=_COUNT, preview=_TEXT,
    orphan=_FLAG, trust=_TEXT,
)  # fmt: skip
CALLS: Final = _schema(
    run_id=_TEXT, run_path=_TEXT, depth=_COUNT, iteration=_COUNT, cell=_COUNT, call_index=_COUNT,
    kind=_TEXT, span_id=_TEXT, parent_id=_TEXT, status=_TEXT, error_type=_TEXT, error=_TEXT,
    model=_TEXT, model_returned=_TEXT, input_tokens=_COUNT, cached_read_tokens=_COUNT,
    cache_write_tokens=_COUNT, output_tokens=_COUNT, reasoning_tokens=_COUNT, cost_usd=_USD,
    cost_status=_TEXT, start=_TIME, seconds=_FLOAT, served_from=_TEXT, attempts=_COUNT,
    tokens_trust=_TEXT, cost_trust=_TEXT, start_trust=_TEXT, seconds_trust=_TEXT,
)  # fmt: skip
#: `CALLS` with what was sent and said.
CALLS_WITH_TEXTS: Final = pa.schema([*CALLS, *_schema(messages_before=_COUNT, prompt=_TEXT, response=_TEXT)])
EVENTS: Final = _schema(
    run_id=_TEXT, span_id=_TEXT, number=_COUNT, name=_TEXT, time_ns=_COUNT, attributes=_TEXT
)
PAYLOADS: Final = _schema(run_id=_TEXT, sha256=_TEXT, chars=_COUNT, text=_TEXT)
OPINIONS: Final = _schema(
    run_id=_TEXT, span_id=_TEXT, verdict=_TEXT, expected=_TEXT, how=_TEXT, note=_TEXT, time=_TEXT
)


def run_row(run: RunSummary) -> dict[str, Any]:
    """A run by the columns of `RUNS`, without what people said of it."""
    row = {name: getattr(run, name) for name in RUNS.names if name in RunSummary.__slots__}
    counts: dict[str, Any] = {f"{side}_tokens": count for side, count in tokens_told(run).items()}
    counts |= {"sub_calls": sub_calls_told(run), "failed_sub_calls": failed_sub_calls_told(run)}
    counts |= {"iterations": iterations_told(run)}
    return row | counts | {"start": run.started_ns if run.started else None, "start_ns": run.started_ns}


def span_row(span: SpanRow) -> dict[str, Any]:
    """A span by the columns of `SPANS`."""
    given = span.own_tokens or {}
    return {
        **dict(zip(_OF_SPAN, _of_span(span), strict=True)),
        "start": span.start_ns if span.start_told else None,
        "seconds": span.seconds,
        "input_tokens": given.get("input"),
        "output_tokens": given.get("output"),
        "cached_read_tokens": span.cached_read,
        "cache_write_tokens": span.cache_write,
    }


_OF_SPAN: Final = [name for name in SPANS.names if name in SpanRow._fields]
_of_span = attrgetter(*_OF_SPAN)


def table(schema: Any, rows: Iterable[Row]) -> Any:
    """An Arrow table of rows; a column that a row lacks is null in it. Half characters, which no UTF-8 can
    hold, become escapes; a whole number that is too large to be one of a record becomes null.
    """
    listed = list(rows)
    columns = [_column([row.get(field.name) for row in listed], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(values: list[Any], kind: Any) -> Any:
    try:
        return pa.array(values, kind)
    except (UnicodeEncodeError, OverflowError):
        return pa.array([_fit(value) for value in values], kind)


def _fit(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if type(value) is int and not -LARGEST <= value < LARGEST:
        return None
    return value
