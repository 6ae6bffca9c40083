"""What the engine asks of a model, and the two handlers that need no model at all.

`LMHandler.complete` makes exactly one try: retries, budget and spans belong to the engine
(`rlm_core.model_calls`).
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from rlm_core.errors import ModelError

#: An image of the size that is sent takes some 85 to 1,600 tokens with the large models of OpenAI, Anthropic
#: and Google; small models that count it many times over bill more than is reserved.
IMAGE_TOKENS: Final = 1_600


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one attempt. `input` includes cached reads and writes, `output` includes reasoning; None =
    not told.
    """

    input: int | None = None
    output: int | None = None
    cached_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it; `parameters` is the JSON schema of its arguments, an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to have a tool called; `arguments` is the JSON text as it came, checked by nobody."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image as it is sent: a media type such as image/png, and the bytes of the file."""

    mime: str
    data: bytes

    @property
    def sha256(self) -> str:
        """Of the bytes, in hex."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message. `images` go with a user message; `tool_calls` stand on what the model said, and a
    message of the role "tool" answers the one whose id is `tool_call_id`. `reasoning` is what the model
    thought before it called tools: some want it back with their calls.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    images: tuple[Image, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One model call as the engine means it, before any provider's dialect.

    `timeout` is in seconds for one attempt. `tools` are for sub-models only; `corpus_id` says of which
    documents the run is that asks. `request_hash` covers model, messages, images, parameters, schema, and
    tools with the documents that they read; `occurrence` counts equal request hashes within one run path.
    Both are "" / 0 for a root call.
    """

    model: str
    messages: tuple[Message, ...]
    role: Literal["root", "sub"]
    max_tokens: int | None = None
    temperature: float | None = None
    schema: Mapping[str, Any] | None = None
    tools: tuple[ToolSpec, ...] = ()
    corpus_id: str | None = None
    timeout: float = 60.0
    request_hash: str = ""
    occurrence: int = 0

    @property
    def prompt(self) -> str:
        """The text of the last user message."""
        return next((m.content for m in reversed(self.messages) if m.role == "user"), "")


@dataclass(frozen=True, slots=True)
class Completion:
    """What one attempt returned. `text` is None when the provider sent no content, as with `tool_calls`;
    `facts` are span attributes.
    """

    text: str | None
    finish_reason: str | None = "stop"
    usage: Usage = field(default_factory=Usage)
    reasoning: str | None = None
    model_returned: str | None = None
    response_id: str | None = None
    raw_usage: Mapping[str, Any] | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    facts: Mapping[str, str | int | float | bool] = field(default_factory=dict)


class LMHandler(Protocol):
    """One try of one model call. Raises `ModelError`; anything else it raises is a defect of the handler."""

    async def complete(self, request: Request) -> Completion:
        """Ask the model once."""
        ...

    async def aclose(self) -> None:
        """Release connections; called once, after the last call."""
        ...


Reply = str | None | Completion


class FunctionLMHandler:
    """A handler around a plain function `Request -> str | Completion`, sync or async.

    A sync function runs in an own pool of `concurrency` threads: the default pool of asyncio is shared with
    the engine's own work and deadlocks when every thread of it waits for a call.
    """

    def __init__(
        self, function: Callable[[Request], Reply | Awaitable[Reply]], *, concurrency: int = 32
    ) -> None:
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function)
        self._pool = (
            None if self._is_async else ThreadPoolExecutor(concurrency, thread_name_prefix="rlm-function")
        )

    async def complete(self, request: Request) -> Completion:
        """Call the function; a `str` (or None) becomes a completion with estimated usage."""
        if self._pool is not None:
            reply: Any = await asyncio.get_running_loop().run_in_executor(self._pool, self._call, request)
        else:
            reply = self._function(request)
        if inspect.isawaitable(reply):
            reply = await reply
        if isinstance(reply, Completion):
            return reply
        return Completion(reply, usage=estimate_usage(request.messages, reply), model_returned=request.model)

    def _call(self, request: Request) -> Reply | Awaitable[Reply]:
        try:
            return self._function(request)
        except StopIteration as error:  # a future cannot carry it: whoever awaits would wait for ever
            raise RuntimeError("the handler's function raised StopIteration") from error

    async def aclose(self) -> None:
        """Stop the pool."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


class RecordedLMHandler:
    """Answers from a record: `(request_hash, occurrence) -> Completion`. Unknown requests raise
    `ModelError("bad_request")`.
    """

    def __init__(self, answers: Mapping[tuple[str, int], Completion]) -> None:
        self._answers = answers

    async def complete(self, request: Request) -> Completion:
        """Look the answer up; nothing is ever asked of a model."""
        try:
            return self._answers[request.request_hash, request.occurrence]
        except KeyError:
            raise ModelError(
                "bad_request", f"the record holds no answer for this request ({request.request_hash[:12]})"
            ) from None

    async def aclose(self) -> None:
        """Nothing to release."""


def estimate_tokens(text: str) -> int:
    """A rough count, one token for four characters; always marked as an estimate where it is shown."""
    return (len(text) + 3) // 4


def estimate_input(messages: Sequence[Message]) -> int:
    """What messages take as input, by `estimate_tokens`; an image counts as `IMAGE_TOKENS`, whatever its
    size.
    """
    return sum(estimate_tokens(m.content) + IMAGE_TOKENS * len(m.images) for m in messages)


def estimate_usage(messages: Sequence[Message], reply: str | None) -> Usage:
    """Usage by `estimate_tokens`, for handlers whose model reports none."""
    return Usage(
        input=estimate_input(messages),
        output=estimate_tokens(reply or ""),
        estimated=True,
    )
