"""A recorded run as a program that can be played again: turns, cells, calls and what they were answered.

Read out of a `RunView`; the record is untrusted: whatever does not fit is a `RecordError` with one sentence,
or simply unknown. Calls are keyed by (run path, cell, request hash, occurrence); the ordinal in the cell is
for display and for frozen replays only. A child run has a path of its own: a program inside the program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.cells import extract
from rlm_core.errors import RecordError
from rlm_core.limits import Limits
from rlm_core.lm_handler import Completion
from rlm_core.options import Options
from rlm_core.playback import Summed
from rlm_core.prompts import fence
from traces.detail import decoded
from traces.imported import not_again
from traces.recorded_settings import bounded, read_limits, read_options
from traces.rows import SpanRow
from traces.view import RunView

Reply = dict[str, Any]
Key = tuple[str, int, str, int]  # run path, cell, request hash, occurrence
Refusal = tuple[str, int, str]  # run path, cell, question hash
_INTERRUPTED: Final = (
    "[the cell was interrupted: "  # in what the root was shown, for records without the fact
)
_LIMIT_STOPS: Final = ("budget", "timeout", "max_iterations")
_BUDGET_KEYS: Final = ("iterations", "calls", "tokens", "usd", "seconds")  # as code sees them; a record sorts


@dataclass(frozen=True, slots=True)
class Turn:
    """The reply of the root in one iteration; `codes` are the cells that ran."""

    span_id: str
    text: str
    finish_reason: str | None
    forced: bool
    cells: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedCell:
    """A cell as it ran. `again` is false for one that was killed or interrupted: it is not run again."""

    span_id: str
    path: str
    iteration: int
    number: int
    code: str
    stdout: str | None  # sha256
    shown: str | None  # sha256 of what the root was shown
    exception_type: str | None
    again: bool
    ended: bool  # its end is in the record


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A sub-call, or the span of a child run (`child_path`), with the reply that code got; None: unknown."""

    span_id: str
    key: Key
    ordinal: int
    prompt_hash: str | None
    reply: Reply | None
    child_path: str | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """Everything that playing a run again needs. `texts` are the payloads that comparisons cite."""

    run_id: str
    question: str
    corpus_id: str
    root_model: str
    sub_model: str
    seed: int
    limits: Limits
    versions: Mapping[str, Any]
    answer: str | None
    answer_form: str | None  # sha256 of its JSON form
    turns: Mapping[tuple[str, int], Turn]
    cells: Mapping[tuple[str, int], RecordedCell]
    calls: Mapping[Key, RecordedCall]
    refused: Mapping[Refusal, Mapping[int, Reply]]  # child runs turned away: by ordinal in the cell
    budgets: Mapping[tuple[str, int], tuple[Reply, ...]]
    ends: Mapping[str, str]  # run path -> stop reason
    summaries: Mapping[tuple[str, int], Summed] = field(default_factory=dict)  # of older turns, before a turn
    ambiguous: frozenset[str] = field(default_factory=frozenset)  # equal requests, unequal replies
    options: Options = field(default_factory=Options)

    def models_at(self, path: str) -> tuple[str, str]:
        """Root and sub model of the run at a path."""
        return self.options.models_at(path.count("."), self.root_model, self.sub_model)

    def turned_away(self, path: str, cell: int, question_hash: str, ordinal: int) -> Reply | None:
        """What a child run with this question was told that never ran: the one at this place in the cell,
        else any.
        """
        found = self.refused.get((path, cell, question_hash), {})
        return found.get(ordinal) or next(iter(found.values()), None)


