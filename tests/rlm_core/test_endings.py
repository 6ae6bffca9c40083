"""When what a cell set as the answer is the answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core.endings import judge, partial
from rlm_core.values import as_text, to_form
from rlm_core.wire import CellReport


def report(value: Any = None, *, error: str | None = None, **answer: Any) -> CellReport:
    """A report of a cell that gave this value with FINAL; `answer=None` for one that gave nothing."""
    given = {
        "via": "FINAL",
        "expression": None,
        "ready": True,
        "type": type(value).__name__,
        "form": to_form(value),
        "text": as_text(value),
        **answer,
    }
    return CellReport(
        stdout="",
        true_chars=0,
        exception_type=error,
        exception=None if error is None else f"{error}: why",
        interrupted=False,
        answer=None if answer.get("via", "") is None else given,
        restored=(),
        variables=[],
    )


@pytest.mark.parametrize(
    "value", [7, "seven", [1, 2], {1: 2}, 0, False, 0.0, " x ", (0,), b"", "ERROR", "Errors rose"]
)
def test_a_value_is_an_answer(value: Any) -> None:
    verdict = judge(report(value), False)
    assert verdict is not None and verdict.outcome is not None
    assert (verdict.outcome.value, verdict.outcome.text) == (value, as_text(value))
    assert verdict.outcome.stop_reason == "final" and verdict.outcome.via == "FINAL"
    assert verdict.outcome.mark is None and verdict.refusal is None


def test_nothing_set_is_no_verdict() -> None:
    assert judge(report(via=None), False) is None
    assert judge(report(5, ready=False), False) is None
    assert judge(report(5, ready="yes"), False) is None


@pytest.mark.parametrize("value", [None, "", "  \n", [], {}, (), set(), frozenset()])
def test_an_empty_answer_is_refused_once_and_then_marked(value: Any) -> None:
    first = judge(report(value), False)
    assert first is not None and first.outcome is None and first.once
    assert first.refusal is not None and "empty" in first.refusal
    second = judge(report(value), True)
    assert second is not None and second.outcome is not None and second.outcome.mark == "empty"


@pytest.mark.parametrize(
    "value",
    [
        "Error: 429 too many requests",
        "[ERROR] call failed",
        "error 500: oops",
        "ValueError: bad",
        "openai.RateLimitError: slow down",
        "SubCallError(kind='budget', message='none left')",
    ],
)
def test_the_text_of_an_error_is_refused_once_and_then_marked(value: str) -> None:
    first = judge(report(value), False)
    assert first is not None and first.outcome is None and first.once
    second = judge(report(value), True)
    assert second is not None and second.outcome is not None and second.outcome.mark == "error_text"


def test_a_failed_sub_call_is_the_text_of_an_error() -> None:
    form = {"$repr": "SubCallError(kind='server', message='x')", "$type": "rlm_core.SubCallError"}
    first = judge(report("x", type="SubCallError", form=form, text=form["$repr"]), False)
    assert first is not None and first.outcome is None and first.once


def test_a_traceback_is_never_an_answer() -> None:
    text = "Traceback (most recent call last):\n  File"
    for refused in (False, True):
        verdict = judge(report(text), refused)
        assert verdict is not None and verdict.outcome is None and not verdict.once


def test_an_answer_of_a_cell_that_failed_is_not_taken() -> None:
    for refused in (False, True):
        verdict = judge(report(5, error="ValueError"), refused)
        assert verdict is not None and verdict.outcome is None and verdict.refusal is not None
    left = judge(report(5, error="SystemExit"), False)
    assert left is not None and left.outcome is not None, "sys.exit() behind FINAL is no failure"


def test_a_missing_variable_and_an_unwritable_value_are_named() -> None:
    missing = judge(report(via="FINAL_VAR", expression="totl", missing=True), True)
    assert missing is not None and missing.refusal is not None and "'totl'" in missing.refusal
    failed = judge(report(failed="RuntimeError while it was written as text"), True)
    assert failed is not None and failed.refusal is not None and "RuntimeError" in failed.refusal


def test_what_goes_with_an_answer() -> None:
    verdict = judge(report(5, via="FINAL_VAR", expression="n", confidence="low", note="two unclear"), False)
    assert verdict is not None and verdict.outcome is not None
    outcome = verdict.outcome
    assert (outcome.expression, outcome.confidence, outcome.note) == ("n", "low", "two unclear")


def test_partial_answers() -> None:
    assert partial(report("so far", ready=False)) == "so far"
    assert partial(report("so far", error="ValueError")) == "so far"
    assert partial(report("done")) is None, "that is the answer, or refused as one"
    assert partial(report(None, ready=False)) is None
    assert partial(report("  ", ready=False)) is None
    assert partial(report("ValueError: x", ready=False)) is None
    assert partial(report(via=None)) is None


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)


@given(
    st.fixed_dictionaries(
        {"via": st.text(max_size=5)},
        optional={
            key: _ANYTHING
            for key in (
                "ready",
                "type",
                "form",
                "text",
                "expression",
                "missing",
                "failed",
                "confidence",
                "note",
            )
        },
    ),
    st.booleans(),
)
def test_whatever_a_worker_says_gives_a_verdict(answer: dict[str, Any], refused: bool) -> None:
    given_report = report()
    given_report.answer = answer
    verdict = judge(given_report, refused)
    partial(given_report)
    if verdict is not None and verdict.outcome is not None:
        assert isinstance(verdict.outcome.text, str)
        verdict.outcome.value  # noqa: B018 - must not raise
