"""JSON that has to fit a JSON schema: replies of sub-models, arguments of tools, answers of runs.

Schemas can come from generated code, so checking is bounded: no reference is fetched, a check that takes too
many steps ends, and regular expressions run under a time limit (the package `regex`; Python's own has none).
`format` is not checked. The rest is JSON Schema by the package `jsonschema` (draft 2020-12 unless the schema
names another).
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from itertools import islice
from typing import Any, Final, TypeVar

from rlm_core.telemetry import as_json
from rlm_core.values import MAX_CHARS, MAX_DEPTH, MAX_ITEMS

MOST_SCHEMA_CHARS: Final = 50_000
MOST_STEPS: Final = 50_000  # keywords looked at in one check of a small value
STEPS_PER_PART: Final = 10  # and for each part of a large one, as long as that is
MOST_STEPS_LARGE: Final = 1_000_000  # at most
PATTERN_SECONDS: Final = 1.0  # of all regular expressions in one check
_QUICK: Final = 1_000_000  # characters of a schema times those of a value that are checked in milliseconds
_SLOW: Final = ('"$ref"', '"pattern"')  # a short schema can be long work with these
_MOST_PROBLEMS: Final = 3
_SHOWN: Final = 200  # characters of one problem
_OPENS: Final = re.compile(r"```[ \t]*(?:json)?", re.I)
_NOT_HERE: Final = ("patternProperties", "$dynamicRef", "$recursiveRef")
T = TypeVar("T")


class SchemaError(ValueError):
    """A schema that cannot be used; the message is a sentence."""


class NotJson(ValueError):
    """A text that is not one JSON value; the message is a clause that says why."""


class _TooMuch(Exception):
    """A check that takes too long; the message is a clause."""


class _Work:
    """What is left to one check."""

    def __init__(self, parts: int) -> None:
        self.most = self.steps = max(MOST_STEPS, min(STEPS_PER_PART * parts, MOST_STEPS_LARGE))
        self.until = time.monotonic() + PATTERN_SECONDS
        self.unwanted = _unwanted.get()

    def step(self) -> None:
        self.steps -= 1
        if self.unwanted is not None and self.unwanted.is_set():
            raise _TooMuch("nobody waits for its check any more")
        if self.steps < 0:
            raise _TooMuch(f"checking it takes more than {self.most:,} steps")


_work: ContextVar[_Work] = ContextVar("_work")
_unwanted: ContextVar[threading.Event | None] = ContextVar("_unwanted", default=None)


def parse_json(text: str) -> Any:
    """The JSON value a text is, or that its one fenced block holds. Raises `NotJson`."""
    try:
        return _loads(text)
    except NotJson as error:
        blocks = _blocks(text)
        if len(blocks) == 1:
            return _loads(blocks[0])
        if len(blocks) > 1:
            raise NotJson(f"it holds {len(blocks)} fenced blocks, not one JSON value") from None
        raise error


class Shape:
    """A schema, checked once, that values can be held against. Raises `SchemaError` for one that is none."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.text = as_json(schema)
        if len(self.text) > MOST_SCHEMA_CHARS:
            raise SchemaError(f"the schema has more than {MOST_SCHEMA_CHARS:,} characters")
        plain: Any = json.loads(self.text)
        _refuse(plain)
        base = import_module("jsonschema.validators").validator_for(
            plain, default=import_module("jsonschema").Draft202012Validator
        )
        plain.pop("$schema", None)  # else a reference to the root would bring back an unbounded checker
        try:
            base.check_schema(plain)
        except import_module("jsonschema").SchemaError as error:
            raise SchemaError(f"the schema is no JSON schema: {_told(error)}") from None
        except RecursionError:
            raise SchemaError("the schema is nested too deeply") from None
        self._checker = _bounded(base)(plain, registry=import_module("referencing").Registry())
        self._is_plain = not any(word in self.text for word in _SLOW)

    async def off_loop(self, chars: int, check: Callable[[], T]) -> T:
        """What a check against this shape returns, of a value of `chars` characters: a quick one is made at
        once, another in a thread, so that the event loop goes on. It ends soon when nobody waits for it.
        """
        if self._is_plain and len(self.text) * chars <= _QUICK:
            return check()
        unwanted = threading.Event()
        token = _unwanted.set(unwanted)  # the thread gets a copy of this context
        try:
            return await asyncio.to_thread(check)
        finally:
            unwanted.set()
            _unwanted.reset(token)

    def problem(self, value: Any) -> str | None:
        """Why a JSON value does not fit, in a clause; None when it does."""
        token = _work.set(_Work(_parts(value)))
        try:
            found = [_told(error) for error in islice(self._checker.iter_errors(value), _MOST_PROBLEMS)]
        except _TooMuch as error:
            found = [str(error)]
        except RecursionError:
            found = ["it is nested too deeply to be checked"]
        except import_module("referencing").exceptions.Unresolvable as error:
            found = [f"the schema refers to {str(error)[:_SHOWN]}, which is not in it"]
        finally:
            _work.reset(token)
        return "; ".join(found) or None

    def read(self, text: str) -> tuple[Any, str | None]:
        """The value of a reply and why it does not fit; None and the reason when it is no JSON."""
        try:
            value = parse_json(text)
        except NotJson as error:
            return None, str(error)
        return value, self.problem(value)


