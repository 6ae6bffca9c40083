"""Runs the tools that a sub-model asks for: one span for each call, an error as the result, never a crash."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.errors import LimitReached
from rlm_core.lm_handler import Message, ToolCall
from rlm_core.run_state import RunState
from rlm_core.schema_check import NotJson, Shape, parse_json, shape_of
from rlm_core.source_ranges import Prompt
from rlm_core.telemetry import Attribute, RunSpan, preview
from rlm_core.tools import Tool

MOST_RESULT: Final = 40_000  # characters of a result that a model is told
MOST_AT_ONCE: Final = 32  # calls of one round; the model is told that others were not made
_AT_A_TIME: Final = 8
_MOST_NAME: Final = 200  # characters of a name on record that a model may have made up


class _Wrong(Exception):
    """A call that has an error for its result: the kind, and the sentence for the model."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass
class ToolRuns:
    """The tools of one sub-call. `place` is where it stands: attributes that every tool span repeats."""

    state: RunState
    corpus: Corpus
    call: RunSpan
    place: Mapping[str, Attribute | None]

    def __post_init__(self) -> None:
        self._tools = {tool.spec.name: tool for tool in self.state.options.tools}
        self._turns = asyncio.Semaphore(_AT_A_TIME)

    async def round(self, number: int, calls: Sequence[ToolCall], refused: str | None) -> list[Message]:
        """Run the calls of one reply; a message for each, in order. `refused` says why none may run."""
        work = [
            asyncio.ensure_future(self._one(number, call, refused or self._too_many(position)))
            for position, call in enumerate(calls)
        ]
        try:
            return list(await asyncio.gather(*work))
        except BaseException:
            for one in work:
                one.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            raise

    def _too_many(self, position: int) -> str | None:
        return f"at most {MOST_AT_ONCE} calls can be made at once" if position >= MOST_AT_ONCE else None

    async def _one(self, number: int, call: ToolCall, refused: str | None) -> Message:
        span = self._start(number, call)
        self.state.tool_calls += 1
        try:
            if refused is not None:
                raise _Wrong("limit", refused)
            async with self._turns:
                value = await self._result(call)
            text = _shortened(_as_text(value))
        except _Wrong as wrong:
            text = f"Error: {wrong}"
            span.text(sc.TOOL_RESULT, text)
            span.set({sc.OI_OUTPUT: preview(text)})
            span.fail(wrong.kind, str(wrong))
        except BaseException as error:
            span.fail("cancelled", "the run was stopped while this tool ran", "cancelled")
            if isinstance(error, asyncio.CancelledError):
                raise
            raise RuntimeError(f"a tool call broke the engine: {error}") from error
        else:
            span.text(sc.TOOL_RESULT, text)
            self._search(text if isinstance(value, str) else _unescaped(text), span)
            span.end("ok", {sc.OI_OUTPUT: preview(text)})
        return Message("tool", text, tool_call_id=call.id)

    def _start(self, number: int, call: ToolCall) -> RunSpan:
        name = call.name[:_MOST_NAME]
        facts: dict[str, Attribute | None] = {
            **self.place,
            sc.OPERATION: "execute_tool",
            sc.TOOL_NAME: name,
            sc.TOOL_CALL_ID: call.id[:_MOST_NAME],
            sc.TOOL_ROUND: number,
            sc.TOOL_ARGUMENTS + ".sha256": self.state.recorder.payload(call.arguments),
            sc.TOOL_ARGUMENTS + ".chars": len(call.arguments),
            sc.TOOL_ARGUMENTS + ".preview": preview(call.arguments),
            sc.OI_INPUT: preview(call.arguments),
            sc.PREVIEW: preview(f"{name}({call.arguments})"),
        }
        return self.state.recorder.start("tool", f"execute_tool {name}", self.call, facts)

    def _search(self, text: str, span: RunSpan) -> None:
        """What of the corpus a result holds was read by the model that is told it."""
        found = Prompt.of(self.corpus, [[text]])
        if self.state.recorder.records:
            span.set({sc.SOURCE_RANGES: found.at_once()})
        self.state.sources.search(found, span)

    async def _result(self, call: ToolCall) -> Any:
        tool = self._tools.get(call.name)
        if tool is None:
            raise _Wrong("unknown_tool", f"there is no tool {call.name[:80]!r}; there are {self._names()}")
        arguments = await _arguments(tool, call.arguments)
        try:
            self.state.ledger.admit_tool_call()
        except LimitReached as error:
            raise _Wrong("limit", str(error)) from None
        return await self._run(tool, arguments)

    def _names(self) -> str:
        return ", ".join(sorted(self._tools))

    async def _run(self, tool: Tool, arguments: Mapping[str, Any]) -> Any:
        """What the function returns, awaited. Whatever goes wrong in it is the call's own error."""
        seconds, task = self.state.limits.tool_seconds, asyncio.current_task()
        try:
            async with asyncio.timeout(seconds) as time:
                if inspect.iscoroutinefunction(tool.run):
                    return await tool.run(self.corpus, arguments)
                made = await _in_thread(lambda: tool.run(self.corpus, arguments))
                return await made if inspect.isawaitable(made) else made
        except BaseException as error:
            if time.expired() and isinstance(error, TimeoutError):
                raise _Wrong("timeout", f"the tool gave no result within {seconds:g} s") from None
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # the run was stopped; a tool that cancels itself has only failed
            raise _Wrong("tool", _sentence(error)) from None


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Run in a daemon thread of its own: one that hangs blocks neither other tools nor the program's end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def tell(outcome: tuple[Any, BaseException | None]) -> None:
        if not done.done():
            done.set_result(outcome)
        elif inspect.iscoroutine(outcome[0]):  # it came too late
            outcome[0].close()

    def run() -> None:
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = work(), None
        except BaseException as error:  # also SystemExit and StopIteration, which no future can carry
            outcome = None, error
        try:
            loop.call_soon_threadsafe(tell, outcome)
        except RuntimeError:  # the loop is closed: nobody waits any more
            if inspect.iscoroutine(outcome[0]):
                outcome[0].close()

    threading.Thread(target=run, name="rlm-tool", daemon=True).start()
    value, error = await done
    if error is not None:
        raise RuntimeError(_sentence(error)) if isinstance(error, StopIteration) else error
    return value


