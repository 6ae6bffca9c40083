"""Findings: what in a run a person should know, from the record alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from rlm_core.model_calls import NOTHING_BILLED
from rlm_core.telemetry import Recorder, RunSpan, as_json, sha256_text
from tests.support.recorded_runs import wide_run
from tests.traces.records import (
    RUN,
    body,
    end,
    fin,
    header,
    home_in,
    record_run,
    recording,
    start,
    write_spool,
)
from traces.finding import Finding
from traces.findings import findings
from traces.home import Home
from traces.limits import limits
from traces.reading import RunView, load_run

Cells = Callable[[Recorder, RunSpan], None]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return home_in(tmp_path)


def run_of(
    home: Home, cells: Cells, *, question: str = "How many?", answer: str | None = "42", **ended: Any
) -> RunView:
    """A closed run with an answer; `cells` fills it, `ended` are attributes of its end by constant name."""
    with recording(home) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0})
        run.text(sc.QUESTION, question)
        cells(made.recorder, run)
        if answer is not None:
            run.text(sc.ANSWER, answer)
        run.end(
            "ok", {sc.STOP_REASON: "final", **{getattr(sc, name): value for name, value in ended.items()}}
        )
        made.close("ok")
    return load_run(home, RUN)


def cell(recorder: Recorder, run: RunSpan, number: int, code: str = "x = 1", **facts: Any) -> RunSpan:
    """A cell in an iteration of its own, still open."""
    place = {sc.ITERATION: number, sc.DEPTH: 0}
    iteration = recorder.start("iteration", sc.NAME_ITERATION, run, place)
    named = {getattr(sc, name): value for name, value in facts.items()}
    made = recorder.start("cell", sc.NAME_CELL, iteration, {**place, sc.CELL: number, **named})
    made.text(sc.CODE, code)
    iteration.end()
    return made


def call(recorder: Recorder, parent: RunSpan, prompt: str, *, number: int = 0) -> None:
    facts = {sc.PROMPT_HASH: sha256_text(prompt), sc.REQUEST_MODEL: "s", sc.CELL: number, sc.DEPTH: 0}
    made = recorder.start("sub_call", "chat s", parent, {**facts, sc.ITERATION: number})
    made.text(sc.PROMPT, prompt)
    made.text(sc.RESPONSE, "yes")
    made.end("ok", {sc.COST_USD: "0.25", sc.COST_STATUS: "priced"})


def the(kind: str, view: RunView) -> Finding:
    (found,) = (finding for finding in findings(view) if finding.kind == kind)
    return found


def kinds(view: RunView) -> list[str]:
    return [finding.kind for finding in findings(view)]


def test_a_run_in_which_nothing_is_wrong_has_no_findings(home: Home) -> None:
    view = load_run(home, record_run(home))
    assert kinds(view) == []


def test_failed_and_empty_sub_calls_are_counted_with_the_spans_they_stand_on(home: Home) -> None:
    view = load_run(home, wide_run(home, 500))
    found = the("error", view)
    assert (found.severity, found.count, found.signal) == ("serious", len(found.spans), "error")
    assert all(view.by_id[span_id].status == "error" for span_id in found.spans)
    assert found.words == f"Sub-calls that ended in error, were cancelled or lost: {found.count} of 244."
    assert [finding.severity for finding in findings(view)] == ["serious", "check"]


def test_a_forced_answer_is_serious_and_leads_to_the_iteration_that_gave_it(home: Home) -> None:
    def cells(recorder: Recorder, run: RunSpan) -> None:
        recorder.start("iteration", sc.NAME_ITERATION, run, {sc.FORCED: True, sc.ITERATION: 3}).end()

    view = run_of(home, cells, FORCED=True, STOP_REASON="max_iterations")
    found = the("forced", view)
    assert found.words == (
        "The answer was forced: the limit of iterations was reached, and the root had to say what it had."
    )
    assert [view.by_id[span_id].iteration for span_id in found.spans] == [3]


def test_a_run_that_a_limit_stopped_without_an_answer_says_which(home: Home) -> None:
    view = run_of(home, lambda *_: None, answer=None, STOP_REASON="timeout")
    assert the("stopped", view).words == "There is no answer: the time limit was reached."


def test_more_spent_than_allowed_is_an_overshoot(home: Home) -> None:
    ledger = {"tokens": {"spent": 1200, "limit": 1000}, "usd": {"spent": "0.5", "limit": "1", "known": True}}
    view = run_of(home, lambda *_: None, LEDGER=as_json(ledger))
    assert the("overshoot", view).words == "More tokens than allowed: 1,200 of 1,000."


def test_sub_calls_that_the_budget_refused_are_counted_by_themselves(home: Home) -> None:
    def cells(recorder: Recorder, run: RunSpan) -> None:
        made = cell(recorder, run, 0)
        for _ in range(2):
            recorder.start("sub_call", "chat s", made, NOTHING_BILLED).fail("budget", "no call is left")
        sent = recorder.start("sub_call", "chat s", made, NOTHING_BILLED)
        recorder.start("attempt", sc.NAME_ATTEMPT, sent, NOTHING_BILLED).fail("rate_limit", "wait")
        sent.fail("budget", "no call is left")  # for its second attempt
        made.end()

    view = run_of(home, cells)
    assert the("refused", view).count == 2
    assert the("error", view).words == "Sub-calls that ended in error, were cancelled or lost: 1 of 1."


def test_nearly_all_of_the_corpus_is_not_said_to_be_all_of_it(home: Home) -> None:
    table = json.dumps({"documents": [{"name": "a.txt", "bytes": 10**7}]})
    sent = as_json({"how": "reference", "ranges": [[0, 0, 10**7 - 1]]})
    top = start("1", kind="run", a={sc.DEPTH: 0, sc.CORPUS + ".sha256": sha256_text(table)})
    calls = [start("2", "1", a={sc.SOURCE_RANGES: sent}), end("2")]
    write_spool(home, [header(), top, body(table), *calls, end("1"), fin()])
    assert the("unread", load_run(home, RUN)).words.endswith("Models saw 99.99% of the corpus.")


def test_documents_that_went_only_to_calls_that_failed_are_to_be_checked(home: Home) -> None:
    table = json.dumps({"documents": [{"name": "a.txt", "bytes": 9}, {"name": "b.txt", "bytes": 9}]})
    top = start("1", kind="run", a={sc.DEPTH: 0, sc.CORPUS + ".sha256": sha256_text(table)})
    made = [as_json({"how": "reference", "ranges": [[number, 0, 9]]}) for number in (0, 1)]
    calls = [start("2", "1", a={sc.SOURCE_RANGES: made[0]}), end("2")]
    calls += [start("3", "1", a={sc.SOURCE_RANGES: made[1]}), start("4", "3", kind="attempt")]
    calls += [end("4", status="error"), end("3", status="error")]
    write_spool(home, [header(), top, body(table), *calls, end("1"), fin()])
    found = the("unanswered", load_run(home, RUN))
    assert (found.severity, found.count) == ("check", 1)
    assert found.words == (
        "Documents sent only to sub-calls that failed: 1 of 2 (b.txt): no answer rests on them. "
        "Models saw 50% of the corpus."
    )


def test_child_runs_are_counted_where_they_are_suspects(home: Home) -> None:
    def cells(recorder: Recorder, run: RunSpan) -> None:
        made = cell(recorder, run, 0)
        call(recorder, made, "one")
        recorder.start("run", sc.NAME_RUN, made, {sc.DEPTH: 1}).fail("model", "no answer")
        made.end()

    found = the("error", run_of(home, cells))
    assert found.words == "Sub-calls and child runs that ended in error, were cancelled or lost: 1 of 2."


def failing(recorder: Recorder, parent: RunSpan) -> None:
    made = recorder.start("sub_call", "chat s", parent, {sc.CELL: 0, sc.DEPTH: 0})
    made.fail("server", "the server is not there today")


@pytest.mark.parametrize(
    ("answer", "severity", "where"),
    [
        ("It says: the server is not there today", "serious", "the answer and in 1 prompt"),
        ("42", "check", "1 prompt"),
    ],
)
def test_the_text_of_an_error_that_went_on_as_if_it_were_a_reply_is_found(
    home: Home, answer: str, severity: str, where: str
) -> None:
    def cells(recorder: Recorder, run: RunSpan) -> None:
        made = cell(recorder, run, 0)
        failing(recorder, made)
        call(recorder, made, "Sum up: SubCallError('the server is not there today'), 17")
        made.end()

    found = the("error_text", run_of(home, cells, answer=answer))
    assert (found.severity, found.words) == (
        severity,
        f"The error message of a failed sub-call stands in {where}, as if it were a reply.",
    )


def test_remarks_of_the_checks_name_cell_and_line(home: Home) -> None:
    remarks = [
        {"rule": "swallowed_exception", "line": 4, "message": "..."},
        {"rule": "undefined_name", "line": 1, "message": "..."},
    ]

    def cells(recorder: Recorder, run: RunSpan) -> None:
        cell(recorder, run, 2, FINDINGS=as_json(remarks)).end()

    view = run_of(home, cells)
    assert kinds(view) == ["swallowed_exception"]
    assert the("swallowed_exception", view).words.endswith("a failure leaves no trace: 1 (cell 2 line 4).")


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("try:\n    n = int(r)\nexcept ValueError:\n    n = 0", True),
        ("for r in rs:\n    try:\n        d = json.loads(r)\n    except Exception:\n        continue", True),
        (
            "try:\n    n = int(re.sub('\\d', '', r))\nexcept ValueError:\n    n = 0",
            True,
        ),  # Python warns of it
        ("try:\n    n = int(r)\nexcept ValueError:\n    failed.append(r)", False),
        ("try:\n    n = int(r)\nexcept ValueError:\n    raise", False),
        ("try:\n    n = reply\nexcept ValueError:\n    n = 0", False),
        ("except (((", False),
    ],
)
def test_code_that_goes_on_quietly_where_nothing_could_be_parsed_is_found(
    home: Home, code: str, found: bool
) -> None:
    view = run_of(home, lambda recorder, run: cell(recorder, run, 0, code).end())
    assert ("parse_fallback" in kinds(view)) == found


def test_cells_that_broke_are_told_by_their_exceptions(home: Home) -> None:
    def cells(recorder: Recorder, run: RunSpan) -> None:
        for number, kind in enumerate(("NameError", "NameError", "KeyError")):
            cell(recorder, run, number, EXCEPTION_TYPE=kind).fail(kind, "no such thing")
        died = cell(recorder, run, 3, EXCEPTION_TYPE="WorkerDied", LOST_NAMES='["total", "pages"]')
        died.fail("WorkerDied", "out of memory")

    view = run_of(home, cells)
    assert the("exception", view).words == "3 cells ended with an exception: NameError (2), KeyError (1)."
    assert the("exception", view).severity == "note"
    assert the("worker_lost", view).words.endswith("built anew: 1. Gone since: pages, total.")


def test_output_that_the_root_never_saw_is_counted(home: Home) -> None:
    facts = {"STDOUT_TRUE_CHARS": 25_000, "STDOUT_RULE": as_json({"shown_chars": 10_000})}
    view = run_of(home, lambda recorder, run: cell(recorder, run, 0, **facts).end())
    assert the("output_cut", view).words == (
        "The root did not see all that 1 cell printed: 15,000 characters were left out in the middle."
    )


def test_an_answer_from_the_iteration_that_first_looked_at_data_is_found(home: Home) -> None:
    def cells(recorder: Recorder, run: RunSpan) -> None:
        cell(recorder, run, 0, NAMES_READ='["print"]').end()
        cell(recorder, run, 1, NAMES_READ='["documents"]').end()

    assert the("early", run_of(home, cells, ANSWER_CELL=1)).severity == "check"


def test_an_answer_from_a_later_iteration_is_not_early(home: Home) -> None:
    def cells(recorder: Recorder, run: RunSpan) -> None:
        cell(recorder, run, 0, NAMES_READ='["documents"]').end()
        cell(recorder, run, 1, NAMES_READ='["documents", "found"]').end()

    assert "early" not in kinds(run_of(home, cells, ANSWER_CELL=1))


def test_calls_made_twice_are_counted_with_what_they_cost(home: Home) -> None:
    def cells(recorder: Recorder, run: RunSpan) -> None:
        made = cell(recorder, run, 0)
        for prompt in ("Is it so?", "Is it so?", "Or so?", "Is it so?"):
            call(recorder, made, prompt)
        made.end()

    assert the("duplicates", run_of(home, cells)).words == (
        "2 sub-calls asked what had been asked before, word for word. They cost $0.5."
    )


def batches(*cells: tuple[str, str]) -> Cells:
    """Cells with a batch of two calls each, that read and write these names."""

    def made(recorder: Recorder, run: RunSpan) -> None:
        for number, (reads, writes) in enumerate(cells):
            names = {"NAMES_READ": as_json([reads]), "NAMES_WRITTEN": as_json([writes])}
            outer = cell(recorder, run, number, **names)
            batch = recorder.start("batch", sc.NAME_BATCH, outer, {sc.CELL: number})
            for index in range(2):
                call(recorder, batch, f"Part {number}.{index}?", number=number)
            batch.end()
            outer.end()

    return made


def test_parts_that_knew_nothing_of_each_other_are_found_where_the_question_is_about_the_whole(
    home: Home,
) -> None:
    view = run_of(home, batches(("documents", "replies"), ("documents", "more")), question="Summarise it.")
    assert the("unshared", view).count == 4


@pytest.mark.parametrize(
    ("question", "second"), [("Summarise it.", "replies"), ("How many are there?", "documents")]
)
def test_nothing_is_claimed_where_replies_went_on_or_the_question_is_about_parts(
    home: Home, question: str, second: str
) -> None:
    view = run_of(home, batches(("documents", "replies"), (second, "more")), question=question)
    assert "unshared" not in kinds(view)


def test_what_the_program_said_of_its_own_answer_is_a_finding(home: Home) -> None:
    view = run_of(
        home, lambda *_: None, ANSWER_CONFIDENCE="low", ANSWER_NOTE="2 of 9 failed", ANSWER_MARK="empty"
    )
    assert the("low_confidence", view).words.endswith("Its note: 2 of 9 failed")
    assert the("answer_mark", view).severity == "serious"


def test_a_run_whose_process_died_says_so_and_one_with_gaps_how_many(home: Home) -> None:
    write_spool(home, [header(), start("r", kind="run")])
    assert the("interrupted", load_run(home, RUN)).severity == "serious"


def test_a_finding_as_json_lists_the_first_spans_and_counts_the_rest() -> None:
    found = Finding("error", "serious", "words", 30, tuple(f"{n}" for n in range(30))).to_json()
    assert (len(found["spans"]), found["spans_left_out"]) == (20, 10)
    assert json.loads(json.dumps(found)) == found


def test_facts_of_wrong_types_make_no_finding_and_no_error(home: Home) -> None:
    bad = {sc.FINDINGS: "[1, {}, null]", sc.STDOUT_RULE: "[]", sc.LEDGER: '{"calls": 7}', sc.LIMITS: "[[[["}
    bad |= {sc.NAMES_READ: '{"a": 1}', sc.LOST_NAMES: "7", sc.ANSWER_CELL: -1, sc.STDOUT_TRUE_CHARS: True}
    records = [header(), start("r", span_kind="run", a=bad), start("c", "r", "cell", a=bad), fin()]
    write_spool(home, records)
    view = load_run(home, RUN)
    assert "overshoot" not in kinds(view)
    assert [limit.name for limit in limits(view)] == ["iterations"]


def test_limits_come_from_the_ledger_and_until_there_is_one_from_the_spans(home: Home) -> None:
    ledger = {"calls": {"spent": 20, "limit": 50}, "usd": {"spent": "0.5", "limit": None, "known": False}}
    given = as_json({"max_iterations": 4, "max_calls": 50, "max_cost_usd": None})
    ended = limits(run_of(home, batches(("a", "b")), LEDGER=as_json(ledger), LIMITS=given))
    assert [(limit.name, limit.words, limit.share) for limit in ended] == [
        ("iterations", "1 of 4", 0.25),
        ("sub-calls", "20 of 50", 0.4),
        ("dollars", "at least $0.5, no limit", None),
    ]


def test_what_a_run_without_a_ledger_used_is_counted_from_its_spans(home: Home) -> None:
    shown = {limit.name: limit.words for limit in limits(run_of(home, batches(("a", "b"))))}
    assert shown["sub-calls"] == "2, no limit"
    assert shown["dollars"] == "$0.5, no limit"
    assert not any(limit.over for limit in limits(load_run(home, RUN)))
