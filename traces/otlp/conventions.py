"""What a span of somebody's instrumentation is: its class, model, tokens, cost and error.

Read are OpenInference (`openinference.span.kind`, `llm.*`), the GenAI conventions of OpenTelemetry in their
old and new names (`gen_ai.*`), and those of OpenLLMetry (`traceloop.*`, `llm.usage.*`). Where several say
the same, the first one that is told counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal

from rlm_core import semconv as sc
from traces.facts import LARGEST
from traces.importers.foreign import TokenUse, Told, derived, missing, reported
from traces.otlp.spans import OtlpSpan
from traces.spool import DECODER

#: own: a span of this engine; code: a tool that runs code; plain: a span of no convention that is known here.
What = Literal["own", "agent", "llm", "code", "tool", "chain", "plain"]

PARAMETERS: Final = "llm.invocation_parameters"
SPAN_KIND: Final = "traceloop.span.kind"
_OPENINFERENCE: Final[Mapping[str, What]] = {
    "LLM": "llm", "AGENT": "agent", "TOOL": "tool", "RETRIEVER": "tool", "RERANKER": "tool",
    "EMBEDDING": "tool", "GUARDRAIL": "tool", "EVALUATOR": "tool", "CHAIN": "chain", "PROMPT": "chain",
    "DECISION": "chain",
}  # fmt: skip
_OPERATIONS: Final[Mapping[str, What]] = {
    "chat": "llm", "generate_content": "llm", "text_completion": "llm", "fetch_response": "llm",
    "invoke_agent": "agent", "execute_tool": "tool", "embeddings": "tool", "retrieval": "tool",
    "create_agent": "tool", "invoke_workflow": "chain", "plan": "chain",
}  # fmt: skip
_TRACELOOP: Final[Mapping[str, What]] = {
    "workflow": "chain", "task": "chain", "agent": "agent", "tool": "tool",
}  # fmt: skip
_LLM_REQUESTS: Final = ("chat", "completion")
_RUNS_CODE: Final = re.compile(
    r"(?i)(?:^|[^a-z])(?:i?python\d?|py|repl|code|jupyter|notebook)(?:$|[^a-z])|code.?interpreter|python.?repl"
    r"|(?:run|exec|execute).?(?:code|python)|(?:code|python).?(?:exec|run)"
)
TOOL_NAMES: Final = (sc.TOOL_NAME, "tool.name", "traceloop.entity.name")
_MODELS: Final = (sc.REQUEST_MODEL, sc.OI_MODEL, "llm.request.model", "llm.request_model_name",
                  sc.RESPONSE_MODEL, "llm.response.model")  # fmt: skip
_INPUT: Final = (sc.USAGE_INPUT, sc.OI_PROMPT_TOKENS, "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens")
_OUTPUT: Final = (sc.USAGE_OUTPUT, sc.OI_COMPLETION_TOKENS, "gen_ai.usage.completion_tokens",
                  "llm.usage.completion_tokens")  # fmt: skip
_TOTAL: Final = (sc.OI_TOTAL_TOKENS, "gen_ai.usage.total_tokens", "llm.usage.total_tokens")
_CACHE_READ: Final = (sc.USAGE_CACHE_READ, "llm.token_count.prompt_details.cache_read",
                      "gen_ai.usage.cache_read_input_tokens")  # fmt: skip
_CACHE_WRITE: Final = (sc.USAGE_CACHE_WRITE, "gen_ai.usage.cache_creation.input_tokens",
                       "llm.token_count.prompt_details.cache_write",
                       "gen_ai.usage.cache_creation_input_tokens")  # fmt: skip
_REASONING: Final = (sc.USAGE_REASONING, "llm.token_count.completion_details.reasoning",
                     "gen_ai.usage.reasoning_tokens", "llm.usage.reasoning_tokens")  # fmt: skip
_COST: Final = (sc.OI_COST, "gen_ai.usage.cost.amount", "gen_ai.usage.cost", "gen_ai.usage.total_cost")
#: Numbers that the record keeps in its own way: they stand on a span as tokens and cost, or not at all.
COUNTED: Final = frozenset((*_INPUT, *_OUTPUT, *_TOTAL, *_CACHE_READ, *_CACHE_WRITE, *_REASONING, *_COST))
_LARGEST_USD: Final = Decimal(10**9)
_USD_DIGITS: Final = 18  # after the point, as many as the record holds


def what_is(span: OtlpSpan) -> What:
    """The class of a span, by the first convention that says it."""
    told = span.attributes
    if told.get(sc.KIND) in sc.KINDS:
        return "own"
    found = (
        _OPENINFERENCE.get(str(told.get(sc.OI_KIND)).upper())
        or _OPERATIONS.get(str(told.get(sc.OPERATION)))
        or _TRACELOOP.get(str(told.get(SPAN_KIND)))
        or _guessed(told)
    )
    if found == "tool" and _tool_runs_code(span):
        return "code"
    return found or "plain"


def said_kind(span: OtlpSpan) -> str:
    """The class of a span in the words of its own convention."""
    told = span.attributes
    named = (told.get(key) for key in (sc.OI_KIND, sc.OPERATION, SPAN_KIND, "llm.request.type"))
    return next((text for text in named if isinstance(text, str) and text), span.kind)


def _guessed(told: Mapping[str, Any]) -> What | None:
    """Older instrumentations name the request, or only a model and its tokens."""
    if told.get("llm.request.type") in _LLM_REQUESTS:
        return "llm"
    asked = text_of(told, sc.REQUEST_MODEL, sc.OI_MODEL, "llm.request.model") is not None
    return "llm" if asked and count_of(told, *_INPUT, *_OUTPUT) is not None else None


def _tool_runs_code(span: OtlpSpan) -> bool:
    if str(span.attributes.get(sc.OI_KIND, "TOOL")).upper() != "TOOL":  # a retriever of code runs none
        return False
    if str(span.attributes.get(sc.OPERATION, "execute_tool")) != "execute_tool":
        return False
    name = text_of(span.attributes, *TOOL_NAMES) or span.name.removeprefix("execute_tool ")
    return _RUNS_CODE.search(name) is not None


def model_of(span: OtlpSpan) -> str | None:
    """The model that was asked, as the span names it."""
    told = text_of(span.attributes, *_MODELS)
    if told is None and (asked := text_of(span.attributes, PARAMETERS)):  # a call that failed names it here
        with suppress(ValueError, RecursionError):
            held = DECODER.decode(asked)
            told = text_of(held, "model") if isinstance(held, dict) else None
    return told


def tokens_of(span: OtlpSpan) -> Told[TokenUse]:
    """The tokens of a call, with everything that came out of a cache or went into one among its input."""
    told = span.attributes
    given, made, total = count_of(told, *_INPUT), count_of(told, *_OUTPUT), count_of(told, *_TOTAL)
    read, written = count_of(told, *_CACHE_READ), count_of(told, *_CACHE_WRITE)
    reasoning = count_of(told, *_REASONING)
    why = None
    if total is not None and (given is None) != (made is None):
        known = given if given is not None else made or 0
        given, made = (given, total - known) if given is not None else (total - known, made)
        why = "the other side of the total that the span tells"
    if given is None or made is None or given < 0 or made < 0:
        some = (given, made, total) != (None, None, None)
        return missing("the span tells only a part of them" if some else "the span tells none")
    cached = (read or 0) + (written or 0)
    if cached > given:
        given += cached
        why = "the input that the span tells does not hold what was cached, which was added"
    use = TokenUse(given, made, read, written, reasoning)
    return reported(use) if why is None else derived(use, why)


def cost_of(span: OtlpSpan) -> Told[Decimal]:
    """What a call cost in dollars, where the span says so."""
    for key in _COST:
        raw = span.attributes.get(key)
        if isinstance(raw, str | int | float) and not isinstance(raw, bool):
            try:
                amount = Decimal(str(raw))
            except InvalidOperation:
                continue
            if amount.is_finite() and 0 <= amount < _LARGEST_USD:
                return reported(min(amount, round(amount, _USD_DIGITS), key=lambda each: len(str(each))))
    return missing()


def error_of(span: OtlpSpan) -> tuple[str, str] | None:
    """Type and message of what failed, None for a span that did not."""
    caught = exception_of(span)
    if span.status != "error" and not (
        caught and span.status == "unset" and span.attributes.get(sc.ERROR_TYPE)
    ):
        return None
    kind = text_of(span.attributes, sc.ERROR_TYPE) or text_of(caught, "exception.type") or "error"
    message = (
        text_of(span.attributes, sc.ERROR_MESSAGE) or text_of(caught, "exception.message") or span.message
    )
    return kind, message


def exception_of(span: OtlpSpan) -> Mapping[str, Any]:
    """What the last exception event of a span says; empty where there is none."""
    return next((event.attributes for event in reversed(span.events) if event.name == "exception"), {})


def text_of(told: Mapping[str, Any], *keys: str) -> str | None:
    """The first of these attributes that is a text with something in it."""
    return next((value for key in keys if isinstance(value := told.get(key), str) and value), None)


def count_of(told: Mapping[str, Any], *keys: str) -> int | None:
    """The first of these attributes that is a whole number, also as a float or in a text."""
    for key in keys:
        value = told.get(key)
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is int and 0 <= value < LARGEST:
            return value
    return None
