"""One sub-call as a conversation: the sub-model may call tools, and is told when its reply does not fit.

A sub-call without tools and schema is one model call and goes through here all the same. Each model call has
its attempts with spans, budget and retries (`rlm_core.model_calls`); usage and cost of all of them are summed
on the span of the sub-call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from rlm_core import semconv as sc
from rlm_core.errors import ModelError
from rlm_core.lm_handler import Completion, Message, Request
from rlm_core.model_calls import Bill, Facts, ModelCalls
from rlm_core.pricing import DEMO_PREFIX
from rlm_core.schema_check import Shape
from rlm_core.telemetry import RunSpan
from rlm_core.tool_runs import ToolRuns
from rlm_core.tools import has_function

MOST_REPAIRS: Final = 2  # how often a reply that does not fit its schema is sent back
_ASKED: Final = "Reply with one JSON value that fits this JSON schema, and with nothing else:\n"
_MISFIT: Final = (
    "Your reply does not fit: {}. Reply again, with nothing but one JSON value that fits this JSON schema:\n"
    "{}"
)
_NO_TOOLS: Final = "the demo sub-model calls no tools: it answered without them"
_NO_JSON: Final = "the demo sub-model answers in its own short forms, which fit hardly any schema"
_NO_MORE: Final = "the limit of tool calls for this question is reached; answer now with what you know"


@dataclass
class Conversation:
    """A sub-call that is asked. `shape` is what its reply has to fit, None for any text."""

    models: ModelCalls
    span: RunSpan
    dropped: Callable[[], bool]
    tools: ToolRuns
    shape: Shape | None = None
    sent: bool = False  # whether any request of it has left
    _said: str = ""

    async def hold(self, request: Request) -> Completion:
        """The completion that ends it; its text fits the schema. Raises as `ModelCalls.ask`, and
        `ModelError` of the kind "schema" (the last reply is then on the span) or "tools".
        """
        self._tell_of_demo(request)
        bill = Bill()
        try:
            _check_functions(self.tools)
            return await self._talk(request, bill)
        except ModelError as error:
            if error.kind == "schema":
                self.span.text(sc.RESPONSE, self._said)
                self.span.set({sc.SCHEMA_PROBLEM: str(error)})
            raise
        finally:
            self.sent = bill.sent
            self.models.close(bill, self.span)

    async def _talk(self, request: Request, bill: Bill) -> Completion:
        messages = [*_opening(self.shape), *request.messages]
        repairs = rounds = 0
        most = self.models.state.limits.max_tool_rounds
        while True:
            asked = replace(request, messages=tuple(messages))
            facts: Facts = {sc.TOOL_ROUND: rounds} if request.tools else {}
            try:
                completion = await self.models.ask(
                    asked, self.span, self.dropped, bill=bill, check=self._check, facts=facts
                )
            except ModelError as error:
                if error.kind != "schema" or repairs == MOST_REPAIRS or self.shape is None:
                    raise
                repairs += 1
                told = _MISFIT.format(error, self.shape.text)
                messages += [Message("assistant", self._said), Message("user", told)]
                continue
            if not (request.tools and completion.tool_calls):
                return completion
            if rounds > most:
                raise ModelError("tools", f"the model went on to call tools after {most} rounds of them")
            messages.append(_round(completion))
            refused = _NO_MORE if rounds == most else None
            messages += await self.tools.round(rounds, completion.tool_calls, refused)
            rounds += 1

    def _tell_of_demo(self, request: Request) -> None:
        """The demo model follows rules: it neither calls tools nor writes JSON, and that is said once."""
        if request.model.startswith(DEMO_PREFIX):
            for what in [_NO_TOOLS] * bool(request.tools) + [_NO_JSON] * (self.shape is not None):
                if what not in self.models.state.notices:
                    self.models.state.notices.append(what)

    async def _check(self, completion: Completion) -> ModelError | None:
        """Whether a reply fits; one that calls tools is no reply yet."""
        if self.shape is None or completion.tool_calls:
            return None
        self._said = completion.text or ""
        shape, said = self.shape, self._said
        _, problem = await shape.off_loop(len(said), lambda: shape.read(said))
        if problem is None:
            return None
        if completion.finish_reason == "length":
            problem = f"it was cut off at its limit of length; {problem}"
        return ModelError("schema", problem)


def _round(completion: Completion) -> Message:
    """A reply that calls tools, as it is sent back."""
    calls, thought = completion.tool_calls, completion.reasoning
    return Message("assistant", completion.text or "", tool_calls=calls, reasoning=thought)


def _opening(shape: Shape | None) -> list[Message]:
    """What the sub-model is told before the prompt: not every server looks at a schema sent beside it."""
    return [] if shape is None else [told_schema(shape.text)]


def told_schema(schema: str) -> Message:
    """The first message of a sub-call whose reply has to fit a schema, given as JSON text."""
    return Message("system", _ASKED + schema)


def _check_functions(tools: ToolRuns) -> None:
    """A run that is played from its record may know its tools by name only."""
    for tool in tools.state.options.tools:
        if not has_function(tool):
            raise ModelError(
                "tools",
                f"this call would need the function of tool {tool.spec.name}, which is not known here: the "
                "record holds its description only",
            )