def read_program(view: RunView) -> Program:
    """The program of a run that has ended. Raises RecordError when the record does not hold what it needs."""
    if view.live:
        raise RecordError("The run still goes on: it can be replayed when it has ended.")
    if (why := not_again(view.summary)) is not None:
        raise RecordError(why)
    reader = _Reader(view)
    top = next((span for span in view.spans if span.kind == "run" and span.parent_id is None), None)
    if top is None:
        raise RecordError("The record does not hold the run itself, so it cannot be played again.")
    question = reader.text(top, sc.QUESTION)
    corpus_id, seeds = top.attributes.get(sc.CORPUS_ID), decoded(top.attributes.get(sc.SEEDS))
    if question is None or not isinstance(corpus_id, str):
        raise RecordError(
            "The record does not hold the question or the corpus, so it cannot be played again."
        )
    seed = seeds.get("random") if isinstance(seeds, dict) else None
    if type(seed) is not int:
        raise RecordError("The record does not hold the seeds of the run, so it cannot be played again.")
    calls, limits = list(reader.calls()), read_limits(top.attributes.get(sc.LIMITS))
    versions = decoded(top.attributes.get(sc.VERSIONS))
    return Program(
        run_id=view.run_id,
        question=question,
        corpus_id=corpus_id,
        root_model=_text(top.attributes.get(sc.ROOT_MODEL)) or "",
        sub_model=_text(top.attributes.get(sc.SUB_MODEL)) or "",
        seed=seed,
        limits=limits if view.summary.imported_from is None else bounded(limits),
        versions=versions if isinstance(versions, dict) else {},
        answer=view.summary.answer,
        answer_form=_text(top.attributes.get(sc.ANSWER_VALUE + ".sha256")),
        turns=reader.turns(),
        summaries=reader.summaries(),
        cells=reader.cells,
        calls={call.key: call for call in calls},
        refused=reader.refused(),
        budgets=reader.budgets(),
        ends=reader.ends(),
        ambiguous=_ambiguous(calls),
        options=read_options(top.attributes.get(sc.OPTIONS)),
    )


def read_replies(view: RunView) -> Program:
    """What the calls of a record were answered, as a program without turns and cells: enough for a run that
    only lends its replies, whatever else its record lacks.
    """
    reader, run = _Reader(view), view.summary
    return Program(
        run_id=view.run_id,
        question=run.question or "",
        corpus_id=run.corpus_id or "",
        root_model=run.root_model or "",
        sub_model=run.sub_model or "",
        seed=0,
        limits=Limits(),
        versions={},
        answer=run.answer,
        answer_form=None,
        turns={},
        cells={},
        calls={call.key: call for call in reader.calls()},
        refused={},
        budgets={},
        ends={},
        options=read_options(
            next((s.attributes.get(sc.OPTIONS) for s in view.spans if s.kind == "run"), None)
        ),
    )


