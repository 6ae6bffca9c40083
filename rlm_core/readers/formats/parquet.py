"""Parquet files, a batch of rows at a time: a header line, then CSV lines; one section with the column kinds.

Whole numbers, decimals and times are exact; times with a zone are shown in UTC. Lists, maps and records are
JSON text. Bytes are shown when they are UTF-8 text, else by their number.
"""

from __future__ import annotations

import json
import re
from datetime import date, time
from decimal import Decimal
from typing import Any, Final

from rlm_core.readers.formats.tables import csv_lines, unique_names
from rlm_core.readers.output import Output, Unreadable

_DAMAGED: Final = "is damaged or cut off: write it again and add that"
_BATCH: Final = 1_000
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ZERO_FRACTION: Final = re.compile(r"\.0+(?=Z?$)")


def read(path: str, out: Output) -> None:
    """Read the file at `path` into `out`; see `rlm_core.readers.output`."""
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path, memory_map=False, pre_buffer=False)
        schema = file.schema_arrow
    except MemoryError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        encrypted = "encrypt" in str(error).lower() or "decrypt" in str(error).lower()
        raise Unreadable("is encrypted: write it again without that" if encrypted else _DAMAGED) from None
    if not len(schema):
        raise Unreadable("a Parquet file without columns")
    names = unique_names(schema.names)
    writer = _Writer(schema)
    out.table = "sheets"
    out.section("sheet", "table", dict(zip(names, map(_kind, schema.types), strict=True)))
    out.write(csv_lines([names]))
    batches = file.iter_batches(batch_size=_BATCH, use_threads=False)
    try:
        for batch in batches:
            out.write(csv_lines(zip(*map(writer.texts, batch.columns), strict=True)))
    except MemoryError:
        raise
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError):
        raise Unreadable(_DAMAGED) from None
    if not file.metadata.num_rows:
        out.remark("holds no rows")
    writer.finish(out)


def _kind(type_: Any) -> str:
    from pyarrow import types

    if types.is_dictionary(type_):
        return _kind(type_.value_type)
    tests = (
        (types.is_boolean, "boolean"), (types.is_integer, "integer"), (types.is_floating, "number"),
        (types.is_decimal, "number"), (types.is_date, "date"), (types.is_timestamp, "datetime"),
    )  # fmt: skip
    return next((kind for test, kind in tests if test(type_)), "text")


class _Writer:
    """Turns columns into texts and remembers what has to be said about them."""

    def __init__(self, schema: Any) -> None:
        zones = {getattr(type_, "tz", None) or "UTC" for type_ in schema.types} - {"UTC"}
        self._zones = sorted(zones)
        self._bytes = 0

    def texts(self, column: Any) -> list[str]:
        """The values of a column of one batch; "" for null."""
        import pyarrow
        from pyarrow import types

        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        if types.is_timestamp(kind):
            utc = column.cast(pyarrow.timestamp(kind.unit, "UTC")) if kind.tz else column
            values = utc.cast(pyarrow.string()).to_pylist()
            return [_ZERO_FRACTION.sub("", value.replace(" ", "T")) if value else "" for value in values]
        if types.is_duration(kind):
            values = column.cast(pyarrow.int64()).to_pylist()
            return ["" if value is None else f"{value}{kind.unit}" for value in values]
        if types.is_integer(kind) or types.is_floating(kind) or types.is_date(kind) or types.is_time(kind):
            return [value or "" for value in column.cast(pyarrow.string()).to_pylist()]
        return [self._text(value) for value in column.to_pylist()]

    def _text(self, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, dict | list | tuple):
            return json.dumps(value, ensure_ascii=False, default=self._text)
        if isinstance(value, bytes):
            return self._decoded(value)
        if isinstance(value, Decimal):
            return f"{value:f}"
        return value.isoformat() if isinstance(value, date | time) else str(value)

    def _decoded(self, value: bytes) -> str:
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if not _CONTROLS.search(text):
            return text
        self._bytes += 1
        return f"<{len(value):,} bytes>"

    def finish(self, out: Output) -> None:
        """Say what is shown in another way than it is stored."""
        if self._zones:
            out.remark(f"times are shown in UTC (stored for {', '.join(self._zones)})")
        if self._bytes:
            values = "1 value is" if self._bytes == 1 else f"{self._bytes:,} values are"
            out.remark(f"{values} no text: shown by the number of bytes")
