"""The overview: children, prompts, dear calls and limits of one run."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from rlm_core import semconv as sc
from rlm_core.model_calls import NOTHING_BILLED
from rlm_core.telemetry import Recorder, RunSpan, as_json, sha256_text
from tests.support.recorded_runs import wide_run
from tests.traces.records import RUN, fin, header, home_in, recording, start, write_spool
from traces.home import Home
from traces.overview import overview
from traces.reading import RunView, load_run
from traces.side_by_side import side


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return home_in(tmp_path)


def ask(recorder: Recorder, parent: RunSpan, prompt: str, *, pattern: str, depth: int = 0) -> None:
    place = {sc.DEPTH: depth, sc.CELL: 0, sc.CALL_LINE: 1, sc.TEMPLATE_HASH: sha256_text(pattern)}
    call = recorder.start("sub_call", "chat s", parent, place)
    call.text(sc.PROMPT, prompt)
    call.text(sc.RESPONSE, "yes")
    call.end("ok", {sc.COST_USD: "0.5", sc.COST_STATUS: "priced", sc.USAGE_INPUT: 10, sc.USAGE_OUTPUT: 1})


def nested(home: Home) -> RunView:
    """A run whose cell asked two questions of a pattern and started a child run, which asked one."""
    with recording(home) as made:
        recorder = made.recorder
        run = recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0})
        cell = recorder.start("cell", sc.NAME_CELL, run, {sc.CELL: 0, sc.DEPTH: 0})
        for name in ("Ann", "Alice"):
            ask(recorder, cell, f"Is {name} owed anything? Say yes or no.", pattern="owed")
        ask(recorder, cell, "And in all?", pattern="all")
        child = recorder.start("run", sc.NAME_RUN, cell, {sc.DEPTH: 1})
        inner = recorder.start("cell", sc.NAME_CELL, child, {sc.CELL: 0, sc.DEPTH: 1})
        ask(recorder, inner, "What of Zoe?", pattern="zoe", depth=1)
        for span in (inner, child, cell):
            span.end()
        run.end("ok", {sc.LEDGER: as_json({"calls": {"spent": 4, "limit": 4}})})
        made.close("ok")
    return load_run(home, RUN)


def test_children_are_counted_by_depth_and_by_the_cell_that_started_them(home: Home) -> None:
    seen = overview(nested(home))
    assert seen.by_depth == {0: (3, 1), 1: (1, 0)}
    first, second = seen.fan_outs
    assert (first.sub_calls, first.child_runs, dict(first.outcomes)) == (3, 1, {"ok": 4})
    assert (second.sub_calls, second.child_runs) == (1, 0)
    assert (first.spend.usd, second.spend.usd) == (2, Decimal("0.5"))  # a cell's spend is all below it


def test_prompts_of_one_pattern_are_one_row_with_what_they_have_in_common(home: Home) -> None:
    seen = overview(nested(home))
    first = seen.prompts[0]
    assert (first.calls, first.begin, first.end) == (2, "Is ", " owed anything? Say yes or no.")
    assert not first.whole
    assert [(one.begin, one.whole) for one in seen.prompts[1:]] == [
        ("And in all?", True),
        ("What of Zoe?", True),
    ]


def test_prompts_that_code_built_anew_for_every_call_are_one_row(home: Home) -> None:
    with recording(home) as made:
        cell = made.recorder.start("cell", sc.NAME_CELL, None, {sc.CELL: 0})
        for number in range(12):
            ask(made.recorder, cell, f"Tell me about {'x' * number}!", pattern=str(number))
        cell.end()
        made.close("ok")
    (only,) = overview(load_run(home, RUN)).prompts
    assert (only.calls, only.patterns, only.begin) == (12, 12, "Tell me about ")


def test_what_the_lists_leave_out_is_counted(home: Home) -> None:
    seen = overview(load_run(home, wide_run(home, 2_000, batch=100)))
    assert len(seen.fan_outs) == len(seen.dearest) == 6
    assert seen.rest["cells"] == 4
    assert seen.rest["calls"] == seen.total.calls - 6
    assert [span.kind for span in seen.dearest] == ["root_call"] * 6


def test_without_known_cost_the_dearest_are_those_with_most_tokens(home: Home) -> None:
    usage = {sc.USAGE_INPUT: 10, sc.USAGE_OUTPUT: 1, sc.COST_STATUS: "unknown"}
    calls = [start(str(n), a={**usage, sc.USAGE_INPUT: n}) for n in (5, 9, 7)]
    write_spool(home, [header(), *calls, fin()])
    seen = overview(load_run(home, RUN))
    assert seen.dear_by == "tokens"
    assert [span.span_id for span in seen.dearest] == ["9", "7", "5"]


def test_calls_that_met_a_limit_are_listed_by_what_happened(home: Home) -> None:
    with recording(home) as made:
        cell = made.recorder.start("cell", sc.NAME_CELL, None, {sc.CELL: 0})
        for kind in ("budget", "timeout", "server"):
            made.recorder.start("sub_call", "chat s", cell, NOTHING_BILLED).fail(kind, "no")
        cut = made.recorder.start("sub_call", "chat s", cell, {})
        cut.end("ok", {sc.FINISH_REASONS: '["length"]'})
        cell.fail("KeyboardInterrupt", "8 or more sub-calls refused by the budget")
        made.close("ok")
    seen = overview(load_run(home, RUN))
    assert {name: len(spans) for name, spans in seen.events.items()} == {
        "refused": 1,
        "timeout": 1,
        "cut off": 1,
        "interrupted": 1,
    }
    (started,) = seen.fan_outs
    assert (started.sub_calls, started.refused, started.outcomes) == (3, 1, {"error": 2, "ok": 1})
    assert seen.by_depth == {0: (3, 0)} and seen.total.calls == 3
    assert sum(one.calls for one in seen.prompts) == 3


def test_a_reached_limit_is_told(home: Home) -> None:
    (calls,) = (limit for limit in overview(nested(home)).limits if limit.name == "sub-calls")
    assert (calls.words, calls.share, calls.over) == ("4 of 4", 1.0, False)


def test_a_run_of_nothing_has_an_overview(home: Home) -> None:
    write_spool(home, [header(), fin()])
    seen = overview(load_run(home, RUN))
    assert (seen.by_depth, seen.fan_outs, seen.prompts, seen.dearest) == ({}, (), (), ())


def test_a_circle_of_parents_and_calls_without_a_cell_are_counted_all_the_same(home: Home) -> None:
    calls = [start("a", "b"), start("b", "a"), start("c", "gone"), start("d", None)]
    write_spool(home, [header(), *calls, fin()])
    seen = overview(load_run(home, RUN))
    assert [(one.cell, one.sub_calls) for one in seen.fan_outs] == [(None, 4)]
    assert side(load_run(home, RUN)).children == 0
