"""The run a page shows, kept for the session: read once when it has ended, polled while it goes on.

What pages work out from a run is kept with it: see `Record.once`. A run that has grown is a new `Record`, so
nothing that was worked out before is taken for what holds now.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import streamlit as st

from rlm_core.errors import InputError
from traces.home import Home
from traces.reading import RunView, SpoolRun, load_run, resolve_run
from traces.refused import refused
from traces.user_log import deleted_runs
from ui.web.tree_rows import Shape, TreeRows, tree_rows

if TYPE_CHECKING:
    from traces.suspects import Suspect

_T = TypeVar("_T")
_KEPT: Final = "run-record"  # in the session: one run, the last that was looked at
Select = Callable[[str], None]  # goes to the span with that id


@dataclass(slots=True, eq=False)
class Record:
    """A run as it was last read. `said` are sentences about reading it; `spool` is there while it goes on."""

    home: Home
    view: RunView
    spool: SpoolRun | None = None
    said: list[str] = field(default_factory=list)
    position: int = 0  # of the spool when the view was made
    _made: dict[Hashable, tuple[Hashable, Any]] = field(default_factory=dict)

    def once(self, make: Callable[[RunView], _T], name: str = "", of: Hashable = None) -> _T:
        """What `make` works out from the run, worked out only once. A function that is made anew for every
        call (a lambda, a partial) needs a `name`. `of` says what else it depends on: of one name only what
        was last asked for is kept."""
        key = name or make
        if key not in self._made or self._made[key][0] != of:
            self._made[key] = (of, make(self.view))
        return cast("_T", self._made[key][1])

    @property
    def rows(self) -> TreeRows:
        """All rows of the recursion tree, in the order of the record."""
        return self.once(lambda view: tree_rows(view, Shape(suspects=self.suspects)), "rows")

    @property
    def refused(self) -> frozenset[str]:
        """The ids of the calls that a limit refused."""
        return self.once(_refused)

    @property
    def suspects(self) -> dict[str, Suspect]:
        """Sub-calls that look wrong, by span id."""
        from traces.suspects import suspects

        return self.once(suspects)


def _refused(view: RunView) -> frozenset[str]:
    return refused(view.spans)


def full_id(home: Home, ref: str) -> str:
    """The id of the run that an address names: a full id, the beginning of one, or "last".

    Raises InputError when it names none or several.
    """
    kept = st.session_state.get(_KEPT)
    if isinstance(kept, Record) and kept.view.run_id == ref:
        return ref
    return resolve_run(home, ref, warn=_unsaid)


def _unsaid(_sentence: str) -> None:
    """The same sentences come again when the run itself is read."""


def open_record(home: Home, run_id: str) -> Record:
    """The run, read anew only when there is something new to read.

    Raises InputError when it is not there (any more), RecordError when its record cannot be read.
    """
    kept = st.session_state.get(_KEPT)
    if not isinstance(kept, Record) or kept.view.run_id != run_id:
        kept = _read(home, run_id)
    elif run_id in deleted_runs(home):
        st.session_state.pop(_KEPT)
        raise InputError(f"The run {run_id} has been deleted.")
    elif kept.spool is not None:
        kept = _polled(home, kept, kept.spool)
    st.session_state[_KEPT] = kept
    return kept


def forget() -> None:
    """Read the run anew at the next look."""
    st.session_state.pop(_KEPT, None)


def _read(home: Home, run_id: str) -> Record:
    said: list[str] = []
    view = load_run(home, run_id, warn=said.append)
    if view.live:
        spool = SpoolRun(home, run_id)
        view = spool.poll()
        return Record(home, view, spool, said, spool.position)
    return Record(home, view, None, said)


def _polled(home: Home, kept: Record, spool: SpoolRun) -> Record:
    view = spool.poll()
    if not view.live:
        return _read(home, view.run_id)
    if spool.position == kept.position:
        return kept
    return Record(home, view, spool, kept.said, spool.position)
