"""Python values as JSON and back, exactly.

JSON's own types stand for themselves where nothing is lost. Everything else is an object with one key that begins
with `$`:

    {"$int": "1152921504606846977"}   integers beyond 2**53        {"$tuple": [...]}    {"$set": [...]}
    {"$float": "nan" | "inf" | "-inf"}                             {"$frozenset": [...]}
    {"$bytes": "<base64>"}                                         {"$dict": [[key, value], ...]}  keys that are no plain text
    {"$repr": "...", "$type": "module.Name"}                       anything else, by its repr (cannot be read back)

Sets are written sorted by their JSON text, so equal sets have equal forms. Floats keep every digit (shortest repr).
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any, Final

_EXACT_INT: Final = 1 << 53
MAX_DEPTH: Final = 100
_MAX_REPR: Final = 100_000


def to_form(value: Any, depth: int = 0) -> Any:
    """The JSON form of a value. Never raises for a value whose repr works."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if issubclass(kind, str):
        return str.__str__(value)
    if kind is int:
        return value if -_EXACT_INT <= value <= _EXACT_INT else {"$int": int_text(value)}
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if kind is bytes:
        return {"$bytes": base64.b64encode(value).decode()}
    if depth < MAX_DEPTH:
        if kind is list:
            return [to_form(item, depth + 1) for item in value]
        if kind is tuple:
            return {"$tuple": [to_form(item, depth + 1) for item in value]}
        if kind in (set, frozenset):
            items = sorted((to_form(item, depth + 1) for item in value), key=_sort_key)
            return {"$set" if kind is set else "$frozenset": items}
        if kind is dict:
            return _dict_form(value, depth)
    return {"$repr": repr(value)[:_MAX_REPR], "$type": f"{kind.__module__}.{kind.__qualname__}"}


def from_form(form: Any) -> Any:
    """The value of a form; what had only a repr comes back as that text."""
    if isinstance(form, list):
        return [from_form(item) for item in form]
    if not isinstance(form, dict):
        return form
    if len(form) == 1:
        (tag, body), *_ = form.items()
        if tag in _READERS:
            return _READERS[tag](body)
    if "$repr" in form and "$type" in form:
        return form["$repr"]
    return {key: from_form(item) for key, item in form.items()}


def as_text(value: Any) -> str:
    """The value as the text of an answer: a str as it is, everything else as Python writes it."""
    if isinstance(value, str):
        return str.__str__(value)
    return int_text(value) if type(value) is int else repr(value)


def int_text(value: int) -> str:
    """All digits of an integer; Python's own conversion refuses more than 4,300 of them."""
    try:
        return str(value)
    except ValueError:
        return hex(value)


def _dict_form(value: dict[Any, Any], depth: int) -> Any:
    plain = all(type(key) is str and not key.startswith("$") for key in value)
    if plain:
        return {key: to_form(item, depth + 1) for key, item in value.items()}
    return {"$dict": [[to_form(key, depth + 1), to_form(item, depth + 1)] for key, item in value.items()]}


def _sort_key(form: Any) -> str:
    return json.dumps(form, sort_keys=True)


_READERS: Final = {
    "$int": lambda body: int(body, 0),
    "$float": float,
    "$bytes": lambda body: base64.b64decode(body),
    "$tuple": lambda body: tuple(from_form(item) for item in body),
    "$set": lambda body: {from_form(item) for item in body},
    "$frozenset": lambda body: frozenset(from_form(item) for item in body),
    "$dict": lambda body: {from_form(key): from_form(item) for key, item in body},
}
