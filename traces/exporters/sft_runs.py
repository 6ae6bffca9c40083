"""Which runs are fit to train a model on: right answers that a model gave by itself, wholly on record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from rlm_core import semconv as sc
from rlm_core.pricing import DEMO_PREFIX
from traces.check_log import checks
from traces.home import Home
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


def passed_reruns(home: Home) -> dict[str, str]:
    """The runs in which checks asked a question anew and got the expected answer -> the runs whose it is."""
    return {
        finding.now_run_id: finding.run_id
        for check in checks(home)
        if check.mode == "rerun"
        for finding in check.findings
        if finding.passed and finding.now_run_id
    }


def left_out(
    view: RunView, said: Opinions, choice: Choice, passed: Mapping[str, str] | None = None
) -> str | None:
    """Why nothing of a run is exported, as a clause; None where it is fit. `passed`: see `passed_reruns`."""
    top = next((span for span in view.spans if span.kind == "run" and span.parent_id is None), None)
    if (reason := unfit(view.summary, said, choice, passed)) is not None:
        return reason
    if top is None or view.live:
        return "its record is not complete"
    if not choice.include_demo and any(is_demo(span.model) for span in view.spans):
        return DEMO
    mark = top.attributes.get(sc.ANSWER_MARK)
    return f"its answer is marked: {mark}" if mark else None


def unfit(
    run: RunSummary, said: Opinions, choice: Choice, passed: Mapping[str, str] | None = None
) -> str | None:
    """`left_out` as far as the line of a run in a list tells, so that a run need not be read for it."""
    if run.replay_of is not None:
        return "it plays another run again"
    if run.status == "running":
        return "it still goes on"
    if not run.complete:
        return "its record is not complete"
    if run.demo and not choice.include_demo:
        return DEMO
    if run.answer is None or run.status != "ok":
        return "it has no answer"
    if run.forced:
        return "its answer was forced by a limit"
    return None if choice.any_verdict else _not_right(run, said, passed or {})


def is_demo(model: str | None) -> bool:
    """Whether a demo model answers for this id."""
    return (model or "").startswith(DEMO_PREFIX)


def _not_right(run: RunSummary, said: Opinions, passed: Mapping[str, str]) -> str | None:
    """A person's verdict decides; without one the answer that a person expects of the run, or of the one that
    a check asked anew in it: as it is expected now, since a person may have put right what they expected.
    """
    opinion = said.of(run.run_id)
    if opinion is not None and opinion.verdict is not None:
        return None if opinion.verdict == "right" else f"its verdict is {opinion.verdict}"
    if (opinion is None or opinion.expected is None) and run.run_id in passed:
        opinion = said.of(passed[run.run_id])
    if opinion is None or opinion.expected is None:
        return "nobody said whether it is right"
    fits = same_answer(run.answer, opinion.expected, opinion.how)
    if fits is None:
        return "only a judge could tell whether it is right"
    return None if fits else "its answer is not the expected one"
