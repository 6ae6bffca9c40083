"""What went wrong in one try through LiteLLM, as a `ModelError`.

LiteLLM's own exception classes cannot be trusted: a refused connection, broken JSON and a missing key all
arrive as `InternalServerError` with status 500. What really happened stands in the chain of causes: an HTTP
answer with its status, a transport error, or a parser's complaint.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from rlm_core.errors import ModelError

if TYPE_CHECKING:
    from rlm_core.lm_handler import Completion

_SHOWN_CHARS: Final = 300
_PREFIX: Final = re.compile(r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout)\w*(?: APIError)?\s*(?::|-)\s*")
_CONTEXT: Final = re.compile(
    r"context.{0,20}(length|window|size)|maximum.{0,20}(context|tokens)|too many tokens|prompt is too long",
    re.I,
)
_NO_KEY: Final = re.compile(r"missing .{0,40}(credential|api[ _-]?key)|unable to locate credentials", re.I)
_NO_JSON: Final = "empty or invalid response"
_NO_COMPLETION: Final = re.compile(r"'choices'|invalid response object", re.I)
_ERROR_IN_200: Final = 422  # LiteLLM's status for an error object without a code in place of a completion
_UNREADABLE: Final = (KeyError, IndexError, TypeError, AttributeError, ValueError)
# Where the variable that holds the key is not PROVIDER_API_KEY.
_KEY_NAMES: Final = {
    "bedrock": "AWS_ACCESS_KEY_ID",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
    "together_ai": "TOGETHERAI_API_KEY",
}
_SECRET_NAME: Final = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)", re.I)
_SECRET_CHARS: Final = 8


def to_model_error(error: Exception, model: str) -> ModelError:
    """Say in one sentence what failed; `kind`, `retryable`, `retry_after` and `status` as in `ModelError`.

    `status` is set only when a server really answered.
    """
    httpx = import_module("httpx")
    chain = tuple(_chain(error))
    response = next((e.response for e in chain if isinstance(e, httpx.HTTPStatusError)), None)
    if response is not None:
        return _answered(error, model, response)
    text = _sentence(error)
    if any(isinstance(e, TimeoutError | httpx.TimeoutException) for e in chain):
        return timed_out(model, None)
    if any(isinstance(e, json.JSONDecodeError) for e in chain) or _NO_JSON in text.lower():
        return malformed(model, "is not JSON")
    if any(isinstance(e, httpx.TransportError | ConnectionError) for e in chain):
        cause = str(chain[-1]) or text
        return ModelError("connection", _tell(model, "the connection failed", cause), retryable=True)
    return _unanswered(error, model, text, chain)


def timed_out(model: str, seconds: float | None) -> ModelError:
    """No complete answer in time."""
    span = "in time" if seconds is None else f"within {seconds:g} s"
    return ModelError("timeout", f"{model}: no answer {span}", retryable=True)


def malformed(model: str, what: str, came: Completion | None = None) -> ModelError:
    """An HTTP 200 that holds no completion; `came` is what of it says what was used."""
    words = f"{model}: the server's answer {what}"
    return ModelError("malformed", words, retryable=True, status=200, completion=came)


def parse_retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds the server asks to wait (`retry-after-ms`, or `retry-after` as seconds or an HTTP date), or
    None.

    A date counts from the server's own `date` header where there is one, else from `now` (Unix seconds).
    """
    lower = {key.lower(): value.strip() for key, value in headers.items()}
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(lower.get(name, "")) / scale
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    until = _http_date(lower.get("retry-after", ""))
    if until is None:
        return None
    since = _http_date(lower.get("date", ""))
    return max(0.0, until - (since if since is not None else time.time() if now is None else now))


