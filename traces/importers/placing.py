"""Where the spans of a foreign run stand in ours: tree places, call identities, times, trust marks.

What our engine knows of a call when it makes it (its cell, its number there, what makes two calls the same)
is worked out from the order of the spans, so that imported runs align with ours in a diff.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

from rlm_core import semconv as sc
from rlm_core.call_identity import hash_of_request, template
from rlm_core.cell_runs import telling_line
from rlm_core.checks import check
from rlm_core.lm_handler import Usage
from rlm_core.model_calls import usage_attributes
from rlm_core.normalise import normalise
from rlm_core.orchestrator import MOST_CELL_CHARS
from rlm_core.pricing import PriceTable, decimal_text
from rlm_core.telemetry import Attribute, as_json, preview, sha256_text
from rlm_core.wire import Slot
from traces.facts import LARGEST, usd_amount
from traces.importers.foreign import ForeignSpan, T, TokenUse, Told, derived, known_wrong

Facts = dict[str, Attribute | None]
CALLS: Final = ("root_call", "sub_call")
_NAMES: Final = {"run": sc.NAME_RUN, "iteration": sc.NAME_ITERATION, "cell": sc.NAME_CELL,
                 "batch": sc.NAME_BATCH, "attempt": sc.NAME_ATTEMPT}  # fmt: skip
_ROLES: Final = {"root_call": "root", "sub_call": "sub"}
_AGENTS: Final = {"root_call": "rlm", "sub_call": "rlm.sub", "run": "rlm"}
_OPERATIONS: Final = {"run": "invoke_agent", "root_call": "chat", "sub_call": "chat", "cell": "execute_tool",
                      "tool": "execute_tool"}  # fmt: skip
_LONGEST_PATH: Final = 500  # characters
_INPUTS: Final = (sc.QUESTION, sc.PROMPT, sc.CODE, sc.TOOL_ARGUMENTS)
_OUTPUTS: Final = (sc.ANSWER, sc.RESPONSE, sc.STDOUT_SHOWN, sc.STDOUT, sc.TOOL_RESULT)


class Code(NamedTuple):
    """What the code of a cell says by itself, whatever ran before it."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    makes_sub_calls: bool
    ends_run: bool


#: By the hash of the code. Reading code takes longer than all else that is worked out of a span: who works a
#: run out again and again keeps what was read.
Codes = dict[str, Code]


@dataclass(slots=True)
class RunPlace:
    """What is counted along one run or child run; `codes` of all runs of a record are the same."""

    path: str
    depth: int
    iterations: int = 0
    cells: int = 0
    calls: int = 0
    children: int = 0
    occurrences: Counter[str] = field(default_factory=Counter)
    messages: tuple[tuple[str, str], ...] = ()
    from_calls: set[str] = field(default_factory=set)  # names whose values came from sub-calls
    codes: Codes | None = None  # None: nothing is kept


@dataclass(slots=True)
class Place:
    """Where a span stands: its run, iteration and cell, how many calls that cell has made, and the slot."""

    run: RunPlace
    iteration: int | None = None
    cell: int | None = None
    made: list[int] = field(default_factory=lambda: [0])  # calls of the cell, shared by all below it
    slots: list[int] | None = None  # of a batch: the next slot, shared by its calls

    def below(self, span: ForeignSpan) -> Place:
        """The place of what stands directly inside a span of this place."""
        if span.kind == "run":
            return Place(self.run)
        slots = [0] if span.kind == "batch" else None
        return Place(self.run, self.iteration, self.cell, self.made, slots)

    def of(self, child: ForeignSpan) -> Place:
        """The place of a child itself: of a run, iteration or cell a new one."""
        run = self.run
        if child.kind == "run":
            run.children += 1
            # no run of ours is so deep that the names of all above it would fill the disk; records may be
            above = run.path if len(run.path) < _LONGEST_PATH else sha256_text(run.path)[:16]
            inner = RunPlace(f"{above}.{run.children}", run.depth + 1, codes=run.codes)
            return Place(inner, self.iteration, self.cell)
        if child.kind == "iteration":
            run.iterations += 1
            return Place(run, run.iterations - 1)
        if child.kind == "cell":
            run.cells += 1
            return Place(run, self.iteration, run.cells - 1)
        return self


