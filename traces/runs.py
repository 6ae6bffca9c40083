"""Finding and loading runs: stored ones from the store, others from their spools, never both for one run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlm_core.errors import InputError, RecordError
from traces.home import Home, is_run_id
from traces.rows import RunSummary, SpanRow
from traces.view import RunView, SpoolRun, StoreSource

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Warn = Callable[[str], None]
_LISTED = 8  # candidates in an error message


@dataclass(frozen=True, slots=True)
class Current:
    """The store (None when there is none to be had) and the ids of runs to be read from spools."""

    con: DuckDBPyConnection | None
    spools: tuple[str, ...]


@contextmanager
def current(home: Home, warn: Warn | None = None) -> Iterator[Current]:
    """Take closed runs in and open the store for a moment. `warn` is told what could not be taken in.

    Raises RecordError when the store is unreadable or newer than this program.
    """
    from traces import store

    with store.GATE, ExitStack() as stack:
        yield _enter(home, stack, warn or logging.getLogger(__name__).warning)


def _enter(home: Home, stack: ExitStack, say: Warn) -> Current:
    from traces import ingest, store

    deadline = store.deadline_in()
    try:
        con = stack.enter_context(store.reader(home, deadline))
        found = ingest.survey(home, con)
        if found.settled and ingest.is_current(con):
            return Current(con, tuple(found.open))
        stack.close()
        for notice in ingest.take_in_all(home, deadline).notices:
            say(notice)
        con = stack.enter_context(store.reader(home, store.deadline_in()))
        return Current(con, tuple(ingest.survey(home, con).readable))
    except store.StoreBusy as busy:
        stack.close()
        say(f"{busy} Runs are read from their spools instead.")
        return Current(None, tuple(ingest.survey(home, None).readable))


def list_runs(
    home: Home, limit: int | None = None, *, replays: bool = False, warn: Warn | None = None
) -> list[RunSummary]:
    """The runs that somebody asked for, newest first: stored ones and running ones. `limit` is the most that
    come back. With `replays` also those that play another run again.
    """
    from traces import store

    with current(home, warn) as now:
        stored: list[RunSummary] = []
        if now.con is not None:
            most = None if limit is None else limit + len(now.spools)
            stored = store.read_summaries(now.con, most, replays=replays)
    summaries = [run for run in stored if run.run_id not in now.spools]
    read = (view.summary for view in spool_views(home, now.spools, warn))
    summaries.extend(run for run in read if replays or run.replay_of is None)
    summaries.sort(key=lambda run: (run.started_ns, run.run_id), reverse=True)
    return summaries[:limit]


def continued_by(home: Home, run_id: str, *, warn: Warn | None = None) -> tuple[str, ...]:
    """The runs that continue a run, oldest first; those that continue one of them are not among them."""
    from traces import store

    with current(home, warn) as now:
        sql = "SELECT run_id FROM run WHERE resumed_from = ?"
        found = set() if now.con is None else {row[0] for row in store.rows_of(now.con, sql, [run_id])}
    found.difference_update(now.spools)
    for view in spool_views(home, now.spools, warn):
        if view.summary.resumed_from == run_id:
            found.add(view.run_id)
    return tuple(sorted(found))


def spool_views(home: Home, run_ids: Iterable[str], warn: Warn | None) -> Iterator[RunView]:
    """Views of runs read from their spools; one that cannot be read is named to `warn`."""
    say = warn or logging.getLogger(__name__).warning
    for run_id in run_ids:
        try:
            yield SpoolRun(home, run_id).poll()
        except RecordError as error:
            say(str(error))


def resolve_run(home: Home, ref: str, *, warn: Warn | None = None) -> str:
    """A full run id from a full id, a unique prefix, or "last" (the last one that started; no replay).

    Raises InputError when none or several fit; the message lists candidates.
    """
    from traces import store

    if ref == "last":
        newest = list_runs(home, 1, warn=warn)
        if newest:
            return newest[0].run_id
        raise InputError("There are no runs yet.")
    with current(home, warn) as now:
        fits = set(store.run_ids(now.con, ref)) if now.con is not None else set()
    fits.update(run_id for run_id in now.spools if run_id.startswith(ref))
    if ref in fits:
        return ref
    return _the_one(sorted(fits), ref, "run")


def _the_one(fits: list[str], ref: str, what: str) -> str:
    if len(fits) == 1 and ref:
        return fits[0]
    if not fits:
        raise InputError(f"There is no {what} whose id begins with {ref[:100]!r}.")
    more = f" and {len(fits) - _LISTED} more" if len(fits) > _LISTED else ""
    raise InputError(f"{ref[:100]!r} fits several {what}s: {', '.join(fits[:_LISTED])}{more}.")


def load_run(home: Home, run_id: str, *, warn: Warn | None = None) -> RunView:
    """One run, by its full id: from the store when it is closed, from its spool while it is open.

    Raises InputError when there is no such run, RecordError when its record cannot be read.
    """
    (view,) = load_runs(home, (run_id,), warn=warn)
    return view


def load_runs(home: Home, run_ids: Sequence[str], *, warn: Warn | None = None) -> list[RunView]:
    """`load_run` of several, with one look at what the home holds: for who reads thousands by groups."""
    with current(home, warn) as now:
        stored = {run_id: _stored(home, now, run_id) for run_id in run_ids}
    return [stored[run_id] or _from_spool(home, now, run_id) for run_id in run_ids]


def _stored(home: Home, now: Current, run_id: str) -> RunView | None:
    from traces import store

    found = None
    if now.con is not None and run_id not in now.spools:
        found = store.read_summaries(now.con, run_id=run_id)
    if now.con is None or not found:
        return None
    source = StoreSource(home, run_id)
    return RunView(found[0], store.read_spans(now.con, run_id, source.attributes_of), False, source)


def _from_spool(home: Home, now: Current, run_id: str) -> RunView:
    if run_id not in now.spools or not is_run_id(run_id):
        raise InputError(f"There is no run {run_id[:100]!r}.")
    return SpoolRun(home, run_id).poll()


def resolve_span(view: RunView, ref: str) -> SpanRow:
    """A span from a full id or a unique prefix. Raises InputError, listing candidates, otherwise."""
    if ref in view.by_id:
        return view.by_id[ref]
    fits = [span_id for span_id in view.by_id if span_id.startswith(ref)]
    return view.by_id[_the_one(fits, ref, "span")]
