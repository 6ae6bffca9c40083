"""Two runs compared: which rows are the same, where the difference begins, what only follows."""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from rlm_core.telemetry import sha256_text
from tests.traces.diff_runs import Call, Cell, Child, run_of, view_of
from tests.traces.records import OTHER, RUN, body, end, home_in, record_run, start
from traces.diff import Diff, Row, diff
from traces.view import RunView, SpoolRun

ASKING = "replies = [llm_query(p) for p in prompts]"


def compared(
    folder: Path, bad: list[Cell], good: list[Cell], answers: tuple[str, str] = ("41", "42")
) -> tuple[Diff, RunView, RunView]:
    """The comparison of two plans, and both runs."""
    a, b = (
        run_of(folder, name, cells, answer=answer)
        for name, cells, answer in zip("ab", (bad, good), answers, strict=True)
    )
    return diff(a, b), a, b


def prompts(rows: tuple[Row, ...], view: RunView, status: str) -> list[str]:
    """Previews of what was asked in rows of a status."""
    texts = {span.span_id: view.payload(str(span.attributes.get("rlm.prompt.sha256"))) for span in view.spans}
    return [texts[row.a or ""] or "" for row in rows if row.kind == "sub_call" and row.status == status]


def statuses(found: Diff, kind: str) -> list[str]:
    return [row.status for row in found.rows if row.kind == kind]


def test_a_run_is_the_same_as_itself(tmp_path: Path) -> None:
    view = run_of(tmp_path, "a", [Cell("x", [Call("p", "A"), Child("q", "A")])])
    found = diff(view, view)
    assert set(found.counts) - {"same"} == {status for status, count in found.counts.items() if not count}
    assert found.answers.same and found.plan is None and found.frontier == ()
    assert found.notes == ()


def test_the_frontier_is_what_was_asked_the_same_and_answered_differently(tmp_path: Path) -> None:
    good = [
        Cell(ASKING, [Call(f"Text {n}", "yes") for n in range(20)]),
        Cell("sum", [Call("Sum: 20 yes", "20")]),
    ]
    bad = [
        Cell(ASKING, [Call(f"Text {n}", "no" if n in (3, 11) else "yes") for n in range(20)]),
        Cell("sum", [Call("Sum: 18 yes", "18")]),
    ]
    found, a, _ = compared(tmp_path, bad, good)
    assert prompts(found.frontier, a, "frontier") == ["Text 3", "Text 11"]
    assert prompts(found.rows, a, "downstream") == ["Sum: 18 yes"]
    assert found.matching == "normalised" and found.answers.same is False


def test_a_call_that_failed_in_one_run_only_is_where_the_difference_begins(tmp_path: Path) -> None:
    found, a, _ = compared(
        tmp_path,
        [Cell("x", [Call("p", None), Call("q", None)])],
        [Cell("x", [Call("p", "A"), Call("q", None)])],
    )
    assert prompts(found.frontier, a, "frontier") == ["p"]


def test_white_space_case_and_a_full_stop_are_no_difference(tmp_path: Path) -> None:
    found, a, _ = compared(
        tmp_path,
        [Cell("x", [Call("p", "The  Answer."), Call("q", "one")])],
        [Cell("x", [Call("p", "the answer"), Call("q", "two")])],
    )
    assert prompts(found.frontier, a, "frontier") == ["q"]


def test_a_prompt_that_only_took_over_such_noise_counts_as_the_same_prompt(tmp_path: Path) -> None:
    found, a, _ = compared(
        tmp_path,
        [Cell("x", [Call("p", "YES ")]), Cell("y", [Call("Sum up: YES  and more", "wrong")])],
        [Cell("x", [Call("p", "yes")]), Cell("y", [Call("Sum up: yes and more", "right")])],
    )
    assert prompts(found.frontier, a, "frontier") == ["Sum up: YES  and more"]


def test_an_empty_frontier_is_looked_for_again_byte_for_byte_and_that_is_said(tmp_path: Path) -> None:
    plans = [Cell("x", [Call("p", "Yes")])], [Cell("x", [Call("p", "yes")])]
    found, a, _ = compared(tmp_path, *plans)
    assert prompts(found.frontier, a, "frontier") == ["p"]
    assert found.matching == "raw" and "byte for byte" in found.notes[0]
    equal, _, _ = compared(tmp_path, *plans, answers=("42", "42."))
    assert equal.frontier == () and equal.matching == "normalised" and equal.notes == ()