class _Reader:
    """The spans of a record by what they are."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._by_id = view.by_id
        self._texts = view.payloads(_wanted(view))

    @cached_property
    def cells(self) -> dict[tuple[str, int], RecordedCell]:
        """Cells by run path and number. Raises RecordError for one without its code."""
        return {(cell.path, cell.number): cell for cell in self._cells()}

    def text(self, span: SpanRow, prefix: str) -> str | None:
        """A payload of a span, None where there is none or the record does not hold it."""
        digest = span.attributes.get(prefix + ".sha256")
        return self._texts.get(digest) if isinstance(digest, str) else None

    def _cells(self) -> Iterator[RecordedCell]:
        for span in self._view.spans:
            path, number = _text(span.attributes.get(sc.RUN_PATH)), span.cell
            if span.kind != "cell" or path is None or number is None:
                continue
            code = self.text(span, sc.CODE)
            if code is None:
                raise RecordError(
                    f"The record does not hold the code of cell {number}: it is not replayable."
                )
            failed = _text(span.attributes.get(sc.EXCEPTION_TYPE))
            shown = self.text(span, sc.STDOUT_SHOWN) or ""
            stopped = sc.CELL_INTERRUPTED in span.attributes or (
                failed == "KeyboardInterrupt" and _INTERRUPTED in shown
            )
            yield RecordedCell(
                span_id=span.span_id,
                path=path,
                iteration=span.iteration or 0,
                number=number,
                code=code,
                stdout=_text(span.attributes.get(sc.STDOUT + ".sha256")),
                shown=_text(span.attributes.get(sc.STDOUT_SHOWN + ".sha256")),
                exception_type=failed,
                again=not stopped and failed not in ("WorkerDied", "NotRunAgain"),
                ended=span.status in ("ok", "error"),
            )

    def turns(self) -> dict[tuple[str, int], Turn]:
        """The root's replies by run path and iteration."""
        numbers: dict[tuple[str, int], list[int]] = defaultdict(list)
        for cell in self.cells.values():
            numbers[cell.path, cell.iteration].append(cell.number)
        found = {}
        for span in self._view.spans:
            path = _text(span.attributes.get(sc.RUN_PATH))
            if span.kind != "root_call" or path is None or span.iteration is None or span.status != "ok":
                continue
            if span.attributes.get(sc.COMPACTED) is True:
                continue
            text, reasons = self.text(span, sc.RESPONSE), decoded(span.attributes.get(sc.FINISH_REASONS))
            if text is None:
                raise RecordError(
                    f"The record does not hold the root's reply of iteration {span.iteration}: it is not "
                    "replayable."
                )
            parent = self._by_id.get(span.parent_id or "")
            reason = reasons[0] if isinstance(reasons, list) and reasons else "stop"
            turn = Turn(
                span.span_id,
                text,
                reason if isinstance(reason, str) else "stop",
                parent is not None and parent.attributes.get(sc.FORCED) is True,
                tuple(sorted(numbers[path, span.iteration])),
            )
            found[path, span.iteration] = self._faithful(turn, path, span.iteration)
        return found

    def summaries(self) -> dict[tuple[str, int], Summed]:
        """What the root made of its older turns, by run path and the iteration it stands before."""
        found = {}
        for span in self._view.spans:
            facts, text = span.attributes, self.text(span, sc.RESPONSE)
            path, turns = _text(facts.get(sc.RUN_PATH)), facts.get(sc.COMPACTED_TURNS)
            if facts.get(sc.COMPACTED) is not True or span.status != "ok" or span.iteration is None:
                continue
            if path is not None and text is not None and type(turns) is int and turns > 0:
                found[path, span.iteration] = Summed(Completion(text), turns)
        return found

    def _faithful(self, turn: Turn, path: str, iteration: int) -> Turn:
        """The turn, with a reply out of which this version takes the cells that ran."""
        codes = [self.cells[path, number].code for number in turn.cells]
        if not codes or codes == codes_of(turn.text, turn.finish_reason)[: len(codes)]:
            return turn
        text = reply_with(codes)
        if codes_of(text) != codes:
            raise RecordError(
                f"The cells of iteration {iteration} cannot be taken out of its reply by this version."
            )
        return replace(turn, text=text, finish_reason="stop")

    def calls(self) -> Iterator[RecordedCall]:
        """Sub-calls and child runs that reached the point of a request."""
        for span in self._view.spans:
            place = self._place(span)
            facts = span.attributes
            digest, occurrence = _text(facts.get(sc.REQUEST_HASH)), facts.get(sc.CALL_OCCURRENCE)
            if place is None or digest is None or type(occurrence) is not int:
                continue
            ordinal = facts.get(sc.CALL_ORDINAL)
            yield RecordedCall(
                span.span_id,
                (*place, digest, occurrence),
                ordinal if type(ordinal) is int else 0,
                _text(facts.get(sc.PROMPT_HASH)),
                self._reply(span),
                self._child_path(span, place[0]),
            )

    def _child_path(self, span: SpanRow, above: str) -> str | None:
        """The path of a child run that ran; it leads down from that of its caller, so that none contains
        itself.
        """
        path = _text(span.attributes.get(sc.RUN_PATH))
        if span.kind != "run" or path is None or span.attributes.get(sc.SERVED_FROM) is not None:
            return None
        return path if path.startswith(f"{above}.") else None

    def _place(self, span: SpanRow) -> tuple[str, int] | None:
        """Run path and cell that made a call."""
        if span.kind != "sub_call" and not span.is_child_run:
            return None
        above = self._by_id.get(span.parent_id or "")
        if above is not None and above.kind == "batch":
            above = self._by_id.get(above.parent_id or "")
        if above is None or above.kind != "cell" or above.cell is None:
            return None
        path = _text(above.attributes.get(sc.RUN_PATH))
        return None if path is None else (path, above.cell)

    def _reply(self, span: SpanRow) -> Reply | None:
        if span.status == "ok":
            served = span.attributes.get(sc.SERVED_FROM) is not None
            prefix = sc.ANSWER if span.kind == "run" and not served else sc.RESPONSE
            text = self.text(span, prefix)
            return None if text is None else {"ok": text}
        if span.status in ("error", "cancelled") and span.error_type:
            return {"err": span.error_type, "msg": _text(span.attributes.get(sc.ERROR_MESSAGE)) or ""}
        return None

    def refused(self) -> dict[Refusal, dict[int, Reply]]:
        """Child runs that were turned away before they were any."""
        found: dict[Refusal, dict[int, Reply]] = defaultdict(dict)
        for span in self._view.spans:
            place, question = self._place(span), _text(span.attributes.get(sc.PROMPT_HASH))
            known = span.attributes.get(sc.REQUEST_HASH) is not None
            if place is not None and question and not known and (reply := self._reply(span)) is not None:
                ordinal = span.attributes.get(sc.CALL_ORDINAL)
                found[(*place, question)][ordinal if type(ordinal) is int else 0] = reply
        return dict(found)

    def budgets(self) -> dict[tuple[str, int], tuple[Reply, ...]]:
        """What `budget()` answered, by run path and cell, in order."""
        found: dict[tuple[str, int], tuple[Reply, ...]] = {}
        for cell in self.cells.values():
            events = [e for e in self._view.events(cell.span_id) if e["name"] == sc.EV_HOST_REPLY]
            replies = [decoded(event["attributes"].get("reply")) for event in events]
            found[cell.path, cell.number] = tuple(
                {key: reply[key] for key in _BUDGET_KEYS if key in reply}
                for reply in replies
                if isinstance(reply, dict)
            )
        return found

    def ends(self) -> dict[str, str]:
        """How each (child) run stopped."""
        return {
            path: reason
            for span in self._view.spans
            if span.kind == "run"
            and (path := _text(span.attributes.get(sc.RUN_PATH))) is not None
            and (reason := _text(span.attributes.get(sc.STOP_REASON))) in _LIMIT_STOPS
        }


