"""Python values as JSON and back, exactly.

JSON's own types stand for themselves where nothing is lost. Everything else is an object with one key that
begins with `$`:

    {"$int": "1152921504606846977"}        integers beyond 2**53
    {"$float": "nan" | "inf" | "-inf"}
    {"$bytes": "<base64>"}
    {"$tuple": [...]}  {"$set": [...]}  {"$frozenset": [...]}
    {"$dict": [[key, value], ...]}         keys that are no plain text
    {"$repr": "...", "$type": "module.Name"}   anything else, by its repr (cannot be read back)

Sets are written sorted by their JSON text, so equal sets have equal forms. Floats keep every digit (shortest
repr). A container inside itself, or deeper than `MAX_DEPTH`, is written by its repr.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable
from typing import Any, Final

MAX_DEPTH: Final = 100
MAX_ITEMS: Final = 1_000_000
MAX_CHARS: Final = 16_000_000
_EXACT_INT: Final = 1 << 53
_MAX_REPR: Final = 100_000


class TooLarge(ValueError):
    """A value of more than `MAX_ITEMS` parts or `MAX_CHARS` characters."""


def to_form(value: Any) -> Any:
    """The JSON form of a value; raises `TooLarge`, and what the repr of a foreign object raises."""
    return _Writer().form(value, 0)


def from_form(form: Any) -> Any:
    """The value of a form; what had only a repr comes back as that text. Never raises: what is no form of
    this module (a worker can send anything) comes back as it is.
    """
    return _read(form, 0)


def foreign_type(form: Any) -> str | None:
    """The type of a part of a form that is written by its repr, None when there is none: such a value cannot
    be read back. Of a container it means that it was nested too deeply.
    """
    left = [form]
    while left:
        one = left.pop()
        if isinstance(one, list):
            left += one
        elif isinstance(one, dict):
            if one.keys() == {"$repr", "$type"}:
                return str(one["$type"])
            left += one.values()
    return None


def as_text(value: Any) -> str:
    """The value as the text of an answer: a str as it is, everything else as Python writes it."""
    if issubclass(type(value), str):
        return str.__str__(value)
    return int_text(value) if type(value) is int else str.__str__(repr(value))


def int_text(value: int) -> str:
    """All digits of an integer: in hexadecimal beyond 4,300, which Python refuses to write otherwise."""
    try:
        return str(value)
    except ValueError:
        return hex(value)


class _Writer:
    """Writes one value; counts, since a few nested references can stand for more than fits any memory."""

    def __init__(self) -> None:
        self._items = MAX_ITEMS
        self._chars = MAX_CHARS
        self._open: set[int] = set()

    def form(self, value: Any, depth: int) -> Any:
        kind = type(value)
        self._items -= 1
        if self._items < 0:
            raise TooLarge(f"a value of more than {MAX_ITEMS:,} parts")
        if value is None or kind is bool:
            return value
        if issubclass(kind, str):
            return self._counted(str.__str__(value))
        if kind is int:
            plain = -_EXACT_INT <= value <= _EXACT_INT
            return value if plain else {"$int": self._counted(int_text(value))}
        if kind is float:
            return value if math.isfinite(value) else {"$float": repr(value)}
        if kind is bytes:
            return {"$bytes": self._counted(base64.b64encode(value[:MAX_CHARS]).decode())}
        if kind not in _CONTAINERS or depth >= MAX_DEPTH or id(value) in self._open:
            return {"$repr": self._counted(_repr(value)), "$type": f"{kind.__module__}.{kind.__qualname__}"}
        self._open.add(id(value))
        form = self._container(value, kind, depth + 1)
        self._open.remove(id(value))
        return form

    def _container(self, value: Any, kind: type, depth: int) -> Any:
        if kind is dict:
            if all(type(key) is str and not key.startswith("$") for key in value):
                return {self._counted(key): self.form(item, depth) for key, item in value.items()}
            pairs = [[self.form(key, depth), self.form(item, depth)] for key, item in value.items()]
            return {"$dict": pairs}
        items = [self.form(item, depth) for item in value]
        if kind in (set, frozenset):
            items.sort(key=_sort_key)
        return items if kind is list else {f"${kind.__name__}": items}

    def _counted(self, text: str) -> str:
        self._chars -= len(text)
        if self._chars < 0:
            raise TooLarge(f"a value of more than {MAX_CHARS:,} characters")
        return text


def _repr(value: Any) -> str:
    try:
        return str.__str__(repr(value))[:_MAX_REPR]
    except RecursionError:
        return f"<{type(value).__name__}, nested too deeply to be written>"


def _sort_key(form: Any) -> str:
    return json.dumps(form, sort_keys=True)


def _read(form: Any, depth: int) -> Any:
    if depth > MAX_DEPTH or not isinstance(form, (list, dict)):
        return form
    if isinstance(form, list):
        return [_read(item, depth + 1) for item in form]
    if form.keys() == {"$repr", "$type"}:
        return form["$repr"]
    (tag, body), *more = form.items() or [("", None)]
    if not more and tag.startswith("$"):
        try:
            return _tagged(tag, body, depth)
        except (KeyError, TypeError, ValueError):  # no form of ours
            return form
    return {key: _read(item, depth + 1) for key, item in form.items()}


def _tagged(tag: str, body: Any, depth: int) -> Any:
    if tag in _TEXTS:
        return _TEXTS[tag](body)
    if tag == "$dict":
        pairs = [(_read(key, depth + 1), _read(item, depth + 1)) for key, item in body]
        _refuse_collisions([key for key, _ in pairs])
        return dict(pairs)
    items = [_read(item, depth + 1) for item in body]
    if tag != "$tuple":
        _refuse_collisions(items)
    return _GROUPS[tag](items)


def _refuse_collisions(keys: list[Any]) -> None:
    """A form can be written so that building its set takes hours: most of its members have the same hash."""
    if len({hash(key) for key in keys}) < len(keys) // 2:
        raise ValueError("members that are no members of one set")


_CONTAINERS: Final = (list, tuple, set, frozenset, dict)
_TEXTS: Final[dict[str, Callable[[str], Any]]] = {
    "$int": lambda body: int(body, 0),
    "$float": float,
    "$bytes": lambda body: base64.b64decode(body, validate=True),
}
_GROUPS: Final[dict[str, Callable[[Iterable[Any]], Any]]] = {
    "$tuple": tuple,
    "$set": set,
    "$frozenset": frozenset,
}
