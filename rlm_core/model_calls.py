"""One model call with its attempts: budget, concurrency, retries, spans, usage and price."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from rlm_core import pricing
from rlm_core import semconv as sc
from rlm_core.cost_check import cost_findings
from rlm_core.errors import ModelError, RunCancelled
from rlm_core.limits import Amount, Claim
from rlm_core.lm_handler import Completion, Request, Usage, estimate_input, estimate_tokens
from rlm_core.retries import with_retries
from rlm_core.run_state import RunState
from rlm_core.telemetry import Attribute, RunSpan, as_json

TIMEOUT_GRACE = 5.0  # seconds past the request timeout after which the engine stops waiting for a handler
_COUNTS = ("input", "output", "cached_read", "cache_write", "reasoning")


Facts = dict[str, Attribute | None]
Check = Callable[[Completion], Awaitable[ModelError | None]]
NOTHING_BILLED: Final[Facts] = {sc.COST_USD: "0", sc.COST_STATUS: "free"}


class CallDropped(RunCancelled):
    """A queued call whose cell ended before its first attempt."""


@dataclass
class Bill:
    """Usage and price of a call so far: the sum over its attempts; a count stays None until one attempt
    reports it. `tries` counts the attempts, `sent` says whether any request left.
    """

    usage: Usage = field(default_factory=Usage)
    usd: Decimal = Decimal(0)
    status: str = ""
    row: str | None = None
    findings: str | None = None
    tries: int = 0
    sent: bool = False

    def add(self, usage: Usage, price: pricing.Price) -> None:
        """Take one attempt in."""
        counts = {name: _sum(getattr(self.usage, name), getattr(usage, name)) for name in _COUNTS}
        self.usage = Usage(**counts, estimated=self.usage.estimated or usage.estimated)
        self.usd += price.usd or Decimal(0)
        self.status = "unknown" if "unknown" in (self.status, price.status) else price.status
        self.row = price.row or self.row


class ModelCalls:
    """Makes the model calls of one run."""

    def __init__(self, state: RunState) -> None:
        self._state = state

    @property
    def state(self) -> RunState:
        """The run whose calls are made."""
        return self._state

    async def ask(
        self,
        request: Request,
        span: RunSpan,
        dropped: Callable[[], bool] = lambda: False,
        *,
        claim: Claim = "sub",
        bill: Bill | None = None,
        check: Check | None = None,
        facts: Facts | None = None,
    ) -> Completion:
        """Ask until an answer comes or the policy gives up. Sets usage, cost and outcome on `span`, but
        leaves it open.

        `dropped` is asked before each attempt: true = nobody waits for the answer any more. `claim` says
        which part of the budget the call may use. With a `bill` this is one of several requests of a call:
        whoever has the bill closes it. `check` says what is wrong with a completion, `facts` go onto every
        attempt. Raises `ModelError` (given up, or by `check`), `LimitReached` (no room in the budget) or
        `CallDropped`.
        """
        state, own = self._state, bill or Bill()

        async def before(_: int) -> None:
            if dropped():
                raise CallDropped("the cell that asked has ended")

        async def attempt(index: int, waited: float, retry_after: float | None) -> Completion:
            known: Facts = {sc.ATTEMPT: own.tries, sc.RETRY_WAIT: waited or None, sc.RETRY_AFTER: retry_after}
            own.tries += 1
            async with state.attempts:  # reserve only what can leave now: the overshoot is what is in flight
                await before(index)
                reservation = self._reservation(request)
                used = _Used(reservation)
                await state.ledger.reserve(reservation, claim)
                own.sent = True
                try:
                    return await self._attempt(request, span, {**(facts or {}), **known}, own, used, check)
                finally:
                    state.ledger.settle(reservation, used.amount, used.output, request.role)

        try:
            return await with_retries(attempt, policy=state.policy, rng=state.rng, before=before)
        finally:
            if bill is None:
                self.close(own, span)

    def close(self, bill: Bill, span: RunSpan) -> None:
        """Put what a call used onto its span, and count it: once, when its last request has ended."""
        span.set({sc.ATTEMPTS: bill.tries, **usage_attributes(bill.usage), **_cost_attributes(bill)})
        self._count(bill)
        if not bill.sent and self._state.playback is not None:
            self._state.playback.unsent()

    async def _attempt(
        self,
        request: Request,
        parent: RunSpan,
        facts: Facts,
        bill: Bill,
        used: _Used,
        check: Check | None,
    ) -> Completion:
        """One try in one span; the start is on record before the request leaves. Raises `ModelError`.

        What it used is added to `bill` (for the call's span) and put into `used` (for the ledger).
        """
        facts |= {sc.REQUEST_MODEL: request.model, sc.ROLE: request.role}
        span = self._state.recorder.start("attempt", sc.NAME_ATTEMPT, parent, facts)
        completion = None
        try:
            async with asyncio.timeout(request.timeout + TIMEOUT_GRACE):
                completion = await self._state.handler.complete(request)
            wrong = _no_answer(request, completion)
            if wrong is None and check is not None:
                wrong = await check(completion)
            if wrong is not None:
                raise wrong
        except TimeoutError:
            message = f"no answer within {request.timeout:g} s"
            raise self._failed(
                span, request, ModelError("timeout", message, retryable=True), bill, used
            ) from None
        except ModelError as error:
            completion = completion or error.completion
            if completion is not None:
                self._record(span, completion, request, bill, used)
                _keep_texts(span, completion)
            elif error.kind != "timeout":
                span.set(NOTHING_BILLED)
            raise self._failed(span, request, error, bill, used) from None
        except asyncio.CancelledError:
            if completion is None:
                self._charge_unanswered(span, request, bill, used)
            else:  # its check was under way
                self._record(span, completion, request, bill, used)
                _keep_texts(span, completion)
            span.fail("cancelled", "the run was stopped while this attempt was in flight", "cancelled")
            raise
        except Exception as error:  # a defect of the handler: typed, recorded, not retried
            problem = ModelError("unknown", f"{type(error).__name__}: {error}")
            raise self._failed(span, request, problem, bill, used) from error
        self._record(span, completion, request, bill, used)
        if (
            completion.tool_calls and request.tools
        ):  # not the last word of its call, which has the text otherwise
            _keep_texts(span, completion)
        span.end("ok")
        return completion

    def _failed(
        self, span: RunSpan, request: Request, error: ModelError, bill: Bill, used: _Used
    ) -> ModelError:
        """Close a failed attempt."""
        if error.kind == "timeout":
            self._charge_unanswered(span, request, bill, used)
        problem = str(error) if error.kind == "schema" else None
        span.set({sc.HTTP_STATUS: error.status, sc.SCHEMA_PROBLEM: problem})
        span.fail(error.kind, str(error))
        return error

    def _charge_unanswered(self, span: RunSpan, request: Request, bill: Bill, used: _Used) -> None:
        """Nobody waited for the answer: the request counts with an estimate, since it may well be billed."""
        usage = Usage(input=_input_tokens(request), output=0, estimated=True)
        self._charge(span, request, usage, bill, used)

    def _charge(
        self, span: RunSpan, request: Request, usage: Usage, bill: Bill, used: _Used
    ) -> pricing.Price:
        price = self._state.prices.price(request.model, usage)
        span.set({**usage_attributes(usage), sc.COST_USD: _usd(price), sc.COST_STATUS: price.status})
        bill.add(usage, price)
        used.take(usage, price)
        return price

    def _record(
        self, span: RunSpan, completion: Completion, request: Request, bill: Bill, used: _Used
    ) -> None:
        """What the provider sent, on the attempt."""
        price = self._charge(span, request, completion.usage, bill, used)
        bill.findings = cost_findings(price, completion.facts.get(sc.COST_LITELLM))
        span.set(
            {
                sc.RESPONSE_MODEL: completion.model_returned,
                sc.RESPONSE_ID: completion.response_id,
                sc.FINISH_REASONS: as_json([completion.finish_reason]),
                sc.USAGE_RAW: as_json(completion.raw_usage) if completion.raw_usage is not None else None,
                **completion.facts,
                sc.FINDINGS: bill.findings,
            }
        )

    def _reservation(self, request: Request) -> Amount:
        """Input upper bound and expected output."""
        limits = self._state.limits
        if limits.max_tokens is None and limits.max_cost_usd is None:
            return Amount()
        tokens_in = _input_tokens(request)
        tokens_out = self._state.ledger.expected_output(request.max_tokens, request.role)
        usd = self._state.prices.upper_bound_usd(request.model, tokens_in, tokens_out)
        return Amount(tokens_in + tokens_out, usd or Decimal(0), usd is not None)

    def _count(self, bill: Bill) -> None:
        totals = self._state.totals
        totals.input += bill.usage.input or 0
        totals.output += bill.usage.output or 0
        if bill.status != "unknown":  # as every reader of the record sums up: a call is known or it is not
            totals.usd += bill.usd
        if bill.status:
            totals.statuses.add(bill.status)
        self._state.tell()


@dataclass(slots=True)
class _Used:
    """What the ledger is told of an attempt: nothing, until something was billed."""

    reserved: Amount
    amount: Amount = field(default_factory=Amount)
    output: int | None = None

    def take(self, usage: Usage, price: pricing.Price) -> None:
        """Take what was billed. Of usage or a cost that is unknown the reservation counts: a server that
        reports none must not make a limit void.
        """
        tokens, usd = (usage.input or 0) + (usage.output or 0), price.usd
        if usage.input is None or usage.output is None:
            tokens = max(tokens, self.reserved.tokens)
        self.amount = Amount(tokens, self.reserved.usd if usd is None else usd, usd is not None)
        self.output = usage.output


def _no_answer(request: Request, completion: Completion) -> ModelError | None:
    """A sub-call's reply that must not pass for an empty text. (The root is told instead, and goes on.)"""
    if request.role == "root" or (completion.tool_calls and request.tools):
        return None
    if not completion.text and completion.finish_reason == "length":
        return ModelError(
            "length",
            "the reply is empty: its length limit was used up before any answer (often by reasoning)",
        )
    if completion.text is None and completion.reasoning:
        return ModelError(
            "empty", f"the model sent {len(completion.reasoning):,} characters of reasoning but no answer"
        )
    if completion.text is None:
        return ModelError(
            "empty", f"the model sent no text (finish reason {completion.finish_reason or 'unknown'})"
        )
    return None


def _keep_texts(span: RunSpan, completion: Completion) -> None:
    """What a model sent that is no answer: it was paid for, and says why."""
    if completion.text:
        span.text(sc.RESPONSE, completion.text)
    if completion.reasoning:
        span.text(sc.REASONING, completion.reasoning)


def response_attributes(completion: Completion) -> dict[str, Attribute | None]:
    """What a call span says of the completion it ended with."""
    return {
        sc.RESPONSE_MODEL: completion.model_returned,
        sc.RESPONSE_ID: completion.response_id,
        sc.FINISH_REASONS: as_json([completion.finish_reason]),
        **completion.facts,
    }


def request_attributes(request: Request) -> dict[str, Attribute | None]:
    """What a call span says of its request, in both vocabularies, from the start on."""
    provider, _, name = request.model.partition("/")
    parameters = {
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "schema": request.schema,
        "tools": [tool.name for tool in request.tools] or None,
    }
    return {
        sc.OPERATION: "chat",
        sc.PROVIDER: provider if name else "openai",
        sc.REQUEST_MODEL: request.model,
        sc.OI_MODEL: request.model,
        sc.REQUEST_MAX_TOKENS: request.max_tokens,
        sc.REQUEST_TEMPERATURE: request.temperature,
        sc.PARAMETERS: as_json({key: value for key, value in parameters.items() if value is not None}),
        sc.ROLE: request.role,
    }


def usage_attributes(usage: Usage) -> dict[str, Attribute | None]:
    """Token counts in both vocabularies; what was not reported is absent."""
    total = None if usage.input is None or usage.output is None else usage.input + usage.output
    return {
        sc.USAGE_INPUT: usage.input,
        sc.USAGE_OUTPUT: usage.output,
        sc.USAGE_CACHE_READ: usage.cached_read,
        sc.USAGE_CACHE_WRITE: usage.cache_write,
        sc.USAGE_REASONING: usage.reasoning,
        sc.USAGE_ESTIMATED: usage.estimated or None,
        sc.OI_PROMPT_TOKENS: usage.input,
        sc.OI_COMPLETION_TOKENS: usage.output,
        sc.OI_TOTAL_TOKENS: total,
    }


def _cost_attributes(bill: Bill) -> dict[str, Attribute | None]:
    if not bill.status:  # no attempt had an answer or timed out: nothing that anybody bills
        return NOTHING_BILLED
    known = bill.status != "unknown"
    return {
        sc.COST_USD: pricing.decimal_text(bill.usd) if known else None,
        sc.COST_STATUS: bill.status,
        sc.COST_PRICE: bill.row,
        sc.FINDINGS: bill.findings,
        sc.OI_COST: float(bill.usd) if known else None,
    }


def _usd(price: pricing.Price) -> str | None:
    return None if price.usd is None else pricing.decimal_text(price.usd)


def _input_tokens(request: Request) -> int:
    said = estimate_input(request.messages)
    called = sum(estimate_tokens(call.arguments) for m in request.messages for call in m.tool_calls)
    thought = sum(estimate_tokens(m.reasoning or "") for m in request.messages)
    told = [tool.description + as_json(tool.parameters) for tool in request.tools]
    return said + called + thought + sum(map(estimate_tokens, told))


def _sum(a: int | None, b: int | None) -> int | None:
    return a if b is None else b if a is None else a + b
