"""Traces of droste: what was read off them by eye is what their import holds.

The logs were made by running it (tests/fixtures/logs/droste/make.py).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlm_core import semconv as sc
from tests.support.outlines import LOGS, SAMPLES, outline, taken, texts
from traces.home import Home
from traces.importers.importing import Refused, import_paths

DROSTE = LOGS / "droste"
#: Tokens are what the counts of the engine rose by: the second root call from 1,202 and 38 to 2,498 and 70.
WHOLE = """
run 0.151s
  iteration 0.025s: Explore
    root_call root-model ~1202+38 0.016s: I look first. ```python file = context['
    cell 0.000s: file = context['files'][0]
  iteration 0.111s: Decompose
    root_call root-model ~1296+32 0.017s: ```python one = llm_query('Which date?',
    cell 0.093s: one = llm_query('Which date?', lines[0])
      sub_call sub-model ~19+2 0.001s
      batch 0.091s
        sub_call sub-model ~19+2
        sub_call sub-model ~18+2
  iteration 0.016s: Explore, Terminate
    root_call root-model ~1392+13 0.006s: ```python print('so far') print(undefine
    cell error 0.000s (NameError): print('so far')
    root_call root-model ~1565+20 0.007s: ```python answer['content'] = '6 days' a
    cell 0.000s: answer['content'] = '6 days'
"""
EXTRACTED = """
run 0.031s
  iteration 0.010s: Explore
    root_call root-model ~1202+6 0.009s: ```python print(1) ```
    cell 0.000s: print(1)
  iteration 0.009s: Explore
    root_call root-model ~1267+6 0.002s: ```python print(1) ```
    cell 0.000s: print(1)
  iteration 0.011s
    root_call root-model ~171+6 0.011s
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home.resolve(tmp_path / "home")


def test_events_hold_what_they_say(home: Home) -> None:
    ((done, view),) = taken(home, DROSTE / "run.jsonl")
    assert outline(view) == WHOLE.strip()
    run = view.summary
    assert run.tokens == {"input": 5_455 + 56, "output": 103 + 6, "total": 5_620}  # as its last count says
    assert (run.answer, run.root_model, run.sub_model) == ("6 days", "root-model", "sub-model")
    assert done.engine == "droste 0.26.0" and done.problems == ()
    limits = json.loads(str(view.spans[0].attributes[sc.LIMITS]))
    assert limits == {
        "max_iterations": 30, "max_calls": 50, "max_tokens": 500_000, "max_seconds": 300.0, "max_depth": 1,
    }  # fmt: skip


def test_a_repaired_turn_has_two_calls_and_two_cells(home: Home) -> None:
    ((_, view),) = taken(home, DROSTE / "run.jsonl")
    assert texts(view, "cell", "exception")[2] == "NameError: name 'undefined_name' is not defined"
    assert texts(view, "cell", "stdout")[3] == "done\n"
    assert view.spans[0].attributes[sc.ANSWER_CELL] == 3


def test_an_extracted_answer_is_forced(home: Home) -> None:
    ((_, view),) = taken(home, DROSTE / "extracted.jsonl")
    assert outline(view) == EXTRACTED.strip()
    assert view.summary.forced and view.summary.stop_reason == "max_iterations"
    assert view.summary.iterations == 2


def test_what_the_command_prints_is_the_run_without_its_texts(home: Home) -> None:
    ((done, view),) = taken(home, DROSTE / "run_printed.json")
    assert (view.summary.answer, view.summary.root_model) == ("6 days", "root-model")
    assert [span.kind for span in view.spans] == ["run"]
    assert {
        "The record was kept without texts: replies, code and output are not in it.",
        "Tokens of root calls that are only in their total: 5,455 in, 103 out.",
        "Tokens of sub-calls that are only in their total: 56 in, 6 out.",
    } <= set(done.missing)


def test_a_run_record_is_read_as_its_events_are(home: Home, tmp_path: Path) -> None:
    events = [json.loads(line) for line in (DROSTE / "run.jsonl").read_text().splitlines()]
    kept = [event for event in events if event["persistence_class"] != "transient"]
    record = {"version": 10, "run_id": events[0]["run_id"], "data_use": {}, "terminal": {}, "events": kept}
    (tmp_path / "record.json").write_text(json.dumps(record, indent=1))
    ((done, view),) = taken(home, tmp_path / "record.json")
    assert view.summary.answer == "6 days"
    call = next(span for span in view.spans if span.kind == "root_call")
    assert call.tokens is None
    assert "only their sum is in the record: 1,240" in str(call.attributes[sc.TRUST_WHY])
    assert "Tokens of root calls that are only in their total: 5,455 in, 103 out." in done.missing


def test_events_that_end_in_a_turn_give_what_can_be_had(home: Home) -> None:
    ((done, view),) = taken(home, SAMPLES / "droste_0.26.0_trace_abi10.jsonl")
    assert view.summary.status == "interrupted" and "The record ends before the run does." in done.missing
    tokens = [span.tokens for span in view.spans if span.kind in ("root_call", "sub_call")]
    assert tokens == [
        {"input": 900, "output": 40, "total": 940},
        {"input": 60, "output": 6, "total": 66},
    ]


def test_runs_below_stand_where_they_were_asked_for(home: Home, tmp_path: Path) -> None:
    events = [json.loads(line) for line in (DROSTE / "run.jsonl").read_text().splitlines()]
    place = next(number for number, event in enumerate(events) if event["type"] == "subcall")
    below = [
        event | {"run_id": "below", "parent_run_id": events[0]["run_id"], "depth": 1}
        for event in map(json.loads, (DROSTE / "extracted.jsonl").read_text().splitlines())
    ]
    both = [*events[: place + 1], *below, *events[place + 1 :]]
    (tmp_path / "both.jsonl").write_text("\n".join(map(json.dumps, both)))
    ((_, view),) = taken(home, tmp_path / "both.jsonl")
    runs = [(span.depth, span.cell) for span in view.spans if span.kind == "run"]
    assert runs == [(0, None), (1, 1)]


def test_the_run_lasts_until_its_last_event(home: Home) -> None:
    ((_, view),) = taken(home, SAMPLES / "droste_0.26.0_trace_abi10.jsonl")  # from 08:00:00 to 08:00:07
    assert view.summary.seconds == 7


def test_events_are_read_in_the_order_of_their_numbers(home: Home, tmp_path: Path) -> None:
    lines = (DROSTE / "run.jsonl").read_text().splitlines()
    (tmp_path / "turned.jsonl").write_text("\n".join(reversed(lines)))
    ((done, view),) = taken(home, tmp_path / "turned.jsonl")
    assert outline(view) == WHOLE.strip() and view.summary.answer == "6 days"
    assert len(done.problems) == 1 and "do not stand in the order of their numbers" in done.problems[0]


def test_an_event_that_stands_twice_counts_once(home: Home, tmp_path: Path) -> None:
    lines = (DROSTE / "run.jsonl").read_text().splitlines()
    (tmp_path / "twice.jsonl").write_text("\n".join([*lines, *lines]))
    ((done, view),) = taken(home, tmp_path / "twice.jsonl")
    assert outline(view) == WHOLE.strip() and view.summary.tokens["total"] == 5_620
    assert done.problems == (
        f"Events that are in the record more than once, and taken in once: {len(lines)}; "
        "the first one counts.",
    )


def test_counts_that_are_there_and_unusable_are_a_problem(home: Home, tmp_path: Path) -> None:
    events = [json.loads(line) for line in (DROSTE / "run.jsonl").read_text().splitlines()]
    for event in events:
        if event["type"] == "usage":
            event["root"]["input_tokens"] = -9
    (tmp_path / "run.jsonl").write_text("\n".join(map(json.dumps, events)))
    ((done, _),) = taken(home, tmp_path / "run.jsonl")
    assert done.problems == ("Counts of usage that are in the record, but unusable: 1.",)


def test_damaged_lines_are_counted(home: Home, tmp_path: Path) -> None:
    lines = (DROSTE / "run.jsonl").read_text().splitlines()
    (tmp_path / "cut.jsonl").write_text("\n".join([*lines[:20], '{"no": "event"}', lines[20][:40]]))
    ((done, _),) = taken(home, tmp_path / "cut.jsonl")
    assert done.problems == ("Lines of the file that cannot be read: 1.", "Events that cannot be read: 1.")


def test_other_json_is_not_taken_for_it(home: Home, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(json.dumps({"persistence_class": "durable", "type": "usage"}))
    (refused,) = import_paths(home, [tmp_path / "events.jsonl"])
    assert isinstance(refused, Refused)