async def _arguments(tool: Tool, text: str) -> Mapping[str, Any]:
    """The arguments, checked. The model is told what is wrong with them."""
    shape = shape_of(tool.spec.parameters)
    return await shape.off_loop(len(text), lambda: _read_arguments(shape, text))


def _read_arguments(shape: Shape, text: str) -> Mapping[str, Any]:
    try:
        value = parse_json(text) if text.strip() else {}
    except NotJson as error:
        raise _Wrong("arguments", f"the arguments were not understood: {error}") from None
    if (problem := shape.problem(value)) is not None:
        raise _Wrong("arguments", f"the arguments do not fit the tool: {problem}")
    if not isinstance(value, dict):
        raise _Wrong("arguments", "the arguments must be one JSON object")
    return value


def _as_text(value: Any) -> str:
    """A result as the model is told it: a text as it is, all else as JSON. The repr of an object is none."""
    if isinstance(value, str):
        return value
    if inspect.iscoroutine(value):  # made by what was awaited; nobody will
        value.close()
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise _Wrong(
            "result", f"the tool returned a value of type {type(value).__name__}, which JSON cannot hold"
        ) from None


def _unescaped(text: str) -> str:
    """JSON with its strings as they were, so that lines of a document are found in it."""
    for written, meant in (("\\n", "\n"), ("\\r", "\r"), ("\\t", "\t"), ('\\"', '"'), ("\\\\", "\\")):
        text = text.replace(written, meant)
    return text


def _shortened(text: str) -> str:
    if len(text) <= MOST_RESULT:
        return text
    return f"{text[:MOST_RESULT]}\n[cut here: the result has {len(text):,} characters]"


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:500]}" if text else type(error).__name__