def facts_of(span: ForeignSpan, place: Place, caller: Place | None) -> Facts:
    """What our engine would have put on such a span, besides texts, usage and cost. `caller` is where a
    child run was asked for; None for the top run.
    """
    run = place.run
    facts: Facts = {
        sc.KIND: span.kind,
        sc.OI_KIND: sc.OI_KIND_OF[span.kind],
        sc.OPERATION: _OPERATIONS.get(span.kind),
        sc.AGENT_NAME: _AGENTS.get(span.kind),
        sc.RUN_PATH: run.path,
        sc.DEPTH: run.depth,
        sc.ITERATION: place.iteration,
        sc.CELL: place.cell,
        sc.ROLE: _ROLES.get(span.kind),
    }
    if span.model is not None:
        facts |= {sc.REQUEST_MODEL: span.model, sc.OI_MODEL: span.model if span.kind in CALLS else None}
    if span.kind == "cell":
        facts |= {sc.TOOL_NAME: "python", **_cell_facts(span, run)}
    if caller is not None and span.kind in ("sub_call", "run"):
        facts |= _call_facts(span, caller)
    if span.error is not None:
        facts |= {sc.ERROR_TYPE: span.error[0], sc.ERROR_MESSAGE: span.error[1][:2000]}
    if sc.RESPONSE in span.texts:
        facts[sc.RESPONSE_NORM_HASH] = sha256_text(normalise(span.texts[sc.RESPONSE]))
    if span.kind == "run" and sc.ANSWER in span.texts:
        facts[sc.RESPONSE_NORM_HASH] = sha256_text(normalise(span.texts[sc.ANSWER]))
    return facts


def name_of(span: ForeignSpan) -> str:
    """The name of a span as ours has it, unless the record gives it one."""
    if span.name is not None:
        return span.name
    return _NAMES.get(span.kind) or (sc.chat(span.model or "unknown model") if span.kind in CALLS else "tool")


def _cell_facts(span: ForeignSpan, run: RunPlace) -> Facts:
    text = span.texts.get(sc.CODE, "")
    code = _read(text, run.codes)
    calls = code.makes_sub_calls or any(below.kind in ("sub_call", "batch", "run") for below in span.children)
    phase = "Aggregate" if run.from_calls.intersection(code.reads) else "Explore"
    phase = "Terminate" if code.ends_run else "Decompose" if calls else phase
    phase = str(span.attributes.get(sc.PHASE, phase))  # who reads a log may know which cell ended its run
    if calls:
        run.from_calls.update(code.writes)
    return {
        sc.PREVIEW: preview(telling_line(text)) or None,
        sc.PHASE: phase,
        sc.NAMES_READ: as_json(code.reads),
        sc.NAMES_WRITTEN: as_json(code.writes),
    }


def _read(text: str, known: Codes | None) -> Code:
    digest = "" if known is None else sha256_text(text)
    if known is not None and digest in known:
        return known[digest]
    said = check(text if len(text) <= MOST_CELL_CHARS else "", (), 0)
    code = Code(tuple(said.reads), tuple(said.writes), said.makes_sub_calls, said.ends_run)
    if known is not None:
        known[digest] = code
    return code


def _call_facts(span: ForeignSpan, caller: Place) -> Facts:
    """Which call of its cell it is, and what makes it the same as another one."""
    run, ordinal = caller.run, caller.made[0]
    caller.made[0] += 1
    run.calls += 1
    index = ordinal
    if caller.slots is not None:
        index = caller.slots[0]
        caller.slots[0] += 1
    facts: Facts = {
        sc.CALL_ID: f"{run.path}/{run.calls}", sc.CALL_INDEX: index, sc.CALL_ORDINAL: ordinal,
    }  # fmt: skip
    prompt = span.texts.get(sc.PROMPT if span.kind == "sub_call" else sc.QUESTION)
    if prompt is None:
        return facts
    digest = sha256_text(prompt)
    request = hash_of_request(digest, span.model or "", None, None)
    run.occurrences[request] += 1
    return facts | {
        sc.PROMPT_HASH: digest,
        sc.TEMPLATE_HASH: sha256_text(template(Slot([prompt], []))),
        sc.REQUEST_HASH: request,
        sc.CALL_OCCURRENCE: run.occurrences[request] - 1,
    }


