"""The variable table of a cell: what is defined, what changed, without running any code of the values."""

from __future__ import annotations

import hashlib
import types
from typing import Any, Final

_SIMPLE: Final = (str, bytes, int, float, bool, type(None))
_CONTAINERS: Final = (list, tuple, set, frozenset, dict)
_MAX_ITEMS: Final = 5_000
_MAX_CHARS: Final = 2_000_000
_MAX_ROWS: Final = 200
_PREVIEW: Final = 200


class VariableTable:
    """Remembers one fingerprint per user variable and reports the difference after each cell."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[object, str | None]] = {}

    def changes(self, namespace: dict[str, Any], reserved: frozenset[str]) -> list[dict[str, Any]]:
        """Rows `{name, type, size, hash, preview, change}` for new, changed and deleted variables (at most 200).

        `hash` is None where the value is no plain data or is too large to hash cheaply; such a value counts as
        changed when it is another object.
        """
        rows: list[dict[str, Any]] = []
        now: dict[str, tuple[object, str | None]] = {}
        for name, value in list(namespace.items()):
            if (
                type(name) is not str
                or name in reserved
                or name.startswith("__")
                or type(value) is types.ModuleType
            ):
                continue
            old = self._before.get(name)
            digest = old[1] if old and old[0] is value and type(value) in _SIMPLE else fingerprint(value)
            now[name] = (value, digest)
            same = old is not None and (old[1] == digest if digest else old[0] is value)
            if not same and len(rows) < _MAX_ROWS:
                rows.append(describe(name, value, digest, "changed" if old else "new"))
        rows += [{"name": name, "change": "deleted"} for name in self._before.keys() - now.keys()][:_MAX_ROWS]
        self._before = now
        return rows


def describe(name: str, value: Any, digest: str | None, change: str) -> dict[str, Any]:
    """One row of the table."""
    kind = type(value)
    row: dict[str, Any] = {"name": name, "type": kind.__name__, "change": change, "hash": digest}
    if issubclass(kind, (str, bytes)) or kind in _CONTAINERS:
        row["size"] = _size(value)
    if issubclass(kind, str):
        row["preview"] = str.__getitem__(value, slice(0, _PREVIEW))
    elif kind in _SIMPLE or digest is not None:
        row["preview"] = _short_repr(value)
    return row


def fingerprint(value: Any) -> str | None:
    """sha256 over type and content of plain data; None for anything that would run code or cost too much."""
    digest = hashlib.sha256()
    budget = [_MAX_ITEMS, _MAX_CHARS]
    return digest.hexdigest()[:32] if _feed(digest, value, budget, 0) else None


def _feed(digest: Any, value: Any, budget: list[int], depth: int) -> bool:
    kind = type(value)
    budget[0] -= 1
    if budget[0] < 0 or depth > 20:
        return False
    if issubclass(kind, str):
        budget[1] -= str.__len__(value)
        if budget[1] < 0:
            return False
        digest.update(b"s%d:" % str.__len__(value) + str.encode(value, "utf-8", "surrogatepass"))
        return True
    if kind in _SIMPLE:
        if kind is int and int.bit_length(value) > 8192:
            return False
        data = value if kind is bytes else repr(value).encode()
        budget[1] -= len(data)
        digest.update(kind.__name__.encode() + b"%d:" % len(data) + data)
        return budget[1] >= 0
    if kind in (list, tuple):
        digest.update(kind.__name__.encode() + b"%d[" % len(value))
        return all(_feed(digest, item, budget, depth + 1) for item in value)
    if kind is dict:
        digest.update(b"dict%d{" % len(value))
        return all(_feed(digest, part, budget, depth + 1) for pair in value.items() for part in pair)
    if kind in (set, frozenset):
        return _feed_set(digest, value, budget, depth)
    return False


def _feed_set(digest: Any, value: Any, budget: list[int], depth: int) -> bool:
    parts = []
    for item in value:
        part = hashlib.sha256()
        if not _feed(part, item, budget, depth + 1):
            return False
        parts.append(part.digest())
    digest.update(b"set%d" % len(parts) + b"".join(sorted(parts)))
    return True


def _size(value: Any) -> int:
    for base in (str, bytes, *_CONTAINERS):
        if isinstance(value, base):
            return int(base.__len__(value))  # type: ignore[arg-type]  # the matching base of this value
    return 0


def _short_repr(value: Any) -> str:
    if type(value) in (list, tuple, set, frozenset, dict) and len(value) > 20:
        return f"<{type(value).__name__} of {len(value)}>"
    if type(value) is int and value.bit_length() > 8192:
        return f"<int of {value.bit_length()} bits>"
    return repr(value)[:_PREVIEW]
