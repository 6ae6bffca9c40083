"""The tables of a corpus as pandas DataFrames, read when they are asked for."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from rlm_core.texts.columns import as_numbers, as_stored
from rlm_core.texts.dialects import SAMPLE_CHARS, dialect
from rlm_core.texts.files import Source, Store
from rlm_core.texts.mapped import MappedText
from rlm_core.texts.touched import note

_GROWTH: Final = {"csv": 6, "tsv": 6, "sheets": 6, "json": 12, "jsonl": 12}  # memory of a table to its text
_ONE_TABLE: Final = "table"  # how the only section of a file that is one table is called
_HINT: Final = "read it with .lines(), .chunks(n) or slices"

Table = tuple[Source, str, int, int, dict[str, str] | None]  # document, what in it, where, kinds of columns


class Tables(Mapping[str, Any]):
    """Tables by name: documents that are CSV, TSV, JSON records or JSON lines, and the sheets of workbooks.

    A sheet is called `document#sheet`; among the tables of one document just `sheet`. In JSON,
    `document#key` is the list under that key. Each DataFrame is the caller's own. Columns of a workbook or a
    Parquet file have the kinds of the file; what cannot be held as that kind stays text. In CSV and TSV all
    is text, but columns of plain numbers without leading zeros are numbers; an empty cell is missing.

    Raises `KeyError` for an unknown name, `ValueError`, in one sentence, for what is no table or too large
    for memory, and `OSError` when the file has changed.
    """

    def __init__(self, store: Store, *sources: Source) -> None:
        self._store = store
        self._tables: dict[str, Table] = {}
        self._also: dict[str, str] = {}
        for source in sources:
            if source.table == "sheets":
                self._add_sheets(source, alone=len(sources) == 1)
            elif source.table:
                self._tables[source.name] = (source, "", 0, source.chars, None)

    @classmethod
    def of_a_piece(cls, name: str) -> NoReturn:
        """A slice has no tables. Raises `ValueError`."""
        raise ValueError(f"tables are those of whole documents: use documents[{name!r}].tables")

    def _add_sheets(self, source: Source, alone: bool) -> None:
        sheets = [section for section in source.sections if section[0] == "sheet"]
        for _, label, start, end, columns in sheets:
            long = f"{source.name}#{label}"
            key = source.name if label == _ONE_TABLE else label if alone else long
            self._tables[key] = (source, label, start, end, columns)
            self._also[long] = key
            if len(sheets) == 1:
                self._also[source.name] = key

    def __getitem__(self, name: str) -> Any:
        table = self._tables.get(self._also.get(name, name)) or self._inside(name)
        source, part, start, end, _ = table
        weight = source.size * _GROWTH[source.table]
        held = self._store.tables.get((source.number, part), weight, lambda: self._read(name, table))
        note(source.number, start, end)
        return held.copy(deep=False)

    def _inside(self, name: str) -> Table:
        """A list inside a JSON object; raises `KeyError`."""
        document, mark, key = name.partition("#")
        table = self._tables.get(document)
        if mark and table and table[0].table == "json":
            return (table[0], key, *table[2:])
        names = list(self._tables)
        if not names:
            raise KeyError("there are no tables among the documents (CSV, TSV, JSON, workbooks, Parquet)")
        import difflib

        close = difflib.get_close_matches(name, names, 3, 0.4) or names[:3]
        raise KeyError(f"no table is called {name!r}: did you mean {', '.join(map(repr, close))}?")

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        return f"<{len(self):,} table{'' if len(self) == 1 else 's'}: {', '.join(map(repr, self))}>"

    def _read(self, name: str, table: Table) -> Any:
        source, part, start, end, columns = table
        text = MappedText(self._store, source, start, end)
        try:
            _check_room(source.size * _GROWTH[source.table])
            if source.table.startswith("json"):
                return _from_json(text.peek(0, len(text)), part, lines=source.table == "jsonl")
            return _from_csv(text, source.table, columns)
        except MemoryError:
            raise ValueError(
                f"{name!r} has {len(text):,} characters, too many for a table in memory: {_HINT}"
            ) from None
        except (ValueError, RecursionError) as error:
            first = str(error).strip().split("\n")[0].removeprefix("Error tokenizing data. C error: ")
            raise ValueError(f"{name!r} cannot be read as a table ({first}): {_HINT}") from None


def _check_room(needed: int) -> None:
    """Raises `MemoryError` for what is beyond the memory this process may have."""
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    most, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if most not in (-1, resource.RLIM_INFINITY) and needed > most:
        raise MemoryError


def _from_csv(text: MappedText, kind: str, columns: dict[str, str] | None) -> Any:
    import pandas

    sample = text.peek(0, min(len(text), SAMPLE_CHARS))
    found = dialect(sample, len(sample) == len(text), "," if columns else "\t" if kind == "tsv" else "")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pandas.errors.ParserWarning)  # said when fields are dropped
        frame = pandas.read_csv(
            _Bytes(text), encoding="utf-8", sep=found.delimiter, dtype=str, keep_default_na=False,
            na_values=[""], header=0 if columns or found.has_header else None, skiprows=found.skipped,
            usecols=found.columns, index_col=False, skip_blank_lines=columns is None,
        )  # fmt: skip
    return as_stored(frame, columns) if columns else as_numbers(frame)


def _from_json(text: str, key: str, lines: bool) -> Any:
    import pandas

    if lines:
        return pandas.DataFrame(_records([json.loads(line) for line in text.split("\n") if line.strip()]))
    value = json.loads(text)
    if key:
        value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, list):
            raise ValueError(f"it holds no list {key!r}")
    if isinstance(value, dict):
        lists = [name for name, item in value.items() if _are_records(item)]
        if len(lists) > 1:
            raise ValueError(f"it holds several lists of records, add # and one of {', '.join(lists)}")
        if not lists:
            raise ValueError("it holds no list of records")
        value = value[lists[0]]
    return pandas.DataFrame(_records(value))


def _records(value: Any) -> list[dict[str, Any]]:
    if not _are_records(value):
        raise ValueError("it is no list of records (JSON objects)")
    records: list[dict[str, Any]] = value
    return records


def _are_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


class _Bytes(io.RawIOBase):
    """The bytes of a mapped text as a file."""

    def __init__(self, text: MappedText) -> None:
        self._bytes = text.file().bytes
        self._at, self._behind = text.byte_range()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self._behind - self._at)
        buffer[:size] = self._bytes[self._at : self._at + size]
        self._at += size
        return size
