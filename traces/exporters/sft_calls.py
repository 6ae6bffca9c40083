"""A sub-call as the conversation that the record tells: schema, prompt, rounds of tools, reply.

Replies that did not fit their schema and were sent back are not in it: what is learned is the one that fits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.conversation import told_schema
from rlm_core.lm_handler import ToolCall
from rlm_core.telemetry import as_json
from traces.detail import decoded
from traces.exporters.sft_chat import ChatMessage
from traces.rows import SpanRow
from traces.view import RunView

_TEXTS: Final = (sc.PROMPT, sc.RESPONSE, sc.TOOL_ARGUMENTS, sc.TOOL_RESULT)


class CallTexts:
    """The conversations of the sub-calls of one run."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._held: Mapping[str, str] = {}

    def fetch(self, calls: Iterable[SpanRow]) -> None:
        """Read the texts of some calls at once, in place of those held: of a large run each look at the store
        takes longer than the reading.
        """
        spans = [one for call in calls for one in (call, *self.below.get(call.span_id, ()))]
        found = (span.attributes.get(prefix + ".sha256") for span in spans for prefix in _TEXTS)
        self._held = self._view.payloads({sha256 for sha256 in found if isinstance(sha256, str)})

    def text(self, span: SpanRow, prefix: str) -> str | None:
        """A text of a span; None where the record does not hold it."""
        sha256 = span.attributes.get(prefix + ".sha256")
        if not isinstance(sha256, str):
            return None
        return self._held[sha256] if sha256 in self._held else self._view.payload(sha256)

    @cached_property
    def below(self) -> Mapping[str | None, list[SpanRow]]:
        """Attempts and tool calls, by the span of the call they belong to."""
        found: dict[str | None, list[SpanRow]] = defaultdict(list)
        for span in self._view.spans:
            if span.kind in ("attempt", "tool"):
                found[span.parent_id].append(span)
        return found

    def problem(self, span: SpanRow) -> str | None:
        """Why a sub-call cannot be told or should not be learned, as a clause."""
        if self.text(span, sc.PROMPT) is None:
            return "the record lacks messages"
        if span.attributes.get(sc.IMAGES):
            return "images were sent"
        if any(tool.kind == "tool" and tool.status != "ok" for tool in self.below.get(span.span_id, ())):
            return "a tool call failed"
        if len(self.tools(span)) < len(self._names(span)):
            return "the record lacks its tools"
        if self._names(span) and span.attributes.get(sc.SERVED_FROM) == "record":
            return "it was taken over from another run, with what its tools said"
        return None

    def before(self, span: SpanRow) -> list[ChatMessage]:
        """All messages but the last reply."""
        schema = self._parameters(span).get("schema")
        opening = [] if schema is None else [ChatMessage("system", told_schema(as_json(schema)).content)]
        prompt = ChatMessage("user", self.text(span, sc.PROMPT) or "")
        return [*opening, prompt, *self._rounds(span)]

    def tools(self, span: SpanRow) -> tuple[Mapping[str, Any], ...]:
        """The tools that the model was told of, as JSON."""
        names = self._names(span)
        return tuple(tool for tool in self._declared if tool["name"] in names)

    def _rounds(self, span: SpanRow) -> Iterator[ChatMessage]:
        """What the model wanted to have called, and what it was told, round by round."""
        rounds: dict[int, list[SpanRow]] = defaultdict(list)
        said: dict[int, str] = {}
        for one in self.below.get(span.span_id, ()):
            number = one.attributes.get(sc.TOOL_ROUND)
            if type(number) is not int:
                continue
            if one.kind == "tool":
                rounds[number].append(one)
            elif one.status == "ok":
                said[number] = self.text(one, sc.RESPONSE) or ""
        for number, calls in sorted(rounds.items()):
            wanted = tuple(self._call(tool) for tool in calls)
            yield ChatMessage("assistant", said.get(number, ""), tool_calls=wanted)
            for tool, call in zip(calls, wanted, strict=True):
                yield ChatMessage("tool", self.text(tool, sc.TOOL_RESULT) or "", answers=call.id)

    def _call(self, tool: SpanRow) -> ToolCall:
        facts = tool.attributes
        arguments = self.text(tool, sc.TOOL_ARGUMENTS) or ""
        return ToolCall(
            str(facts.get(sc.TOOL_CALL_ID) or tool.span_id), str(facts.get(sc.TOOL_NAME) or ""), arguments
        )

    def _names(self, span: SpanRow) -> frozenset[str]:
        names = self._parameters(span).get("tools")
        return (
            frozenset(one for one in names if isinstance(one, str))
            if isinstance(names, list)
            else frozenset()
        )

    def _parameters(self, span: SpanRow) -> Mapping[str, Any]:
        found = decoded(span.attributes.get(sc.PARAMETERS))
        return found if isinstance(found, dict) else {}

    @cached_property
    def _declared(self) -> tuple[Mapping[str, Any], ...]:
        top = next((span for span in self._view.spans if span.kind == "run"), None)
        options = decoded(top.attributes.get(sc.OPTIONS)) if top is not None else None
        tools = options.get("tools") if isinstance(options, dict) else None
        listed = tools if isinstance(tools, list) else []
        return tuple(tool for tool in listed if isinstance(tool, dict) and isinstance(tool.get("name"), str))
