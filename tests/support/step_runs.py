"""Recorded runs to step through: child runs, cells that fail, variables that come and go, long texts."""

from __future__ import annotations

import json
from typing import Any

from rlm_core import semconv as sc
from rlm_core.telemetry import Recorder, RunSpan, as_json
from tests.support.recorded_runs import recording
from traces.home import Home
from traces.recording import Recording

NESTED = "20270115T080000-0000c001"
LONG = "20270115T080000-0000c002"
MANY = "20270115T080000-0000c003"
NEEDLE = "refund of order 999"
_PAID: dict[str, Any] = {
    sc.USAGE_INPUT: 900, sc.USAGE_OUTPUT: 60, sc.COST_USD: "0.0123", sc.COST_STATUS: "priced",
}  # fmt: skip


def nested_run(home: Home, run_id: str = NESTED) -> str:
    """Three iterations, of which the second runs two cells, asks two child runs and fails; a forced end."""
    with recording(home, run_id) as made:
        run = fill_nested(made)
        run.text(sc.ANSWER, "42 tickets")
        run.end("ok", {sc.STOP_REASON: "final", sc.ANSWER_CELL: 3})
        made.close("ok")
    return run_id


def fill_nested(made: Recording) -> RunSpan:
    """The steps of `nested_run`; its run span stays open."""
    recorder = made.recorder
    run = recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0, sc.ROOT_MODEL: "r", sc.SUB_MODEL: "s"})
    run.text(sc.QUESTION, "How many letters ask for a refund?")
    first = turn(recorder, run, 0, 0, [("system", "You write cells."), ("user", "# Question\nHow many?")])
    looking = cell(
        recorder,
        first,
        0,
        "total = 1\nlabels = ['billing']",
        [_row("total", "new", "1"), _row("labels", "new", "['billing']", 1)],
    )
    looking.end()
    first.end("ok", {sc.PHASE: '["Explore"]'})
    second = turn(recorder, run, 1, 2, [("assistant", "I look."), ("user", "# Output\nnothing")])
    asking = cell(
        recorder,
        second,
        1,
        "parts = [rlm_query(q, d) for d in documents]",
        [_row("parts", "new", "['12', '30']", 2)],
    )
    for number in range(2):
        child_run(recorder, asking, number)
    asking.end("ok", {sc.PHASE: "Decompose"})
    bad = cell(recorder, second, 2, "total = 1 / 0", [{"name": "labels", "change": "deleted"}])
    bad.text(sc.EXCEPTION, "ZeroDivisionError: division by zero")
    bad.fail("ZeroDivisionError", "division by zero")
    second.end("ok", {sc.PHASE: '["Decompose", "Explore"]'})
    last = turn(recorder, run, 2, 4, [("assistant", "I divide."), ("user", "# Output\nZeroDivisionError")])
    done = cell(recorder, last, 3, "total = 42\nFINAL_VAR('total')", [_row("total", "changed", "42")])
    done.end("ok", {sc.PHASE: "Terminate"})
    last.end("ok", {sc.PHASE: '["Terminate"]'})
    return run


def turn(
    recorder: Recorder, run: RunSpan, number: int, prior: int, messages: list[tuple[str, str]]
) -> RunSpan:
    """An iteration with an ended root call."""
    iteration = recorder.start("iteration", sc.NAME_ITERATION, run, {sc.ITERATION: number})
    root = recorder.start("root_call", "chat r", iteration, {sc.REQUEST_MODEL: "r", sc.ITERATION: number})
    added = [[role, recorder.payload(text)] for role, text in messages]
    root.set({sc.MESSAGES_PRIOR: prior, sc.MESSAGES_ADDED: as_json(added)})
    root.text(sc.RESPONSE, f"Reply {number}.")
    root.end("ok", _PAID)
    return iteration


def cell(
    recorder: Recorder, iteration: RunSpan, number: int, code: str, rows: list[dict[str, Any]] | None = None
) -> RunSpan:
    """A cell that stays open."""
    made = recorder.start("cell", sc.NAME_CELL, iteration, {sc.CELL: number, sc.PHASE: "Explore"})
    made.text(sc.CODE, code)
    made.text(sc.STDOUT, f"printed {number}\n")
    made.text(sc.STDOUT_SHOWN, f"printed {number}")
    if rows is not None:
        made.text(sc.VARIABLES, json.dumps(rows))
    return made


def child_run(recorder: Recorder, parent: RunSpan, number: int) -> None:
    """A child run of two iterations; the second one is asked for more than it has."""
    child = recorder.start("run", sc.NAME_RUN, parent, {sc.DEPTH: 1, sc.CALL_INDEX: number})
    child.text(sc.QUESTION, f"How many in part {number}?")
    for index in range(2):
        iteration = turn(recorder, child, index, index * 2, [("user", f"Part {number}, turn {index}.")])
        cell(
            recorder,
            iteration,
            index,
            f"seen_{index} = {number}",
            [_row(f"seen_{index}", "new", f"{number}")],
        ).end()
        iteration.end("ok", {sc.PHASE: '["Explore"]'})
    child.text(sc.ANSWER, str(12 + 18 * number))
    child.end("ok")


def long_run(home: Home, run_id: str = LONG, *, orders: int = 40_000) -> str:
    """A run with a sub-call whose prompt is long; NEEDLE stands in it once in every thousand lines."""
    with recording(home, run_id) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        call = made.recorder.start("sub_call", "chat s", run, {sc.REQUEST_MODEL: "s"})
        call.text(sc.PROMPT, "".join(f"line {n}: refund of order {n % 1000}\n" for n in range(orders)))
        call.text(sc.RESPONSE, "yes")
        call.end("ok", _PAID)
        run.end()
        made.close("ok")
    return run_id


def many_steps(home: Home, run_id: str = MANY, *, steps: int = 1_800) -> str:
    """A run of very many iterations with one cell each; one in a hundred fails."""
    with recording(home, run_id) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        for number in range(steps):
            iteration = turn(made.recorder, run, number, number, [("user", f"Turn {number}.")])
            one = cell(
                made.recorder,
                iteration,
                number,
                f"n = {number}",
                [_row("n", "changed" if number else "new", f"{number}")],
            )
            if number % 100 == 50:
                one.fail("ValueError", "no")
            else:
                one.end()
            iteration.end()
        run.end()
        made.close("ok")
    return run_id


def _row(name: str, change: str, preview: str, size: int | None = None) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "change": change, "preview": preview}
    return {**row, "type": "int"} if size is None else {**row, "type": "list", "size": size}
