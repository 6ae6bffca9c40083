"""Texts and values against JSON schemas, also schemas that were written to do harm."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest

from rlm_core import schema_check
from rlm_core.schema_check import NotJson, SchemaError, Shape, parse_json, plain_value, shape_of

COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"n": 1}', {"n": 1}),
        (" [1, 2.5, null]\n", [1, 2.5, None]),
        ('"a text"', "a text"),
        ('Here it is:\n```json\n{"n": 1}\n```\nAnything else?', {"n": 1}),
        ("```\n[1]\n```", [1]),
        ('{"code": "```\\nx\\n```"}', {"code": "```\nx\n```"}),
    ],
)
def test_json_is_read_as_it_stands_or_out_of_its_one_block(text: str, value: Any) -> None:
    assert parse_json(text) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ("The count is 3.", "not JSON"),
        ('{"n": NaN}', "NaN is not JSON"),
        ('{"n": 1} {"n": 2}', "not JSON"),
        ("```json\n{}\n```\nor\n```json\n[]\n```", "2 fenced blocks"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5_000, "not JSON"),
    ],
)
def test_what_is_no_json_value_is_said(text: str, why: str) -> None:
    with pytest.raises(NotJson, match=why):
        parse_json(text)


def test_a_misfit_is_named_with_its_place() -> None:
    shape = shape_of(COUNT)
    assert shape.problem({"n": 1}) is None and shape_of(dict(COUNT)) is shape
    assert shape.problem({"n": "x"}) == "$.n: 'x' is not of type 'integer'"
    assert shape.problem({}) == "'n' is a required property"
    assert len(shape.problem({"n": "x" * 10_000}) or "") < 300


def test_a_value_of_python_is_checked_as_the_json_it_would_be() -> None:
    assert plain_value({"n": (1, [2, (3,)])}) == {"n": [1, [2, [3]]]}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "number of things"}, "no JSON schema"),
        ({"properties": 3}, "no JSON schema"),
        ({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}, "not supported"),
        ({"patternProperties": {"a": {}}}, "not supported"),
        ({"const": "x" * 60_000}, "more than 50,000 characters"),
    ],
)
def test_what_is_no_schema_is_refused(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        Shape(schema)


def doubling(levels: int) -> dict[str, Any]:
    """A schema of few lines whose check takes 2 to the power of its levels."""
    rules: dict[str, Any] = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**rules, f"a{levels}": {"type": "object"}}, "$ref": "#/$defs/a0"}


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (doubling(40), {}, "takes more than 2,000 steps"),
        ({**doubling(40), "$schema": "https://json-schema.org/draft/2020-12/schema"}, {}, "more than 2,000"),
        ({"$ref": "#"}, 1, "nested too deeply|steps"),
        ({"$ref": "http://127.0.0.1:9/schema"}, 1, "which is not in it"),
        ({"pattern": "^(a|a|aa)+$"}, "a" * 60 + "b", "takes too long|does not match"),
        ({"pattern": "("}, "a", "is not a 'regex'"),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1}], "not unique"),
    ],
)
def test_a_check_ends_whatever_the_schema(
    schema: dict[str, Any], value: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_check, "MOST_STEPS", 2_000)
    monkeypatch.setattr(schema_check, "PATTERN_SECONDS", 0.05)
    try:
        problem = Shape(schema).problem(value)
    except SchemaError as error:
        problem = str(error)
    assert re.search(why, problem or ""), problem


def test_fences_without_end_are_looked_through_once() -> None:
    with pytest.raises(NotJson, match="it is not JSON"):
        parse_json("```json\n" * 200_000)


def test_a_block_with_line_ends_of_windows_is_read() -> None:
    assert parse_json('Here:\r\n```json\r\n{"a": 1}\r\n```\r\n') == {"a": 1}


async def on_loop(shape: Shape, chars: int) -> bool:
    """Whether a check of so much text is made on the event loop itself."""
    return await shape.off_loop(chars, threading.current_thread) is threading.current_thread()


@pytest.mark.parametrize(
    ("schema", "chars", "inline"),
    [
        (COUNT, 1_000, True),
        (COUNT, 1_000_000, False),
        ({"items": {"enum": list(range(5_000))}}, 1_000, False),
        (doubling(3), 2, False),
        ({"pattern": "^a+$"}, 2, False),
    ],
)
def test_only_checks_that_are_surely_quick_are_made_on_the_event_loop(
    schema: dict[str, Any], chars: int, inline: bool
) -> None:
    assert asyncio.run(on_loop(Shape(schema), chars)) is inline


def test_a_long_check_ends_with_whoever_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_check, "MOST_STEPS", 1 << 60)
    shape, begun, said = Shape(doubling(60)), threading.Event(), list[str | None]()

    def check() -> None:
        begun.set()
        said.append(shape.problem({}))

    async def cancelled() -> None:
        waiting = asyncio.ensure_future(shape.off_loop(2, check))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(cancelled())  # which waits for its threads
    assert said == ["nobody waits for its check any more"]
