"""Code that a model sent as a tool call, in the reply's text, instead of in a fenced block."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from rlm_core.python_text import as_written, parses

_NAMES: Final = ("code", "cell", "source", "python")
_PARAMETER: Final = re.compile(
    r"<(?P<tag>(?:\w{1,20}:)?parameter)\s{1,9}name\s{0,9}=\s{0,9}[\"']?(?:code|cell|source|python)[\"']?\s{0,9}>"
    r"|^[ \t]*<(?P<line>code|python|repl|execute|tool_code)>[ \t]*$",
    re.M,
)
_JSON: Final = re.compile(r"<(?:tool_call|function_call)>\s*(?=\{)")
_CLOSERS: Final = re.compile(r"(?:\s*</[\w:]{1,40}>)*")
_CDATA: Final = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.S)
_MOST_CALLS: Final = 50


@dataclass(frozen=True, slots=True)
class ToolCall:
    """Code, and where its call stands in the text: from the opening tag to behind the closing tags."""

    code: str
    start: int
    end: int


def tool_calls(text: str) -> list[ToolCall]:
    """The calls in a text, in order: `<parameter name="code">`, `<tool_call>{json}`, a code tag that has its
    line to itself, or a text that is one JSON object with arguments.
    """
    whole = text.strip()
    if whole.startswith("{"):
        found = _in_json(whole, 0)
        return [ToolCall(found[0], 0, len(text))] if found and found[1] == len(whole) else []
    calls = sorted([*_in_tags(text), *_in_json_tags(text)], key=lambda call: call.start)
    return [call for call in calls if call.code.strip()]


def _in_tags(text: str) -> Iterator[ToolCall]:
    unclosed: set[str] = set()
    at = 0
    while (opening := _PARAMETER.search(text, at)) is not None:
        at = opening.end()
        closing = f"</{opening['tag'] or opening['line']}>"
        if closing in unclosed:
            continue
        end = text.find(closing, at)
        if end < 0:
            unclosed.add(closing)
            continue
        code = _plain(text[at:end])
        at = _behind(text, end + len(closing))
        yield ToolCall(code, opening.start(), at)


def _in_json_tags(text: str) -> Iterator[ToolCall]:
    for number, opening in enumerate(_JSON.finditer(text)):
        if number == _MOST_CALLS:
            return
        if (found := _in_json(text, opening.end())) is not None:
            yield ToolCall(found[0], opening.start(), _behind(text, found[1]))


def _in_json(text: str, start: int) -> tuple[str, int] | None:
    """The code in the JSON object that begins at `start`, and where it ends."""
    try:
        call, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    given: Any = next((call[key] for key in ("arguments", "parameters", "input") if key in call), None)
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            given = {"code": given}
    if not isinstance(given, dict):
        return None
    code = next((given[name] for name in _NAMES if isinstance(given.get(name), str)), None)
    return None if code is None else (code, end)


def _plain(code: str) -> str:
    """Code from between two tags: without CDATA, blank lines around it, and escapes where only they keep it
    from being Python.
    """
    if wrapped := _CDATA.fullmatch(code):
        code = wrapped[1]
    code, is_python = as_written(code.strip("\n").split("\n"))
    unescaped = html.unescape(code)
    return unescaped if not is_python and parses(unescaped) else code


def _behind(text: str, end: int) -> int:
    """The place behind the closing tags that follow."""
    found = _CLOSERS.match(text, end)
    return found.end() if found else end
