"""Answers the calls that cells make: identity, one span each, the model or the run's own record behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from rlm_core import semconv as sc
from rlm_core.call_identity import Identity
from rlm_core.cell_scope import CellScope
from rlm_core.conversation import Conversation
from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError, LimitReached, ModelError
from rlm_core.images import facts_of
from rlm_core.lm_handler import Completion, Request
from rlm_core.model_calls import (
    NOTHING_BILLED,
    CallDropped,
    ModelCalls,
    request_attributes,
    response_attributes,
)
from rlm_core.normalise import normalise
from rlm_core.playback import Place, PlaybackStopped, Played
from rlm_core.reply_values import Reply, error_reply, for_code, shape_of_call
from rlm_core.run_state import RunState
from rlm_core.schema_check import Shape
from rlm_core.source_ranges import Prompt
from rlm_core.sub_requests import Asked, SubRequests
from rlm_core.telemetry import Attribute, RunSpan, as_json, preview, sha256_text
from rlm_core.tool_runs import ToolRuns
from rlm_core.wire import OpenCall, Part, Slot, chars_of

__all__ = ["CellScope", "ChildRunner", "Reply", "SubCalls"]

ChildRunner = Callable[["CellScope", OpenCall, Slot, int, RunSpan], Awaitable[Reply]]


@dataclass
class SubCalls:
    """The `Host` of one run path.

    While a lost worker is rebuilt (`replaying`), every call is answered from the run's own record and leaves
    no span; afterwards a call that equals a recorded one (same request hash and occurrence) is still served
    from it.
    """

    state: RunState
    corpus: Corpus
    path: str
    depth: int
    run_child: ChildRunner
    replaying: bool = False
    missed: int = 0
    scope: CellScope | None = None
    iteration: int = 0
    _record: dict[tuple[str, int], Reply] = field(default_factory=dict)
    _budgets: list[Reply] = field(default_factory=list)
    _budgets_served: int = 0
    _calls: int = 0

    def __post_init__(self) -> None:
        self._models = ModelCalls(self.state)
        self._requests = SubRequests(self.state, self.corpus, self.depth)
        self._asking = set[asyncio.Task[Any] | None]()  # whose calls a model answers
        # the texts of a large batch are read and held only for as many slots as can soon be sent
        self._places = asyncio.Semaphore(2 * self.state.limits.concurrency)
        # the same for child runs; each run path has its own places: no child waits for those above it
        self._children = asyncio.Semaphore(2 * self.state.limits.max_workers)

    def begin_replay(self) -> None:
        """The cells run again from the first one: serve every reply from the record, from its start."""
        self.replaying, self.missed = True, 0
        self._requests.forget()
        self._budgets_served = 0

    def end_replay(self) -> None:
        """New calls are real again. What only the lost cell was told by `budget()` is forgotten with it."""
        self.replaying = False
        del self._budgets[self._budgets_served :]

    def budget(self) -> Reply:
        """What `budget()` shows, recorded because code can act on it."""
        if self._budgets_served < len(self._budgets):
            reply = self._budgets[self._budgets_served]
        else:
            reply = self._played_budget() or self.state.ledger.left(self.iteration)
            self._budgets.append(reply)
            if self.scope is not None:
                self.scope.note_host_reply()
                self.scope.span.event(sc.EV_HOST_REPLY, {"name": "budget", "reply": as_json(reply)})
        self._budgets_served += 1
        return reply

    async def sub_calls(self, call: OpenCall) -> list[Reply]:
        """All replies of a call, in order."""
        if self.replaying:
            replayed = [self._replayed(call, slot) for slot in call.slots]
            return [await for_code(*each) for each in replayed]
        scope = self.scope
        if scope is None or scope.ended:
            return [error_reply("cancelled", "no cell is running any more")] * call.size
        call.first = scope.submitted
        scope.submitted += call.size
        self.state.sources.looked(self.corpus, call.touched)
        if not call.batch:
            return [await self._one(scope, scope.span, call, call.slots[0], call.first)]
        span = self._start_batch(scope, call)
        work = [
            asyncio.ensure_future(self._one(scope, span, call, slot, index))
            for index, slot in enumerate(call.slots)
        ]
        try:
            replies = list(await asyncio.gather(*work))
        except BaseException as error:  # one slot can fail for all when a record that is played ends
            for one in work:  # what a model was already asked is paid for, and ends first
                if not (isinstance(error, PlaybackStopped) and one in self._asking):
                    one.cancel()
            try:
                await asyncio.gather(*work, return_exceptions=True)
            finally:
                span.end("cancelled")
            raise
        failed = sum("err" in reply for reply in replies)
        span.end("ok", {sc.BATCH_FAILED: failed, sc.PREVIEW: f"{call.size} calls, {failed} failed"})
        return replies

    async def _one(self, scope: CellScope, parent: RunSpan, call: OpenCall, slot: Slot, index: int) -> Reply:
        if call.op == "rlm":
            try:
                shape = shape_of_call(call)
            except ModelError as error:
                return self.refuse(scope, parent, call, slot, index, error.kind, str(error))
            async with self._children:
                if scope.ended:  # while it stood in line
                    return error_reply("cancelled", "the cell that asked has ended")
                return await for_code(await self.run_child(scope, call, slot, index, parent), shape)
        async with self._places:  # first come, first served: occurrences are counted in order of submission
            return await self._llm(scope, parent, call, slot, index)

    async def _llm(self, scope: CellScope, parent: RunSpan, call: OpenCall, slot: Slot, index: int) -> Reply:
        try:
            model = self._requests.model(call.model)
            shape = shape_of_call(call)
            texts, images = self._requests.resolve(slot, model), self._requests.images(slot)
        except (CorpusError, ModelError) as error:
            return self.refuse(scope, parent, call, slot, index, _kind(error), str(error))
        request, identity = self._requests.identify(call, slot, model, texts, images)
        prompt = Prompt.of(self.corpus, [slot.whole()])
        facts = {**self._call_facts(scope, call, index), sc.SOURCE_RANGES: prompt.at_once()}
        facts |= {sc.IMAGES: as_json([facts_of(image) for image in images]) if images else None}
        span = self._start_call(parent, request, identity, facts)
        self.state.sources.search(prompt, span)
        known, source = self._record.get((identity.request_hash, identity.occurrence)), "record"
        if (
            known is None
            and (played := self._played(scope, call, index, span, request, identity)) is not None
        ):
            known, source = played.reply, played.source
        if known is not None:
            return await for_code(self._serve_known(span, known, source), shape)
        asked = Asked(request, identity, shape, images)
        reply = await self._answered(scope, span, asked)
        if images and "ok" in reply:
            self.state.images.shown.update(image.key for image in images)
        return await for_code(reply, shape)

    async def _answered(self, scope: CellScope, span: RunSpan, asked: Asked) -> Reply:
        """A reply of the model, or that of an equal call of this run where the run wants that."""
        request, identity = asked.request, asked.identity

        async def ask() -> Reply:
            reply = await self._ask(scope, span, asked)
            if self.state.playback is not None:
                self.state.playback.answered(request, identity.prompt_hash, reply)
            return reply

        if not self.state.options.cache:
            return await ask()
        try:
            reply, is_hit = await self.state.shared.get(identity.request_hash, ask)
        except asyncio.CancelledError:
            if not span.ended:  # it waited for an equal call, and asked nothing
                span.set(NOTHING_BILLED)
                self._count()
                self._failed(span, "cancelled", "the run was stopped")
            raise
        if not is_hit:
            return reply
        try:
            self._admit(span)
        except LimitReached as error:
            scope.note_refusal()
            self._count()
            reply = self._failed(span, "budget", str(error))
            self._record[identity.request_hash, identity.occurrence] = reply
            return reply
        self.state.cache_hits += 1
        if self.state.playback is not None:  # it was allowed as a call to a model, and is none
            self.state.playback.unsent()
        self._record[identity.request_hash, identity.occurrence] = reply
        return self._serve_known(span, reply, "cache")

    def _played(
        self,
        scope: CellScope,
        call: OpenCall,
        index: int,
        span: RunSpan,
        request: Request,
        identity: Identity,
    ) -> Played | None:
        """The reply out of the record that is played, kept for a rebuild like any other."""
        if self.state.playback is None:
            return None
        try:
            played = self.state.playback.sub_call(
                self.place(scope, call, index), request, identity.prompt_hash
            )
        except PlaybackStopped as stop:
            span.set(NOTHING_BILLED)
            self._count()
            self._failed(span, "record", str(stop))
            raise
        if played is not None:
            self._record[identity.request_hash, identity.occurrence] = played.reply
            if self.state.options.cache:
                self.state.shared.keep(identity.request_hash, played.reply)
        return played

    def place(self, scope: CellScope, call: OpenCall, index: int) -> Place:
        """Where a call stands, for a record that is played."""
        return Place(self.path, scope.number, _ordinal(call, index))

    def _played_budget(self) -> Reply | None:
        if self.state.playback is None or self.scope is None:
            return None
        return self.state.playback.budget(self.path, self.scope.number)

    async def _ask(self, scope: CellScope, span: RunSpan, asked: Asked) -> Reply:
        state, identity = self.state, asked.identity
        state.sub_calls += 1
        state.progress.calls_running += 1
        state.tell()
        self._asking.add(asyncio.current_task())
        conversation = self._conversation(scope, span, asked.shape)
        try:
            self._admit(span)
            request = await self._requests.with_images(asked, scope, span)
            completion = await conversation.hold(request)
            reply: Reply = {"ok": _end(span, completion)}
        except CallDropped as error:
            return self._failed(span, "cancelled", str(error))
        except LimitReached as error:
            scope.note_refusal()
            reply = self._failed(span, "budget", str(error), sent=conversation.sent)
            if state.playback is not None:
                state.playback.refused(f"the budget allows no further call: {error}")
        except ModelError as error:
            reply = self._failed(span, error.kind, str(error))
        except asyncio.CancelledError:
            self._failed(span, "cancelled", "the run was stopped")
            raise
        finally:
            self._asking.discard(asyncio.current_task())
            state.progress.calls_running -= 1
            state.progress.calls_done += 1
            state.tell()
        self._record[identity.request_hash, identity.occurrence] = reply
        return reply

    def _conversation(self, scope: CellScope, span: RunSpan, shape: Shape | None) -> Conversation:
        place: dict[str, Attribute | None] = {
            sc.RUN_PATH: self.path,
            sc.DEPTH: self.depth,
            sc.ITERATION: self.iteration,
            sc.CELL: scope.number,
        }
        tools = ToolRuns(self.state, self.corpus, span, place)
        return Conversation(self._models, span, lambda: scope.ended, tools, shape)

    def _admit(self, span: RunSpan) -> None:
        """Raises `LimitReached` when no call is left: nothing was asked then, so nothing is billed."""
        try:
            self.state.ledger.admit_call()
        except LimitReached:
            span.set(NOTHING_BILLED)
            if self.state.playback is not None:
                self.state.playback.unsent()
            raise

    def _failed(self, span: RunSpan, kind: str, message: str, *, sent: bool = False) -> Reply:
        self.state.count_failure(kind, sent)
        span.fail(kind, message, "cancelled" if kind == "cancelled" else "error")
        return error_reply(kind, message)

    def refuse(
        self,
        scope: CellScope,
        parent: RunSpan,
        call: OpenCall,
        slot: Slot,
        index: int,
        kind: str,
        message: str,
    ) -> Reply:
        """A call that is turned away before it is a request still leaves its span, with what it asked."""
        if kind == "budget":
            scope.note_refusal()
        else:
            scope.note_turned_away()
        _, sub = self.state.models(self.depth)
        facts = {
            **self._call_facts(scope, call, index),
            **self._asked(slot),
            **NOTHING_BILLED,
            sc.ROLE: "sub",
            sc.REQUEST_MODEL: sub,
        }
        span = self.state.recorder.start("sub_call", sc.chat(sub), parent, facts)
        self._count()
        return self._failed(span, kind, message)

    def _count(self) -> None:
        """A call that no model was asked is over as it begins."""
        self.state.sub_calls += 1
        self.state.progress.calls_done += 1

    def _asked(self, slot: Slot) -> dict[str, Attribute | None]:
        """The prompt of a call that is turned away, as far as there is one; of one too large, its length."""
        parts = slot.whole()
        chars = chars_of(parts)
        if slot.too_large is not None or chars > self.state.limits.max_prompt_chars:
            return {sc.PROMPT + ".chars": chars or None}
        try:
            text = self._requests.text_of(parts)
        except CorpusError:
            return {}
        return {**self._prompt_facts(text), sc.PROMPT_HASH: sha256_text(text)}

    def _prompt_facts(self, text: str) -> dict[str, Attribute | None]:
        return {
            sc.PROMPT + ".sha256": self.state.recorder.payload(text),
            sc.PROMPT + ".chars": len(text),
            sc.PROMPT + ".preview": preview(text),
            sc.OI_INPUT: preview(text),
        }

    def _serve_known(self, span: RunSpan, reply: Reply, source: str = "record") -> Reply:
        self._count()
        if "err" in reply:
            self.state.count_failure(reply["err"])
        return _known(span, reply, source)

    def text_of(self, parts: list[Part]) -> str:
        """Parts as text; raises `CorpusError` for a place outside the corpus. Check `chars_of` first."""
        return self._requests.text_of(parts)

    def _replayed(self, call: OpenCall, slot: Slot) -> tuple[Reply, Shape | None]:
        """The recorded reply of a call, while a worker is rebuilt, and the shape it has to fit."""
        try:
            shape = shape_of_call(call)
            if call.op == "rlm":
                key = self.child_key(slot, call.schema)
            else:
                model = self._requests.model(call.model)
                texts, images = self._requests.resolve(slot, model), self._requests.images(slot)
                _, identity = self._requests.identify(call, slot, model, texts, images)
                key = (identity.request_hash, identity.occurrence)
        except (CorpusError, ModelError) as error:
            return error_reply(_kind(error), str(error)), None
        if (reply := self._record.get(key)) is not None:
            return reply, shape
        self.missed += 1
        return error_reply("record", "this call was not made before the worker was lost"), None

    def child_key(self, slot: Slot, schema: Any = None) -> tuple[str, int]:
        """The identity of a child run: its question, its context, the schema of its answer if it has one, and
        how often it was asked before.
        """
        parts = ["rlm", slot.prompt, slot.contexts]
        request_hash = sha256_text(as_json(parts if schema is None else [*parts, schema]))
        return request_hash, self._requests.next_occurrence(request_hash)

    def remember(self, key: tuple[str, int], reply: Reply) -> None:
        """Keep the reply of a child run for a rebuild."""
        self._record[key] = reply

    def serve_known_child(
        self, parent: RunSpan, facts: dict[str, Attribute | None], reply: Reply, source: str = "record"
    ) -> Reply:
        """A child run this run already has: its span says that nothing ran."""
        place: dict[str, Attribute | None] = {
            sc.RUN_PATH: self.path,
            sc.DEPTH: self.depth + 1,
            sc.ITERATION: self.iteration,
        }
        span = self.state.recorder.start("run", sc.NAME_RUN, parent, {**place, **facts})
        return _known(span, reply, source)

    def recorded(self, key: tuple[str, int]) -> Reply | None:
        """The reply this run already has for a call."""
        return self._record.get(key)

    def _start_call(
        self, parent: RunSpan, request: Request, identity: Identity, facts: dict[str, Attribute | None]
    ) -> RunSpan:
        return self.state.recorder.start(
            "sub_call",
            sc.chat(request.model),
            parent,
            {
                **request_attributes(request),
                **facts,
                **self._prompt_facts(identity.prompt),
                sc.PROMPT_HASH: identity.prompt_hash,
                sc.TEMPLATE_HASH: identity.template_hash,
                sc.REQUEST_HASH: identity.request_hash,
                sc.CALL_OCCURRENCE: identity.occurrence,
                sc.SERVED_FROM: "model",
            },
        )

    def _call_facts(self, scope: CellScope, call: OpenCall, index: int) -> dict[str, Attribute | None]:
        return {
            sc.RUN_PATH: self.path,
            sc.DEPTH: self.depth,
            sc.ITERATION: self.iteration,
            **self.site(scope, call, index),
            sc.AGENT_NAME: "rlm.sub",
        }

    def site(self, scope: CellScope, call: OpenCall, index: int) -> dict[str, Attribute | None]:
        """Which call this is, and where in the code it stands; `index` as `rlm_core.semconv.CALL_INDEX`."""
        self._calls += 1
        return {
            sc.CELL: scope.number,
            sc.CALL_ID: f"{self.path}/{self._calls}",
            sc.CALL_LINE: call.line or None,
            sc.CALL_INDEX: index,
            sc.CALL_ORDINAL: _ordinal(call, index),
        }

    def _start_batch(self, scope: CellScope, call: OpenCall) -> RunSpan:
        return self.state.recorder.start(
            "batch",
            sc.NAME_BATCH,
            scope.span,
            {
                sc.RUN_PATH: self.path,
                sc.DEPTH: self.depth,
                sc.ITERATION: self.iteration,
                sc.CELL: scope.number,
                sc.CALL_LINE: call.line or None,
                sc.CALL_ORDINAL: call.first,
                sc.BATCH_SIZE: call.size,
            },
        )


def _ordinal(call: OpenCall, index: int) -> int:
    return call.first + index if call.batch else index


def _kind(error: CorpusError | ModelError) -> str:
    """What code is told is wrong with a call that is turned away."""
    return error.kind if isinstance(error, ModelError) else "bad_request"


def _end(span: RunSpan, completion: Completion) -> str:
    """Close the span of a call with the reply it ended with."""
    text = completion.text or ""
    span.text(sc.RESPONSE, text)
    if completion.reasoning:
        span.text(sc.REASONING, completion.reasoning)
    facts = {**response_attributes(completion), sc.OI_OUTPUT: preview(text), sc.PREVIEW: preview(text)}
    span.end("ok", {**facts, sc.RESPONSE_NORM_HASH: sha256_text(normalise(text))})
    return text


def _known(span: RunSpan, reply: Reply, source: str) -> Reply:
    """Close the span of a sub-call or child run that was answered out of `source`."""
    span.set({**NOTHING_BILLED, sc.SERVED_FROM: source})
    if "err" in reply:
        span.fail(reply["err"], reply["msg"])
        return reply
    text = reply["ok"]
    span.text(sc.RESPONSE, text)
    facts: dict[str, Attribute | None] = {sc.PREVIEW: preview(text), sc.OI_OUTPUT: preview(text)}
    span.end("ok", {**facts, sc.RESPONSE_NORM_HASH: sha256_text(normalise(text))})
    return reply
