"""Which spans of a run its tree shows, and in what order: chosen in fields, kept in the address.

Keys of the address: `status`, `role`, `depth`, `phase` and `model` (as often as wanted, any of them fits),
`over` (dollars), `sort`. `status` takes outcomes, "suspect", and kinds of what speaks against a suspect.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final

import streamlit as st

from traces.narrow import FIELDS, SUSPECT, Fitting, Narrow, fitting, words_of
from traces.reading import RunView, SpanRow
from traces.suspects import WEIGHTS
from traces.tree import OUTCOMES
from ui.figures import counted
from ui.visible import line
from ui.web.address import put, put_choice
from ui.web.notices import note, problem
from ui.web.run_record import Record
from ui.web.tree_rows import ORDERS, Shape, TreeRows, tree_rows

TITLES: Final = {"status": "Status", "role": "Role", "depth": "Depth", "phase": "Phase", "model": "Model"}
STATUSES: Final = (*OUTCOMES, SUSPECT, *(kind for kind in WEIGHTS if kind not in OUTCOMES))
_ORDER_TITLES: Final = {
    "order": "Fan-outs as recorded",
    "cost": "Fan-outs: dearest first",
    "time": "Fan-outs: slowest first",
    "suspicion": "Fan-outs: suspects first",
}
_ORDER_HELP: Final = "The order of the calls inside a fan-out. As recorded, what went wrong comes first."
_OVER_HELP: Final = "Only calls that are known to have cost more than this many dollars."
_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "run": ("run",),
    "iteration": ("iteration",),
    "root_call": ("root call",),
    "cell": ("cell",),
    "batch": ("batch", "batches"),
    "sub_call": ("sub-call",),
    "attempt": ("attempt",),
}
_ADDRESS_CHARS: Final = 60  # of a word in the address that is said to be unknown


@dataclass(frozen=True, slots=True)
class Narrowed:
    """The rows to show. `found` is None when no filter is set."""

    rows: TreeRows
    found: Fitting | None
    title: str | None  # for the rows: how many fit, and how many do not


def narrowed(record: Record) -> Narrowed:
    """The rows that the address asks for; what in it is not known is said, and left out."""
    narrow, order = _narrow(record), _order()
    if not narrow and order == "order":
        return Narrowed(record.rows, None, None)
    found = record.once(partial(_fitting, record, narrow), "fitting", narrow) if narrow else None
    shape = Shape(found.spans if found else None, order, record.suspects, f"{narrow} {order}")
    rows = record.once(partial(tree_rows, shape=shape), "narrowed rows", (narrow, order))
    return Narrowed(rows, found, _title(record, rows, found))


def _fitting(record: Record, narrow: Narrow, view: RunView) -> Fitting:
    return fitting(_with_rows(record, view), narrow, _signals(record), record.refused)


def _with_rows(record: Record, view: RunView) -> list[SpanRow]:
    """The spans with a row of their own: of a call that took one attempt the call, as the chips count."""
    single = record.rows.single
    return [span for span in view.spans if span.span_id not in single]


def _signals(record: Record) -> dict[str, set[str]]:
    """The kinds of signals of each suspect."""
    return {span: {signal.kind for signal in each.signals} for span, each in record.suspects.items()}


def _title(record: Record, rows: TreeRows, found: Fitting | None) -> str | None:
    if found is None:
        return None
    fits, whole = len(found.spans), len(record.view.spans) - record.rows.folded
    parents = len(rows.place) - rows.folded - sum(span in rows.place for span in found.spans)
    kept = f"; {counted(parents, 'more stands', 'more stand')} above or around them" if parents else ""
    return (
        f"{fits:,} of {counted(whole, 'row')} fit{_kinds(record, found)}{kept}; "
        f"{whole - fits - parents:,} filtered out"
    )


def _kinds(record: Record, found: Fitting) -> str:
    """What fits by its kind: chips that lead here count sub-calls."""
    kinds = Counter(record.view.by_id[span].kind for span in found.spans)
    named = [counted(kinds[kind], *words) for kind, words in _KINDS.items() if kinds[kind]]
    return f": {', '.join(named)}" if named else ""


def filters(record: Record, shown: Narrowed) -> None:
    """The fields, and the way to be rid of them."""
    narrow = _narrow(record, quiet=True)
    label = f"Filters ({_set_fields(narrow)})" if narrow else "Filters"
    with st.popover(label, width="content"):
        for name, counts in record.once(partial(_options, record), "filter-options").items():
            chosen = getattr(narrow, name)
            if len(counts) > 1 or chosen:
                _field(name, counts, chosen)
        _over_field(narrow.over)
        if narrow:
            st.button("Clear filters", key="run-clear-filters", on_click=clear)
    if shown.found is not None and shown.found.unknown:
        calls = counted(shown.found.unknown, "call")
        note(f"{calls} of unknown cost may have cost more than that or less, and are left out.")


def order_field() -> None:
    """The field for the order of the calls inside a fan-out."""
    _keep("run-order", _order(quiet=True))
    st.selectbox(
        "Order of fan-outs",
        ORDERS,
        format_func=_ORDER_TITLES.__getitem__,
        key="run-order",
        help=_ORDER_HELP,
        on_change=_order_chosen,
        label_visibility="collapsed",
        width=215,
    )


def clear() -> None:
    """Forget all filters."""
    for name in (*TITLES, "over"):
        st.query_params.pop(name, None)


def _set_fields(narrow: Narrow) -> int:
    return sum(bool(getattr(narrow, name)) for name in TITLES) + (narrow.over is not None)


# -- the address


def _narrow(record: Record, *, quiet: bool = False) -> Narrow:
    known = record.once(partial(_options, record), "filter-options")
    asked: dict[str, Any] = {}
    for name, counts in known.items():
        words = tuple(dict.fromkeys(st.query_params.get_all(name)))
        # a status is known though no span of this run has it; of the rest only the run's own are
        allowed = {*STATUSES, *counts} if name == "status" else counts
        asked[name] = tuple(word for word in words if word in allowed)
        if not quiet:
            for word in words:
                if word not in allowed:
                    problem(f"No span of this run has the {name} “{word[:_ADDRESS_CHARS]}”; it is left out.")
    return Narrow(**asked, over=_over(quiet))


def _over(quiet: bool) -> Decimal | None:
    raw = st.query_params.get("over")
    if not raw:
        return None
    try:
        over = Decimal(raw)
    except InvalidOperation:
        over = Decimal(-1)
    if over.is_finite() and over >= 0:
        return over
    if not quiet:
        problem(f"“{raw[:_ADDRESS_CHARS]}” is no amount of dollars; the filter by cost is left out.")
    return None


def _order(*, quiet: bool = False) -> str:
    order = st.query_params.get("sort", ORDERS[0])
    if order in ORDERS:
        return order
    if not quiet:
        problem(f"There is no order “{order[:_ADDRESS_CHARS]}”; fan-outs stand as recorded.")
    return ORDERS[0]


def _options(record: Record, view: RunView) -> dict[str, dict[str, int]]:
    """For each field the words that spans of the run have, with how many do."""
    signals = _signals(record)
    counts: dict[str, Counter[str]] = {name: Counter() for name in TITLES}
    for span in _with_rows(record, view):
        counts["status"].update(words_of(span, signals, record.refused))
        for name, read in FIELDS.items():
            if (word := read(span)) is not None:
                counts[name][word] += 1
    ordered = {
        name: dict(sorted(counts[name].items(), key=lambda item: _depth_first(item[0]))) for name in counts
    }
    ordered["status"] = {word: counts["status"][word] for word in STATUSES if counts["status"][word]}
    return ordered


def _depth_first(word: str) -> tuple[int, str]:
    return (int(word), "") if word.isdecimal() and len(word) < 9 else (0, word)


# -- the fields


def _keep(key: str, value: Any) -> None:
    """Make a field show what the address says, without disturbing one that shows it."""
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value


def _field(name: str, counts: dict[str, int], chosen: tuple[str, ...]) -> None:
    key = f"run-filter-{name}"
    _keep(key, list(chosen))
    st.multiselect(
        TITLES[name],
        list(dict.fromkeys([*counts, *chosen])),
        format_func=lambda word: f"{line(word)} ({counts.get(word, 0):,})",
        key=key,
        placeholder="any",
        on_change=_chosen,
        args=(name, key),
    )


def _chosen(name: str, key: str) -> None:
    st.query_params[name] = st.session_state[key]  # a list: the key once for each


def _over_field(over: Decimal | None) -> None:
    _keep("run-filter-over", None if over is None else float(over))
    st.number_input(
        "Cost over ($)",
        min_value=0.0,
        step=0.001,
        format="%g",
        key="run-filter-over",
        value=None,
        placeholder="any",
        help=_OVER_HELP,
        on_change=_over_chosen,
    )


def _over_chosen() -> None:
    over = st.session_state["run-filter-over"]
    put("over", None if over is None else f"{over:g}")


def _order_chosen() -> None:
    put_choice("sort", st.session_state["run-order"], ORDERS[0])
