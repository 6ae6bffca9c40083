"""What was said to a model and what it replied, out of every form in which spans carry it.

One message is (role, text). A text with tool calls, images and the like in it names them in words or JSON:
nothing is left out without a trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from traces.importers.source import as_text
from traces.otlp.spans import OtlpSpan
from traces.spool import DECODER

Message = tuple[str, str]

_DETAILS: Final = "gen_ai.client.inference.operation.details"
SENT: Final = "gen_ai.input.messages"
_OUT: Final = "gen_ai.output.messages"
_SYSTEM: Final = "gen_ai.system_instructions"
_FLAT_IN: Final = ("llm.input_messages", "gen_ai.prompt", "llm.prompts")
_FLAT_OUT: Final = ("llm.output_messages", "gen_ai.completion", "llm.completions")
_OLD_EVENT: Final = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message\Z")
#: Attributes whose content becomes texts of the record.
TEXTS: Final = (SENT, _OUT, _SYSTEM)
FLAT: Final = re.compile(
    r"(?:llm\.(?:input_messages|output_messages|prompts|completions)|gen_ai\.(?:prompt|completion))\.\d+\."
)
_PART_TYPES: Final = ("text", "input_text", "output_text", "image", "image_url", "input_image", "tool_call",
                      "tool_call_response", "tool_use", "tool_result", "reasoning", "thinking")  # fmt: skip
#: Names under which instrumentations put the one input or output of an agent.
_WRAPPERS: Final = ("input", "question", "query", "task", "prompt", "output", "answer", "result", "content")
_INLINE: Final = 2000  # characters of what is no text in a message
_NUMBERED: Final = 100_000  # messages of a call


def sent(span: OtlpSpan) -> list[Message] | None:
    """All messages that went to the model, in order; None where the span does not say."""
    for told in _tellers(span):
        found = _listed(told.get(SENT))
        if found:
            system = _parts(decoded(told.get(_SYSTEM)))
            return [("system", system), *found] if system else found
    found = _flattened(span, _FLAT_IN, "user") or _of_events(span, reply=False)
    return found or _of_request(span.attributes.get("input.value"))


def replied(span: OtlpSpan) -> tuple[str | None, str | None]:
    """The reply of the model and its reasoning, each None where the span does not tell."""
    for told in _tellers(span):
        held = decoded(told.get(_OUT))
        if isinstance(held, list) and held:
            return _listed(held)[0][1], _reasoning(held[0])
    found = _flattened(span, _FLAT_OUT, "assistant") or _of_events(span, reply=True)
    if found:
        return found[0][1], None
    return _of_response(span.attributes.get("output.value")), None


def rendered(messages: Sequence[Message]) -> str:
    """Messages as the one text of a prompt: a lone one as it is, several under the names of their roles."""
    if len(messages) == 1:
        return messages[0][1]
    return "\n\n".join(f"[{role}]\n{text}" for role, text in messages)


def last_of(messages: Sequence[Message] | None, role: str) -> str | None:
    """The text of the last message of a role."""
    return next((text for who, text in reversed(messages or ()) if who == role), None)


def plain(value: Any) -> str | None:
    """An input or output as people wrote it: JSON that is only a text, or one text under a name, is that
    text. None for nothing.
    """
    if value is None or value == "":
        return None
    held = decoded(value)
    if isinstance(held, str):
        return held
    if isinstance(held, Mapping) and len(held) == 1:
        name, only = next(iter(held.items()))
        if name in _WRAPPERS and isinstance(only, str) and only:
            return only
    return as_text(value)


def _tellers(span: OtlpSpan) -> Iterator[Mapping[str, Any]]:
    """The span, and the event that newer instrumentations put the same content on."""
    yield span.attributes
    yield from (event.attributes for event in span.events if event.name == _DETAILS)


def _listed(value: Any) -> list[Message]:
    """Messages in the form of the conventions or of a chat API, as a structure or as JSON."""
    held = decoded(value)
    items = held if isinstance(held, list) else []
    return [_message(item) for item in items if isinstance(item, Mapping)]


def _message(item: Mapping[str, Any], role: str = "user") -> Message:
    inner = item.get("message")
    if isinstance(inner, Mapping):
        item = inner
    said = item.get("role")
    content = item["parts"] if "parts" in item else item.get("content")
    text = _parts(_if_parts(content))
    calls = _calls(item.get("tool_calls"))
    return said if isinstance(said, str) and said else role, "\n".join(part for part in (text, calls) if part)


def _if_parts(content: Any) -> Any:
    """A text that is the JSON of parts as these; a reply may be any other JSON."""
    held = decoded(content) if isinstance(content, str) and content.startswith("[{") else None
    if not isinstance(held, list):
        return content
    known = all(isinstance(item, Mapping) and item.get("type") in _PART_TYPES for item in held)
    return held if known else content


def _parts(content: Any) -> str:
    """The text of a content: a text, or a list of parts."""
    if content is None:
        return ""
    if not isinstance(content, list):
        return as_text(content)
    return "\n".join(part for item in content if (part := _part(item)))


def _part(item: Any) -> str:
    if not isinstance(item, Mapping):
        return as_text(item)
    kind = item.get("type")
    if kind in ("reasoning", "thinking"):
        return ""
    if kind == "tool_call":
        return _call(item)
    if kind == "tool_call_response":
        return as_text(next((item[key] for key in ("result", "response", "content") if key in item), ""))
    for key in ("text", "content"):
        if isinstance(item.get(key), str):
            return str(item[key])
    return as_text(dict(item))[:_INLINE]


def _reasoning(message: Any) -> str | None:
    parts = message.get("parts") if isinstance(message, Mapping) else None
    texts = [
        str(part["content"])
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, Mapping) and part.get("type") in ("reasoning", "thinking") and part.get("content")
    ]
    return "\n".join(texts) or None


def _calls(value: Any) -> str:
    items = value if isinstance(value, list) else []
    return "\n".join(_call(item) for item in items if isinstance(item, Mapping))


def _call(item: Mapping[str, Any]) -> str:
    """A call of a tool: its name and arguments."""
    item = next((item[key] for key in ("function", "tool_call") if isinstance(item.get(key), Mapping)), item)
    item = item["function"] if isinstance(item.get("function"), Mapping) else item
    return f"{item.get('name', 'tool')}({as_text(item.get('arguments', ''))})"


def _flattened(span: OtlpSpan, prefixes: Sequence[str], role: str) -> list[Message]:
    """Messages whose parts are attributes of their own, such as llm.input_messages.0.message.content."""
    for prefix in prefixes:
        tree = unflatten(span.attributes, prefix)
        found = [_unwrapped(tree[number], role) for number in sorted(tree) if number < _NUMBERED]
        if found:
            return found
    return []


def _unwrapped(item: Any, role: str) -> Message:
    """A message of OpenInference (`message.contents.N.message_content.text`) or of OpenLLMetry."""
    if not isinstance(item, Mapping):
        return role, as_text(item)
    inner = next((item[key] for key in ("message", "prompt", "completion") if key in item), item)
    if not isinstance(inner, Mapping):
        return role, as_text(inner)
    parts = _in_order(inner.get("contents"))
    content = inner.get("content", inner.get("text"))
    if parts:
        content = [part.get("message_content", part) if isinstance(part, Mapping) else part for part in parts]
    calls = _in_order(inner.get("tool_calls"))
    return _message({"role": inner.get("role"), "content": content, "tool_calls": calls}, role)


def _in_order(numbered: Any) -> list[Any]:
    if not isinstance(numbered, Mapping):
        return list(numbered) if isinstance(numbered, list) else []
    return [numbered[number] for number in sorted(numbered, key=str)] if numbered else []


def unflatten(told: Mapping[str, Any], prefix: str) -> dict[int, Any]:
    """Attributes `prefix.0.a.b` as {0: {"a": {"b": ...}}}; numbers below the first stay sortable names."""
    out: dict[int, Any] = {}
    for key, value in told.items():
        if value is None or not key.startswith(prefix + "."):
            continue
        number, dot, path = key.removeprefix(prefix + ".").partition(".")
        if not dot or not number.isdecimal() or len(number) > 9:
            continue
        place: dict[str, Any] = out.setdefault(int(number), {})
        *steps, last = [step.zfill(9) if step.isdecimal() else step for step in path.split(".")]
        for step in steps:
            inner = place.setdefault(step, {})
            if not isinstance(inner, dict):
                inner = place[step] = {"": inner}
            place = inner
        place[last] = value
    return out


def _of_events(span: OtlpSpan, *, reply: bool) -> list[Message]:
    """The events of conventions before 1.37: one for each message, or all in one."""
    found: list[Message] = []
    for event in span.events:
        told = event.attributes
        old = _OLD_EVENT.match(event.name)
        if reply and event.name == "gen_ai.choice":
            found.append(_message({**told, "message": decoded(told.get("message"))}, "assistant"))
        elif not reply and old is not None:
            content = told.get("content", told.get("gen_ai.event.content"))
            found.append(_message({**told, "content": _decoded_message(content)}, old[1]))
        elif event.name == ("gen_ai.content.completion" if reply else "gen_ai.content.prompt"):
            raw = told.get("gen_ai.completion" if reply else "gen_ai.prompt")
            found += _listed(raw) or ([("assistant" if reply else "user", as_text(raw))] if raw else [])
    return found


def _decoded_message(content: Any) -> Any:
    inner = decoded(content)
    return inner["content"] if isinstance(inner, Mapping) and "content" in inner else content


def _of_request(value: Any) -> list[Message] | None:
    """The messages of an input that is the request to a chat API; else it is one message."""
    held = decoded(value)
    if isinstance(held, Mapping):
        asked = _listed(held.get("messages")) or _listed(held.get("input"))
        if asked:
            return asked
    return [("user", as_text(value))] if value else None


def _of_response(value: Any) -> str | None:
    """The reply of an output that is the response of a chat API; else it is the reply."""
    held = decoded(value)
    choices = held.get("choices") if isinstance(held, Mapping) else None
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return _message(choices[0], "assistant")[1]
    return as_text(value) if value not in (None, "") else None


def decoded(value: Any) -> Any:
    """A text that is JSON of a structure or a text as what it holds, everything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    try:
        return DECODER.decode(value.strip())
    except (ValueError, RecursionError):
        return value
