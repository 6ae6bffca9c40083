"""Regression sets with checks that found whatever one likes: nothing is played for them."""

from __future__ import annotations

from collections.abc import Sequence

from traces.check_log import CheckLog
from traces.home import Home
from traces.opinions import judge, tag
from traces.reading import load_run
from traces.regression import Played, Result, regression_set

MODELS = {"sub": "openai/x"}


def make_set(home: Home, name: str, expected: Sequence[tuple[str, str]]) -> None:
    """Give runs the tag of the set and the answers that they should have."""
    for run_id, answer in expected:
        tag(home, run_id, [name])
        judge(home, run_id, verdict=None, expected=answer)


def checked(home: Home, name: str, passed: Sequence[bool | None], *, status: str = "done") -> str:
    """A check that found this of the members, in their order, fewer than all where it is shorter; its id.

    What failed was moved by the first sub-call of the run.
    """
    members = regression_set(home, name).members
    with CheckLog(home, name, "replay", MODELS, len(members)) as log:
        for member, result in zip(members, passed, strict=False):
            run_id = member.run.run_id
            calls = [span.span_id for span in load_run(home, run_id).spans if span.kind == "sub_call"]
            moved = tuple(calls[:1]) if result is False else ()
            played = Played(member.run.answer, run_id, len(calls))
            why = "typed" if result is None else None
            found = Result(
                member, played, result, member.was_right, result is False, moved, moved, bool(moved), why=why
            )
            log.result(found)
        if status != "failed":
            log.end(cancelled=status == "cancelled")
    return log.check_id
