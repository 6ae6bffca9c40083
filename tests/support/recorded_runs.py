"""Runs of any size and shape, written through the recorder: what the tests of the run page look at."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from rlm_core import semconv as sc
from rlm_core.telemetry import Recorder, RunSpan, as_json
from traces.home import Home
from traces.recording import Recording, open_recording

START_NS = 1_800_000_000_000_000_000  # 2027-01-15T08:00:00Z
WIDE = "20270115T080000-0000aaaa"
PER_CALL = 2  # spans of one sub-call: the call and its attempt


def recording(home: Home, run_id: str = WIDE) -> Recording:
    """An open recording whose clock moves a millisecond with every look."""
    times = itertools.count(START_NS, 1_000_000)
    clock: Callable[[], int] = lambda: next(times)  # noqa: E731
    return open_recording(home, run_id, {}, clock=clock)


def wide_run(home: Home, spans: int, run_id: str = WIDE, *, batch: int = 200) -> str:
    """A closed run of about `spans` spans: iterations with a root call and a cell with one batch each.

    Of every hundred sub-calls one fails, one comes back empty and one needs a second attempt.
    """
    with recording(home, run_id) as made:
        fill(made, spans, batch)
        made.close("ok")
    return run_id


def fill(made: Recording, spans: int, batch: int = 200) -> RunSpan:
    """The spans of `wide_run`, in a recording that stays open; returns the run span, which is ended."""
    recorder = made.recorder
    run = recorder.start(
        "run", sc.NAME_RUN, None, _place(sc.ROOT_MODEL, "test/root", sc.SUB_MODEL, "test/sub")
    )
    run.text(sc.QUESTION, "Which documents mention a refund?")
    left = max(spans - 1, 10)
    for index in itertools.count():
        calls = min(batch, (left - 5) // PER_CALL)
        if calls < 1:
            break
        _iteration(recorder, run, index, calls)
        left -= 5 + calls * PER_CALL
    run.text(sc.ANSWER, "Seventeen documents.")
    run.end("ok", {sc.STOP_REASON: "final", sc.SANDBOX: "none"})
    return run


def _iteration(recorder: Recorder, run: RunSpan, index: int, calls: int) -> None:
    place = {**_place(sc.ITERATION, index), sc.CELL: index}
    iteration = recorder.start("iteration", sc.NAME_ITERATION, run, {**place, sc.PREVIEW: "Decompose"})
    root = recorder.start("root_call", "chat test/root", iteration, {**place, sc.REQUEST_MODEL: "test/root"})
    added = [["user", root_message] for root_message in [recorder.payload(f"Turn {index}: go on.")]]
    root.set({sc.MESSAGES_PRIOR: index, sc.MESSAGES_ADDED: as_json(added)})
    root.text(sc.RESPONSE, "I ask about each document.\n\n```repl\nreplies = llm_batch(prompts)\n```")
    root.end("ok", _paid(900, 60, "0.0123"))
    cell = recorder.start("cell", sc.NAME_CELL, iteration, {**place, sc.PHASE: "Decompose"})
    cell.text(sc.CODE, "replies = llm_batch(prompts)\nprint(len(replies))")
    members = {**place, sc.BATCH_SIZE: calls}
    fan_out = recorder.start("batch", sc.NAME_BATCH, cell, members)
    for slot in range(calls):
        sub_call(recorder, fan_out, slot, {**place, sc.CALL_INDEX: slot})
    fan_out.end()
    cell.text(sc.STDOUT, f"{calls}\n")
    cell.text(sc.STDOUT_SHOWN, f"{calls}\n")
    cell.end()
    iteration.end()


def sub_call(recorder: Recorder, parent: RunSpan, slot: int, place: dict[str, str | int]) -> RunSpan:
    """One sub-call with its attempts. Slot 17 of every hundred fails, 42 is empty, 73 needs two attempts."""
    call = recorder.start("sub_call", "chat test/sub", parent, {**place, sc.REQUEST_MODEL: "test/sub"})
    call.text(sc.PROMPT, f"Does document {slot} mention a refund? Answer yes or no, then quote the passage.")
    rest = slot % 100
    if rest == 73:
        first = recorder.start("attempt", sc.NAME_ATTEMPT, call, {sc.ATTEMPT: 0, sc.RETRY_AFTER: 2.0})
        first.fail("rate_limit", "the server asked to wait")
    last = recorder.start("attempt", sc.NAME_ATTEMPT, call, {sc.ATTEMPT: int(rest == 73)})
    if rest == 17:
        last.fail("server", "the server answered with status 500")
        call.fail("server", "the server answered with status 500")
        return call
    last.end("ok", {sc.FINISH_REASONS: '["stop"]'})
    call.text(sc.RESPONSE, "" if rest == 42 else f"yes: “refund of order {slot}”")
    ranges = {"how": "reference", "ranges": [[slot, 0, 120]]}
    call.end("ok", {**_paid(120, 9, "0.000042"), sc.SOURCE_RANGES: as_json(ranges)})
    return call


def _paid(given: int, made: int, usd: str) -> dict[str, str | int | float | bool | None]:
    return {sc.USAGE_INPUT: given, sc.USAGE_OUTPUT: made, sc.COST_USD: usd, sc.COST_STATUS: "priced"}


def _place(*pairs: str | int) -> dict[str, str | int]:
    return {sc.DEPTH: 0, **{str(key): value for key, value in zip(pairs[::2], pairs[1::2], strict=True)}}