def test_exact_compares_responses_byte_for_byte_from_the_start(tmp_path: Path) -> None:
    a = run_of(tmp_path, "a", [Cell("x", [Call("p", "Yes"), Call("q", "1")])])
    b = run_of(tmp_path, "b", [Cell("x", [Call("p", "yes"), Call("q", "2")])])
    assert [len(diff(a, b, how).frontier) for how in ("normalised", "exact")] == [1, 2]


def test_an_unknown_comparison_is_refused(tmp_path: Path) -> None:
    view = run_of(tmp_path, "a", [])
    with pytest.raises(InputError, match="compared by"):
        diff(view, view, "guess")


def test_the_first_cell_that_is_other_code_after_the_same_output_is_where_the_root_parted(
    tmp_path: Path,
) -> None:
    found, a, _ = compared(
        tmp_path,
        [Cell("look()", output="3 documents"), Cell("n = 1 + 1"), Cell("m = n * 3")],
        [Cell("look()", output="3 documents"), Cell("n = 1 + 2"), Cell("m = n * 5")],
    )
    assert statuses(found, "cell") == ["same", "frontier", "downstream"]
    (row,) = found.frontier
    assert a.by_id[row.a or ""].cell == 1
    assert found.plan is not None and found.plan.a == row.a and found.plan.b == row.b
    assert (found.plan.a_code, found.plan.b_code) == ("n = 1 + 1", "n = 1 + 2")
    assert found.plan.shown_same and found.plan.literals


def test_an_answer_that_the_root_typed_after_other_output_is_no_beginning(tmp_path: Path) -> None:
    found, a, _ = compared(
        tmp_path,
        [Cell(ASKING, [Call("p", "41")], output="41"), Cell("FINAL('41')")],
        [Cell(ASKING, [Call("p", "42")], output="42"), Cell("FINAL('42')")],
    )
    assert [a.by_id[row.a or ""].kind for row in found.frontier] == ["sub_call"]
    assert statuses(found, "cell") == ["downstream", "downstream"]
    assert found.plan is not None and not found.plan.shown_same and found.plan.literals


def test_output_that_differs_in_white_space_is_the_same_to_the_root(tmp_path: Path) -> None:
    found, _, _ = compared(
        tmp_path,
        [Cell("look()", output="3  Documents."), Cell("n = 1")],
        [Cell("look()", output="3 documents"), Cell("n = 2")],
    )
    assert [row.kind for row in found.frontier] == ["cell"]


def test_an_iteration_that_only_one_run_has_is_added_and_the_rest_stays_aligned(tmp_path: Path) -> None:
    common = [Cell("a = 1"), Cell("b = llm_query('p')", [Call("p", "A")]), Cell("c = 3")]
    found, _, b = compared(tmp_path, common, [common[0], Cell("print(dir())"), *common[1:]])
    assert statuses(found, "cell") == ["same", "added", "same", "same"]
    assert found.plan is not None and found.plan.b_code == "print(dir())"
    assert found.plan.a_code == "b = llm_query('p')"
    assert found.plan.shown_same and found.plan.iteration == 1


def test_cells_whose_words_are_alike_belong_together(tmp_path: Path) -> None:
    found, _, b = compared(
        tmp_path,
        [Cell("total = sum(int(x) for x in replies if x)"), Cell("zzz(1)")],
        [Cell("yyy(2)"), Cell("total = sum(int(x) for x in replies if x != '')"), Cell("www(3)")],
    )
    matched = [(row.matched, row.b and b.by_id[row.b].cell) for row in found.rows if row.kind == "iteration"]
    assert matched == [(None, 0), ("similarity", 1), ("place", 2)]


def test_the_culprit_inside_a_child_run_is_named_and_not_the_child_run(tmp_path: Path) -> None:
    def plan(reply: str) -> list[Cell]:
        inner = Cell("r = llm_query(t)", [Call("t", reply)], output=reply)
        return [Cell("c = rlm_query('q')", [Child("q", reply, [inner])])]

    found, a, _ = compared(tmp_path, plan("bad"), plan("good"))
    assert prompts(found.frontier, a, "frontier") == ["t"]
    assert statuses(found, "run") == ["downstream", "downstream"]


