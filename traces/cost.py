"""What runs cost, by any of role, model, depth, iteration, cell, class, corpus and day.

Sums are exact: amounts are DECIMAL in SQL and `Decimal` here. A group in which any cost is unknown has no
amount, only a lower bound (`known_usd`). Calls are root calls and sub-calls; an attempt's tokens and cost are
in its call's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from rlm_core.errors import InputError
from traces.calls import Spans, spans_of
from traces.facts import CLASSES
from traces.home import Home
from traces.rows import money_json
from traces.runs import Warn
from traces.summing import CALL_KINDS, Spend

KEYS: Final = ("role", "model", "depth", "iteration", "cell", "class", "corpus", "day")
CLASS: Final = "class"
CORPUS: Final = "corpus"
_UNDATED: Final = "run_id IN (SELECT run_id FROM run WHERE started = '')"  # a record of no times
_DAY: Final = f"""CASE WHEN start_ns > 0 AND NOT {_UNDATED}
    THEN strftime(make_timestamp(start_ns // 1000), '%Y-%m-%d') END"""
_COLUMNS: Final = {CORPUS: "corpus_id", "day": _DAY}  # keys that are no columns of the span table
CALLS: Final = f"kind IN {CALL_KINDS!r}"

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """The calls of one row: their sums, and how what one call cost is spread over them.

    `spread` is p50, p95 and the most, by nearest rank; None where no call has a known cost.
    """

    spend: Spend
    spread: Sequence[Decimal] | None

    def figures(self) -> dict[str, Any]:
        """The JSON keys of a row. The spread is null for a single call, and where a cost is unknown."""
        told = self.spread if self.spend.calls > 1 and not self.spend.unknown else None
        return figures(self.spend) | {
            name: money_json(usd) for name, usd in zip(SPREAD, told or (None,) * len(SPREAD), strict=True)
        }


def figures(spend: Spend) -> dict[str, Any]:
    """Sums as JSON values."""
    return {
        "cost_usd": money_json(spend.usd),
        "known_usd": money_json(spend.known_usd),
        "cost_status": spend.status,
        "tokens": spend.tokens,
        "calls": spend.calls,
        "untold_calls": spend.untold,
        "derived_calls": spend.derived,
    }


SPREAD: Final = ("p50_usd", "p95_usd", "max_usd")


def check_keys(by: Sequence[str]) -> tuple[str, ...]:
    """The keys to group by, each once. Raises InputError for an unknown one."""
    unknown = [key for key in by if key not in KEYS]
    if unknown:
        raise InputError(f"{unknown[0]!r} is not one of {', '.join(KEYS)}.")
    return tuple(dict.fromkeys(by))


def cost_report(
    home: Home, run_refs: Sequence[str], by: Sequence[str], *, warn: Warn | None = None
) -> dict[str, Any]:
    """Spend of the given runs (of all runs when none is given), grouped.

    {total_usd, known_usd, cost_status, tokens, calls, rows: [{<keys of by>, cost_usd, known_usd, cost_status,
    tokens, calls, p50_usd, p95_usd, max_usd}], runs_with_gaps, served_calls, refused_calls}, dearest first.
    The total is a lower bound where runs lack records; rows say what is on record. `served_calls`: calls that
    no model was asked for, in no figure; `refused_calls`: those of them that a limit refused. With `class`,
    tokens are the billable ones of that class; the class None holds what cannot be told apart by class. A day
    is the UTC date on which a call began, a corpus the id of the run's; None: not recorded. Raises InputError
    for an unknown key or run.
    """
    keys = check_keys(by)
    with spans_of(home, run_refs, warn) as spans:
        return report_of(spans, keys)


def report_of(spans: Spans, keys: Sequence[str]) -> dict[str, Any]:
    """The document of `cost_report`, for these spans and keys that were checked."""
    whole, groups = grouped(spans, keys)
    whole.add_gaps(spans.gaps)
    left_out = {"served_calls": spans.served, "refused_calls": spans.refused}
    return {**report_json(keys, whole, groups), "runs_with_gaps": spans.gaps, **left_out}


def grouped(spans: Spans, keys: Sequence[str]) -> tuple[Spend, dict[Key, Group]]:
    """The sum of all calls among the spans, and the rows by their values of the keys."""
    return _by_class(spans, keys) if CLASS in keys else _by_columns(spans, keys)


def report_json(keys: Sequence[str], whole: Spend, rows: dict[Key, Group]) -> dict[str, Any]:
    """The document of `rlmscope cost`."""
    total = figures(whole)
    ordered = [{**dict(zip(keys, key, strict=True)), **rows[key].figures()} for key in _sorted(rows)]
    return {"total_usd": total.pop("cost_usd"), **total, "rows": ordered}


def _sorted(rows: dict[Key, Group]) -> list[Key]:
    """Dearest first; equal ones by their keys, unknown keys last."""

    def order(key: Key) -> tuple[Any, ...]:
        return -rows[key].spend.known_usd, *((part is None, str(type(part)), part or 0) for part in key)

    return sorted(rows, key=order)


def _by_columns(spans: Spans, keys: Sequence[str]) -> tuple[Spend, dict[Key, Group]]:
    """The sum of all calls, and those by columns of the span table."""
    whole, groups = _groups(spans, keys, [])
    return whole, {key: group for key, (group,) in groups.items()}


def _by_class(spans: Spans, keys: Sequence[str]) -> tuple[Spend, dict[Key, Group]]:
    """The sum of all calls, and those by class (and columns): a call may stand in several."""
    columns = [key for key in keys if key != CLASS]
    whole, groups = _groups(spans, columns, [*map(_class_sums, CLASSES), _REST])
    found: dict[Key, Group] = {}
    for key, (_, *parts) in groups.items():
        for name, part in zip((*CLASSES, None), parts, strict=True):
            if part.spend.calls:
                place = {**dict(zip(columns, key, strict=True)), CLASS: name}
                found[tuple(place[column] for column in keys)] = part
    return whole, found


def _groups(
    spans: Spans, columns: Sequence[str], more: Sequence[str]
) -> tuple[Spend, dict[Key, list[Group]]]:
    """The sum of all calls; for each combination of columns the group of its calls, then those of `more`."""
    grouping = f"GROUP BY {', '.join(str(place + 1) for place in range(len(columns)))}" if columns else ""
    chosen = ", ".join([*(_COLUMNS.get(name, name) for name in columns), _SUMS, *more])
    joined = f"LEFT JOIN {spans.corpora} USING (run_id)" if CORPUS in columns else ""
    sql = f"SELECT {chosen} FROM {{spans}} {joined} WHERE {CALLS} {grouping}"
    whole, width, found = Spend(), len(columns), {}
    for row in spans.rows(sql):
        places = range(width, len(row), _WIDTH)
        groups = [Group(Spend(*row[at : at + _SPENT]), row[at + _SPENT]) for at in places]
        if groups[0].spend.calls:  # without grouping, SQL gives one row of zeros for no calls
            whole.add(groups[0].spend)
            found[row[:width]] = groups
    return whole, found


def _class_sums(name: str) -> str:
    tokens, usd = f"class_{name}", f"usd_{name}"
    given, made = ("0", tokens) if name == "output" else (tokens, "0")
    unknown = f"count(*) FILTER (WHERE {tokens} > 0 AND {usd} IS NULL)"
    return _sums_of(f"{tokens} > 0", given, made, usd, unknown)


_UNTOLD: Final = "trust IS NOT NULL AND tok_input IS NULL"
_DERIVED: Final = 'regexp_matches(trust, \'"(tokens|cost)": ?"derived"\')'


def _sums_of(counted: str, given: str, made: str, usd: str, unknown: str) -> str:
    """SQL for the fields of `Spend`, in their order, and the spread, over the calls that `counted` picks."""
    statuses = [
        f"count(*) FILTER (WHERE {counted} AND cost_status = '{status}')" for status in ("priced", "demo")
    ]
    marks = [f"count(*) FILTER (WHERE {counted} AND {mark})" for mark in (_UNTOLD, _DERIVED)]
    sums = [f"coalesce(sum({part}), 0)" for part in (given, made, usd)]
    picked = "" if counted == "TRUE" else f"FILTER (WHERE {counted})"
    # nearest rank; p50, p95 and the most are asked for at once and unfiltered where that is the same: each
    # asking orders a million amounts anew
    spread = f"quantile_disc({usd}, [0.5, 0.95, 1]) {picked}"
    return ", ".join([f"count(*) {picked}", *sums, unknown, *statuses, *marks, spread])


_KNOWN: Final = "coalesce(cost_usd, so_far_usd)"
_SUMS: Final = _sums_of("TRUE", "tok_input", "tok_output", _KNOWN, "count(*) - count(cost_usd)")
_SPENT: Final = len(Spend.__slots__)
_WIDTH: Final = _SPENT + 1
_CLASSED: Final = " + ".join(f"usd_{name}" for name in CLASSES)
_CLASSLESS: Final = "(class_input IS NULL OR (cost_usd IS NULL AND tok_input + tok_output = 0))"
#: What the classes leave over: calls without tokens, amounts that do not come from their own tokens, and what
#: is known of calls without an end.
_REST: Final = _sums_of(
    f"({_CLASSLESS} OR so_far_usd IS NOT NULL OR cost_usd <> {_CLASSED})",
    "0",
    "0",
    f"coalesce(cost_usd - ({_CLASSED}), so_far_usd)",
    f"count(*) FILTER (WHERE cost_usd IS NULL AND ({_CLASSLESS} OR so_far_usd IS NOT NULL))",
)
