"""One example of training data: a conversation that ends with what a model should say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlm_core.lm_handler import ToolCall, estimate_tokens
from traces.exporters.secrets import redacted
from traces.exporters.sft_runs import ExampleKind


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message. `learn` is false for what the model said before: context, not to be learned again.
    `tool_calls` are what the model wanted to have called, `answers` is the id of the one a tool answers.
    """

    role: str
    content: str
    learn: bool = True
    tool_calls: tuple[ToolCall, ...] = ()
    answers: str | None = None

    def to_json(self) -> dict[str, Any]:
        """In OpenAI's format for fine-tuning: `weight` 0 keeps what the model said from being trained."""
        made: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            made["tool_calls"] = [
                {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
                for one in self.tool_calls
            ]
        if self.answers is not None:
            made["tool_call_id"] = self.answers
        if self.role == "assistant" and not self.learn:
            made["weight"] = 0
        return made

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything that is text in it."""
        return (self.content, *(one.arguments for one in self.tool_calls))

    def without_keys(self) -> tuple[ChatMessage, int]:
        """The same with keys taken out, and how many there were."""
        content, count = redacted(self.content)
        calls = []
        for one in self.tool_calls:
            arguments, more = redacted(one.arguments)
            calls.append(replace(one, arguments=arguments))
            count += more
        return replace(self, content=content, tool_calls=tuple(calls)), count


@dataclass(frozen=True, slots=True)
class Example:
    """One example; the last message is the model's. `tools` are those it may call, each as JSON.

    `tokens` are those of all messages, as the provider reported them or (`estimated`) one for four
    characters. `redacted` counts keys that were taken out.
    """

    kind: ExampleKind
    messages: tuple[ChatMessage, ...]
    run_id: str
    span_id: str
    model: str
    depth: int
    tokens: int
    estimated: bool
    tools: tuple[Mapping[str, Any], ...] = ()
    redacted: int = 0

    def line(self) -> str:
        """The example as one line of JSON."""
        facts = {
            "kind": self.kind,
            "run_id": self.run_id,
            "span_id": self.span_id,
            "model": self.model,
            "depth": self.depth,
            "tokens": self.tokens,
            "tokens_estimated": self.estimated,
        }
        document: dict[str, Any] = {"messages": [one.to_json() for one in self.messages]}
        if self.tools:
            document["tools"] = [{"type": "function", "function": dict(one)} for one in self.tools]
        return json.dumps({**document, "metadata": facts}, ensure_ascii=False)


def clean(messages: Sequence[ChatMessage]) -> tuple[tuple[ChatMessage, ...], int]:
    """Messages with keys taken out, and how many there were."""
    done = [message.without_keys() for message in messages]
    return tuple(message for message, _ in done), sum(count for _, count in done)


def guess(messages: Sequence[ChatMessage]) -> int:
    """Tokens by one for four characters."""
    return sum(estimate_tokens(text) for message in messages for text in message.texts)