def codes_of(reply: str, finish_reason: str | None = "stop") -> list[str]:
    """The codes that the engine takes out of a reply."""
    return [cell.code for cell in extract(reply, finish_reason).cells]


def reply_with(codes: Collection[str]) -> str:
    """A reply of which the engine takes exactly these codes, unless they are no code."""
    return "\n\n".join(fence(code, "repl") for code in codes)


def _wanted(view: RunView) -> set[str]:
    """The payloads a program is made of: not the prompts, which are the bulk of a record."""
    prefixes = (sc.QUESTION, sc.CODE, sc.RESPONSE, sc.ANSWER, sc.STDOUT_SHOWN, sc.STDOUT)
    digests = (span.attributes.get(prefix + ".sha256") for span in view.spans for prefix in prefixes)
    return {digest for digest in digests if isinstance(digest, str)}


def _ambiguous(calls: Collection[RecordedCall]) -> frozenset[str]:
    """Calls of one path whose request was made more than once and answered differently."""
    same: dict[tuple[str, str], list[RecordedCall]] = defaultdict(list)
    for call in calls:
        if call.child_path is None and call.reply is not None:
            same[call.key[0], call.key[2]].append(call)
    unequal = (group for group in same.values() if any(call.reply != group[0].reply for call in group))
    return frozenset(call.span_id for group in unequal for call in group)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