def test_a_child_run_that_answered_differently_for_no_reason_inside_is_a_beginning(tmp_path: Path) -> None:
    inner = Cell("print(1)", output="1")
    found, a, _ = compared(
        tmp_path,
        [Cell("c", [Child("q", "41", [inner])])],
        [Cell("c", [Child("q", "42", [inner])])],
    )
    assert [row.kind for row in found.frontier] == ["run"]
    assert a.by_id[found.frontier[0].a or ""].is_child_run


def test_child_runs_in_which_the_root_parted_name_the_cell(tmp_path: Path) -> None:
    found, _, _ = compared(
        tmp_path,
        [Cell("c", [Child("q", "41", [Cell("FINAL(41)")])])],
        [Cell("c", [Child("q", "42", [Cell("FINAL(42)")])])],
    )
    assert [row.kind for row in found.frontier] == ["cell"]
    assert found.plan is None  # the run itself wrote the same code


def test_a_call_that_another_cell_made_is_found_by_its_prompt(tmp_path: Path) -> None:
    found, a, _ = compared(
        tmp_path,
        [Cell("one()", [Call("p", "A"), Call("q", "B")]), Cell("two()")],
        [Cell("uno()", [Call("p", "A")]), Cell("dos()", [Call("q", "C")])],
    )
    assert prompts(found.frontier, a, "frontier") == ["q"]


def test_equal_prompts_are_paired_in_the_order_in_which_they_were_asked(tmp_path: Path) -> None:
    a = [Cell("x", [Call("p", "1"), Call("p", "2"), Call("p", "3")])]
    b = [Cell("x", [Call("p", "1"), Call("p", "9"), Call("p", "3"), Call("p", "4")])]
    found, _, _ = compared(tmp_path, a, b)
    assert statuses(found, "sub_call") == ["same", "frontier", "same", "added"]


def test_a_batch_is_compared_with_a_loop_slot_by_slot(tmp_path: Path) -> None:
    calls = [Call(f"Text {n}", "yes") for n in range(9)]
    found, _, _ = compared(tmp_path, [Cell("llm_batch(p)", calls, batch=True)], [Cell(ASKING, calls)])
    assert statuses(found, "sub_call") == ["same"] * 9
    assert statuses(found, "batch") == ["removed"]


def test_a_prompt_whose_template_and_passages_are_the_same_is_downstream(tmp_path: Path) -> None:
    found, _, _ = compared(
        tmp_path,
        [Cell("x", [Call("In 2 steps", ranges=[[0, 0, 9]]), Call("In 4 steps", ranges=[[1, 0, 9]])])],
        [Cell("x", [Call("In 5 steps", ranges=[[1, 0, 9]]), Call("In 3 steps", ranges=[[0, 0, 9]])])],
    )
    rows = [row for row in found.rows if row.kind == "sub_call"]
    assert [row.matched for row in rows] == ["template and place"] * 2
    assert [row.status for row in rows] == ["downstream"] * 2
    assert found.frontier == ()


def test_calls_that_were_given_other_passages_are_no_partners(tmp_path: Path) -> None:
    found, _, _ = compared(
        tmp_path,
        [Cell("x", [Call("Part 1", "A", ranges=[[0, 0, 50]], template="Part")])],
        [Cell("x", [Call("Part 2", "B", ranges=[[0, 50, 90]], template="Part")])],
    )
    assert Counter(statuses(found, "sub_call")) == {"removed": 1, "added": 1}


def test_plans_that_differ_give_hints_by_shared_passages_and_no_frontier_of_calls(tmp_path: Path) -> None:
    found, a, b = compared(
        tmp_path,
        [Cell("whole()", [Call("Read all of this: alpha", "A", ranges=[[0, 0, 100]])])],
        [
            Cell("halves = slice(2)", [
                Call("Only one half, beta", "B", ranges=[[0, 0, 30]]),
                Call("The other, gamma", "C", ranges=[[0, 30, 100], [1, 0, 9]]),
            ])
        ],
    )  # fmt: skip
    (hint,) = found.hints
    assert (b.by_id[hint.b].call_index, hint.shared, hint.share) == (1, 70, 70 / 79)
    assert [row.kind for row in found.frontier] == ["cell"]


