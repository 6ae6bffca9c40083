"""The names a cell finds in its REPL, as `rlm_core.prompts` promises them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, Final, TypeVar

from rlm_core import frames, values
from rlm_core.sub_call_error import SubCallError
from rlm_core.texts import image_parts_of, parts_of, take_touched
from rlm_core.worker.channel import Channel

_FRAME_FILL: Final = frames.MAX_FRAME // 2
_SLOT_CAP: Final = frames.MAX_FRAME - 4096
_MOST_TOKENS: Final = (1 << 31) - 1
CELL_FILE: Final = "<cell "
_ERROR_CHARS: Final = 2_000
T = TypeVar("T")
Build = Callable[[Any], Any]


class Ending:
    """What FINAL, FINAL_VAR or SUBMIT were given in this cell; the last one counts."""

    via: str | None = None
    value: Any = None
    name: str | None = None

    def forget(self) -> None:
        """A new cell begins."""
        self.via = self.value = self.name = None

    def FINAL(self, value: Any) -> None:
        """End the run with this value."""
        self.via, self.value, self.name = "FINAL", value, None

    def SUBMIT(self, *args: Any, **fields: Any) -> None:
        """End the run with this value; several values are given as a tuple, named ones as a dict."""
        value = fields or (args[0] if len(args) == 1 else args)
        self.via, self.value, self.name = "SUBMIT", value, None

    def FINAL_VAR(self, name: Any) -> None:
        """End the run with the value this variable has at the end of the cell."""
        self.via, self.value, self.name = "FINAL_VAR", name, None
        if isinstance(name, str):
            self.name = str(name).strip()


def build(channel: Channel, namespace: dict[str, Any], final: Ending) -> dict[str, Any]:
    """The callables of the REPL by name, aliases included."""
    calls = _Calls(channel)

    def SHOW_VARS() -> str:
        """The variables defined so far, with their types."""
        rows = [
            f"{name}: {type(value).__name__}"
            for name, value in namespace.items()
            if not name.startswith("_") and not (callable(value) and name in names)
        ]
        return "\n".join(rows) or "no variables yet"

    names: dict[str, Any] = {
        "llm_query": calls.llm_query,
        "llm_call": calls.llm_query,
        "llm_batch": calls.llm_batch,
        "llm_query_batched": calls.llm_batch,
        "rlm_query": calls.rlm_query,
        "rlm_query_batched": calls.rlm_query_batched,
        "budget": calls.budget,
        "FINAL": final.FINAL,
        "FINAL_VAR": final.FINAL_VAR,
        "SUBMIT": final.SUBMIT,
        "SHOW_VARS": SHOW_VARS,
        "SubCallError": SubCallError,
    }
    return names


class _Calls:
    """The sub-calls, as frames."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def llm_query(
        self,
        prompt: Any,
        snippet: Any = "",
        *,
        model: str | None = None,
        schema: Any = None,
        max_tokens: int | None = None,
        images: Any = None,
    ) -> Any:
        """Ask the sub-model once; returns its reply, or a falsy SubCallError. `images` are shown to it. With
        a `schema` (a JSON schema as a dict, or a pydantic model) the reply is a value that fits it.
        """
        slot = {"p": parts_of(prompt), "s": parts_of(snippet), **_shown(images)}
        shape, build = _schema(schema)
        return self._ask("llm", [slot], False, _options(model, shape, max_tokens), build)[0]

    def llm_batch(
        self,
        prompts: Iterable[Any],
        snippets: Iterable[Any] | None = None,
        *,
        model: str | None = None,
        schema: Any = None,
        max_tokens: int | None = None,
        images: Iterable[Any] | None = None,
    ) -> list[Any]:
        """Ask the sub-model once for each prompt, in parallel; returns the replies in order. `images` holds
        for each prompt what is shown with it: an image, a list of them, or None.
        """
        shape, build = _schema(schema)
        options = _options(model, shape, max_tokens)
        slots: list[dict[str, Any]] = [
            {"p": part} for part in _each("llm_batch", "prompt", prompts, parts_of)
        ]
        if snippets is not None:
            given = _each("llm_batch", "snippet", snippets, parts_of)
            _same_length("llm_batch", len(slots), len(given), "snippets")
            slots = [{**slot, "s": snippet} for slot, snippet in zip(slots, given, strict=True)]
        if images is not None:
            shown = _each("llm_batch", "image", images, _shown)
            _same_length("llm_batch", len(slots), len(shown), "images")
            slots = [{**slot, **images} for slot, images in zip(slots, shown, strict=True)]
        return self._ask("llm", slots, True, options, build)

    def rlm_query(self, prompt: Any, context: Any = None, *, schema: Any = None) -> Any:
        """Run a child run with a REPL of its own over `context` (default: this run's context); its answer as
        text, with a `schema` as a value that fits it.
        """
        slot = {"p": parts_of(prompt)}
        slots = [slot if context is None else {**slot, "c": _texts(context)}]
        shape, build = _schema(schema)
        return self._ask("rlm", slots, False, _options(None, shape, None), build)[0]

    def rlm_query_batched(
        self, prompts: Iterable[Any], contexts: Iterable[Any] | None = None, *, schema: Any = None
    ) -> list[Any]:
        """Several child runs, in order."""
        shape, build = _schema(schema)
        options = _options(None, shape, None)
        wanted = _each("rlm_query_batched", "prompt", prompts, parts_of)
        if contexts is None:
            return self._ask("rlm", [{"p": prompt} for prompt in wanted], True, options, build)
        given = _each("rlm_query_batched", "context", contexts, _texts)
        _same_length("rlm_query_batched", len(wanted), len(given), "contexts")
        slots = [{"p": prompt, "c": texts} for prompt, texts in zip(wanted, given, strict=True)]
        return self._ask("rlm", slots, True, options, build)

    def budget(self) -> dict[str, Any]:
        """What is left of the run's limits, as a dict; None = no limit."""
        line = _line()
        reply: dict[str, Any] = self._channel.ask(lambda call: [{"t": "budget", "id": call, "line": line}])[0]
        return reply

    def _ask(
        self,
        op: str,
        slots: list[dict[str, Any]],
        batch: bool,
        options: dict[str, Any],
        build: Build | None = None,
    ) -> list[Any]:
        if not slots:
            return []
        head = {"t": "open", "op": op, "n": len(slots), "batch": batch, "line": _line(), **options}
        if touched := take_touched():  # where the engine looks first for what the prompts quote
            head["touched"] = touched

        def messages(call: int) -> Iterator[dict[str, Any]]:
            yield {**head, "id": call}
            for block in _packed(slots):
                yield {"t": "items", "id": call, "items": block}
            yield {"t": "close", "id": call}

        return [_reply(item, build) for item in self._channel.ask(messages)]


