"""What the engine takes from a worker's messages: typed, bounded, or a `FrameError`."""

from __future__ import annotations

import contextlib
import reprlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core import frames
from rlm_core.wire import OpenCall, read_done

OPEN = {"t": "open", "id": 1, "op": "llm", "n": 1, "batch": False, "line": 3}
DONE = {
    "t": "done",
    "n": 4,
    "stdout": "hi\n",
    "chars": 3,
    "exc": None,
    "answer": None,
    "vars": [],
    "restored": [],
}


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


# -- calls


def test_a_call_as_workers_send_it() -> None:
    call = OpenCall.read({**OPEN, "n": 3, "batch": True, "model": "m", "schema": {"a": [1]}, "max_tokens": 9})
    assert (call.id, call.op, call.size, call.batch, call.line) == (1, "llm", 3, True, 3)
    assert (call.model, call.schema, call.max_tokens) == ("m", {"a": [1]}, 9)
    assert call.touched == []
    call.add([{"p": ["a", [0, 1, 2]], "s": [[3, 0, 5]]}])
    call.add([{"p": ["b"], "c": [["x"], [[0, 0, 1]]]}, {"too_large": 10_000_000}])
    first, second, third = call.closed().slots
    assert first.prompt == ["a", [0, 1, 2]] and first.snippet == [[3, 0, 5]] and first.contexts is None
    assert second.contexts == [["x"], [[0, 0, 1]]] and second.snippet == []
    assert third.too_large == 10_000_000 and third.prompt == []


def test_a_call_says_what_code_has_looked_at() -> None:
    assert OpenCall.read({**OPEN, "touched": [[3, 0, 9], [0, 2, 2]]}).touched == [[3, 0, 9], [0, 2, 2]]


@pytest.mark.parametrize("extra", ["api_base", "api_key", "headers", "extra", "x" * 100_000])
def test_a_call_cannot_carry_more_than_it_may(extra: str) -> None:
    with pytest.raises(frames.FrameError) as caught:
        OpenCall.read({**OPEN, extra: "http://example.invalid"})
    assert extra[:50] in str(caught.value) and len(str(caught.value)) < 1_000


@pytest.mark.parametrize(
    "change",
    [
        {"id": 0},
        {"id": True},
        {"id": "1"},
        {"id": None},
        {"id": 2**60},
        {"op": "shell"},
        {"op": []},
        {"n": 0},
        {"n": 2},
        {"n": 1.0},
        {"n": frames.MAX_SLOTS + 1, "batch": True},
        {"line": -1},
        {"model": 5},
        {"model": "m" * (frames.MODEL_CHARS + 1)},
        {"schema": []},
        {"schema": {"a": deep(5_000)}},
        {"schema": {"a": [0] * 50_000}},
        {"touched": None},
        {"touched": {"0": 1}},
        {"touched": [[0, 1]]},
        {"touched": [[0, 1, 2, 3]]},
        {"touched": [[0, 1, 2.0]]},
        {"touched": [[0, True, 2]]},
        {"touched": [[-1, 1, 2]]},
        {"touched": [[0, 1, 2**60]]},
        {"touched": ["abc"]},
        {"touched": [[0, 1, 2]] * 1_001},
        {"max_tokens": 0},
        {"max_tokens": True},
        {"max_tokens": 2**40},
    ],
    ids=reprlib.repr,
)
def test_calls_that_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(frames.FrameError):
        OpenCall.read({**OPEN, **change})


@pytest.mark.parametrize("missing", ["id", "op", "n", "line"])
def test_a_call_has_all_its_parts(missing: str) -> None:
    with pytest.raises(frames.FrameError):
        OpenCall.read({key: value for key, value in OPEN.items() if key != missing})


@pytest.mark.parametrize(
    "items",
    [
        None,
        {},
        [5],
        [{}],
        [{"p": "text"}],
        [{"p": [5]}],
        [{"p": [[0, 1]]}],
        [{"p": [[0, -1, 2]]}],
        [{"p": [[0, True, 2]]}],
        [{"p": [[0, 1.5, 2]]}],
        [{"p": ["a"], "s": "b"}],
        [{"p": ["a"], "c": "b"}],
        [{"p": ["a"], "c": ["b"]}],
        [{"too_large": -1}],
        [{"too_large": 5, "p": 7}],
        [{"p": ["a"]}, {"p": ["b"]}],
    ],
    ids=repr,
)
def test_slots_that_are_refused(items: Any) -> None:
    with pytest.raises(frames.FrameError):
        OpenCall.read(OPEN).add(items)


def test_a_batch_has_as_many_slots_as_it_said() -> None:
    call = OpenCall.read({**OPEN, "n": 2, "batch": True})
    call.add([{"p": ["a"]}])
    with pytest.raises(frames.FrameError):
        call.closed()
    with pytest.raises(frames.FrameError):
        call.add([{"p": ["b"]}, {"p": ["c"]}])


