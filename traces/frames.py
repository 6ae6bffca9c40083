"""The record of a home for notebooks: runs, spans and calls as pandas data frames, and questions in SQL.

Nothing stays open between two calls, so the app, runs and other notebooks go on beside it. Every call takes
closed runs into the store first, and reads those that still run from their spools.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import duckdb
import pandas as pd
import pyarrow as pa

from rlm_core.errors import InputError, RecordError
from traces import tables
from traces.call_rows import call_rows
from traces.each_run import each_run
from traces.home import Home
from traces.opinions import opinions
from traces.runs import current, list_runs, load_run, resolve_run
from traces.store import deadline_in, shut_in
from traces.tables import Row, run_row, span_row
from traces.view import RunView

if TYPE_CHECKING:
    from pandas import DataFrame

Runs = str | Sequence[str] | None
#: Types that keep whole numbers and flags what they are where some are unknown.
_NULLABLE: Final = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


def open_store(home: str | os.PathLike[str] | None = None) -> OpenStore:
    """The record in a home: the given folder, else `$RLMSCOPE_HOME`, else the user's data folder.

    Raises InputError for a given folder that is not there, or that cannot be a home.
    """
    if home is not None and not Path(home).expanduser().is_dir():
        raise InputError(f"There is no folder {Path(home).expanduser().absolute()}.")
    return OpenStore(Home.resolve(home))


class OpenStore:
    """See `open_store`. A context manager; after `close` every call raises RecordError.

    A run is named by its full id, a unique prefix, or "last"; `runs` arguments take one, several, or None for
    all that somebody asked for (with replays only where they are named). Every method raises InputError for a
    run that is not there, RecordError for a record that cannot be read.

    In frames unknown is a missing value. `cost_usd` is exact (Decimal), `usd` the same as a float for sums
    and plots. `start` is UTC; it is missing where the record of another engine does not say it.
    """

    def __init__(self, home: Home) -> None:
        self._home: Home | None = home

    def __repr__(self) -> str:
        return f"<record of {self._home.root}>" if self._home is not None else "<record that was closed>"

    @property
    def home(self) -> Home:
        """The home that is read. Raises RecordError once the store was closed."""
        if self._home is None:
            raise RecordError("This store was closed; open_store gives a new one.")
        return self._home

    def close(self) -> None:
        """Nothing can be read through this object any more."""
        self._home = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def runs(self, *, replays: bool = False) -> DataFrame:
        """A row for each run, newest first, with what people said of it: see `traces.tables.RUNS`."""
        said = opinions(self.home)

        def row(run_id: str) -> Row:
            opinion, tags = said.of(run_id), list(said.tags(run_id))
            told = (None, None) if opinion is None else (opinion.verdict, opinion.expected)
            return {"verdict": told[0], "expected": told[1], "tags": tags}

        listed = list_runs(self.home, replays=replays)
        return _frame(tables.RUNS, ({**run_row(run), **row(run.run_id)} for run in listed))

    def spans(self, runs: Runs = None) -> DataFrame:
        """A row for each span, run by run in the order in which they began: see `traces.tables.SPANS`."""
        return _frame(tables.SPANS, (span_row(span) for view in self._views(runs) for span in view.spans))

    def calls(self, runs: Runs = None, *, texts: bool = False) -> DataFrame:
        """A row for each root call and sub-call: see `traces.call_rows.call_rows`. With `texts` also prompts
        and responses, whole.
        """
        rows = (row for view in self._views(runs) for row in call_rows(view, texts=texts))
        return _frame(tables.CALLS_WITH_TEXTS if texts else tables.CALLS, rows)

    def run(self, ref: str = "last") -> RunView:
        """One run with its spans, texts and events."""
        return load_run(self.home, resolve_run(self.home, ref))

    def text(self, ref: str, sha256: str) -> str | None:
        """A text of a run by its hash (of an attribute that ends in `.sha256`); None where the record lacks
        it.
        """
        return self.run(ref).payload(sha256)

    def sql(self, query: str, values: Sequence[Any] = ()) -> DataFrame:
        """The answer to one SELECT over the tables of closed runs (run, span, span_event, payload; DuckDB's
        SQL); `values` stand for its `?`. It reads these and nothing else: no file, no network, no variable.
        Raises InputError for what is no such query, or fails.
        """
        _check_select(query)
        with current(self.home):  # takes closed runs in
            pass
        with shut_in(self.home, deadline_in()) as con:
            try:
                return con.execute(query, list(values)).df()
            except duckdb.Error as error:
                raise InputError(f"The query cannot be answered: {error}") from error

    def _views(self, runs: Runs) -> Iterable[RunView]:
        home = self.home
        if runs is None:
            run_ids = [run.run_id for run in reversed(list_runs(home))]
        else:
            run_ids = [resolve_run(home, ref) for ref in ([runs] if isinstance(runs, str) else runs)]
        return each_run(home, list(dict.fromkeys(run_ids)))


def _check_select(query: str) -> None:
    """The connection can change nothing; this says so in better words than DuckDB."""
    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        raise InputError(f"This is no SQL: {error}") from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InputError("sql answers one SELECT; it changes nothing.")


def _frame(schema: Any, rows: Iterable[Row]) -> DataFrame:
    frame = tables.table(schema, rows).to_pandas(types_mapper=_NULLABLE.get)
    place = list(frame.columns).index("cost_usd") + 1
    frame.insert(place, "usd", frame["cost_usd"].astype("float64"))
    return frame
