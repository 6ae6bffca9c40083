"""The examples that one run holds: conversations that end with what a model should have said.

Records are untrusted: what does not fit is counted as left out, with the reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.cells import extract
from traces.detail import added_messages, decoded
from traces.exporters.sft_calls import CallTexts
from traces.exporters.sft_chat import ChatMessage, Example, clean, guess
from traces.exporters.sft_runs import Choice, ExampleKind
from traces.opinions import Opinions
from traces.replies import declines
from traces.rows import SpanRow
from traces.view import RunView

CALLED_WRONG: Final = "a person called it wrong"
_KEPT_FROM: Final = (None, "model", "record")  # where a reply came from that a model once gave by itself
_ROLES: Final = ("system", "user", "assistant")
_AT_ONCE: Final = 64  # sub-calls whose texts are held at the same time


@dataclass
class RunExamples:
    """The examples of one run, and `left_out`: how many more there would be but for a reason, by reason."""

    view: RunView
    said: Opinions
    choice: Choice
    left_out: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Example]:
        """In the order of the record: run by run path, its root before its sub-calls."""
        asks_root = any(kind in self.choice.kinds for kind in ("turns", "trajectories"))
        for path in self._paths() if asks_root else ():
            yield from self._of_root(path)
        if "sub-calls" in self.choice.kinds:
            calls = [span for span in self.view.spans if span.kind == "sub_call"]
            for start in range(0, len(calls), _AT_ONCE):
                group = calls[start : start + _AT_ONCE]
                self._calls.fetch(group)
                for span in group:
                    yield from self._of_sub_call(span)

    def _paths(self) -> Iterator[str]:
        """The run paths whose (child) run answered by itself."""
        for span in self.view.spans:
            path = span.attributes.get(sc.RUN_PATH)
            if span.kind != "run" or not isinstance(path, str):
                continue
            if span.status != "ok" or span.attributes.get(sc.FORCED) or span.attributes.get(sc.ANSWER_MARK):
                self.left_out["the child run gave no answer of its own"] += 1
            else:
                yield path

    def _of_root(self, path: str) -> Iterator[Example]:
        turns = [turn for turn in self._turns(path) if not turn.compaction]
        if "turns" in self.choice.kinds:
            for turn in turns:
                if self._counted(turn.problem):
                    before = [ChatMessage(m.role, m.content, learn=False) for m in turn.before]
                    yield self._example("turns", turn.span, (*before, turn.said))
        if "trajectories" in self.choice.kinds:
            for stretch in _stretches(turns):
                if self._counted(next((turn.problem for turn in stretch if turn.problem), None)):
                    given, last = len(stretch[0].before), stretch[-1]
                    before = [
                        ChatMessage(m.role, m.content, learn=number >= given)
                        for number, m in enumerate(last.before)
                    ]
                    yield self._example("trajectories", last.span, (*before, last.said))

    def _counted(self, problem: str | None) -> bool:
        """Whether there is no problem; one is counted."""
        if problem is not None:
            self.left_out[problem] += 1
        return problem is None

    def _turns(self, path: str) -> Iterator[_Turn]:
        """The root calls of a run path with all they were sent."""
        history: list[dict[str, Any]] = []
        broken, code = self._broken_iterations(path), any(self._on(path, "cell"))
        for span in self._on(path, "root_call"):
            prior, added = span.attributes.get(sc.MESSAGES_PRIOR, 0), added_messages(span)
            whole = type(prior) is int and 0 <= prior <= len(history) and added is not None
            history = history[: prior if whole else 0] + (added or [])
            texts = self.view.payloads({message["sha256"] for message in history})
            whole = whole and all(
                message["sha256"] in texts and message["role"] in _ROLES for message in history
            )
            before = [ChatMessage(one["role"], texts.get(one["sha256"], "")) for one in history]
            reply = self._calls.text(span, sc.RESPONSE)
            found = extract(reply or "") if code else None  # an answer in plain text may hold code as well
            problem = None if whole else "the record lacks messages"
            problem = problem or self._unfit(span, reply) or broken.get(span.iteration)
            if problem is None and found is not None and not found.cells:
                problem = "the turn had no cell"
            kept = None if found is None else found.kept
            said = ChatMessage("assistant", (reply or "") if kept is None else kept)
            yield _Turn(span, tuple(before), said, problem, bool(span.attributes.get(sc.COMPACTED)))

    def _broken_iterations(self, path: str) -> dict[int | None, str]:
        """What went wrong below a turn, by iteration."""
        found: dict[int | None, str] = {}
        for span in self._on(path, "cell", "iteration"):
            if span.attributes.get(sc.SCHEMA_PROBLEM):
                found[span.iteration] = "the answer did not fit its schema"
            elif span.kind == "cell" and (span.status != "ok" or span.attributes.get(sc.EXCEPTION_TYPE)):
                found[span.iteration] = "a cell of the turn failed"
            elif span.span_id in self._wrong:
                found[span.iteration] = CALLED_WRONG
        return found

    def _on(self, path: str, *kinds: str) -> Iterator[SpanRow]:
        """The spans of some kinds on a run path, in order."""
        return (span for span in self._by_path[path] if span.kind in kinds)

    @cached_property
    def _by_path(self) -> Mapping[object, list[SpanRow]]:
        found: dict[object, list[SpanRow]] = defaultdict(list)
        for span in self.view.spans:
            if span.kind in ("root_call", "cell", "iteration"):
                found[span.attributes.get(sc.RUN_PATH)].append(span)
        return found

    @cached_property
    def _wrong(self) -> frozenset[str]:
        """What a person called wrong, and all below it."""
        opinions = self.said.spans(self.view.run_id).items()
        found = {span_id for span_id, opinion in opinions if opinion.verdict == "wrong"}
        for span in self.view.spans if found else ():  # parents come first
            if span.parent_id in found:
                found.add(span.span_id)
        return frozenset(found)

    def _of_sub_call(self, span: SpanRow) -> Iterator[Example]:
        reply = self._calls.text(span, sc.RESPONSE)
        if self._counted(self._unfit(span, reply) or self._calls.problem(span)):
            messages = [*self._calls.before(span), ChatMessage("assistant", reply or "")]
            yield self._example("sub-calls", span, messages)

    @cached_property
    def _calls(self) -> CallTexts:
        return CallTexts(self.view)

    def _unfit(self, span: SpanRow, reply: str | None) -> str | None:
        """Why nothing is to be learned from a call, as a clause."""
        finish = decoded(span.attributes.get(sc.FINISH_REASONS))
        if span.span_id in self._wrong:
            return CALLED_WRONG
        if span.attributes.get(sc.SERVED_FROM) not in _KEPT_FROM:
            return "no model was asked"
        if span.status != "ok":
            return "the call failed"
        if not (reply or "").strip():
            return "the reply is empty"
        if finish == "length" or (isinstance(finish, list) and "length" in finish):
            return "the reply was cut off"
        return "the reply declines" if span.kind == "sub_call" and declines(reply or "") else None

    def _example(self, kind: ExampleKind, span: SpanRow, messages: Sequence[ChatMessage]) -> Example:
        made, keys = clean(messages)
        whole = messages[-1].content == self._calls.text(span, sc.RESPONSE) and not keys
        tries = sum(one.kind == "attempt" for one in self._calls.below.get(span.span_id, ()))
        reported = _reported(span) if whole and tries == 1 else None  # the usage of a call is that of all
        return Example(
            kind=kind,
            messages=made,
            run_id=self.view.run_id,
            span_id=span.span_id,
            model=span.model or "",
            depth=span.depth,
            tokens=guess(made) if reported is None else reported,
            estimated=reported is None,
            tools=self._calls.tools(span) if kind == "sub-calls" else (),
            redacted=keys,
        )


@dataclass(frozen=True, slots=True)
class _Turn:
    """A root call: what it was sent, what it said (up to its last cell), what speaks against learning it."""

    span: SpanRow
    before: tuple[ChatMessage, ...]
    said: ChatMessage
    problem: str | None
    compaction: bool


def _stretches(turns: Sequence[_Turn]) -> list[list[_Turn]]:
    """Turns whose conversation only grows; where older turns were summed up, a new stretch begins."""
    found: list[list[_Turn]] = []
    for turn in turns:
        grown = found and _continues(turn, found[-1][-1])
        if grown:
            found[-1].append(turn)
        else:
            found.append([turn])
    return found


def _continues(turn: _Turn, last: _Turn) -> bool:
    """Whether a turn was sent all of the one before and its reply (of an empty one the words for it)."""
    sent = len(last.before)
    if len(turn.before) <= sent or turn.before[:sent] != last.before:
        return False
    reply = turn.before[sent]
    return reply.role == "assistant" and (reply == last.said or not last.said.content)


def _reported(span: SpanRow) -> int | None:
    """Tokens of messages and reply as the provider counted them; None where it did not."""
    if span.tokens is None or span.attributes.get(sc.USAGE_ESTIMATED):
        return None
    reasoning = span.attributes.get(sc.USAGE_REASONING) or 0
    total = span.tokens["total"] - (reasoning if type(reasoning) is int else 0)
    return total if total > 0 else None
