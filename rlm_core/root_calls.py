"""The calls to the root model of one run path, with their messages as deltas of a growing pool."""

from __future__ import annotations

from dataclasses import dataclass

from rlm_core import semconv as sc
from rlm_core.errors import LimitReached, ModelError
from rlm_core.limits import Claim
from rlm_core.lm_handler import Completion, Message, Request
from rlm_core.model_calls import NOTHING_BILLED, ModelCalls, request_attributes, response_attributes
from rlm_core.run_state import RunState
from rlm_core.telemetry import RunSpan, as_json, preview


@dataclass
class RootCalls:
    """Asks the root model; an empty reply is a reply here, the model is then told that nothing ran."""

    state: RunState
    path: str
    depth: int
    _known: tuple[Message, ...] = ()

    async def ask(
        self, parent: RunSpan, iteration: int, messages: tuple[Message, ...], *, forced: bool = False
    ) -> Completion:
        """One root call; raises `ModelError` or `LimitReached` when it is given up."""
        return await self.call(parent, iteration, messages, self.played(iteration, forced), forced=forced)

    def played(self, iteration: int, forced: bool) -> Completion | None:
        """What the record of a run that is played again holds of a turn; None: a model is to be asked."""
        playback = self.state.playback
        return None if playback is None else playback.turn(self.path, iteration, forced)

    async def call(
        self,
        parent: RunSpan,
        iteration: int,
        messages: tuple[Message, ...],
        played: Completion | None,
        *,
        forced: bool = False,
        summed: int | None = None,
    ) -> Completion:
        """As `ask`, with what is known of the reply. `summed`: it is asked to sum up so many turns."""
        request = Request(
            model=self.state.models(self.depth)[0],
            messages=messages,
            role="root",
            max_tokens=self.state.limits.max_tokens_root,
            timeout=self.state.limits.request_timeout,
        )
        prior, added = self._delta(messages)
        span = self.state.recorder.start(
            "root_call",
            sc.chat(request.model),
            parent,
            {
                **request_attributes(request),
                sc.RUN_PATH: self.path,
                sc.DEPTH: self.depth,
                sc.ITERATION: iteration,
                sc.AGENT_NAME: "rlm",
                sc.MESSAGES_PRIOR: prior,
                sc.MESSAGES_ADDED: added,
                sc.OI_INPUT: preview(messages[-1].content),
                sc.COMPACTED: None if summed is None else True,
                sc.COMPACTED_TURNS: summed,
            },
        )
        if played is not None:
            span.set({**NOTHING_BILLED, sc.SERVED_FROM: "record"})
            return self._end(span, played)
        try:
            completion = await ModelCalls(self.state).ask(request, span, claim=self._claim(forced))
        except ModelError as error:
            span.fail(error.kind, str(error))
            raise
        except LimitReached as error:
            span.fail("budget", str(error))
            if self.state.playback is not None:
                self.state.playback.refused(f"the budget allows no root call any more: {error}")
            raise
        except BaseException:
            span.end("cancelled")
            raise
        return self._end(span, completion)

    def _end(self, span: RunSpan, completion: Completion) -> Completion:
        text = completion.text or ""
        span.text(sc.RESPONSE, text)
        if completion.reasoning:
            span.text(sc.REASONING, completion.reasoning)
        span.end(
            "ok", {**response_attributes(completion), sc.OI_OUTPUT: preview(text), sc.PREVIEW: preview(text)}
        )
        return completion

    def _claim(self, forced: bool) -> Claim:
        """Only the top run has a part of the budget held back for it."""
        if self.depth:
            return "sub"
        return "forced" if forced else "root"

    def _delta(self, messages: tuple[Message, ...]) -> tuple[int, str]:
        """How many messages stand from the last call, and role and hash of the others."""
        prior = 0
        for old, new in zip(self._known, messages, strict=False):
            if old is not new:
                break
            prior += 1
        self._known = messages
        added = [[message.role, self.state.recorder.payload(message.content)] for message in messages[prior:]]
        return prior, as_json(added)
