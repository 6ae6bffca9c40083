"""Logs in the form of rlms out of runs that lack what rlms always has, or have more."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from traces.exporters import export_runs
from traces.home import Home
from traces.importers.foreign import ForeignRun, ForeignSpan, TokenUse, derived, reported
from traces.importers.importing import Imported, import_paths
from traces.importers.writing import write_run
from traces.reading import load_run


def written(home: Home, top: ForeignSpan) -> str:
    return write_run(home, ForeignRun("dspy", "dspy", "k", top, "big", "small"), "x.json", 1_000).run_id


def exported(home: Home, run_id: str, out: Path) -> list[dict[str, Any]]:
    done = export_runs("rlms", home, [run_id], out)
    assert done.run_ids == (run_id,) and out.stat().st_mode & 0o777 == 0o600
    return [json.loads(line) for line in out.read_text().splitlines()]


def call(prompt: str, **more: Any) -> ForeignSpan:
    texts = {sc.PROMPT: prompt, sc.RESPONSE: f"re {prompt}"}
    return ForeignSpan("sub_call", model="small", texts=texts, tokens=reported(TokenUse(7, 2)), **more)


def test_times_that_nobody_took_are_not_made_up(tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    cell = ForeignSpan("cell", texts={sc.CODE: "x", sc.STDOUT: "seen"}, children=[call("p")])
    turn = ForeignSpan("iteration", children=[ForeignSpan("root_call", texts={sc.RESPONSE: "do"}), cell])
    last = ForeignSpan("iteration", children=[ForeignSpan("root_call", texts={sc.RESPONSE: "four"})])
    run_id = written(home, ForeignSpan("run", texts={sc.ANSWER: "4"}, children=[turn, last]))
    settings, first, second = exported(home, run_id, tmp_path / "log.jsonl")
    assert (settings["root_model"], settings["backend"], "root_prompt" in settings) == (
        "big",
        "rlmscope",
        False,
    )
    assert settings["timestamp"] is first["timestamp"] is first["iteration_time"] is None
    (block,) = first["code_blocks"]
    assert block["result"]["execution_time"] is None
    (asked,) = block["result"]["rlm_calls"]
    assert (asked["execution_time"], asked["prompt_tokens"]) == (0.0, 7)  # the viewer needs a number
    assert (second["final_answer"], second["forced"]) == ("4", False)
    (back,) = import_paths(home, [tmp_path / "log.jsonl"])
    assert isinstance(back, Imported)
    view = load_run(home, back.run_id)
    again = next(span for span in view.spans if span.kind == "sub_call")
    assert again.trusted["seconds"] == "missing" and again.seconds is None
    assert view.summary.answer == "4" and not view.summary.forced


def test_the_end_of_an_iteration_is_no_time_where_only_its_beginning_is_told(tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    said = ForeignSpan("root_call", texts={sc.RESPONSE: "four"})
    turns = [ForeignSpan("iteration", start=reported(10**18), children=[said])]
    turns.append(ForeignSpan("iteration", start=reported(10**18), seconds=reported(2.0), children=[said]))
    run_id = written(home, ForeignSpan("run", start=reported(10**18), texts={sc.ANSWER: "4"}, children=turns))
    settings, untimed, timed = exported(home, run_id, tmp_path / "log.jsonl")
    assert settings["timestamp"] == "2001-09-09T01:46:40+00:00"
    assert untimed["timestamp"] is None and timed["timestamp"] == "2001-09-09T01:46:42+00:00"


def test_batches_and_failed_calls_of_any_numbers_come_back(tmp_path: Path) -> None:
    """Slots with equal usage are one batch and right; two batches side by side stay two."""
    home = Home.resolve(tmp_path / "home")
    slots = [call("a", seconds=reported(0.5)), call("b", seconds=reported(0.5))]
    lost = ForeignSpan(
        "sub_call", status="error", model="small", texts={sc.PROMPT: "c"}, error=("timeout", "late")
    )
    below = [ForeignSpan("batch", children=slots), call("single"), ForeignSpan("batch", children=[lost])]
    cell = ForeignSpan("cell", texts={sc.CODE: "x = llm_query_batched(ps)"}, children=below)
    top = ForeignSpan("run", children=[ForeignSpan("iteration", children=[cell])])
    exported(home, written(home, top), tmp_path / "log.jsonl")
    (back,) = import_paths(home, [tmp_path / "log.jsonl"])
    assert isinstance(back, Imported)
    spans = load_run(home, back.run_id).spans
    kinds = [span.kind for span in spans if span.kind in ("batch", "sub_call")]
    assert kinds == ["batch", "sub_call", "sub_call", "sub_call", "batch", "sub_call"]
    calls = [span for span in spans if span.kind == "sub_call"]
    assert [span.trusted["tokens"] for span in calls] == ["reported"] * 3 + ["missing"]
    assert (calls[-1].status, calls[-1].attributes[sc.ERROR_MESSAGE]) == ("error", "late")


def test_child_runs_too_deep_for_the_form_are_refused_and_leave_no_file(tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    top = inner = ForeignSpan("run", texts={sc.QUESTION: "q"})
    for _ in range(400):
        below = ForeignSpan("run", texts={sc.QUESTION: "q"})
        inner.children = [ForeignSpan("iteration", children=[ForeignSpan("cell", children=[below])])]
        inner = below
    with pytest.raises(InputError, match="too deep for a log of rlms"):
        export_runs("rlms", home, [written(home, top)], tmp_path / "log.jsonl")
    assert list(tmp_path.glob("*log*")) == []


def test_derived_numbers_come_back_as_derived_those_of_the_root_too(tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    asked = call("p")
    asked.cost = derived(Decimal("0.5"), "the run's, of which it was the only call")
    cell = ForeignSpan("cell", texts={sc.CODE: "x"}, children=[asked])
    root = ForeignSpan("root_call", model="big", texts={sc.RESPONSE: "do"})
    root.tokens, root.cost = derived(TokenUse(90, 20), "what is left"), reported(Decimal("0.25"))
    turn = ForeignSpan("iteration", children=[root, cell])
    run_id = written(home, ForeignSpan("run", texts={sc.ANSWER: "4"}, children=[turn]))
    exported(home, run_id, tmp_path / "log.jsonl")
    (back,) = import_paths(home, [tmp_path / "log.jsonl"])
    assert isinstance(back, Imported)
    before, after = load_run(home, run_id), load_run(home, back.run_id)
    assert after.summary.tokens == before.summary.tokens == {"input": 97, "output": 22, "total": 119}
    calls = {span.kind: span.trusted for span in after.spans}
    assert (calls["root_call"]["tokens"], calls["root_call"]["cost"]) == ("derived", "reported")
    assert (calls["sub_call"]["tokens"], calls["sub_call"]["cost"]) == ("reported", "derived")
    assert after.summary.cost_usd == before.summary.cost_usd == Decimal("0.75")


def test_sums_that_are_only_the_least_are_so_in_the_log_too(tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    root = ForeignSpan("root_call", model="big", texts={sc.RESPONSE: "4"})
    root.tokens, root.cost = reported(TokenUse(90, 20)), reported(Decimal("0.25"))
    top = ForeignSpan("run", texts={sc.ANSWER: "4"}, children=[ForeignSpan("iteration", children=[root])])
    top.attributes[sc.IMPORT_LACKS_CALLS] = True
    run_id = written(home, top)
    notes = export_runs("rlms", home, [run_id], tmp_path / "log.jsonl").notes
    assert f"Not all calls of {run_id} are on record: what its log sums up to is the least of it." in notes
    (back,) = import_paths(home, [tmp_path / "log.jsonl"])
    assert isinstance(back, Imported)
    for summary in (load_run(home, run_id).summary, load_run(home, back.run_id).summary):
        assert (summary.cost_usd, summary.known_usd) == (None, Decimal("0.25"))
        assert summary.untold_calls == 1


@pytest.mark.parametrize(
    ("status", "answer", "says"),
    [
        ("error", None, "ended as 'error': its log reads as a run that was interrupted."),
        ("ok", None, "ended as 'ok': its log reads as a run that was interrupted."),
        ("error", "4", "ended as 'error': its log reads as a run that ended well."),
        ("ok", "4", None),
    ],
)
def test_how_a_run_ended_is_said_where_its_log_reads_as_something_else(
    tmp_path: Path, status: sc.Status, answer: str | None, says: str | None
) -> None:
    home = Home.resolve(tmp_path / "home")
    texts = {} if answer is None else {sc.ANSWER: answer}
    turn = ForeignSpan("iteration", children=[ForeignSpan("root_call", texts={sc.RESPONSE: "4"})])
    run_id = written(home, ForeignSpan("run", status=status, texts=texts, children=[turn]))
    notes = export_runs("rlms", home, [run_id], tmp_path / "log.jsonl").notes
    assert [note for note in notes if " ended as " in note] == (
        [] if says is None else [f"The form does not say that {run_id} {says}"]
    )


def test_what_the_form_has_no_number_for_is_said(tmp_path: Path) -> None:
    home = Home.resolve(tmp_path / "home")
    paid = ForeignSpan("sub_call", texts={sc.PROMPT: "p"}, seconds=reported(1.0), cost=reported(Decimal(1)))
    timed = call("q", seconds=reported(2.0))
    noted = []
    for number, below in enumerate(([paid], [timed], [call("r")])):
        turn = ForeignSpan("iteration", children=[ForeignSpan("cell", texts={sc.CODE: "x"}, children=below)])
        run_id = written(home, ForeignSpan("run", texts={sc.ANSWER: f"{number}"}, children=[turn]))
        noted.append(" ".join(export_runs("rlms", home, [run_id], tmp_path / f"{number}.jsonl").notes))
    assert ["tokens are not known" in notes for notes in noted] == [True, False, False]
    assert ["nobody took" in notes for notes in noted] == [False, False, True]