def phases(of_cells: Sequence[str]) -> dict[str, str]:
    """What an iteration says of the phases of its cells, known at its end."""
    if not of_cells:
        return {}
    listed = ", ".join(dict.fromkeys(of_cells))
    return {sc.PHASE: as_json(sorted(set(of_cells))), sc.PREVIEW: listed}


def tidy(span: ForeignSpan) -> None:
    """Give numbers that no record of ours can hold (times before 1970 or after 2116, fractions of tokens,
    infinite costs) the mark of those that are known to be wrong, and facts the form of attributes.
    """
    span.start = _sound(span.start, lambda ns: type(ns) is int and 0 <= ns < LARGEST)
    span.seconds = _sound(span.seconds, lambda seconds: 0 <= seconds < LARGEST / 1e9)
    span.tokens = _sound(span.tokens, _is_use)
    span.cost = _sound(span.cost, lambda usd: usd.is_finite() and usd_amount(format(usd, "f")) is not None)
    span.attributes = {
        key: value if isinstance(value, str | int | float) else as_json(value)
        for key, value in span.attributes.items()
        if value is not None and key not in (sc.IMPORT_FORMAT, sc.IMPORT_KEY)  # the header's to say
    }


def _sound(told: Told[T], fits: Callable[[T], bool]) -> Told[T]:
    if told.value is None or told.mark == "known_wrong" or fits(told.value):
        return told
    return known_wrong(told.value, f"the record says {str(told.value)[:60]}, which cannot be")


def _is_use(use: TokenUse) -> bool:
    counts = (use.input, use.output, use.cache_read, use.cache_write, use.reasoning)
    return all(count is None or (type(count) is int and 0 <= count < LARGEST) for count in counts)


def previews(texts: Mapping[str, str]) -> Facts:
    """What lists and other back ends show of the texts of a span."""
    first = next((texts[key] for key in _INPUTS if key in texts), None)
    last = next((texts[key] for key in _OUTPUTS if key in texts), None)
    return {
        sc.OI_INPUT: None if first is None else preview(first),
        sc.OI_OUTPUT: None if last is None else preview(last),
    }


def numbers(span: ForeignSpan, prices: PriceTable, start_ns: int) -> Facts:
    """Usage, cost and the trust marks of a span: what is missing or known to be wrong is not among the
    facts that are counted, and says so.
    """
    told: dict[str, Told[Any]] = {"start": span.start, "seconds": span.seconds}
    facts: Facts = {}
    if span.kind in CALLS:
        cost = span.cost
        if span.cost.mark == "missing" and span.tokens.mark in ("reported", "derived"):
            cost, facts = _priced(span, prices, start_ns)
        told |= {"tokens": span.tokens, "cost": cost}
        usage = span.tokens.value
        if isinstance(usage, TokenUse):
            if span.tokens.mark == "known_wrong":
                facts[sc.USAGE_RAW] = as_json({"input": usage.input, "output": usage.output})
            else:
                facts |= usage_attributes(_usage(usage))
        known = cost.mark in ("reported", "derived") and cost.value is not None
        if known and sc.COST_STATUS not in facts:
            facts |= {sc.COST_USD: decimal_text(cost.value or Decimal(0)), sc.COST_STATUS: "priced"}
        facts.setdefault(sc.COST_STATUS, "unknown")
    why = {name: number.why for name, number in told.items() if number.why}
    facts[sc.TRUST] = as_json({name: number.mark for name, number in told.items()})
    facts[sc.TRUST_WHY] = as_json(why) if why else None
    return facts


def _priced(span: ForeignSpan, prices: PriceTable, start_ns: int) -> tuple[Told[Decimal], Facts]:
    """What a call must have cost by our prices, where the record tells tokens and model but no cost."""
    usage = span.tokens.value
    if usage is None or span.model is None:
        return span.cost, {}
    when = datetime.fromtimestamp(start_ns / 1e9, UTC)
    price = prices.price(span.model, _usage(usage), now=when)
    if price.usd is None:
        return span.cost, {}
    facts: Facts = {
        sc.COST_USD: decimal_text(price.usd), sc.COST_STATUS: price.status, sc.COST_PRICE: price.row,
    }  # fmt: skip
    return derived(price.usd, "worked out from its tokens and the price of its model"), facts


def _usage(use: TokenUse) -> Usage:
    return Usage(
        input=use.input,
        output=use.output,
        cached_read=use.cache_read,
        cache_write=use.cache_write,
        reasoning=use.reasoning,
    )
