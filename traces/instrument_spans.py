"""Spans of a program that tells its own steps: started and ended as our engine does it.

Where a call stands, its number there and what makes two calls the same follow from the order of the steps, by
the rules for runs of other engines (`traces.importers.placing`); so do the marks of its numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import TracebackType
from typing import Any, Self

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from rlm_core.pricing import PriceTable
from rlm_core.telemetry import Attribute, Recorder, RunSpan, as_json, preview
from traces.facts import LARGEST, usd_amount
from traces.importers.foreign import ForeignSpan, TokenUse
from traces.importers.placing import Place, RunPlace, facts_of, name_of, previews

Facts = dict[str, Attribute | None]
Message = Mapping[str, Any] | tuple[str, str]


@dataclass(frozen=True, slots=True)
class Shared:
    """What all spans of one run share. `lock` is held while places are counted and records written."""

    recorder: Recorder
    prices: PriceTable
    run_id: str
    root_model: str | None
    sub_model: str | None
    lock: threading.RLock = field(default_factory=threading.RLock)


class Step:
    """An open span; a context manager that closes it, as failed where an exception leaves the block. It is
    entered once; what it says, and steps inside it, belong into the block.

    Every method may be called from any thread and from coroutines; steps below one may run side by side.
    """

    def __init__(self, shared: Shared, foreign: ForeignSpan, parent: Step | None) -> None:
        """Open the span of `foreign` inside `parent` (None: it is the run). Raises InputError when the run is
        over or the parent was not entered, and for what is no text.
        """
        self._top: Step = self if parent is None else parent._top
        self._entered = self._over = False
        if parent is not None and self._top._over:
            raise InputError("The run is over: nothing begins in it any more.")
        if parent is not None:
            parent._check_entered()
        for prefix, text in foreign.texts.items():
            _check_text(prefix, text)
        self._shared, self._foreign, self._parent = shared, foreign, parent
        self._ends: Facts = {}  # what is set at the end
        self._failure: tuple[str, str] | None = None
        with shared.lock:
            outside = None if parent is None else parent._inside
            place = Place(RunPlace("0", 0)) if outside is None else outside.of(foreign)
            facts: Facts = facts_of(foreign, place, outside) | previews(foreign.texts) | self._start_facts()
            facts |= self._sent(place) | self._cited(foreign.texts)
            self._facts = facts
            self._started = shared.recorder.clock()
            above = None if parent is None else parent._span
            self._span: RunSpan = shared.recorder.start(foreign.kind, name_of(foreign), above, facts)
            self._inside: Place = place.below(foreign)

    @property
    def span_id(self) -> str:
        """The id of its span, as `rlmscope show --json` has it."""
        return self._span.span_id

    def failed(self, error_type: str, message: str) -> None:
        """Say that this step failed, where its engine goes on nevertheless. Raises InputError when the
        step is over.
        """
        self._check_open()
        self._failure = (error_type, message)

    def __enter__(self) -> Self:
        if self._entered:
            so_far = "ended" if self._over else "begun"
            raise InputError(f"This step has {so_far} already: it is one block.")
        self._entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        status: sc.Status = "ok"
        if kind is not None:
            status = "error" if issubclass(kind, Exception) else "cancelled"
            self._failure = (kind.__name__, str(error))
        elif self._failure is not None:
            status = "error"
        with self._shared.lock:
            self._finish(status)
            self._span.set(self._ends)
            if self._failure is None:
                self._span.end(status)
            else:
                self._span.fail(*self._failure, status)
            self._over = True
            if self._parent is not None:
                self._parent._ended_below(self._foreign.kind, self._failure is not None)

    def _start_facts(self) -> Facts:
        """Facts of a kind of step that are known when it begins."""
        return {}

    def _finish(self, status: sc.Status) -> None:
        """Last facts of a kind of step, before its span ends."""

    def _ended_below(self, kind: sc.Kind, failed: bool) -> None:
        """A step directly inside this one has ended."""

    def _say(self, prefix: str, text: str) -> None:
        """Put a text on the span now. Raises InputError when the step is over, and for what is no text."""
        _check_text(prefix, text)
        with self._shared.lock:
            self._check_open()
            self._foreign.texts[prefix] = text
            self._span.text(prefix, text)
            self._ends |= previews(self._foreign.texts)

    def _say_once(self, prefix: str, text: str, what: str) -> None:
        """As `_say`, for what a step says once: of two texts one would be lost. Raises InputError for two."""
        with self._shared.lock:
            self._check_open()
            if prefix in self._foreign.texts:
                raise InputError(f"This step has its {what} already: it is told once, all of it.")
            self._say(prefix, text)

    def _check_entered(self) -> None:
        if not self._entered:
            raise InputError("This step has no block: it is entered by `with`, which tells where it ends.")

    def _check_open(self) -> None:
        self._check_entered()
        if self._over:
            raise InputError("This step is over: what it says is told inside its block.")

    def _cited(self, texts: Mapping[str, str]) -> Facts:
        """Store texts; the facts that name them."""
        facts: Facts = {}
        for prefix, text in texts.items():
            digest = self._shared.recorder.payload(text)
            facts |= {
                f"{prefix}.sha256": digest,
                f"{prefix}.chars": len(text),
                f"{prefix}.preview": preview(text),
            }
        return facts

    def _sent(self, place: Place) -> Facts:
        """The messages of a root call, as what is new beyond those of the one before."""
        if self._foreign.messages is None:
            return {}
        messages, before = tuple(self._foreign.messages), place.run.messages
        same = [old == new for old, new in zip(before, messages, strict=False)]
        prior = same.index(False) if False in same else len(same)
        place.run.messages = messages
        added = [[role, self._shared.recorder.payload(text)] for role, text in messages[prior:]]
        return {sc.MESSAGES_PRIOR: prior, sc.MESSAGES_ADDED: as_json(added)}


def as_messages(messages: Sequence[Message] | None) -> list[tuple[str, str]] | None:
    """Messages of a chat, as {"role", "content"}, (role, text) or an object with these, in one form. Raises
    InputError for anything else.
    """
    if messages is None:
        return None
    if isinstance(messages, str | Mapping):
        raise InputError(f"messages is a list of messages, not {type(messages).__name__}.")
    return [(str(role), text if isinstance(text, str) else as_json(text)) for role, text in
            map(_role_and_content, messages)]  # fmt: skip


def _role_and_content(message: Any) -> tuple[Any, Any]:
    if isinstance(message, tuple) and len(message) == 2:
        return message
    if isinstance(message, Mapping) and "role" in message:
        rest = {key: value for key, value in message.items() if key != "role"}
        content = message.get("content")
        told = any(value is not None for value in rest.values())
        return message["role"], rest if content is None and told else content or ""
    if hasattr(message, "role") and hasattr(message, "content"):
        return message.role, message.content or ""
    raise InputError(
        f"A message is {{'role', 'content'}} or (role, text), not {type(message).__name__} like this one: "
        f"{str(message)[:60]!r}."
    )


def _check_text(prefix: str, text: Any) -> None:
    if not isinstance(text, str):
        what = prefix.rpartition(".")[2].replace("_", " ")
        raise InputError(f"A text is needed as {what}, not {type(text).__name__}.")


def use(
    given: int | None, made: int | None, read: int | None, written: int | None, thought: int | None
) -> TokenUse | None:
    """Tokens as they are told: given, made, read from and written to a cache, thought; None: nothing is told.
    Raises InputError for one side only, and for what is no number of tokens.
    """
    for count in (given, made, read, written, thought):
        if count is not None and (type(count) is not int or not 0 <= count < LARGEST):
            raise InputError(f"{str(count)[:40]!r} is no number of tokens.")
    if given is None and made is None:
        return None
    if given is None or made is None:
        raise InputError("input_tokens and output_tokens are told together, or neither.")
    return TokenUse(given, made, read, written, thought)


def dollars(amount: Decimal | str | float) -> Decimal:
    """An amount as exact dollars. Raises InputError for what is none."""
    usd = usd_amount(str(amount) if isinstance(amount, str) else format(Decimal(str(amount)), "f"))
    if usd is None:
        raise InputError(f"{str(amount)[:40]!r} is no amount of dollars.")
    return usd
