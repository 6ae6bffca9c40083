"""A run step by step: which steps it has, what each of them heard, asked and left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_core import semconv as sc
from tests.traces.records import RUN, body, end, fin, header, home_in, start, write_spool
from traces.home import Home
from traces.reading import RunView, load_run
from traces.spool import DECODER
from traces.steps import Replay, Step
from traces.subtotals import below
from traces.view import SpoolRun

Record = dict[str, Any]


def replay_of(folder: Path, *records: Record) -> Replay:
    return Replay(view_of(home_in(folder), *records))


def view_of(home: Home, *records: Record) -> RunView:
    write_spool(home, [header(), *records, fin()])
    return load_run(home, RUN)


def top(replay: Replay) -> tuple[Step, ...]:
    return replay.steps(replay.runs()[0])


def cell(span_id: str, parent_id: str, rows: Any = None, status: str = "ok", **facts: Any) -> list[Record]:
    """A cell that reported these variables."""
    if rows is None:
        return [start(span_id, parent_id, "cell"), end(span_id, status=status, a=facts)]
    table = body(json.dumps(rows))
    a = {sc.VARIABLES + ".sha256": table["sha256"], **facts}
    return [start(span_id, parent_id, "cell"), table, end(span_id, status=status, a=a)]


def row(name: str, change: str = "new", preview: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "change": change, "type": "int", "preview": preview, **more}


def changes(replay: Replay, step: Step) -> list[tuple[str, str, str | None, str | None, int]]:
    """Name, change, value before and after, and the step that set it."""
    shown = lambda value: None if value is None else value.preview  # noqa: E731
    found = replay.variables(step).rows
    return [(each.name, each.change, shown(each.before), shown(each.value), each.since) for each in found]


def test_a_step_is_a_cell_or_an_iteration_without_one(tmp_path: Path) -> None:
    replay = replay_of(
        tmp_path,
        start("1", kind="run"),
        start("2", "1", "iteration"),
        start("3", "2", "root_call"),
        *cell("4", "2"),
        *cell("5", "2", status="error"),
        start("6", "1", "iteration"),
        start("7", "6", "root_call"),
    )
    found = [
        (step.number, step.iteration and step.iteration.span_id, step.cell and step.cell.span_id,
         step.root_call and step.root_call.span_id, step.position, step.of, step.failed)
        for step in top(replay)
    ]  # fmt: skip
    assert found == [
        (1, "2", "4", "3", 0, 2, False),
        (2, "2", "5", "3", 1, 2, True),
        (3, "6", None, "7", 0, 1, True),
    ]
    assert [step.span.span_id for step in top(replay)] == ["4", "5", "6"]


def test_child_runs_have_steps_of_their_own(tmp_path: Path) -> None:
    replay = replay_of(
        tmp_path,
        start("1", kind="run"),
        start("2", "1", "iteration"),
        start("3", "2", "cell"),
        start("4", "3", "run"),
        start("5", "4", "iteration"),
        *cell("6", "5"),
        start("7", "6", "sub_call"),
        start("8", "3", "sub_call"),
    )
    assert [run and run.span_id for run in replay.runs()] == ["1", "4"]
    child = replay.view.by_id["4"]
    assert [step.span.span_id for step in replay.steps(child)] == ["6"]
    steps = {id: replay.step_of(replay.view.by_id[id]) for id in ("1", "2", "3", "4", "5", "7", "8")}
    places = {id: step and (step.run and step.run.span_id, step.number) for id, step in steps.items()}
    assert places == {
        "1": None, "2": ("1", 1), "3": ("1", 1), "4": ("1", 1), "5": ("4", 1), "7": ("4", 1), "8": ("1", 1),
    }  # fmt: skip
    (calls, other) = replay.calls(top(replay)[0])
    assert (calls.called, calls.span.span_id, other.called) == ("rlm_query", "4", "llm_query")
    assert replay.calls(replay.steps(child)[0])[0].span.span_id == "7"


def test_calls_are_told_by_batch_and_side_by_side(tmp_path: Path) -> None:
    priced = {sc.COST_USD: "0.5", sc.COST_STATUS: "priced", sc.USAGE_INPUT: 3, sc.USAGE_OUTPUT: 1}
    replay = replay_of(
        tmp_path,
        start("1", kind="run"),
        start("2", "1", "iteration"),
        start("3", "2", "cell"),
        *[each for id in "45" for each in (start(id, "3"), end(id, a=priced))],
        start("6", "3", "batch"),
        *[each for id in "789" for each in (start(id, "6"), end(id, a=priced))],
        start("a", "6"),
        end("a", status="error", a={}),
        start("b", "3", "batch"),
    )
    found = replay.calls(top(replay)[0])
    assert [(each.span.span_id, each.counts, each.bad and each.bad.span_id) for each in found] == [
        ("4", {"ok": 2}, None),
        ("6", {"ok": 3, "error": 1}, "a"),
        ("b", {}, None),
    ]
    assert (found[0].spend.tokens["total"], found[0].spend.usd, found[1].spend.usd) == (8, 1, None)


def test_what_the_root_was_told_since_the_call_before(tmp_path: Path) -> None:
    added = json.dumps([["assistant", body("said")["sha256"]], ["user", "0" * 64]])
    replay = replay_of(
        tmp_path,
        body("said"),
        start("1", kind="run"),
        start("2", "1", "iteration"),
        start("3", "2", "root_call", a={sc.MESSAGES_PRIOR: 2, sc.MESSAGES_ADDED: added}),
        start("4", "1", "iteration"),
        start("5", "4", "root_call", a={sc.MESSAGES_ADDED: "{"}),
        start("6", "1", "iteration"),
    )
    first, second, third = top(replay)
    heard = replay.heard(first)
    assert heard is not None
    assert (heard.earlier, heard.messages) == (2, (("assistant", "said"), ("user", None)))
    assert replay.heard(second) is None and replay.heard(third) is None


def test_variables_before_and_after_each_step(tmp_path: Path) -> None:
    replay = replay_of(
        tmp_path,
        start("1", kind="run"),
        start("2", "1", "iteration"),
        *cell("3", "2", [row("a", preview="1"), row("b", preview="2")]),
        start("4", "1", "iteration"),
        *cell(
            "5", "4", [row("a", "changed", "10"), {"name": "b", "change": "deleted"}, row("c", preview="3")]
        ),
        start("6", "1", "iteration"),
    )
    first, second, third = top(replay)
    assert changes(replay, first) == [("a", "new", None, "1", 1), ("b", "new", None, "2", 1)]
    assert changes(replay, second) == [
        ("a", "changed", "1", "10", 2),
        ("b", "deleted", "2", None, 2),
        ("c", "new", None, "3", 2),
    ]
    assert changes(replay, third) == [("a", "same", "10", "10", 2), ("c", "same", "3", "3", 2)]


def test_a_process_that_died_takes_what_interrupted_cells_had_set(tmp_path: Path) -> None:
    replay = replay_of(
        tmp_path,
        start("1", kind="run"),
        start("2", "1", "iteration"),
        *cell("3", "2", [row("kept", preview="1")]),
        *cell("4", "2", [row("passing", preview="2")], status="error"),
        *cell("5", "2", status="error", **{sc.LOST_NAMES: json.dumps(["kept", "passing", "never", 7])}),
    )
    died = top(replay)[2]
    assert changes(replay, died) == [("passing", "lost", "2", None, 3), ("kept", "same", "1", "1", 1)]
    assert not replay.variables(died).known


def test_what_is_not_known_of_variables_is_said(tmp_path: Path) -> None:
    rows = [row("a"), {"name": 3}, "odd", row("b", "odd"), {"name": "d", "change": "new", "size": "x"}]
    replay = replay_of(
        tmp_path,
        start("1", kind="run"),
        start("2", "1", "iteration"),
        *cell("3", "2"),
        *cell("4", "2", rows),
        *cell("5", "2", {"a": 1}),
        *cell("6", "2", [row(f"v{number}") for number in range(200)]),
    )
    found = [replay.variables(step) for step in top(replay)]
    assert [(each.known, each.gaps, each.unusable, each.full) for each in found] == [
        (False, 0, 0, False),
        (True, 1, 3, False),
        (False, 1, 1, False),
        (True, 2, 0, True),
    ]
    assert [each.name for each in found[1].rows] == ["a", "d"]


def test_a_replay_reads_what_has_ended_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = home_in(tmp_path)
    first = [start("1", kind="run"), start("2", "1", "iteration"), *cell("3", "2", [row("a", preview="1")])]
    replay = Replay(view_of(home, *first))
    assert changes(replay, top(replay)[-1]) == [("a", "new", None, "1", 1)]
    home.store.unlink()
    grown = view_of(home, *first, *cell("4", "2", [row("b", preview="2")]))
    asked: list[str] = []
    whole = grown.payloads
    monkeypatch.setattr(grown, "payloads", lambda wanted: (asked.extend(wanted), whole(wanted))[1])
    replay = Replay(grown, replay)
    assert changes(replay, top(replay)[-1])[1] == ("a", "same", "1", "1", 1)
    assert asked == [body(json.dumps([row("b", preview="2")]))["sha256"]]


KINDS = ("run", "iteration", "cell", "batch", "sub_call", "root_call", "tool")
SPANS = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(KINDS)), max_size=9)


@settings(max_examples=60, deadline=None)
@given(spans=SPANS)
def test_every_cell_and_iteration_is_in_one_step_however_the_parents_stand(
    tmp_path_factory: pytest.TempPathFactory, spans: list[tuple[int, str]]
) -> None:
    records = [start(f"{n + 1}", f"{parent}", kind) for n, (parent, kind) in enumerate(spans)]
    home = home_in(tmp_path_factory.mktemp("steps"))
    write_spool(home, [header(), *records, fin()])
    replay = Replay(SpoolRun(home, RUN).poll())
    steps = [step for run in replay.runs() for step in replay.steps(run)]
    assert all(
        [step.number for step in replay.steps(run)] == list(range(1, len(replay.steps(run)) + 1))
        for run in replay.runs()
    )
    cells = [step.cell.span_id for step in steps if step.cell]
    assert sorted(cells) == sorted(span.span_id for span in replay.view.spans if span.kind == "cell")
    iterations = {step.iteration.span_id for step in steps if step.iteration}
    assert iterations == {span.span_id for span in replay.view.spans if span.kind == "iteration"}
    for span in replay.view.spans:
        replay.step_of(span)
        below(replay.view, span)
    for step in steps:
        replay.calls(step)
        replay.variables(step)


@pytest.mark.parametrize("circle", [False, True])
def test_long_ways_up_are_gone_once(tmp_path: Path, circle: bool) -> None:
    first = [start("0", "2" if circle else None, "iteration")]
    rest = [start(f"{n}", f"{n - 1}", "iteration") for n in range(1, 300)]
    view = view_of(home_in(tmp_path), *first, *rest)
    asked: list[str] = []

    class Spans(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            asked.append(key)
            return super().get(key, default)

    view.__dict__["by_id"] = Spans(view.by_id)
    assert len(Replay(view).steps(None)) == 300
    assert len(asked) < 2_000


def test_what_the_calls_below_a_span_took(tmp_path: Path) -> None:
    priced = {sc.COST_USD: "0.5", sc.COST_STATUS: "priced", sc.USAGE_INPUT: 3, sc.USAGE_OUTPUT: 1}
    view = view_of(
        home_in(tmp_path),
        start("1", kind="run"),
        start("2", "1", "iteration"),
        start("3", "2", "root_call"),
        end("3", a=priced),
        start("4", "2", "cell"),
        start("5", "4", "batch"),
        start("6", "5"),
        end("6", a=priced),
        start("7", "5"),
        end("7", a={}),
        start("8", "6", "attempt"),
        end("8", a=priced),
    )
    found = below(view, view.by_id["2"])
    assert found == {
        "spans": 6, "calls": 3, "sub_calls": 2, "outcomes": {"ok": 2}, "cost_usd": None, "known_usd": "1",
        "cost_status": "partial", "tokens": {"input": 6, "output": 2, "total": 8},
        "untold_calls": 0, "derived_calls": 0, "refused_sub_calls": 0,
    }  # fmt: skip
    assert below(view, view.by_id["6"]) is None
    batch = below(view, view.by_id["5"])
    assert batch is not None and (batch["calls"], batch["known_usd"]) == (2, "0.5")


@pytest.mark.parametrize(
    ("phase", "phases"),
    [
        ('["Decompose", "Explore"]', ["Decompose", "Explore"]),
        ("Explore", ["Explore"]),
        (None, []),
        ("[", ["["]),
        ("[1]", ["[1]"]),
        ("[" * 90_000, ["[" * 90_000]),
    ],
)
def test_phases_are_a_list_whatever_was_recorded(
    tmp_path: Path, phase: str | None, phases: list[str]
) -> None:
    a = {} if phase is None else {sc.PHASE: phase}
    view = view_of(home_in(tmp_path), start("1", kind="iteration", a=a), end("1"))
    document = view.spans[0].to_json()
    assert (document["phase"], document["phases"]) == (phase, phases)
    assert DECODER.decode(json.dumps(document))["phases"] == phases
