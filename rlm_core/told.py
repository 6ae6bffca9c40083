"""What the root is told beside question and context: the schema of the answer, the tools of sub-models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from rlm_core.lm_handler import Message, ToolSpec
from rlm_core.telemetry import as_json

_STATUS: Final = "\n("  # with which the last line of a first message begins, see `rlm_core.prompts`
_ANSWER: Final = (
    "\n# Answer\nThe answer must be a value that fits this JSON schema (a dict, list, number or text as it "
    "says, not JSON in a text):\n{}\n"
)
_TOOLS: Final = (
    "\n# Tools of the sub-model\nWhen asked with llm_query or llm_batch the sub-model can call these by "
    "itself; code cannot:\n{}\n"
)


def told_beside(
    messages: Sequence[Message], schema: Mapping[str, Any] | None, tools: Sequence[ToolSpec]
) -> tuple[Message, ...]:
    """The opening messages with these facts in the last one, before its last line; unchanged without any."""
    facts = "" if schema is None else _ANSWER.format(as_json(schema))
    if tools:
        facts += _TOOLS.format("\n".join(f"{tool.name}: {_first_line(tool)}" for tool in tools))
    if not facts:
        return tuple(messages)
    *before, last = messages
    body, status, line = last.content.rpartition(_STATUS)
    content = f"{body}{facts.rstrip()}{status}{line}" if status else last.content + facts
    return (*before, replace(last, content=content))


def _first_line(tool: ToolSpec) -> str:
    return tool.description.strip().split("\n", 1)[0]
