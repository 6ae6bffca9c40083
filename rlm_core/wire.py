"""Worker frames as the engine accepts them: typed, bounded, nothing taken on trust."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from rlm_core import frames

Part = str | list[int]
_CALL_KEYS: Final = {"t", "id", "op", "n", "batch", "line", "model", "schema", "max_tokens"}


@dataclass(slots=True)
class Slot:
    """One prompt of a call. Parts are texts or `[document, start, end]`; `contexts` is for child runs only."""

    prompt: list[Part] = field(default_factory=list)
    snippet: list[Part] = field(default_factory=list)
    contexts: list[list[Part]] | None = None
    too_large: int | None = None  # bytes of a slot that was not sent


@dataclass(slots=True)
class OpenCall:
    """A call of a cell: one slot for a single call, many for a batch."""

    id: int
    op: str
    size: int
    batch: bool
    line: int
    model: str | None
    schema: dict[str, Any] | None
    max_tokens: int | None
    slots: list[Slot] = field(default_factory=list)

    @classmethod
    def read(cls, frame: dict[str, Any]) -> OpenCall:
        """Check an `open` frame; raises `frames.FrameError`."""
        if extra := frame.keys() - _CALL_KEYS:
            raise frames.FrameError(f"a call carries {sorted(extra)[0]!r}, which generated code may not set")
        size = _whole(frame["n"], 1, frames.MAX_SLOTS)
        if frame["op"] not in ("llm", "rlm"):
            raise frames.FrameError("a call of unknown kind")
        model, schema, most = frame.get("model"), frame.get("schema"), frame.get("max_tokens")
        if not (model is None or isinstance(model, str)) or not (schema is None or isinstance(schema, dict)):
            raise frames.FrameError("a call with an ill-typed model or schema")
        return cls(
            id=_whole(frame["id"], 1, 1 << 53),
            op=frame["op"],
            size=size,
            batch=frame["batch"] is True,
            line=_whole(frame["line"], 0, 1 << 31),
            model=model,
            schema=schema,
            max_tokens=None if most is None else _whole(most, 1, 1 << 31),
        )

    def add(self, items: Any) -> None:
        """Take a block of slots; raises `frames.FrameError`."""
        if not isinstance(items, list) or len(self.slots) + len(items) > self.size:
            raise frames.FrameError("a batch with more slots than it announced")
        self.slots.extend(_slot(item) for item in items)

    def closed(self) -> OpenCall:
        """The call, complete; raises `frames.FrameError` when slots are missing."""
        if len(self.slots) != self.size:
            raise frames.FrameError("a batch with fewer slots than it announced")
        return self


@dataclass(slots=True)
class CellReport:
    """What a worker says about a cell; times are the engine's own, in seconds."""

    stdout: str
    true_chars: int
    exception_type: str | None
    exception: str | None
    interrupted: bool
    answer: dict[str, Any] | None
    restored: tuple[str, ...]
    variables: list[dict[str, Any]]
    wall_seconds: float = 0.0
    cpu_seconds: float | None = None
    interrupted_by: str | None = None
    native_output: str = ""

    def written(self) -> list[str]:
        """Names that are new or changed after the cell."""
        return [row["name"] for row in self.variables if row.get("change") != "deleted"]


def read_done(frame: dict[str, Any], number: int) -> CellReport:
    """Check a `done` frame; raises `frames.FrameError`."""
    if frame.get("n") != number or not isinstance(frame.get("stdout"), str):
        raise frames.FrameError("a report on another cell")
    error, answer, rows = frame.get("exc"), frame.get("answer"), frame.get("vars")
    if error is not None and not (isinstance(error, dict) and _texts(error, "type", "text")):
        raise frames.FrameError("an ill-typed exception")
    if answer is not None and not (isinstance(answer, dict) and isinstance(answer.get("via"), str)):
        raise frames.FrameError("an ill-typed answer")
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and _texts(row, "name", "change") for row in rows
    ):
        raise frames.FrameError("an ill-typed variable table")
    restored = frame.get("restored") or ()
    return CellReport(
        stdout=frame["stdout"],
        true_chars=_whole(frame.get("chars"), 0, 1 << 60),
        exception_type=error["type"][:200] if error else None,
        exception=error["text"] if error else None,
        interrupted=frame.get("interrupted") is True,
        answer=answer,
        restored=tuple(str(name) for name in restored)[:50],
        variables=rows,
    )


def _slot(item: Any) -> Slot:
    if not isinstance(item, dict):
        raise frames.FrameError("a slot that is no object")
    if "too_large" in item:
        return Slot(too_large=_whole(item["too_large"], 0, 1 << 60))
    contexts = item.get("c")
    if contexts is not None and not isinstance(contexts, list):
        raise frames.FrameError("ill-typed contexts")
    return Slot(
        prompt=_parts(item.get("p")),
        snippet=_parts(item.get("s", [])),
        contexts=None if contexts is None else [_parts(parts) for parts in contexts],
    )


def _parts(parts: Any) -> list[Part]:
    if not isinstance(parts, list):
        raise frames.FrameError("a text that is no list of parts")
    for part in parts:
        if isinstance(part, str):
            continue
        if not (isinstance(part, list) and len(part) == 3 and all(type(n) is int and n >= 0 for n in part)):
            raise frames.FrameError("a part that is neither text nor a place in the corpus")
    return parts


def _whole(value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise frames.FrameError("a number out of range")
    return value


def _texts(row: dict[str, Any], *keys: str) -> bool:
    return all(isinstance(row.get(key), str) for key in keys)
