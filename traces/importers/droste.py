"""Traces of droste: its events as lines of JSON, its run record, and the result that its command prints.

Which of its events a record holds is for who kept them to choose; without those that carry text there is
little more than the accounts of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from traces.importers.droste_run import Run
from traces.importers.foreign import ForeignRun
from traces.importers.source import Source
from traces.importers.values import (
    Document,
    Once,
    count,
    digest,
    documents,
    in_order,
    items,
    moment,
    table,
    text,
)

_SEEN: Final = 5_000  # events of a file that a reader looks at to recognise it
_MISSING: Final = (
    "Prompts and replies of sub-calls are not in the record, nor which slot of a batch took which tokens.",
    "The question and the documents are not in the record, nor what root calls were sent.",
    "The record holds no costs.",
    "Durations lie between the times of events.",
    "Of its settings (scaffold, prompt pack, retention, policy) and its ledger of budgets only models, "
    "limits and tokens are taken in.",
)


def recognises(source: Source) -> bool:
    """Whether it holds events of droste, or a record of them."""
    if source.is_folder:
        return False
    head = source.head()
    if not (b'"persistence_class"' in head or b'"data_use"' in head):
        return False
    if any(_is_event(line) for line in source.first_lines(_SEEN)):
        return True
    return any(_record(found.value) for found in documents(source, _is_wanted))


def read(source: Source) -> Iterator[ForeignRun]:
    """A run for each run id without a parent in the file. Raises InputError when there is none."""
    runs: dict[str, Run] = {}
    problems: list[str] = []
    events: dict[str, list[Mapping[str, Any]]] = {}
    for event in _in_order(_events(source, problems), problems):
        name, above = event["run_id"], text(event.get("parent_run_id"))
        run = runs.get(name)
        if run is None:
            run = runs[name] = Run(name, above)
            if above is not None and above in runs:
                runs[above].asks(run)
        events.setdefault(name, []).append(event)
        run.take(str(event["type"]), event, moment(event.get("timestamp")))
    tops = [run for run in runs.values() if run.above not in runs]
    if not tops:
        raise InputError(f"{source.name} holds no events of droste that can be read.")
    for run in tops:
        yield _read(run, events, problems)


def _in_order(found: Iterator[Mapping[str, Any]], problems: list[str]) -> Iterator[Mapping[str, Any]]:
    """Each event once, and those of a run in order: its places among the others stay."""
    once, places = Once(), list[str]()
    of_runs: dict[str, list[Mapping[str, Any]]] = {}
    for event in found:
        if once.is_first((event["run_id"], event["seq"], event["type"]), event):
            places.append(event["run_id"])
            of_runs.setdefault(event["run_id"], []).append(event)
    problems += once.problems("Events")
    ordered = {
        name: iter(in_order(events, f"Events of the run {name[:80]}", problems))
        for name, events in of_runs.items()
    }
    yield from (next(ordered[name]) for name in places)


def _is_event(value: Any) -> bool:
    event = table(value)
    named = text(event.get("run_id")) is not None and text(event.get("type")) is not None
    return named and "persistence_class" in event and count(event.get("seq")) is not None


def _record(value: Any) -> Mapping[str, Any]:
    """The run record that a document is or holds; empty for others."""
    found = table(value)
    record = found if "events" in found else table(found.get("run_record"))
    return record if any(map(_is_event, items(record.get("events"))[:1])) else {}


def _is_wanted(value: Any) -> bool:
    return _is_event(value) or bool(_record(value))


def _events(source: Source, problems: list[str]) -> Iterator[Mapping[str, Any]]:
    lost = 0
    for found in _found(source):
        if found.problem is not None and found.problem not in problems:
            problems.append(found.problem)
        for event in _listed(found.value):
            if _is_event(event):
                yield event
            else:
                lost += event is not None
    if lost:
        problems.append(f"Events that cannot be read: {lost:,}.")


def _listed(value: Any) -> list[Any]:
    """The events of a document. What the command prints beside a run record is what the event of the result
    holds, which is not among those that are always kept.
    """
    record = _record(value)
    if not record:
        return [value]
    events = items(record.get("events"))
    if record is value:
        return events
    printed = table(value)
    root = {"inference": {"root": {"id": printed.get("model")}}}
    result = {"scaffold_manifest": root} | {key: printed[key] for key in printed if key != "run_record"}
    last = {**events[0], "seq": max(count(table(event).get("seq")) or 0 for event in events)}
    return [*events, {**last, "type": "result", "timestamp": None, "result": result}]


def _found(source: Source) -> Iterator[Document]:
    """Events by lines, as they are read; else what the document holds."""
    if not any(_is_event(line) for line in source.first_lines(_SEEN)):
        yield from documents(source, _is_wanted)
        return
    lost = 0
    for line in source.lines():
        lost += line.value is None
        yield Document(line.value)
    if lost:
        yield Document(None, False, f"Lines of the file that cannot be read: {lost:,}.")


def _read(run: Run, events: Mapping[str, list[Mapping[str, Any]]], problems: list[str]) -> ForeignRun:
    inside = list(run.with_those_below())
    for one in reversed(inside):
        one.finish()
    bad = sum(one.unusable for one in inside)
    if any(one.balance.lacks_calls for one in inside):
        run.span.attributes[sc.IMPORT_LACKS_CALLS] = True
    problems = problems + [said for one in inside for said in one.balance.problems]
    problems += [f"Counts of usage that are in the record, but unusable: {bad:,}."] if bad else []
    missing = list(_MISSING)
    for told in (one.missing for one in inside):
        missing += [sentence for sentence in told if sentence not in missing]
    return ForeignRun(
        format="droste",
        engine=f"droste {run.version}" if run.version else "droste",
        key=digest([events[one.name] for one in inside]),
        stem=run.name,
        top=run.span,
        root_model=run.root_model,
        sub_model=run.sub_model,
        missing=missing,
        problems=problems,
        closed=run.ended,
    )
