"""The two runs that the Compare page shows, kept for the session with what pages work out from them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import streamlit as st

from traces.home import Home
from traces.reading import RunView, load_run
from traces.side_by_side import Side, side
from traces.user_log import deleted_runs
from ui.web.notices import note

if TYPE_CHECKING:
    from traces.diff import Diff

_T = TypeVar("_T")
_KEPT: Final = "compare-pair"  # in the session: the last two runs that were compared


@dataclass(eq=False)
class Pair:
    """Two runs as they were last read. `a` is looked at as the bad one, `b` as the good one."""

    home: Home
    a: RunView
    b: RunView
    _made: dict[str, tuple[Hashable, Any]] = field(default_factory=dict)

    @property
    def live(self) -> bool:
        """Whether one of them goes on."""
        return self.a.live or self.b.live

    @property
    def name(self) -> str:
        """Another for every two runs."""
        return f"{self.a.run_id} {self.b.run_id}"

    @cached_property
    def sides(self) -> tuple[Side, Side]:
        """Totals and settings of both."""
        return side(self.a), side(self.b)

    @cached_property
    def diff(self) -> Diff:
        """Their trees, aligned."""
        from traces.diff import diff

        return diff(self.a, self.b)

    def once(self, name: str, of: Hashable, make: Callable[[], _T]) -> _T:
        """What `make` works out, worked out only once for each `name`; kept until `of` is another."""
        if name not in self._made or self._made[name][0] != of:
            self._made[name] = (of, make())
        return cast("_T", self._made[name][1])


def open_pair(home: Home, a: str, b: str) -> Pair:
    """Two runs by their full ids, read anew only when they are others than before or one of them went on.

    Raises InputError when one is not there (any more), RecordError when its record cannot be read.
    """
    kept = st.session_state.get(_KEPT)
    fresh = isinstance(kept, Pair) and (kept.a.run_id, kept.b.run_id) == (a, b) and not kept.live
    if not fresh or not deleted_runs(home).isdisjoint((a, b)):
        kept = Pair(home, load_run(home, a, warn=note), load_run(home, b, warn=note))
        st.session_state[_KEPT] = kept
    assert isinstance(kept, Pair)
    return kept
