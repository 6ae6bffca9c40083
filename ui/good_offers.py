"""Runs that a diagnosis without a good run could be compared with, as commands: offered, never chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from rlm_core.errors import RLMScopeError
from traces.imported import is_foreign
from traces.questions import asked
from traces.same_answer import same_answer

if TYPE_CHECKING:
    from traces.diagnosis import Diagnosis
    from traces.home import Home
    from traces.rows import RunSummary
    from traces.view import RunView

_MOST: Final = 3
_MOST_REPLAYS: Final = 20  # that are read, to know whether they are twins or were patched


@dataclass(frozen=True, slots=True)
class Offer:
    """A finished run of the same question over the same corpus: its answer, whether that is the answer of the
    run in question, and the command that compares the two."""

    run_id: str
    answer: str
    same_answer: bool
    command: str

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)


def good_offers(home: Home, view: RunView, found: Diagnosis, option: str = "") -> tuple[Offer, ...]:
    """Up to three runs, those with another answer first, then the newest; () where a good run was given or
    there is nothing to find. Left out are runs that a person called wrong and replays with other texts.
    `option` is the option that names the home.
    """
    if found.good_run_id is not None or found.verdict == "right":
        return ()
    own, target = view.summary.answer, found.target
    told = ""
    if target is not None:
        how = "" if target.how == "normalised" else f" --match={quote(target.how)}"
        told = f" --expected={quote(target.text)}{how}"
    ask = f"diagnose {view.run_id} --good"
    if is_foreign(view.summary):  # nothing can be tried out: what is left is to look at both
        ask, told = f"diff {view.run_id}", ""
    fitting = [
        Offer(
            run.run_id, run.answer, same_answer(run.answer, own) is True,
            f"rlmscope {ask} {run.run_id}{told}{option}",
        )
        for run in _fitting(home, view.summary) if run.answer is not None
    ]  # fmt: skip
    return tuple(sorted(fitting, key=lambda one: one.same_answer)[:_MOST])


def _fitting(home: Home, bad: RunSummary) -> Iterator[RunSummary]:
    from traces.opinions import opinions
    from traces.reading import list_runs

    said = opinions(home)
    replays = 0
    for run in list_runs(home, replays=True):
        word = said.of(run.run_id)
        wrong = word is not None and word.verdict == "wrong"
        if run.run_id == bad.run_id or run.status != "ok" or wrong or asked(run) != asked(bad):
            continue
        if run.replay_of is not None:
            replays += 1
            if replays > _MOST_REPLAYS or _patched(home, run.run_id):
                continue
        yield run


def _patched(home: Home, run_id: str) -> bool:
    """Whether the answer of a replay was made with texts of somebody; so for one that cannot be read."""
    from traces.reading import load_run
    from traces.replay_facts import replay_facts

    try:
        replay = replay_facts(load_run(home, run_id))
    except RLMScopeError:
        return True
    return replay is None or bool(replay.patches)