@lru_cache(64)
def _shape(text: str) -> Shape:
    return Shape(json.loads(text))


def shape_of(schema: Mapping[str, Any]) -> Shape:
    """The shape of a schema; those used last are kept. Raises `SchemaError`."""
    text = as_json(schema)
    return _shape(text) if len(text) <= MOST_SCHEMA_CHARS else Shape(schema)


def plain_value(value: Any) -> Any:
    """A Python value as the JSON it would be: a tuple is a list; what JSON lacks stays as it is."""
    if isinstance(value, tuple | list):
        return [plain_value(item) for item in value]
    if isinstance(value, dict):
        return {key: plain_value(item) for key, item in value.items()}
    return value


def _blocks(text: str) -> list[str]:
    """What stands in fenced blocks, plain ones and those of JSON; a block that never closes is none."""
    found: list[str] = []
    lines: list[str] | None = None
    for line in text.split("\n"):
        mark = line.strip()
        if lines is None:
            lines = [] if _OPENS.fullmatch(mark) else None
        elif mark == "```":
            found.append("\n".join(lines))
            lines = None
        else:
            lines.append(line)
    return found


def _loads(text: str) -> Any:
    """The value, when code can be given it exactly."""
    if len(text) > MAX_CHARS:
        raise NotJson(f"it has more than {MAX_CHARS:,} characters")
    try:
        value = json.loads(text, parse_constant=_no_constant)
        _parts(value, checked=True)
        return value
    except NotJson:
        raise
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except ValueError as error:
        raise NotJson(f"it is not JSON ({str(error)[:_SHOWN]})") from None


def _parts(value: Any, *, checked: bool = False) -> int:
    """How many parts a value has. With `checked` raises `NotJson` for one that has no exact form."""
    level, parts, depth = [value], 0, 0
    while level:
        parts += len(level)
        if checked and depth > MAX_DEPTH:
            raise NotJson(f"it is nested deeper than {MAX_DEPTH} levels")
        if checked and parts > MAX_ITEMS:
            raise NotJson(f"it has more than {MAX_ITEMS:,} parts")
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                parts += len(one)
                below += one.values()
            elif isinstance(one, list):
                below += one
        level, depth = below, depth + 1
    return parts


def _no_constant(name: str) -> Any:
    raise NotJson(f"{name} is not JSON")


def _refuse(schema: Any, *, top: bool = True) -> None:
    """Raise `SchemaError` for keywords that would leave the bounds of a check."""
    if isinstance(schema, list):
        for item in schema:
            _refuse(item, top=False)
    elif isinstance(schema, dict):
        for key, item in schema.items():
            if key in _NOT_HERE or (key == "$schema" and not top):
                raise SchemaError(f"the schema uses {key!r}, which is not supported")
            _refuse(item, top=False)


def _told(error: Any) -> str:
    where = "" if error.json_path == "$" else f"{error.json_path}: "
    message = " ".join(str(error.message).split())
    if len(message) > _SHOWN:  # the value comes first in it and may be long; what is wrong comes last
        message = f"{message[: _SHOWN // 2]} … {message[-_SHOWN // 2 :]}"
    return where + message


@lru_cache(8)
def _bounded(base: Any) -> Any:
    """A checker that counts its steps."""
    rules = {name: _counted(rule) for name, rule in base.VALIDATORS.items()}
    rules |= {"pattern": _pattern, "uniqueItems": _unique}
    return import_module("jsonschema.validators").extend(base, rules)


def _counted(rule: Callable[..., Any]) -> Callable[..., Any]:
    def counted(checker: Any, wanted: Any, value: Any, schema: Any) -> Any:
        _work.get().step()
        return rule(checker, wanted, value, schema)

    return counted


def _pattern(checker: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(value, str):
        return
    regex, work = import_module("regex"), _work.get()
    work.step()
    try:
        found = regex.search(wanted, value, timeout=max(0.001, work.until - time.monotonic()))
    except TimeoutError:
        raise _TooMuch(f"the pattern {wanted[:80]!r} takes too long to be searched for") from None
    except regex.error as error:
        raise _TooMuch(f"the pattern {wanted[:80]!r} cannot be used: {error}") from None
    if found is None:
        yield import_module("jsonschema").ValidationError(f"{value!r} does not match {wanted!r}")


def _unique(checker: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    """By the JSON of the items: comparing each with each takes too long for a long list."""
    _work.get().step()
    if wanted and isinstance(value, list) and len({as_json(item) for item in value}) < len(value):
        yield import_module("jsonschema").ValidationError("it has items that are not unique")
