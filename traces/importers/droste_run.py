"""The events of one run of droste as one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.telemetry import as_json
from traces.importers.foreign import ForeignSpan, TokenUse, derived, missing, reported
from traces.importers.source import as_text
from traces.importers.totals import Balance, Total
from traces.importers.values import count, items, some_text, table, text

_RUNNING: Final = "counted up over the run by the engine: what this call added"
_OF_BATCH: Final = "what one call of its batch added, in the order in which they came back"
_WHY: Final = {"IterationLimitExceeded": "max_iterations", "BudgetExhausted": "budget"}
_STATUS: Final[dict[str, sc.Status]] = {"success": "ok", "cancelled": "cancelled"}
_NO_TEXT: Final = "The record was kept without texts: replies, code and output are not in it."


class Run:
    """Reads events in order and ends with `span`, complete after `finish`."""

    def __init__(self, name: str, above: str | None) -> None:
        self.name, self.above = name, above
        self.span = ForeignSpan("run", status="lost", attributes={"droste.run_id": name})
        self.version: str | None = None
        self.root_model: str | None = None
        self.sub_model: str | None = None
        self.missing: list[str] = []
        self.balance = Balance(self.missing, [])
        self.ended = False
        self._below: list[tuple[ForeignSpan, Run]] = []
        self._turn: ForeignSpan | None = None
        self._call: ForeignSpan | None = None  # of the root, sent and not yet told
        self._cell: ForeignSpan | None = None
        self._cells = 0
        self._open: dict[str, tuple[ForeignSpan, list[ForeignSpan]]] = {}  # sub-calls and batches by id
        self._counted = {"root": (0, 0, 0, 0), "subcall": (0, 0, 0, 0)}
        self._totals: dict[str, Mapping[str, Any]] = {"root": {}, "subcall": {}}
        self._unattributed = 0
        self.unusable = 0  # counts of usage
        self._first: int | None = None
        self._now: int | None = None
        self._draft: str | None = None
        self._told = self._replied = False
        self._takers: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "startup": self._start,
            "iteration_start": self._begin,
            "budget": self._budget,
            "usage_progress": self._usage,
            "usage": self._total,
            "llm_response": self._reply,
            "code": self._code,
            "output": self._output,
            "execution_error": self._error,
            "subcall": self._subcall,
            "extract": self._extract,
            "checkpoint": self._checkpoint,
            "result": self._result,
            "done": self._done,
        }

    def take(self, kind: str, event: Mapping[str, Any], when: int | None) -> None:
        """One event; kinds without facts of their own only tell the time."""
        if when is not None:
            self._first = when if self._first is None else self._first
            self._now = when
        if taker := self._takers.get(kind):
            taker(event)

    def asks(self, run: Run) -> None:
        """A run that began below this one."""
        self._below.append((self._cell or self._turn or self.span, run))

    def with_those_below(self) -> Iterator[Run]:
        """This run and all below it, callers first."""
        waiting = [self]
        while waiting:
            run = waiting.pop()
            yield run
            waiting += [below for _, below in run._below]

    def finish(self) -> None:
        """Put runs below into their cells and models onto calls, and tell how it ended."""
        self._settle()
        if self._turn is not None and self._turn.status == "lost":
            self._over(self._turn)
        for place, run in self._below:
            place.children.append(run.span)
        span = self.span
        if self._first is not None and self._now is not None:
            span.start = reported(self._first)
            span.seconds = derived((self._now - self._first) / 1e9, "from its first to its last event")
        span.model = self.root_model
        models = {"root_call": self.root_model, "sub_call": self.sub_model}
        for turn in span.children:
            for one in (turn, *turn.children, *(call for part in turn.children for call in _calls(part))):
                one.model = models.get(one.kind)
        if self._draft is not None and sc.ANSWER not in span.texts:
            span.texts[sc.BEST_PARTIAL] = self._draft
        if not self.ended:
            self.missing.append("The record ends before the run does.")
        if not self._replied:
            self.missing.append(_NO_TEXT)
        if self.ended and not self._told:
            self.missing.append("The answer is not in the record.")
        if self.root_model is None:
            self.missing.append("The record holds no model.")

    def _start(self, event: Mapping[str, Any]) -> None:
        self.version = text(event.get("engine_version"))

    def _begin(self, event: Mapping[str, Any]) -> None:
        """A turn."""
        self._close_turn()
        self._turn = self._at_now(ForeignSpan("iteration", status="lost"))
        self._call = self._cell = None
        if (left := count(event.get("remaining_tokens"))) is not None:
            self._turn.attributes["droste.remaining_tokens"] = left
        self.span.children.append(self._turn)

    def _close_turn(self) -> None:
        if self._turn is not None and self._turn.status == "lost":
            self._turn.status = "ok"
            self._over(self._turn)

    def _budget(self, event: Mapping[str, Any]) -> None:
        """A call of the root begins with the tokens set aside for it; the limits stand at the end."""
        mine = str(event.get("call_id")).startswith("root:") and event.get("resource") == "tokens"
        if mine and event.get("action") == "reserve" and self._turn is not None:
            self._call = self._at_now(self._asked())
        elif mine and event.get("action") == "commit" and self._call is not None:
            if self._call.tokens.mark == "missing" and (total := count(event.get("amount"))) is not None:
                self._call.tokens = missing(f"only their sum is in the record: {total:,}")
            self._over(self._call)
        if limits := table(event.get("configured")):
            wall = count(limits.get("wall_ms"))
            self.span.attributes[sc.LIMITS] = as_json(
                {
                    "max_iterations": limits.get("max_iterations"),
                    "max_calls": limits.get("subcalls"),
                    "max_tokens": limits.get("tokens"),
                    "max_seconds": None if wall is None else wall / 1000,
                    "max_depth": limits.get("depth"),
                }
            )

    def _asked(self) -> ForeignSpan:
        """A call of the root."""
        call = ForeignSpan("root_call", status="lost")
        if self._turn is None:
            self._begin({})
        if self._turn is not None:
            self._turn.children.append(call)
        return call

    def _usage(self, event: Mapping[str, Any]) -> None:
        """What all calls of the root, or all sub-calls, have taken so far."""
        side = "root" if event.get("boundary") == "root" else "subcall"
        told = table(event.get(side))
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
        self.unusable += sum(_is_unusable(told.get(name)) for name in names)
        now = [count(told.get(name)) or 0 for name in names]
        added = [new - old for new, old in zip(now, self._counted[side], strict=True)]
        self._counted[side] = (now[0], now[1], now[2], now[3])
        if min(added) < 0 or not any(added[:2]):
            return
        use = TokenUse(added[0], added[1], cache_read=added[2] or None, cache_write=added[3] or None)
        if side == "root" and self._call is not None:
            self._call.tokens = derived(use, _RUNNING)
            self._over(self._call)
        elif side == "subcall" and len(self._open) == 1:  # of two at once nobody could say whose it is
            ((_, slots),) = self._open.values()
            free = next((slot for slot in slots if slot.tokens.mark == "missing"), None)
            if free is not None:
                free.tokens = derived(use, _RUNNING if len(slots) == 1 else _OF_BATCH)

    def _total(self, event: Mapping[str, Any]) -> None:
        """What all calls together took: more than what is known of each is told at the end."""
        for side in self._totals:
            self._totals[side] = table(event.get(side)) or self._totals[side]
        self._unattributed = count(table(event.get("unattributed")).get("total_tokens")) or 0

    def _settle(self) -> None:
        """Tell tokens that are known of all calls of a kind and not of each, and calls that are not there."""
        calls = [span for span in self.span.walk() if span.kind in ("root_call", "sub_call")]
        for side, kind, named in (("root", "root_call", "root calls"), ("subcall", "sub_call", "sub-calls")):
            mine = [call for call in calls if call.kind == kind]
            told = self._totals[side]
            self.unusable += sum(map(_is_unusable, (told.get("input_tokens"), told.get("output_tokens"))))
            used, made = count(told.get("input_tokens")), count(told.get("output_tokens"))
            answered = count(told.get("successes")) or 0
            self.balance.compare(Total(named, used, made), mine, whole=answered <= len(mine))
            if answered > len(mine):
                self._note(f"Of {answered:,} answered {named} {len(mine):,} are in the record.")
                self.balance.lacks_calls = True
        if self._unattributed:
            self._note(f"Tokens that the engine could give to no call: {self._unattributed:,}.")
            self.balance.lacks_calls = True

    def _reply(self, event: Mapping[str, Any]) -> None:
        self._replied = True
        call = self._call if self._call is not None else self._asked()
        call.status = "ok"
        call.texts[sc.RESPONSE] = some_text(event.get("response")) or ""
        if call.seconds.mark == "missing":
            self._over(call)
        self._call = self._cell = None

    def _code(self, event: Mapping[str, Any]) -> None:
        self._replied = True
        if self._turn is None:
            self._begin({})
        self._cell = self._at_now(ForeignSpan("cell", status="lost"))
        self._cell.texts[sc.CODE] = as_text(event.get("code") or "")
        self._cells += 1
        if self._turn is not None:
            self._turn.children.append(self._cell)

    def _output(self, event: Mapping[str, Any]) -> None:
        if (cell := self._cell) is None:
            return
        cell.status = "ok"
        self._over(cell)
        if (printed := some_text(event.get("stdout"))) is not None:
            cell.texts[sc.STDOUT] = printed
            chars = count(event.get("stdout_chars"))
            if chars is not None and chars > len(printed):
                cell.attributes[sc.STDOUT_TRUE_CHARS] = chars
                self._note("Long output is in the record only as far as the engine kept it.")
        if event.get("answer_ready") is True:
            cell.attributes[sc.PHASE] = "Terminate"
            self.span.attributes[sc.ANSWER_CELL] = self._cells - 1

    def _error(self, event: Mapping[str, Any]) -> None:
        kind, message = text(event.get("error_type")) or "error", some_text(event.get("message")) or ""
        if (cell := self._cell) is not None:
            cell.status, cell.error = "error", (kind, message)
            cell.attributes[sc.EXCEPTION_TYPE] = kind
            cell.texts[sc.EXCEPTION] = f"{kind}: {message}"
            self._over(cell)
            self._note("What code printed before it failed is not in the record.")

    def _subcall(self, event: Mapping[str, Any]) -> None:
        """The begin or the end of a call or batch of calls that code makes."""
        name, phase = str(event.get("call_id")), event.get("phase")
        if phase == "start":
            self._ask_sub(name, event)
            return
        if phase not in ("completion", "failure") or name not in self._open:
            return
        asked, slots = self._open.pop(name)
        total = count(table(event.get("checkpoint")).get("tokens"))
        for span in {id(one): one for one in (asked, *slots)}.values():
            span.status = "ok"
            if span.kind == "sub_call" and span.tokens.mark == "missing" and total is not None:
                whose = "their sum" if len(slots) == 1 else "the sum of the whole batch"
                span.tokens = missing(f"only {whose} is in the record: {total:,}")
            if phase == "failure":
                error = table(event.get("error"))
                span.status = "error"
                span.error = (text(error.get("type")) or "error", text(error.get("code")) or "")
        self._over(asked)

    def _ask_sub(self, name: str, event: Mapping[str, Any]) -> None:
        size = count(event.get("batch_count"))
        asked = self._at_now(ForeignSpan("sub_call" if size is None else "batch", status="lost"))
        asked.attributes["droste.operation"] = str(event.get("operation"))[:40]
        slots = [asked]
        if size is not None:
            slots = [ForeignSpan("sub_call", status="lost") for _ in range(min(size, 100_000))]
            asked.children, asked.attributes[sc.BATCH_SIZE] = list(slots), size
        self._open[name] = (asked, slots)
        (self._cell or self._turn or self.span).children.append(asked)

    def _extract(self, event: Mapping[str, Any]) -> None:
        """The call that asks for an answer when the run could not confirm one."""
        phase = event.get("phase")
        if phase == "start":
            self._begin({})
            if self._turn is not None:
                self._turn.attributes[sc.FORCED] = True
        elif self._turn is not None and phase in ("completion", "failure"):
            for span in (self._turn, *self._turn.children):
                span.status = "ok" if phase == "completion" else "error"
            if phase == "failure":
                error = table(event.get("extract_error"))
                self._turn.error = (text(error.get("type")) or "error", some_text(error.get("message")) or "")
            self._over(self._turn)

    def _checkpoint(self, event: Mapping[str, Any]) -> None:
        self._draft = some_text(event.get("draft")) or self._draft

    def _result(self, event: Mapping[str, Any]) -> None:
        result = table(event.get("result"))
        manifest = table(result.get("scaffold_manifest"))
        inference = table(manifest.get("inference"))
        self.root_model = text(table(inference.get("root")).get("id"))
        self.sub_model = text(table(inference.get("subcall")).get("id"))
        self.version = self.version or text(table(manifest.get("engine")).get("version"))
        if (answer := some_text(result.get("answer"))) is not None:
            self.span.texts[sc.ANSWER] = answer
        if lost := items(result.get("degradations")):
            self.span.attributes["droste.degradations"] = as_json(lost)
        self._told = True

    def _done(self, event: Mapping[str, Any]) -> None:
        self._close_turn()
        self.ended, span = True, self.span
        forced = event.get("extracted") is True
        recovered = text(table(event.get("recovered_error")).get("type"))
        span.status = _STATUS.get(str(event.get("status")), "error")
        otherwise = "final" if span.status == "ok" else "error"
        span.attributes[sc.STOP_REASON] = _WHY.get(recovered or "", otherwise)
        if span.status == "ok":
            span.attributes[sc.ANSWER_VIA] = "forced" if forced else "answer"
            span.attributes |= {sc.FORCED: True} if forced else {}
        elif error := text(table(event.get("error")).get("type")):
            span.error = (error, "")

    def _note(self, sentence: str) -> None:
        """Something that the record does not say; once."""
        if sentence not in self.missing:
            self.missing.append(sentence)

    def _at_now(self, span: ForeignSpan) -> ForeignSpan:
        if self._now is not None:
            span.start = reported(self._now)
        return span

    def _over(self, span: ForeignSpan) -> None:
        """The span ends with this event."""
        if self._now is not None and span.start.value is not None:
            span.seconds = derived((self._now - span.start.value) / 1e9)


def _is_unusable(value: Any) -> bool:
    return value is not None and count(value) is None


def _calls(part: ForeignSpan) -> Iterator[ForeignSpan]:
    for below in part.children:
        yield from below.children if below.kind == "batch" else (below,)
