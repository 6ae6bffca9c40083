"""Worker frames as the engine accepts them: typed, bounded, nothing taken on trust."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from rlm_core import frames

Part = str | list[int]
ImagePart = str | list[int]
_CALL_KEYS: Final = {"t", "id", "op", "n", "batch", "line", "model", "schema", "max_tokens", "touched"}
_ROW_KEYS: Final = {"name": str, "type": str, "size": int, "hash": str, "preview": str, "change": str}
_CHANGES: Final = ("new", "changed", "deleted")
_MAX_ROWS: Final = 1_000
_MAX_TEXT: Final = 300  # characters of a name or preview in a variable table
_SAID: Final = 200  # characters a worker may add to an output, to say what it did not keep
_MAX_EXCEPTION: Final = 50_000
_MAX_DEPTH: Final = 400  # of JSON in JSON; the deepest form of a value has about 300 levels
_SCHEMA_ITEMS: Final = 20_000
_MAX_TOUCHED: Final = 1_000
_ANSWER_ITEMS: Final = 4_000_000


@dataclass(slots=True)
class Slot:
    """One prompt of a call.

    Parts are texts or `[document, start, end]`; `images` are files in base64 or `[document, page]`, page 0
    for an image file; `contexts` (one list of parts per document) is for child runs only. `too_large`
    is the size in bytes of a slot that was not sent: it has no parts and cannot be answered.
    """

    prompt: list[Part] = field(default_factory=list)
    snippet: list[Part] = field(default_factory=list)
    contexts: list[list[Part]] | None = None
    images: list[ImagePart] = field(default_factory=list)
    too_large: int | None = None

    def whole(self) -> list[Part]:
        """Prompt and snippet as one text, with a blank line between where both have any."""
        between: list[Part] = ["\n\n"] if chars_of(self.prompt) and chars_of(self.snippet) else []
        return [*self.prompt, *between, *self.snippet]


def chars_of(parts: list[Part]) -> int:
    """Characters the parts will have as text, without reading any: a place says its own length."""
    return sum(len(part) if isinstance(part, str) else part[2] - part[1] for part in parts)


@dataclass(slots=True)
class OpenCall:
    """A call of a cell: one slot for a single call, many for a batch; `weight` is that of its slots.

    `touched` lists parts of the corpus, as `[document, start, end]`, that code has looked at since the call
    before: a hint where its text may come from, no more. `first` is how many slots its cell had submitted
    before; whoever answers the call sets it.
    """

    id: int
    op: str
    size: int
    batch: bool
    line: int
    model: str | None
    schema: dict[str, Any] | None
    max_tokens: int | None
    touched: list[list[int]] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    weight: int = 0
    first: int = 0

    @classmethod
    def read(cls, frame: dict[str, Any]) -> OpenCall:
        """Check an `open` frame; raises `frames.FrameError`."""
        if extra := frame.keys() - _CALL_KEYS:
            name = sorted(extra)[0][:_MAX_TEXT]
            raise frames.FrameError(f"a call carries {name!r}, which generated code may not set")
        batch = frame.get("batch") is True
        if frame.get("op") not in ("llm", "rlm"):
            raise frames.FrameError("a call of unknown kind")
        model, schema, most = frame.get("model"), frame.get("schema"), frame.get("max_tokens")
        if model is not None and not (isinstance(model, str) and len(model) <= frames.MODEL_CHARS):
            raise frames.FrameError("a call with an ill-typed model")
        if schema is not None and not (isinstance(schema, dict) and _is_bounded(schema, _SCHEMA_ITEMS)):
            raise frames.FrameError("a call with an ill-typed or too large schema")
        return cls(
            id=_whole(frame.get("id"), 1, 1 << 53),
            op=frame["op"],
            size=_whole(frame.get("n"), 1, frames.MAX_SLOTS if batch else 1),
            batch=batch,
            line=_whole(frame.get("line"), 0, 1 << 31),
            model=model,
            schema=schema,
            max_tokens=None if most is None else _whole(most, 1, 1 << 31),
            touched=_windows(frame.get("touched", []), 3),
        )

    def add(self, items: Any) -> None:
        """Take a block of slots; raises `frames.FrameError`."""
        if not isinstance(items, list) or len(self.slots) + len(items) > self.size:
            raise frames.FrameError("a batch with more slots than it announced")
        for item in items:
            slot = _slot(item)
            self.weight += frames.slot_weight(item)
            if self.weight > frames.MAX_BATCH:
                raise frames.FrameError(f"a batch heavier than {frames.MAX_BATCH:,} bytes")
            self.slots.append(slot)

    def closed(self) -> OpenCall:
        """The call, complete; raises `frames.FrameError` when slots are missing."""
        if len(self.slots) != self.size:
            raise frames.FrameError("a batch with fewer slots than it announced")
        return self


@dataclass(frozen=True, slots=True)
class Given:
    """Which parts of the corpus code was given in a cell, as its worker says; see `rlm_core.semconv.TOUCHED`.

    `whole` are [first document, last document], `parts` [document, start, end] in code points.
    """

    whole: list[list[int]] = field(default_factory=list)
    parts: list[list[int]] = field(default_factory=list)
    left_out: int = 0


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
    given: Given = field(default_factory=Given)
    wall_seconds: float = 0.0
    cpu_seconds: float | None = None
    interrupted_by: str | None = None
    native_output: str = ""

    def written(self) -> list[str]:
        """Names that are new or changed after the cell."""
        return [row["name"] for row in self.variables if row["change"] != "deleted"]


def read_done(frame: dict[str, Any], number: int) -> CellReport:
    """Check a `done` frame; raises `frames.FrameError`."""
    if frame.get("n") != number or not isinstance(frame.get("stdout"), str):
        raise frames.FrameError("a report on another cell")
    error, answer, rows = frame.get("exc"), frame.get("answer"), frame.get("vars")
    if error is not None and not (isinstance(error, dict) and _texts(error, "type", "text")):
        raise frames.FrameError("an ill-typed exception")
    if answer is not None and not (
        isinstance(answer, dict) and _texts(answer, "via") and _is_bounded(answer, _ANSWER_ITEMS)
    ):
        raise frames.FrameError("an ill-typed answer")
    if not isinstance(rows, list) or len(rows) > _MAX_ROWS:
        raise frames.FrameError("an ill-typed variable table")
    chars = _whole(frame.get("chars"), 0, 1 << 60)
    if len(frame["stdout"]) > chars + _SAID:
        raise frames.FrameError("more output than was counted")
    restored = frame.get("restored", [])
    if not isinstance(restored, list) or not all(isinstance(name, str) for name in restored):
        raise frames.FrameError("an ill-typed list of restored names")
    return CellReport(
        stdout=frame["stdout"],
        true_chars=chars,
        exception_type=error["type"][:_MAX_TEXT] if error else None,
        exception=error["text"][:_MAX_EXCEPTION] if error else None,
        interrupted=frame.get("interrupted") is True,
        answer=answer,
        restored=tuple(name[:_MAX_TEXT] for name in restored[:50]),
        variables=[_row(row) for row in rows],
        given=_given(frame.get("given", {})),
    )


def _given(given: Any) -> Given:
    """What code was given; an older worker says nothing about it."""
    if not isinstance(given, dict):
        raise frames.FrameError("an ill-typed account of what code was given")
    return Given(
        _windows(given.get("whole", []), 2),
        _windows(given.get("parts", []), 3),
        _whole(given.get("left_out", 0), 0, 1 << 53),
    )


def _row(row: Any) -> dict[str, Any]:
    """A row of the variable table: known keys only, of known types."""
    if not isinstance(row, dict) or not _texts(row, "name", "change") or row["change"] not in _CHANGES:
        raise frames.FrameError("an ill-typed variable table")
    known = {key: row.get(key) for key, kind in _ROW_KEYS.items() if type(row.get(key)) is kind}
    return {key: value[:_MAX_TEXT] if isinstance(value, str) else value for key, value in known.items()}


def _slot(item: Any) -> Slot:
    if not isinstance(item, dict):
        raise frames.FrameError("a slot that is no object")
    if item.keys() == {"too_large"}:
        return Slot(too_large=_whole(item["too_large"], 0, 1 << 60))
    contexts = item.get("c")
    if contexts is not None and not isinstance(contexts, list):
        raise frames.FrameError("ill-typed contexts")
    return Slot(
        prompt=_parts(item.get("p")),
        snippet=_parts(item.get("s", [])),
        contexts=None if contexts is None else [_parts(parts) for parts in contexts],
        images=_images(item.get("i", [])),
    )


def _images(images: Any) -> list[ImagePart]:
    if not isinstance(images, list) or len(images) > frames.MAX_IMAGES:
        raise frames.FrameError("ill-typed or too many images")
    for image in images:
        if isinstance(image, str):
            continue
        if not (
            isinstance(image, list) and len(image) == 2 and all(type(n) is int and n >= 0 for n in image)
        ):
            raise frames.FrameError("an image that is neither a file nor a page of a document")
    return images


def _parts(parts: Any) -> list[Part]:
    if not isinstance(parts, list):
        raise frames.FrameError("a text that is no list of parts")
    for part in parts:
        if isinstance(part, str):
            continue
        if not (isinstance(part, list) and len(part) == 3 and all(type(n) is int and n >= 0 for n in part)):
            raise frames.FrameError("a part that is neither text nor a place in the corpus")
    return parts


def _windows(windows: Any, numbers: int) -> list[list[int]]:
    if not isinstance(windows, list) or len(windows) > _MAX_TOUCHED:
        raise frames.FrameError("an ill-typed or too long list of what was looked at")
    if not all(isinstance(window, list) and len(window) == numbers for window in windows):
        raise frames.FrameError("a look at something that is no place in the corpus")
    return [[_whole(number, 0, 1 << 53) for number in window] for window in windows]


def _is_bounded(value: Any, most: int) -> bool:
    """Whether JSON has few enough parts and levels: deep nesting ends other code in RecursionError."""
    left, level = most, [value]
    for _ in range(_MAX_DEPTH):
        left -= len(level)
        if left < 0:
            return False
        level = [part for item in level if isinstance(item, (list, dict)) for part in _inside(item)]
        if not level:
            return True
    return False


def _inside(item: list[Any] | dict[str, Any]) -> list[Any]:
    return item if isinstance(item, list) else list(item.values())


def _whole(value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise frames.FrameError("a number out of range")
    return value


def _texts(row: dict[str, Any], *keys: str) -> bool:
    return all(isinstance(row.get(key), str) for key in keys)