def _http_date(text: str) -> float | None:
    try:
        parsed = parsedate_to_datetime(text)
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _answered(error: Exception, model: str, response: Any) -> ModelError:
    """The server answered with an error status; `response` is httpx's."""
    text, asked, status = _sentence(error), parse_retry_after(response.headers), int(response.status_code)
    name, body = type(error).__name__, _body(response)
    if status == 429:
        if "insufficient_quota" in body:
            return ModelError("rate_limit", _tell(model, "the quota is used up", text, status), status=status)
        said = _tell(model, "the rate limit was reached", text, status)
        return ModelError("rate_limit", said, retryable=True, retry_after=asked, status=status)
    if status >= 500 or status in (408, 409, 425):
        said = _tell(model, "the server failed", text, status)
        return ModelError("server", said, retryable=True, retry_after=asked, status=status)
    if status in (401, 403):
        return ModelError("auth", _key_sentence(error, model, text, status), status=status)
    kind, what = "bad_request", "the server rejected the request"
    if name == "ContextWindowExceededError" or "context_length_exceeded" in body or _CONTEXT.search(text):
        kind, what = "context_window", "the prompt is longer than the model's context window"
    elif name == "ContentPolicyViolationError":
        kind, what = "refused", "the provider's content policy refused the request"
    elif status == 404:
        what = "the server knows no such model or path"
    return ModelError(kind, _tell(model, what, text, status), status=status)


def _body(response: Any) -> str:
    try:
        return str(response.text)
    except import_module("httpx").StreamError:  # the body was never read
        return ""


def _unanswered(error: Exception, model: str, text: str, chain: tuple[BaseException, ...]) -> ModelError:
    """No server answered: the request never left, or a good answer could not be read."""
    name = type(error).__name__
    if name == "AuthenticationError" or _NO_KEY.search(text):
        return ModelError("auth", _key_sentence(error, model, text, None))
    if "LLM Provider NOT provided" in text:
        what = (
            "the model id names no provider that LiteLLM knows; write PROVIDER/NAME, for example openai/NAME"
        )
        return ModelError("bad_request", f"{model}: {what}")
    if name == "ContentPolicyViolationError":
        return ModelError("refused", _tell(model, "the provider's content policy refused the request", text))
    if name == "ContextWindowExceededError":
        return ModelError("context_window", _tell(model, "the prompt is too long for the model", text))
    status = getattr(error, "status_code", 500)
    if status == 429:  # told inside of an HTTP 200
        return ModelError("rate_limit", _tell(model, "the rate limit was reached", text), retryable=True)
    if status in (None, _ERROR_IN_200) or _NO_COMPLETION.search(text):
        return malformed(model, f"is not a completion: {_redacted(text)}")
    if status < 500:
        return ModelError("bad_request", _tell(model, "the request was not accepted", text))
    if any(isinstance(e, _UNREADABLE) for e in chain):
        return malformed(model, f"is not a completion: {_redacted(text)}")
    return ModelError("unknown", _tell(model, f"the call failed ({name})", text))


def _key_sentence(error: Exception, model: str, text: str, status: int | None) -> str:
    provider = str(getattr(error, "llm_provider", None) or model.partition("/")[0])
    name = _KEY_NAMES.get(provider, f"{provider.upper().replace('-', '_')}_API_KEY")
    state = "is probably wrong" if os.environ.get(name) else "is probably missing"
    hint = "; a server that needs no key takes any value" if provider == "openai" and status is None else ""
    return _tell(model, f"no valid credentials, the environment variable {name} {state}{hint}", text, status)


def _tell(model: str, what: str, text: str, status: int | None = None) -> str:
    code = f" (HTTP {status})" if status else ""
    return f"{model}: {what}{code}: {_redacted(' '.join(text.split()))}"


def _sentence(error: Exception) -> str:
    """The provider's own words: first line, without LiteLLM's class names."""
    text = str(getattr(error, "message", None) or error).partition("Traceback (most recent call")[0]
    while (shorter := _PREFIX.sub("", text, count=1)) != text:
        text = shorter
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return " ".join(first.split())[:_SHOWN_CHARS]


def _redacted(text: str) -> str:
    """A message in which no secret of the environment is left: some servers echo the key they refuse."""
    for name, value in os.environ.items():
        if len(value) >= _SECRET_CHARS and _SECRET_NAME.search(name):
            text = text.replace(value, "***")
    return text


def usage_number(value: Any) -> int | None:
    """A reported token count, or None when it is absent or no count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