def _reply(item: dict[str, Any], build: Build | None) -> Any:
    if "err" in item:
        return SubCallError(item["err"], item["msg"])
    if "v" not in item:
        return item["ok"]
    value = values.from_form(item["v"])
    try:
        return value if build is None else build(value)
    except Exception as error:  # validators of a cell's own model may want more than its schema says
        return SubCallError("schema", f"{type(error).__name__}: {error}"[:_ERROR_CHARS])


def _schema(schema: Any) -> tuple[Any, Build | None]:
    """A JSON schema, and what makes an instance of a value; a pydantic model is known by what it can do."""
    describe, build = getattr(schema, "model_json_schema", None), getattr(schema, "model_validate", None)
    if callable(describe) and callable(build):
        return describe(), build
    return schema, None


def _options(model: str | None, schema: Any, max_tokens: int | None) -> dict[str, Any]:
    """What may be said about a call, checked here so that the engine need not end a worker over a slip."""
    if model is not None and not (isinstance(model, str) and len(model) <= frames.MODEL_CHARS):
        raise TypeError("model must be the name of a model of this run")
    if max_tokens is not None and (type(max_tokens) is not int or not 1 <= max_tokens <= _MOST_TOKENS):
        raise ValueError("max_tokens must be a positive whole number")
    if schema is not None and not isinstance(schema, dict):
        raise TypeError("schema must be a JSON schema (a dict) or a pydantic model")
    given = {"model": model, "schema": schema, "max_tokens": max_tokens}
    return {key: value for key, value in given.items() if value is not None}


def _shown(images: Any) -> dict[str, Any]:
    """The part of a slot that says which images go with its prompt."""
    parts = image_parts_of(images)
    if len(parts) > frames.MAX_IMAGES:
        raise ValueError(
            f"a prompt takes at most {frames.MAX_IMAGES:,} images, not {len(parts):,}; send fewer"
        )
    return {"i": parts} if parts else {}


def _texts(context: Any) -> list[Any]:
    """One list of parts per document of a child's corpus."""
    several = isinstance(context, Sequence) and not isinstance(context, str)
    return [parts_of(text) for text in context] if several else [parts_of(context)]


def _each(name: str, what: str, given: Iterable[Any], make: Callable[[Any], T]) -> list[T]:
    """`make` of every item, one at a time, so that a corpus of documents is not held in memory at once."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        single = "rlm_query" if name.startswith("rlm") else "llm_query"
        raise TypeError(f"{name} needs a list, not {type(given).__name__}; for one {what} use {single}")
    made: list[T] = []
    for item in given:
        if len(made) == frames.MAX_SLOTS:
            raise ValueError(f"{name} takes at most {frames.MAX_SLOTS:,} prompts at once; send fewer")
        try:
            made.append(make(item))
        except TypeError as error:
            raise TypeError(f"{name}, {what}s[{len(made)}]: {error}") from None
    return made


def _same_length(name: str, prompts: int, given: int, what: str) -> None:
    if prompts != given:
        raise ValueError(
            f"{name} got {prompts} prompts but {given} {what}; it needs one for each "
            f"(repeat a prompt with [prompt] * {given})"
        )


def _packed(slots: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Slots in blocks that fit a frame; a slot too large for any frame goes as its size only."""
    block: list[dict[str, Any]] = []
    filled = total = 0
    for slot in slots:
        size = len(frames.encode_body(slot)) + 1
        weight = frames.slot_weight(slot)
        if size > _SLOT_CAP or total + weight > frames.MAX_BATCH:
            slot, size, weight = {"too_large": size}, 32, frames.slot_weight({})
        total += weight
        if block and filled + size > _FRAME_FILL:
            yield block
            block, filled = [], 0
        block.append(slot)
        filled += size
    yield block


def _line() -> int:
    """The line of the innermost cell frame on this thread's stack, 0 where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(CELL_FILE):
            return frame.f_lineno
        frame = frame.f_back
    return 0