def test_what_a_record_lacks_is_unknown_and_no_beginning(tmp_path: Path) -> None:
    found, _, _ = compared(
        tmp_path,
        [Cell("x", [Call("p", "A", hashed=False)])],
        [Cell("x", [Call("p", "B", hashed=False)])],
    )
    (row,) = (row for row in found.rows if row.kind == "sub_call")
    assert (row.status, row.changed, row.unknown) == ("downstream", ("response",), ("prompt",))
    assert found.frontier == ()


def test_other_questions_are_said_and_no_cell_is_a_beginning(tmp_path: Path) -> None:
    a = run_of(tmp_path, "a", [Cell("x = 1")], question="How many?", answer="1")
    b = run_of(tmp_path, "b", [Cell("x = 2")], question="How few?", answer="2")
    found = diff(a, b)
    assert found.notes == ("The runs were asked different questions.",) and found.frontier == ()


def test_the_json_form_has_the_keys_of_the_contract_and_every_row(tmp_path: Path) -> None:
    found, a, b = compared(tmp_path, [Cell("x", [Call("p", "A")])], [Cell("y", [Call("p", "B")])])
    told = found.to_json()
    assert {"answers", "rows", "frontier"} <= told.keys()
    assert all({"a", "b", "status"} <= row.keys() for row in told["rows"])
    assert told["answers"]["same"] is False
    assert len(told["rows"]) == len(a.spans) == len(b.spans)


def test_a_record_with_cells_right_below_its_run_is_compared_too(tmp_path: Path) -> None:
    """What another engine may leave: no iterations, no hashes but those of the texts."""
    views = []
    for name, code, reply in (("a", "n = 1", "A"), ("b", "n = 2", "B")):
        texts = [body(text) for text in (code, reply, "p", "q")]
        made = {f"{sc.CODE}.sha256": sha256_text(code)}
        asked = {f"{sc.PROMPT}.sha256": sha256_text("p")}
        spans = [
            start("1" * 16, None, "run", a={f"{sc.QUESTION}.sha256": sha256_text("q")}),
            start("2" * 16, "1" * 16, "sub_call", a=asked),
            end("2" * 16, a={f"{sc.RESPONSE}.sha256": sha256_text(reply)}),
            start("3" * 16, "1" * 16, "cell", a=made),
            *(end(number * 16) for number in "31"),
        ]
        views.append(view_of(tmp_path, name, [*texts, *spans]))
    found = diff(*views)
    assert [row.kind for row in found.frontier] == ["sub_call", "cell"]
    assert found.plan is not None and found.plan.b_code == "n = 2"


def test_deltas_are_of_the_second_run_less_the_first_with_all_that_is_below(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    record_run(home, RUN, calls=2, cost="0.5")
    record_run(home, OTHER, calls=3, cost="0.25")
    found = diff(SpoolRun(home, RUN).poll(), SpoolRun(home, OTHER).poll())
    calls = [row for row in found.rows if row.kind == "sub_call"]
    assert [(row.status, row.usd, row.tokens) for row in calls] == [
        ("same", Decimal("-0.25"), 0),
        ("same", Decimal("-0.25"), 0),
        ("added", Decimal("0.25"), 10),
    ]
    (cell,) = (row for row in found.rows if row.kind == "cell")
    assert (cell.usd, cell.tokens) == (Decimal("-0.25"), 10)
    assert cell.to_json()["usd"] == "-0.25" and calls[0].seconds is not None


def test_a_delta_is_unknown_where_a_side_is(tmp_path: Path) -> None:
    found, _, _ = compared(tmp_path, [Cell("x", [Call("p", "A")])], [Cell("x", [Call("p", "B")])])
    unknown = {row.kind for row in found.rows if row.usd is None and row.tokens is None}
    assert unknown == {"run", "iteration", "cell", "root_call", "sub_call"}


def test_the_time_of_a_run_is_that_of_its_head(tmp_path: Path) -> None:
    found, a, b = compared(tmp_path, [Cell("x", [])], [Cell("x", [Call("p", "A")])])
    later = copy(b)
    later.summary = replace(b.summary, seconds=9.0)
    (run,) = (row for row in diff(a, later).rows if row.kind == "run")
    assert a.summary.seconds is not None and run.seconds == 9.0 - a.summary.seconds
    cells = [row.seconds for row in found.rows if row.kind == "cell"]
    assert cells == [row.seconds for row in diff(a, later).rows if row.kind == "cell"]
