"""Many runs one after the other, few of them in memory at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from traces.home import Home
from traces.runs import Warn, list_runs, load_runs
from traces.view import RunView

_SPANS_AT_ONCE = 10_000  # of runs that are read with one look at the record


def each_run(home: Home, run_ids: Sequence[str], warn: Warn | None = None) -> Iterator[RunView]:
    """The runs of these full ids, in this order. Raises InputError for one that is not there, RecordError for
    one that cannot be read, when its turn comes.
    """
    sizes = {}
    if len(run_ids) > 1:
        sizes = {run.run_id: run.spans for run in list_runs(home, replays=True, warn=warn)}
    for group in in_groups({run_id: sizes.get(run_id, 0) for run_id in run_ids}):
        yield from load_runs(home, group, warn=warn)


def in_groups(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Runs that may be held in memory together, by how many spans they have."""
    group: list[str] = []
    held = 0
    for run_id, size in sizes.items():
        if group and held + size > _SPANS_AT_ONCE:
            yield group
            group, held = [], 0
        group.append(run_id)
        held += size
    if group:
        yield group
