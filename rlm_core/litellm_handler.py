"""Any model through LiteLLM: one try, no retries, no callbacks, nothing printed.

Keys and server addresses come from the environment alone (`OPENAI_API_KEY`, `OPENAI_BASE_URL` or
`OPENAI_API_BASE` for `openai/NAME`, and so on by provider); a request has no place for them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import math
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.errors import ModelError
from rlm_core.images import data_url
from rlm_core.litellm_errors import malformed, timed_out, to_model_error, usage_number
from rlm_core.lm_handler import Completion, Message, Request, ToolCall, Usage
from rlm_core.pricing import decimal_text

_LOGGERS: Final = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_CALLBACKS: Final = (
    "callbacks",
    "input_callback",
    "success_callback",
    "failure_callback",
    "service_callback",
)
_CLOSING_SECONDS: Final = 2.0
# Warnings that LiteLLM and what is below it cause during calls: about its own types, about an answer that is
# no completion (which becomes a `ModelError`), about bodies over a megabyte.
_NOISE: Final = (".*`ReadOnly` qualifier", "Pydantic serializer warnings", "Sending a large body")
# They send reasoning, but refuse a message that has it, where others (DeepSeek, Kimi) want it with calls.
_TAKES_NO_REASONING: Final = ("groq/", "cerebras/")

_lock = threading.Lock()
_loading = threading.Lock()  # held for as long as the import takes
_loaded: Any = None
_users: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, int] = weakref.WeakKeyDictionary()


class LiteLLMHandler:
    """An `LMHandler` for every model id that LiteLLM knows.

    `concurrency` is the number of calls that may be in flight at once; connections are kept open for so many.
    May be used from several event loops; `aclose` releases what belongs to the loop it runs in.
    """

    def __init__(self, concurrency: int = 32) -> None:
        self._concurrency = concurrency
        self._loops: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()

    async def prepare(self) -> None:
        """Import LiteLLM (seconds) in a thread of its own, so that the event loop goes on."""
        if _loaded is None:
            loop = asyncio.get_running_loop()
            loaded: asyncio.Future[None] = loop.create_future()
            # a daemon: whoever cancels the run, or ends the program, does not wait seconds for an import
            thread = threading.Thread(
                target=_load_for, args=(self._concurrency, loop, loaded), name="rlm-import", daemon=True
            )
            thread.start()
            await loaded

    async def complete(self, request: Request) -> Completion:
        """Ask once; raises `ModelError` for everything that can go wrong."""
        await self.prepare()
        self._register()
        outcome = await _ask(request)
        if isinstance(outcome, ModelError):
            raise outcome  # here, outside of LiteLLM's own exception, whose frames hold the whole request
        return _completion(request, outcome)

    async def aclose(self) -> None:
        """Close the connections of the running loop, unless another handler still uses them."""
        loop = asyncio.get_running_loop()
        with _lock:
            if loop not in self._loops:
                return
            self._loops.discard(loop)
            left = _users[loop] = _users.get(loop, 1) - 1
        if left <= 0:
            await _close_clients()
            await _finish_tasks()

    def _register(self) -> None:
        loop = asyncio.get_running_loop()
        with _lock:
            if loop not in self._loops:
                self._loops.add(loop)
                _users[loop] = _users.get(loop, 0) + 1


def _load_for(concurrency: int, loop: asyncio.AbstractEventLoop, loaded: asyncio.Future[None]) -> None:
    """Import LiteLLM and tell who waits, if somebody still does."""
    error = None
    try:
        _load(concurrency)
    except Exception as failed:
        error = failed

    def tell() -> None:
        if loaded.done():
            return
        if error is None:
            loaded.set_result(None)
        else:
            loaded.set_exception(error)

    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(tell)


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Look for no garbage: during the import that takes a fifth of seconds of CPU, and finds nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _load(concurrency: int) -> Any:
    """Import LiteLLM, quiet and offline."""
    global _loaded
    with _loading:
        if _loaded is None:
            os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import asks the network for prices
            os.environ.setdefault(
                "LITELLM_MODE", "PRODUCTION"
            )  # else it reads a .env file of the working folder
            os.environ.setdefault("AIOHTTP_CONNECTOR_LIMIT_PER_HOST", str(max(500, concurrency)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with _no_garbage():
                    litellm: Any = import_module("litellm")
                worker: Any = import_module("litellm.litellm_core_utils.logging_worker").GLOBAL_LOGGING_WORKER
            for name in _LOGGERS:
                logging.getLogger(name).setLevel(logging.CRITICAL + 1)
            for name in _CALLBACKS:
                getattr(litellm, name).clear()
            litellm.suppress_debug_info = True
            litellm.disable_hf_tokenizer_download = True
            # With no callbacks there is nothing to log, and the one worker hops between event loops and
            # breaks there.
            worker.ensure_initialized_and_enqueue = _discard
            _loaded = litellm
    return _loaded


def _hush() -> None:
    """Ignore `_NOISE`. Looked at before each call: a host may reset the filters, or make warnings errors."""
    known = {message.pattern for _, message, *_ in warnings.filters if message is not None}
    for message in _NOISE:
        if message not in known:
            warnings.filterwarnings("ignore", message=message)


def _discard(async_coroutine: Coroutine[Any, Any, Any]) -> None:
    async_coroutine.close()


async def _ask(request: Request) -> Any:
    """LiteLLM's response, or the `ModelError` to raise."""
    _hush()
    if request.tools and not _takes_tools(request.model):
        return ModelError("bad_request", f"{request.model}: this model takes no tools; run it without them")
    try:
        async with asyncio.timeout(request.timeout):
            return await _loaded.acompletion(**_arguments(request))
    except TimeoutError:
        return timed_out(request.model, request.timeout)
    except Exception as error:
        return to_model_error(error, request.model)


