"""Findings about cells: what their code hides, where they broke, what of their output the root never saw."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

from rlm_core import semconv as sc
from traces.facts import Facts
from traces.fallback import Fallbacks
from traces.finding import Finding, Severity, decoded, ids, number_of, some_of, spans_of
from traces.rows import SpanRow
from traces.view import RunView

#: Rule of the engine's checks -> severity and what the code does, behind "... cells".
CHECKS: Final[dict[str, tuple[Severity, str]]] = {
    "drops_documents": ("serious", "give sub-calls only a small part of the documents"),
    "swallowed_exception": (
        "check",
        "catch every exception around a sub-call: a failure leaves no trace",
    ),
    "error_text_as_data": ("check", "look for error words in replies, though a failed sub-call is no text"),
}


def checked(view: RunView) -> Iterator[Finding]:
    """What the engine's checks of the code found before it ran."""
    found: dict[str, list[SpanRow]] = defaultdict(list)
    lines: dict[str, list[str]] = defaultdict(list)
    for cell in spans_of(view, "cell"):
        for rule, line in _checks(cell):
            if not found[rule] or found[rule][-1] is not cell:
                found[rule].append(cell)
            lines[rule].append(f"cell {cell.cell} line {line}")
    for rule, (severity, does) in CHECKS.items():
        if cells := found[rule]:
            words = f"Cells that {does}: {len(cells):,} ({some_of(lines[rule])})."
            yield Finding(rule, severity, words, len(cells), ids(cells))


def _checks(cell: SpanRow) -> Iterator[tuple[str, int]]:
    """Rule and line of each remark of the checks that is one."""
    remarks = decoded(cell.attributes, sc.FINDINGS)
    for remark in remarks if isinstance(remarks, list) else []:
        if isinstance(remark, dict) and isinstance(remark.get("rule"), str):
            line = remark.get("line")
            yield remark["rule"], line if type(line) is int else 0


def fallbacks(view: RunView) -> Iterator[Finding]:
    """Code that puts a value of its own where a text cannot be read as a number, date or JSON."""
    if found := Fallbacks(view).by_cell:
        lines = [
            f"cell {view.by_id[key].cell} line {one.line}" for key, ones in found.items() for one in ones
        ]
        words = f"Cells that quietly go on where a text cannot be parsed: {len(found):,} ({some_of(lines)}). "
        words += "How often that happened is not on record."
        yield Finding("parse_fallback", "check", words, len(found), tuple(found))


def broken(view: RunView) -> Iterator[Finding]:
    """Cells that ended with an exception, and those that ended a worker."""
    failed = [cell for cell in spans_of(view, "cell") if cell.status == "error"]
    died = [cell for cell in failed if _exception(cell) == "WorkerDied"]
    if died:
        lost = sorted({name for cell in died for name in _lost(cell)})
        names = f" Gone since: {some_of(lost)}." if lost else ""
        words = f"Cells that ended the worker, which was then built anew: {len(died):,}.{names}"
        yield Finding("worker_lost", "check", words, len(died), ids(died))
    if others := [cell for cell in failed if _exception(cell) != "WorkerDied"]:
        kinds = Counter(_exception(cell) for cell in others)
        named = some_of((f"{kind} ({count})" for kind, count in kinds.most_common()), 4)
        calling = {span.parent_id for span in view.spans if span.kind in ("sub_call", "batch")}
        wasted = sum(cell.span_id in calling for cell in others)
        more = f" {wasted:,} of them had made sub-calls." if wasted else ""
        words = f"{number_of(len(others), 'cell')} ended with an exception: {named}.{more}"
        yield Finding("exception", "check" if wasted else "note", words, len(others), ids(others))


def _exception(cell: SpanRow) -> str:
    return Facts(cell.attributes).text(sc.EXCEPTION_TYPE) or cell.error_type or "unknown"


def _lost(cell: SpanRow) -> list[str]:
    names: Any = decoded(cell.attributes, sc.LOST_NAMES)
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def cut_output(view: RunView) -> Iterator[Finding]:
    """Cells that printed more than the root was shown."""
    hidden: dict[str, int] = {}
    for cell in spans_of(view, "cell"):
        rule = decoded(cell.attributes, sc.STDOUT_RULE)
        most = rule.get("shown_chars") if isinstance(rule, dict) else None
        true = Facts(cell.attributes).count(sc.STDOUT_TRUE_CHARS)
        if type(most) is int and true is not None and true > most:
            hidden[cell.span_id] = true - most
    if hidden:
        words = f"The root did not see all that {number_of(len(hidden), 'cell')} printed: "
        words += f"{sum(hidden.values()):,} characters were left out in the middle."
        yield Finding("output_cut", "note", words, len(hidden), tuple(hidden))
