"""What happens in a run, as it happens: one typed event for each thing a program may want to follow.

Events are the spans of the record as they start and end, so a run that is watched and one that is read later
say the same. Texts in them are cut (`MOST_TEXT`): the record has the whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.answer import Answer
from rlm_core.telemetry import Attribute, RunSpan

MOST_TEXT: Final = 4_000  # characters of a text in an event

Facts = Mapping[str, Attribute]
Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened `seconds` (wall time) after the run began."""

    run_id: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent(Event):
    """Start or end of a step. `span_id` is that of the record and the same at both; `parent_id` is the
    nearest step around it that has events (None: the run itself has none). `path` says which (child) run it
    is in, "0" the run itself, `depth` how deep that is.
    """

    span_id: str
    parent_id: str | None
    path: str
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEvent(SpanEvent):
    """End of a step: `status` is ok, error or cancelled; `error` says what went wrong, None: nothing did."""

    status: str
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(SpanEvent):
    """A run has begun, or at a depth above 0 a child run."""

    question: str
    root_model: str
    sub_model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(EndEvent):
    """A run or child run has ended; `answer` is None where it gave none. Of the run itself `Answered` says
    more.
    """

    answer: str | None
    stop_reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationStarted(SpanEvent):
    """A turn of the root has begun; `number` from 0."""

    number: int
    forced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationEnded(EndEvent):
    """A turn of the root has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded(EndEvent):
    """A model was asked, with all tries. Tokens are None where nobody told them, `cost_usd` where no price is
    known; `served_from` is model, record, patch or cache, None for what was turned away.
    """

    model: str
    reply: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: Decimal | None
    served_from: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RootCallStarted(SpanEvent):
    """The root model is asked."""

    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RootCallEnded(CallEnded):
    """The root model has replied, or failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStarted(SpanEvent):
    """A cell is run; `number` from 0 within its run."""

    number: int
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEnded(EndEvent):
    """A cell has run; `output` is what the root is shown of it."""

    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubCallStarted(SpanEvent):
    """A sub-model is asked by a line of a cell."""

    model: str
    prompt: str
    line: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubCallEnded(CallEnded):
    """A sub-call has a reply, or has failed for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailed(EndEvent):
    """One try of a model call failed, `kind` as of `rlm_core.ModelError`; another one may follow."""

    kind: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(SpanEvent):
    """A sub-model calls a tool; `arguments` is the JSON text that it wrote."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnded(EndEvent):
    """A tool has run; `result` is what the sub-model is told."""

    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed(Event):
    """So many events were thrown away here, because nobody took them; the record has them."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Event):
    """The last event of every run, whatever came of it."""

    answer: Answer


class Teller:
    """Makes events of spans, and hands them on; `rlm_core.telemetry.Listener`.

    `told` is called on the engine's thread. When it raises, it is not called again, and `problem` says so in
    a sentence.
    """

    def __init__(self, run_id: str, told: Callable[[Event], None]) -> None:
        self.problem: str | None = None
        self._run_id = run_id
        self._told = told
        self._began = time.monotonic()
        self._places: dict[str, Facts] = {}  # attributes that open spans were created with
        self._untold: dict[str, str | None] = {}  # open spans without events, and what is around them

    def started(self, span: RunSpan, facts: Facts, texts: Texts) -> None:
        """Tell of a step that begins."""
        self._places[span.span_id] = facts
        if (make := _STARTED.get(span.kind)) is not None:
            self._tell(make(facts, texts, self._place(span, facts)))
        else:
            self._untold[span.span_id] = span.parent_id

    def ended(self, span: RunSpan, facts: Facts, texts: Texts) -> None:
        """Tell of a step that has ended."""
        facts = {**self._places.pop(span.span_id, {}), **facts}
        self._untold.pop(span.span_id, None)
        make = _ENDED.get(span.kind)
        if make is None or (span.kind == "attempt" and facts[sc.STATUS] == "ok"):
            return
        error = facts.get(sc.ERROR_MESSAGE)
        end = {
            "status": str(facts[sc.STATUS]),
            "error": None if error is None else str(error),
        }
        self._tell(make(facts, texts, {**self._place(span, facts), **end}))

    def seconds(self) -> float:
        """Wall time since the run began."""
        return time.monotonic() - self._began

    def _place(self, span: RunSpan, facts: Facts) -> dict[str, Any]:
        above = self._places.get(span.parent_id or "", {})
        return {
            "run_id": self._run_id,
            "seconds": self.seconds(),
            "span_id": span.span_id,
            "parent_id": self._untold.get(span.parent_id or "", span.parent_id),
            "path": str(facts.get(sc.RUN_PATH, above.get(sc.RUN_PATH, "0"))),
            "depth": int(facts.get(sc.DEPTH, above.get(sc.DEPTH, 0))),
        }

    def _tell(self, event: Event) -> None:
        if self.problem is not None:
            return
        try:
            self._told(event)
        except Exception as error:
            self.problem = (
                f"the program that follows the run failed with {type(error).__name__}: {error}; it was told "
                "no more events"
            )


Place = dict[str, Any]
Make = Callable[[Facts, Texts, Place], Event]


def _cut(text: str) -> str:
    if len(text) <= MOST_TEXT:
        return text
    return f"{text[:MOST_TEXT]}… [the first {MOST_TEXT:,} of {len(text):,} characters]"


def _text(facts: Facts, texts: Texts, prefix: str) -> str:
    """A text that stands on a span; its preview where the text itself was stored earlier than its span."""
    return _cut(texts[prefix]) if prefix in texts else str(facts.get(prefix + ".preview", ""))


def _text_or_none(facts: Facts, texts: Texts, prefix: str) -> str | None:
    return _text(facts, texts, prefix) if prefix + ".sha256" in facts else None


def _number(facts: Facts, key: str) -> int | None:
    value = facts.get(key)
    return None if value is None else int(value)


def _reply(facts: Facts, texts: Texts) -> dict[str, Any]:
    cost = facts.get(sc.COST_USD)
    served = facts.get(sc.SERVED_FROM, "model" if facts.get(sc.ROLE) == "root" else None)
    return {
        "model": str(facts.get(sc.REQUEST_MODEL, "")),
        "reply": _text_or_none(facts, texts, sc.RESPONSE),
        "input_tokens": _number(facts, sc.USAGE_INPUT),
        "output_tokens": _number(facts, sc.USAGE_OUTPUT),
        "cost_usd": None if cost is None else Decimal(str(cost)),
        "served_from": None if served is None else str(served),
    }


_STARTED: Final[Mapping[sc.Kind, Make]] = {
    "run": lambda facts, texts, place: RunStarted(
        **place,
        question=_text(facts, texts, sc.QUESTION),
        root_model=str(facts.get(sc.ROOT_MODEL, "")),
        sub_model=str(facts.get(sc.SUB_MODEL, "")),
    ),
    "iteration": lambda facts, _, place: IterationStarted(
        **place, number=int(facts[sc.ITERATION]), forced=bool(facts.get(sc.FORCED, False))
    ),
    "root_call": lambda facts, _, place: RootCallStarted(**place, model=str(facts[sc.REQUEST_MODEL])),
    "cell": lambda facts, texts, place: CellStarted(
        **place, number=int(facts[sc.CELL]), code=_text(facts, texts, sc.CODE)
    ),
    "sub_call": lambda facts, texts, place: SubCallStarted(
        **place,
        model=str(facts.get(sc.REQUEST_MODEL, "")),
        prompt=_text(facts, texts, sc.PROMPT),
        line=_number(facts, sc.CALL_LINE),
    ),
    "tool": lambda facts, texts, place: ToolStarted(
        **place, name=str(facts[sc.TOOL_NAME]), arguments=_text(facts, texts, sc.TOOL_ARGUMENTS)
    ),
}
_ENDED: Final[Mapping[sc.Kind, Make]] = {
    "run": lambda facts, texts, place: RunEnded(
        **place,
        answer=_text_or_none(facts, texts, sc.ANSWER),
        stop_reason=str(facts[sc.STOP_REASON]) if sc.STOP_REASON in facts else None,
    ),
    "iteration": lambda _facts, _texts, place: IterationEnded(**place),
    "root_call": lambda facts, texts, place: RootCallEnded(**place, **_reply(facts, texts)),
    "cell": lambda facts, texts, place: CellEnded(**place, output=_text(facts, texts, sc.STDOUT_SHOWN)),
    "sub_call": lambda facts, texts, place: SubCallEnded(**place, **_reply(facts, texts)),
    "attempt": lambda facts, _, place: AttemptFailed(
        **place, kind=str(facts.get(sc.ERROR_TYPE, "unknown")), number=int(facts.get(sc.ATTEMPT, 0))
    ),
    "tool": lambda facts, texts, place: ToolEnded(**place, result=_text(facts, texts, sc.TOOL_RESULT)),
}