def _arguments(request: Request) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "model": request.model,
        "messages": [_message(message, request.model) for message in request.messages],
        "timeout": _transport_timeout(request.timeout),
        "max_retries": 0,
        "drop_params": True,
    }
    if request.max_tokens is not None:
        arguments["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        arguments["temperature"] = request.temperature
    if request.schema is not None and request.schema.get("type") == "object" and not request.tools:
        # other values are refused by servers, and beside tools it is refused or keeps them from being called;
        # the messages say the schema anyway
        shape = {"name": "answer", "schema": dict(request.schema)}
        arguments["response_format"] = {"type": "json_schema", "json_schema": shape}
    if request.tools:
        arguments["tools"] = [
            {"type": "function", "function": {"name": tool.name, "description": tool.description,
             "parameters": dict(tool.parameters)}}
            for tool in request.tools
        ]  # fmt: skip
    return arguments


def _message(message: Message, model: str) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message.role, "content": _content(message)}
    if message.tool_calls:
        made["content"] = message.content or None
        made["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _sendable(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.reasoning is not None and not model.startswith(_TAKES_NO_REASONING):
        made["reasoning_content"] = message.reasoning
    if message.tool_call_id is not None:
        made["tool_call_id"] = message.tool_call_id
    return made


def _sendable(arguments: str) -> str:
    """Arguments of a call as they can be sent back: LiteLLM and servers fail on what is no JSON object. The
    message that follows says what was wrong with them.
    """
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


def _content(message: Message) -> Any:
    """The text, and images behind it where there are any."""
    if not message.images:
        return message.content
    shown = [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in message.images]
    return [{"type": "text", "text": message.content}, *shown]


def _takes_tools(model: str) -> bool:
    """Whether LiteLLM sends tools to this model; else it would leave them out and say nothing."""
    try:
        known = _loaded.get_supported_openai_params(model=model)
    except Exception:  # an id it does not know: the call itself says so
        return True
    return known is None or "tools" in known


def _transport_timeout(seconds: float) -> float:
    """A power of two above the request's timeout, which `_ask` enforces itself.

    LiteLLM keeps one client, with its connections, for each value it is given.
    """
    return float(2 ** (math.floor(math.log2(max(seconds, 1.0))) + 1))


def _completion(request: Request, response: Any) -> Completion:
    """The answer, as it was sent. Raises `ModelError` for what is none, with the usage it reports."""
    raw = _raw_usage(response)
    came = Completion(
        None,
        finish_reason=None,
        usage=_usage(raw),
        model_returned=getattr(response, "model", None) or None,
        response_id=getattr(response, "id", None) or None,
        raw_usage=raw,
        facts=_facts(response),
    )
    wrong = partial(malformed, request.model, came=came if raw is not None else None)
    choices = getattr(response, "choices", None)
    if not choices:
        raise wrong("has no choices")
    message = getattr(choices[0], "message", None)
    text = getattr(message, "content", None)
    if message is None or not isinstance(text, str | None):
        raise wrong("has no message")
    return replace(
        came,
        text=text,
        finish_reason=getattr(choices[0], "finish_reason", None),
        reasoning=getattr(message, "reasoning_content", None) or None,
        tool_calls=_tool_calls(message, wrong),
    )


def _tool_calls(message: Any, wrong: Callable[[str], ModelError]) -> tuple[ToolCall, ...]:
    """The tools a reply calls. A server that numbers none of its calls gets numbers back."""
    made = []
    for number, call in enumerate(getattr(message, "tool_calls", None) or ()):
        function = getattr(call, "function", None)
        name, arguments = getattr(function, "name", None), getattr(function, "arguments", None)
        if not isinstance(name, str) or not isinstance(arguments, str | None):
            raise wrong("calls a tool without a name")
        made.append(ToolCall(getattr(call, "id", None) or f"call_{number}", name, arguments or ""))
    return tuple(made)


def _raw_usage(response: Any) -> dict[str, Any] | None:
    """Usage as reported; None when it was not. LiteLLM then makes zeros up, which no real prompt can have."""
    reported = getattr(response, "usage", None)
    raw = reported.model_dump(mode="json", exclude_none=True, warnings=False) if reported is not None else {}
    return (
        raw if usage_number(raw.get("prompt_tokens")) or usage_number(raw.get("completion_tokens")) else None
    )


def _usage(raw: Mapping[str, Any] | None) -> Usage:
    if raw is None:
        return Usage()
    read = raw.get("prompt_tokens_details") or {}
    made = raw.get("completion_tokens_details") or {}
    return Usage(
        input=usage_number(raw.get("prompt_tokens")) or None,
        output=usage_number(raw.get("completion_tokens")),
        cached_read=_first(raw.get("cache_read_input_tokens"), read.get("cached_tokens")),
        cache_write=_first(
            raw.get("cache_creation_input_tokens"),
            read.get("cache_creation_tokens"),
            read.get("cache_write_tokens"),
        ),
        reasoning=usage_number(made.get("reasoning_tokens")),
    )


def _first(*values: Any) -> int | None:
    return next((n for value in values if (n := usage_number(value)) is not None), None)


def _facts(response: Any) -> dict[str, str | int | float | bool]:
    hidden = getattr(response, "_hidden_params", None) or {}
    facts: dict[str, str | int | float | bool] = {}
    if isinstance(provider := hidden.get("custom_llm_provider"), str):
        facts[sc.PROVIDER] = provider
    cost = hidden.get("response_cost")
    if isinstance(cost, int | float) and math.isfinite(cost):
        # a sum of floats: what lies beyond 15 digits is noise
        facts[sc.COST_LITELLM] = decimal_text(round(Decimal(f"{cost:.15g}"), 18))
    return facts


async def _close_clients() -> None:
    """Close LiteLLM's cached clients of the running loop and forget them."""
    token = import_module("litellm.caching.evicted_client_closer").running_loop_token()
    cache = _loaded.in_memory_llm_clients_cache
    for key in [key for key in cache.cache_dict if key.endswith(f"-{token}")]:
        client = cache.cache_dict.pop(key, None)
        close = getattr(client, "aclose", None) or getattr(client, "close", None)
        if close is not None:
            await close()


async def _finish_tasks() -> None:
    """Let the small tasks that LiteLLM leaves on the loop come to their end."""
    home = str(Path(_loaded.__file__).parent)
    left = {
        task
        for task in asyncio.all_tasks()
        if (code := getattr(task.get_coro(), "cr_code", None)) and code.co_filename.startswith(home)
    }
    if left:
        await asyncio.wait(left, timeout=_CLOSING_SECONDS)
