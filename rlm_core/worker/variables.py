"""The variable table of a cell: what is defined, what changed, without running any code of the values."""

from __future__ import annotations

import hashlib
import reprlib
import types
import weakref
from typing import Any, Final

from rlm_core.texts import MappedText, Passage, Text

_SIMPLE: Final = (str, bytes, int, float, bool, type(None))
_CONTAINERS: Final = (list, tuple, set, frozenset, dict)
_MAX_ITEMS: Final = 5_000  # of one variable
_MAX_CHARS: Final = 2_000_000
_ALL_ITEMS: Final = 200_000  # of all variables together
_ALL_CHARS: Final = 40_000_000
_MAX_BITS: Final = 8192
_MAX_ROWS: Final = 200
_MAX_NAME: Final = 200
_PREVIEW: Final = 200
_type_name: Final = type.__dict__["__name__"].__get__  # a metaclass can put code behind plain `kind.__name__`

_short = reprlib.Repr()
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = _short.maxfrozenset = 20
_short.maxstring = _short.maxother = _PREVIEW


def type_name(value: object) -> str:
    """The name of a value's class."""
    name: str = _type_name(type(value))
    return name[:_MAX_NAME]


class VariableTable:
    """Remembers one fingerprint per user variable and reports the difference after each cell.

    It keeps no value alive: a variable that a cell deletes is gone.
    """

    def __init__(self) -> None:
        self._before: dict[str, tuple[object, str | None]] = {}

    def changes(self, namespace: dict[str, Any], reserved: frozenset[str]) -> list[dict[str, Any]]:
        """Rows `{name, type, size, hash, preview, change}` for new, changed and deleted variables.

        At most 200 rows. `hash` is None where the value is no plain data or too large to hash cheaply; such a
        value counts as changed when it is another object.
        """
        rows: list[dict[str, Any]] = []
        now: dict[str, tuple[object, str | None]] = {}
        left = [_ALL_ITEMS, _ALL_CHARS]
        for name, value in list(namespace.items()):
            if not _is_reported(name, value) or name in reserved:
                continue
            old = self._before.get(name)
            digest = _within(left, value)
            now[name] = (_mark(value), digest)
            same = old is not None and (old[1] == digest if digest else old[0] == now[name][0])
            if not same and len(rows) < _MAX_ROWS:
                rows.append(describe(name, value, digest, "changed" if old else "new"))
        gone = sorted(self._before.keys() - now.keys())[: _MAX_ROWS - len(rows)]
        self._before = now
        return rows + [{"name": name, "change": "deleted"} for name in gone]


def describe(name: str, value: Any, digest: str | None, change: str) -> dict[str, Any]:
    """One row of the table."""
    kind = type(value)
    row: dict[str, Any] = {"name": name, "type": type_name(value), "change": change, "hash": digest}
    base = next((base for base in (str, bytes, *_CONTAINERS, MappedText) if issubclass(kind, base)), None)
    if base is not None:
        row["size"] = base.__len__(value)
    if base is str:
        row["preview"] = str.__getitem__(value, slice(0, _PREVIEW))
    elif kind is int and value.bit_length() > _MAX_BITS:
        row["preview"] = f"<int of {value.bit_length()} bits>"
    elif kind in _SIMPLE or digest is not None:
        row["preview"] = _short.repr(value)[:_PREVIEW]
    return row


def fingerprint(value: Any) -> str | None:
    """sha256 over type and content of plain data; None for anything that would run code or cost too much."""
    return _within([_MAX_ITEMS, _MAX_CHARS], value)


def _within(left: list[int], value: Any) -> str | None:
    """The fingerprint, if it fits what is left for all variables and the cap of one; takes its cost off."""
    mine = [min(left[0], _MAX_ITEMS), min(left[1], _MAX_CHARS)]
    before = list(mine)
    digest = hashlib.sha256()
    fits = _feed(digest, value, mine, 0)
    left[0] -= before[0] - mine[0]
    left[1] -= before[1] - mine[1]
    return digest.hexdigest()[:32] if fits else None


def _feed(digest: Any, value: Any, budget: list[int], depth: int) -> bool:
    kind = type(value)
    budget[0] -= 1
    if budget[0] < 0 or depth > 20:
        return False
    if kind in (str, Text, Passage):  # no other subclass: its repr would run code in a preview
        if str.__len__(value) > budget[1]:
            return False
        return _feed_data(digest, b"s", str.__len__(value), _utf8(value), budget)
    if kind in _SIMPLE:
        if kind is int and value.bit_length() > _MAX_BITS:
            return False
        data = value if kind is bytes else repr(value).encode()
        return _feed_data(digest, kind.__name__.encode(), len(data), data, budget)
    if kind not in _CONTAINERS or len(value) > budget[0]:
        return False
    if kind in (set, frozenset):
        return _feed_set(digest, value, budget, depth)
    digest.update(kind.__name__.encode() + b"%d[" % len(value))
    parts = value if kind is not dict else (part for pair in value.items() for part in pair)
    return all(_feed(digest, part, budget, depth + 1) for part in parts)


def _feed_data(digest: Any, tag: bytes, size: int, data: bytes, budget: list[int]) -> bool:
    if len(data) > budget[1]:
        return False
    budget[1] -= len(data)
    digest.update(tag + b"%d:" % size)
    digest.update(data)
    return True


def _feed_set(digest: Any, value: Any, budget: list[int], depth: int) -> bool:
    parts = []
    for item in value:
        part = hashlib.sha256()
        if not _feed(part, item, budget, depth + 1):
            return False
        parts.append(part.digest())
    digest.update(b"set%d" % len(parts) + b"".join(sorted(parts)))
    return True


def _utf8(value: str) -> bytes:
    return str.encode(value, "utf-8", "surrogatepass")


def _is_reported(name: object, value: object) -> bool:
    return (
        type(name) is str
        and len(name) <= _MAX_NAME
        and not name.startswith("__")
        and type(value) is not types.ModuleType
    )


def _mark(value: Any) -> object:
    """Something that equals only the mark of the same object, and does not keep it alive."""
    try:
        return _Identity(weakref.ref(value))
    except TypeError:  # lists, dicts and numbers have no weak references
        kind = type(value)
        size = kind.__len__(value) if kind in (bytes, *_CONTAINERS) else None
        return (id(value), size)


class _Identity:
    """A weak reference compared by the identity of what it refers to; two dead ones differ."""

    def __init__(self, reference: weakref.ref[Any]) -> None:
        self._reference = reference

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Identity):
            return False
        mine = self._reference()
        return mine is not None and mine is other._reference()
