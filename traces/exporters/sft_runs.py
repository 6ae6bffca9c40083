"""Which runs are fit to train a model on: right answers that a model gave by itself, wholly on record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from rlm_core import semconv as sc
from rlm_core.pricing import DEMO_PREFIX
from traces.opinions import Opinions
from traces.rows import RunSummary
from traces.same_answer import same_answer
from traces.view import RunView

ExampleKind = Literal["trajectories", "turns", "sub-calls"]
#: What an example can be -> that in words.
KINDS: Final[dict[ExampleKind, str]] = {
    "trajectories": "all turns of the root, from the question to the answer, in one conversation",
    "turns": "one turn of the root, with the conversation that led to it",
    "sub-calls": "one prompt of a sub-call with its reply",
}
assert set(KINDS) == set(get_args(ExampleKind))
DEMO: Final = "a demo model answered in it"


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be exported. `any_verdict`: also runs nobody called right; `include_demo`: also what demo
    models said.
    """

    kinds: tuple[ExampleKind, ...] = ("trajectories", "sub-calls")
    any_verdict: bool = False
    include_demo: bool = False


def left_out(view: RunView, said: Opinions, choice: Choice) -> str | None:
    """Why nothing of a run is exported, as a clause; None where it is fit."""
    run = view.summary
    top = next((span for span in view.spans if span.kind == "run" and span.parent_id is None), None)
    if run.replay_of is not None:
        return "it plays another run again"
    if view.live:
        return "it still goes on"
    if top is None or not run.complete:
        return "its record is not complete"
    if not choice.include_demo and any(is_demo(span.model) for span in view.spans):
        return DEMO
    if run.answer is None or run.status != "ok":
        return "it has no answer"
    if run.forced:
        return "its answer was forced by a limit"
    if mark := top.attributes.get(sc.ANSWER_MARK):
        return f"its answer is marked: {mark}"
    return None if choice.any_verdict else _not_right(run, said)


def is_demo(model: str | None) -> bool:
    """Whether a demo model answers for this id."""
    return (model or "").startswith(DEMO_PREFIX)


def _not_right(run: RunSummary, said: Opinions) -> str | None:
    """A person's verdict decides; without one the answer that a person expects of the run."""
    opinion = said.of(run.run_id)
    if opinion is None or (opinion.verdict is None and opinion.expected is None):
        return "nobody said whether it is right"
    if opinion.verdict is not None:
        return None if opinion.verdict == "right" else f"its verdict is {opinion.verdict}"
    fits = same_answer(run.answer, opinion.expected, opinion.how)
    if fits is None:
        return "only a judge could tell whether it is right"
    return None if fits else "its answer is not the expected one"
