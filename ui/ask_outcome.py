"""What came out of a run, as the JSON document of `rlmscope ask` and as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlm_core.answer import Answer
from rlm_core.sandbox import level_words
from traces.refused import refused_words
from ui.figures import counted, duration, money, spent, tokens
from ui.models_config import DEMO_WORDS, Models
from ui.visible import block, line

if TYPE_CHECKING:
    from traces.estimate import Estimate

CUT_SHORT: Final = ("cancelled", "error")  # stop reasons that make a failure, whatever was found until then
_FACTS: Final = (
    "run_id",
    "stop_reason",
    "forced",
    "iterations",
    "sub_calls",
    "failed_sub_calls",
    "refused_sub_calls",
    "cache_hits",
    "tool_calls",
    "cost_usd",
    "known_usd",
    "cost_status",
    "tokens",
    "sandbox",
    "seconds",
    "confidence",
    "note",
    "mark",
    "best_partial",
    "error",
)
_INSISTED: Final = "the program insisted on it"
_MARKS: Final = {"schema": "it does not fit the schema that was asked for"}


def mark_words(mark: str) -> str:
    """Why an answer was accepted although something speaks against it, as a clause."""
    return _MARKS.get(mark, _INSISTED)


def estimate_words(estimate: Estimate, *, demo: bool) -> str:
    """What a run (`demo`: of the demo model) will probably take, on one line."""
    where = {"same_corpus": "this corpus", "similar_size": "a corpus of similar size"}[estimate.basis]
    low, high = (money(usd, "demo" if demo else None) for usd in estimate.usd or (None, None))
    parts = (
        _spread("cost {}", low, high),
        _spread("{} tokens", *(f"{count:,}" for count in estimate.tokens)),
        _calls(*estimate.sub_calls),
        _spread("{}", *map(duration, estimate.seconds)),
    )
    past = f"{counted(estimate.runs, 'earlier run')} of these models over {where}"
    return f"estimate from {past}: {' · '.join(parts)}"


def _calls(low: int, high: int) -> str:
    return counted(low, "sub-call") if low == high else _spread("{} sub-calls", f"{low:,}", f"{high:,}")


def _spread(form: str, low: str, high: str) -> str:
    """The median, and what 95 of 100 runs do not exceed where that is more."""
    return form.format(low) if low == high else f"{form.format(low)} (95 of 100 at most {high})"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out, with everything that is said about it."""

    question: str
    models: Models
    corpus_id: str
    answer: Answer
    spool: Path
    record_problems: int
    problems: list[dict[str, str]] = field(default_factory=list)
    notices: tuple[str, ...] = ()
    estimate: Estimate | None = None  # made before the start
    strategy: str = "rlm"

    @property
    def run_id(self) -> str:
        """The run that it came out of."""
        return self.answer.run_id

    @property
    def exit_code(self) -> int:
        """0 when there is an answer and nothing cut the run short, else 1."""
        return int(self.answer.text is None or self.answer.stop_reason in CUT_SHORT)

    @property
    def failure(self) -> str:
        """Why there is no answer, as one sentence."""
        answer = self.answer
        if answer.stop_reason == "cancelled":
            return "the run was cancelled" + (f": {answer.error}" if answer.error else "")
        return f"the run gave no answer: {answer.error or f'it stopped with {answer.stop_reason}'}"

    def document(self) -> dict[str, Any]:
        """The JSON document of `rlmscope ask`."""
        from rlm_core.values import to_form

        answer = self.answer
        return {
            "question": self.question,
            "answer": answer.text,
            "value": to_form(answer.value),
            **{name: getattr(answer, name) for name in _FACTS},
            "strategy": self.strategy,
            "root_model": self.models.root,
            "sub_model": self.models.sub,
            "demo": self.models.demo,
            "corpus_id": self.corpus_id,
            "estimate": None if self.estimate is None else self.estimate.to_json(),
            "problems": self.problems,
            "notices": self.notices,
            "record": {
                "spool": str(self.spool),
                "problems": self.record_problems,
                "complete": not self.record_problems,
            },
        }

    def lines(self, look: str) -> Iterator[str]:
        """For people: the answer, one line of facts, what else must be said, where to look further."""
        answer = self.answer
        if answer.text is not None:
            yield block(answer.text)
        else:
            yield f"no answer (the run stopped with: {answer.stop_reason})"
            if answer.best_partial is not None:
                yield f"best partial answer: {block(answer.best_partial)}"
        yield ""
        yield from self._marks()
        yield self._facts()
        if self.models.demo:
            yield DEMO_WORDS
        yield f"look deeper: {look}"

    def _marks(self) -> Iterator[str]:
        answer = self.answer
        if answer.confidence is not None or answer.note:
            stated = f"{answer.confidence} confidence: "  # what a note may begin with too
            note = f": {answer.note.removeprefix(stated)}" if answer.note else ""
            yield line(f"confidence {answer.confidence or 'not stated'}{note}")
        if answer.forced:
            yield f"forced: a limit was reached ({answer.stop_reason}), the root gave its best answer"
        if answer.mark:
            yield line(f"marked: {answer.mark} ({mark_words(answer.mark)})")

    def _facts(self) -> str:
        answer = self.answer
        failed = f" ({answer.failed_sub_calls:,} failed)" if answer.failed_sub_calls else ""
        hits, tools = answer.cache_hits, answer.tool_calls
        parts = (
            f"run {answer.run_id}",
            *([] if self.strategy == "rlm" else [f"strategy {self.strategy}"]),
            counted(answer.iterations, "iteration"),
            counted(answer.sub_calls, "sub-call") + failed + refused_words(answer.refused_sub_calls),
            *([f"{hits:,} answered from the cache"] if hits else []),
            *([counted(tools, "tool call")] if tools else []),
            f"tokens {tokens(answer.tokens)}",
            f"cost {spent(answer.cost_usd, answer.cost_status, answer.known_usd)}",
            duration(answer.seconds),
            f"sandbox {level_words(answer.sandbox)}",
        )
        return line(" · ".join(parts))