def test_a_batch_is_bounded_as_a_whole() -> None:
    call = OpenCall.read({**OPEN, "n": 1_000, "batch": True})
    text = "x" * (4 << 20)
    with pytest.raises(frames.FrameError):
        for _ in range(1_000):
            call.add([{"p": [text]}])
    assert call.weight < frames.MAX_BATCH + 2 * len(text)


# -- reports


def test_a_report_as_workers_send_it() -> None:
    rows = [
        {
            "name": "a",
            "type": "int",
            "size": None,
            "hash": "ff",
            "preview": "5",
            "change": "new",
            "more": "x",
        },
        {"name": "b", "change": "deleted"},
    ]
    answer = {"via": "FINAL", "ready": True, "form": 5, "text": "5", "type": "int"}
    error = {"type": "ValueError", "text": "Traceback"}
    report = read_done({**DONE, "vars": rows, "answer": answer, "exc": error, "restored": ["sum"]}, 4)
    assert report.stdout == "hi\n" and report.true_chars == 3 and not report.interrupted
    assert report.exception_type == "ValueError" and report.exception == "Traceback"
    assert report.answer == answer and report.restored == ("sum",)
    assert report.variables[0] == {
        "name": "a",
        "type": "int",
        "hash": "ff",
        "preview": "5",
        "change": "new",
    }
    assert report.written() == ["a"]
    assert (report.given.whole, report.given.parts, report.given.left_out) == ([], [], 0)


def test_a_report_says_what_code_was_given() -> None:
    given = read_done({**DONE, "given": {"whole": [[0, 9]], "parts": [[12, 3, 5]], "left_out": 7}}, 4).given
    assert (given.whole, given.parts, given.left_out) == ([[0, 9]], [[12, 3, 5]], 7)


@pytest.mark.parametrize(
    "change",
    [
        {"n": 5},
        {"n": None},
        {"stdout": None},
        {"stdout": 5},
        {"chars": "3"},
        {"chars": -1},
        {"chars": 3, "stdout": "x" * 1_000},
        {"exc": "text"},
        {"exc": {"type": "E"}},
        {"exc": {"type": "E", "text": None}},
        {"answer": 5},
        {"answer": {"via": None}},
        {"answer": {"via": "FINAL", "form": deep(2_000)}},
        {"vars": None},
        {"vars": {}},
        {"vars": [5]},
        {"vars": [{"name": "a"}]},
        {"vars": [{"name": "a", "change": "exploded"}]},
        {"vars": [{"name": "a", "change": "new"}] * 5_000},
        {"given": None},
        {"given": {"whole": [[1]]}},
        {"given": {"whole": [[0, 1]] * 1_001}},
        {"given": {"parts": [[0, 1]]}},
        {"given": {"parts": [[0, -1, 2]]}},
        {"given": {"left_out": "many"}},
        {"restored": 5},
        {"restored": [5]},
    ],
    ids=reprlib.repr,
)
def test_reports_that_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(frames.FrameError):
        read_done({**DONE, **change}, 4)


def test_texts_of_a_report_are_bounded() -> None:
    long = "x" * 1_000_000
    row = {"name": long, "type": long, "preview": long, "change": "new"}
    report = read_done(
        {**DONE, "vars": [row], "exc": {"type": long, "text": long}, "restored": [long] * 1_000}, 4
    )
    assert report.exception_type is not None and len(report.exception_type) < 1_000
    assert report.exception is not None and len(report.exception) < 100_000
    assert all(len(value) < 1_000 for value in report.variables[0].values())
    assert len(report.restored) <= 50 and all(len(name) < 1_000 for name in report.restored)


# -- anything at all

_KEYS = st.sampled_from(
    [
        "t",
        "id",
        "op",
        "n",
        "batch",
        "line",
        "model",
        "schema",
        "max_tokens",
        "stdout",
        "chars",
        "exc",
        "answer",
    ]
    + ["vars", "restored", "interrupted", "type", "text", "via", "name", "change", "p", "s", "c", "too_large"]
    + ["given", "whole", "parts", "left_out"]
)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["llm", "new", "", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=12,
)


@given(st.dictionaries(_KEYS, _ANYTHING, max_size=9), _ANYTHING)
def test_no_message_raises_anything_else(frame: dict[str, Any], items: Any) -> None:
    for read in (OpenCall.read, lambda message: read_done(message, 1)):
        for message in (frame, {**OPEN, **frame}, {**DONE, **frame}):
            with contextlib.suppress(frames.FrameError):
                read(message)
    call = OpenCall.read({**OPEN, "n": 3, "batch": True})
    with contextlib.suppress(frames.FrameError):
        call.add(items)
        call.closed()
