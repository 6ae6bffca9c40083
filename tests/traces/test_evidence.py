"""Which sub-calls an answer may rest on: the chain of names back from its cell, and their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core import semconv as sc
from rlm_core.telemetry import Recorder, RunSpan, as_json
from tests.support.recorded_runs import WIDE, recording, wide_run
from traces.evidence import COMPARED_WHOLE, Evidence, evidence
from traces.home import Home
from traces.reading import load_run
from traces.shared_values import values_of

Cell = tuple[str, str, Sequence[str]]  # names read, names written, responses of its sub-calls
Make = Callable[..., Evidence]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(tmp_path / "home")


@pytest.fixture
def asked(home: Home) -> Make:
    """The evidence of a run of these cells, which is over."""

    def make(cells: Sequence[Cell], **facts: Any) -> Evidence:
        return evidence(load_run(home, write(home, cells, **facts)))

    return make


def write(
    home: Home,
    cells: Sequence[Cell],
    *,
    answer: str = "42",
    question: str = "Which?",
    by: int | None = -1,
    outputs: Sequence[str] = (),
    documents: Sequence[str] = (),
    more: dict[str, Any] | None = None,
) -> str:
    """`by`: the cell that set the answer, None when it was forced; each sub-call reads the document of its
    number."""
    with recording(home) as made:
        recorder = made.recorder
        run = recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0, sc.RUN_PATH: "0"})
        run.text(sc.QUESTION, question)
        run.text(sc.CORPUS, as_json({"documents": [{"name": name} for name in documents]}))
        for number, (reads, writes, responses) in enumerate(cells):
            iteration = recorder.start(
                "iteration", sc.NAME_ITERATION, run, {sc.ITERATION: number, sc.DEPTH: 0}
            )
            place = {sc.CELL: number, sc.DEPTH: 0, sc.ITERATION: number}
            names = {sc.NAMES_READ: as_json(reads.split()), sc.NAMES_WRITTEN: as_json(writes.split())}
            cell = recorder.start("cell", sc.NAME_CELL, iteration, {**place, **names, **(more or {})})
            for slot, response in enumerate(responses):
                call(recorder, cell, slot, response)
            cell.text(sc.STDOUT_SHOWN, outputs[number] if number < len(outputs) else "")
            cell.end()
            iteration.end()
        run.text(sc.ANSWER, answer)
        end = {} if by is None else {sc.ANSWER_CELL: by % len(cells)}
        run.end("ok", {**end, sc.STOP_REASON: "final"})
        made.close("ok")
    return WIDE


def call(recorder: Recorder, parent: RunSpan, slot: int, response: str) -> None:
    made = recorder.start("sub_call", "chat m", parent, {sc.CALL_INDEX: slot, sc.DEPTH: 0})
    made.text(sc.PROMPT, "?")
    made.text(sc.RESPONSE, response)
    made.end("ok", {sc.SOURCE_RANGES: as_json({"how": "reference", "ranges": [[slot, 0, 9]]})})


def cells_of(found: Evidence) -> list[int | None]:
    return [cell.cell for cell in found.cells]


def slots(found: Evidence) -> list[int | None]:
    return [support.span.call_index for support in found.supports]


# -- the chain


def test_the_chain_of_names_leads_back_to_the_calls_that_the_answer_was_made_of(asked: Make) -> None:
    found = asked(
        [
            ("documents", "notes", ["read"]),
            ("documents", "other", ["not read by anything"]),
            ("notes", "sums", []),
            ("sums FINAL", "", []),
        ]
    )
    assert (found.basis, cells_of(found), len(found.supports)) == ("read", [0], 1)


def test_a_name_that_was_written_again_leads_to_the_last_that_wrote_it(asked: Make) -> None:
    found = asked([("", "notes", ["old"]), ("", "notes", ["new"]), ("notes", "", [])])
    assert cells_of(found) == [1]


def test_a_name_that_was_added_to_leads_to_all_that_made_it(asked: Make) -> None:
    found = asked([("", "notes", ["old"]), ("notes", "notes", ["added"]), ("notes", "", [])])
    assert cells_of(found) == [0, 1]


def test_calls_of_the_answers_own_cell_count(asked: Make) -> None:
    found = asked([("", "x", ["unused"]), ("documents", "y", ["used"])])
    assert (found.basis, cells_of(found)) == ("read", [1])


def test_what_comes_after_the_answer_or_reads_the_name_first_does_not_count(asked: Make) -> None:
    found = asked([("notes", "", []), ("", "notes", ["later"])], by=0)
    assert (found.basis, found.supports) == ("code", ())


def test_an_answer_written_as_a_literal_leads_to_the_cell_that_printed_it(asked: Make) -> None:
    cells = [("", "a", ["one"]), ("", "b", ["two"]), ("b", "total", []), ("FINAL", "", [])]
    found = asked(cells, answer="EUR 32,000", outputs=["", "two", "The fee: EUR 32000.", ""])
    assert found.basis == "printed" and cells_of(found) == [1]
    assert found.printed is not None and found.printed.cell == 2


@pytest.mark.parametrize("by", [-1, None])
def test_without_any_trace_all_calls_before_are_candidates(asked: Make, by: int | None) -> None:
    found = asked([("", "a", ["one"]), ("", "b", ["two"]), ("", "", [])], by=by)
    assert found.basis == "shown" and cells_of(found) == [0, 1] and found.printed is None


def test_an_answer_of_code_alone_rests_on_no_call(asked: Make) -> None:
    found = asked([("documents", "n", []), ("n", "", [])])
    assert found == Evidence("code", found.cells, (), chain=found.cells) and cells_of(found) == [0, 1]


def test_calls_in_batches_and_child_runs_count(home: Home) -> None:
    with recording(home) as made:
        recorder = made.recorder
        run = recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0})
        iteration = recorder.start("iteration", sc.NAME_ITERATION, run, {sc.DEPTH: 0})
        cell = recorder.start("cell", sc.NAME_CELL, iteration, {sc.CELL: 0, sc.DEPTH: 0})
        batch = recorder.start("batch", sc.NAME_BATCH, cell, {sc.DEPTH: 0})
        call(recorder, batch, 0, "in a batch")
        child = recorder.start("run", sc.NAME_RUN, cell, {sc.DEPTH: 1})
        child.text(sc.ANSWER, "the child says 42")
        inner = recorder.start("iteration", sc.NAME_ITERATION, child, {sc.DEPTH: 1})
        call(recorder, recorder.start("cell", sc.NAME_CELL, inner, {sc.CELL: 0, sc.DEPTH: 1}), 7, "deep")
        child.end()
        run.text(sc.ANSWER, "42")
        run.end("ok", {sc.ANSWER_CELL: 0})
        made.close("ok")
    found = evidence(load_run(home, WIDE))
    assert [(s.span.kind, s.answer) for s in found.supports] == [
        ("run", ("42",)),
        ("sub_call", ()),
        ("sub_call", ()),
    ]


# -- the order


def test_what_shares_a_value_with_the_answer_comes_first(asked: Make) -> None:
    responses = ["nothing here", "it is 1,042 euros", "refund", "refund of EUR 1042"]
    found = asked(
        [("", "a", responses), ("a", "", [])], answer="A refund of 1042", question="Nothing to refund?"
    )
    assert slots(found) == [3, 2, 1, 0]
    told = [(support.answer, support.question) for support in found.supports]
    assert told[1] == (("refund",), ("refund",)) and told[2] == (("1,042",), ())
    assert told[3] == ((), ("nothing",))


def test_a_document_that_the_answer_names_comes_first(asked: Make) -> None:
    found = asked(
        [("", "a", ["120 days", "30 days", "90 days"]), ("a", "", [])],
        answer="K-026.md",
        documents=["k-025.md", "k-026.md", "k-027.md"],
    )
    assert slots(found) == [1, 0, 2] and found.supports[0].documents == ("k-026.md",)


def test_equal_ones_stay_in_the_order_of_the_record(asked: Make) -> None:
    assert slots(asked([("", "a", ["yes"] * 5), ("a", "", [])], answer="yes")) == [0, 1, 2, 3, 4]


def test_thousands_of_responses_are_compared_by_their_beginnings(home: Home) -> None:
    view = load_run(home, wide_run(home, 5_000))
    found = evidence(view)
    assert len(found.supports) == view.summary.sub_calls > COMPARED_WHOLE and not found.whole
    assert found.basis == "shown" and len(found.cells) == view.summary.iterations


# -- records that make no sense


@pytest.mark.parametrize("raw", ["[", "{}", "7", "[1, null]", '["\\ud800"]', "[" * 10_000, 7, True])
def test_names_that_make_no_sense_are_no_names(asked: Make, raw: object) -> None:
    found = asked([("", "a", ["one"]), ("a", "", [])], more={sc.NAMES_READ: raw})
    assert found.basis == "shown" and cells_of(found) == [0]


def test_a_record_without_a_run_or_an_answer_rests_on_nothing(home: Home) -> None:
    with recording(home) as made:
        made.close("ok")
    found = evidence(load_run(home, WIDE))
    assert (found.basis, found.cells, found.supports) == ("code", (), ())


# -- values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,234.50 and 1234.50", {"1234.50"}),
        ("the of and", set()),
        ("22", {"22"}),
        ("2024-11-15", {"2024-11-15"}),
        ("notices.23@cedar.example", {"notices.23@cedar.example", "notices", "cedar", "example"}),
        ("Tarifa: É válida", {"tarifa", "válida"}),
        ("", set()),
    ],
)
def test_values_of_a_text(text: str, values: set[str]) -> None:
    assert set(values_of(text)) == values


@given(st.text())
def test_every_value_stands_in_its_text(text: str) -> None:
    for name, written in values_of(text).items():
        assert written in text and name.replace(",", "") == written.casefold().replace(",", "")
