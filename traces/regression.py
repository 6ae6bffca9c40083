"""Regression sets: runs with a tag and a known answer, checked against what the machine is set up for now.

A set is a tag. Its members are the runs that carry it and of which a person said what the right answer is.
How a member is played again is the caller's business (`Play`): this module compares the answers, says what
changed, and which calls moved it, found by a diff of the old and the new record and, where an answer became
wrong, by a short diagnosis of the new one. Nothing is decided by a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Literal

from rlm_core import semconv as sc
from rlm_core.errors import InputError, RLMScopeError
from rlm_core.normalise import normalise
from traces.home import Home
from traces.opinions import LOOKED_FOR, Opinions, opinions
from traces.rows import RunSummary, money_json
from traces.runs import list_runs, load_run
from traces.same_answer import same_answer
from traces.trial import Budget, Target
from traces.view import RunView

CheckMode = Literal["replay", "rerun"]
#: Mode -> what happens to a run of the set, as a clause.
CHECK_MODES: Final[dict[CheckMode, str]] = {
    "replay": "the recorded cells run again, with every sub-call asked again",
    "rerun": "the question is asked anew over the same corpus",
}
Why = Literal["typed", "unreplayable", "budget", "stopped", "ended early", "unplayable", "judge", "pattern"]
#: Why a check could not tell whether an answer is right -> that as a clause without any text of the run.
WHYS: Final[dict[Why, str]] = {
    "typed": "the root typed the answer; only asking anew tells",
    "unreplayable": "its replay does not come out as recorded",
    "budget": "what the check may spend was used up",
    "stopped": "the replay could not go on",
    "ended early": "the new run ended early",
    "unplayable": "its record or corpus does not allow to play it",
    "judge": "only a judge could compare the answers",
    "pattern": "the search for the expected text took too long",
}
DIAGNOSIS: Final = Budget(replays=60, live_calls=0)  # of one answer that became wrong
_MOVED: Final = 50  # spans that are listed as having moved an answer


@dataclass(frozen=True, slots=True)
class Member:
    """A run of a set: what it should answer, and whether its recorded answer does (None: cannot be told)."""

    run: RunSummary
    target: Target

    @property
    def was_right(self) -> bool | None:
        """Whether the recorded answer is the right one."""
        return same_answer(self.run.answer, self.target.text, self.target.how)


@dataclass(frozen=True, slots=True)
class RegressionSet:
    """The members of a set, oldest first, and the tagged runs that are none, each with the reason."""

    name: str
    members: tuple[Member, ...]
    left_out: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Played:
    """A member played again. `undecided` says why its answer tells nothing, in a sentence that may quote the
    run, and `why` the same in a word of ours; `run_id` names the new record.
    """

    answer: str | None
    run_id: str | None = None
    live_calls: int = 0
    cost_usd: Decimal | None = Decimal(0)
    seconds: float = 0.0
    undecided: str | None = None
    assumed: tuple[str, ...] = ()
    why: Why | None = None


Play = Callable[[RunView, Member], Played]


@dataclass(frozen=True, slots=True)
class Result:
    """One member of a check.

    `passed` is None where it cannot be told, for the reason in `words` and, without any text of the run,
    `why`. `was_passing` is the last check of the set that could tell, else the recorded answer. `moved_by`
    are the spans of the recorded run that were answered otherwise and with which the answer changed,
    `moved_by_now` the same in the new record; `proven` says that replays showed that exactly these make the
    difference.
    """

    member: Member
    played: Played
    passed: bool | None
    was_passing: bool | None
    changed: bool
    moved_by: tuple[str, ...] = ()
    moved_by_now: tuple[str, ...] = ()
    proven: bool = False
    words: str = ""
    why: Why | None = None

    def to_json(self) -> dict[str, Any]:
        """One of `results` of `rlmscope check`."""
        played, target = self.played, self.member.target
        return {
            "run_id": self.member.run.run_id,
            "question": self.member.run.question,
            "expected": target.text,
            "match": target.how,
            "before": self.member.run.answer,
            "now": played.answer,
            "passed": self.passed,
            "was_passing": self.was_passing,
            "changed": self.changed,
            "moved_by": list(self.moved_by),
            "moved_by_now": list(self.moved_by_now),
            "proven": self.proven,
            "words": self.words,
            "why": self.why,
            "now_run_id": played.run_id,
            "assumed": list(played.assumed),
            "live_calls": played.live_calls,
            "cost_usd": money_json(played.cost_usd),
            "seconds": round(played.seconds, 3),
        }


@dataclass(slots=True)
class Check:
    """A check of a set, as far as it is."""

    results: list[Result] = field(default_factory=list)

    def count(self, passed: bool | None) -> int:
        """How many results passed (True), failed (False), or could not be decided (None)."""
        return sum(result.passed is passed for result in self.results)

    @property
    def live_calls(self) -> int:
        """Calls to models, of all members together."""
        return sum(result.played.live_calls for result in self.results)

    @property
    def cost_usd(self) -> Decimal | None:
        """Dollars of all members together; None when some are unknown."""
        costs = [result.played.cost_usd for result in self.results]
        known = [cost for cost in costs if cost is not None]
        return sum(known, Decimal(0)) if len(known) == len(costs) else None


def regression_set(home: Home, name: str) -> RegressionSet:
    """The set of that name. Raises InputError when no run has the tag, or none of those a known answer."""
    said = opinions(home)
    tagged = [run for run in reversed(list_runs(home)) if name in said.tags(run.run_id)]
    if not tagged:
        known = ", ".join(said.all_tags) or "none yet"
        raise InputError(f"there is no set {name[:40]!r}: no run has this tag (tags: {known})")
    members, left_out = [], []
    for run in tagged:
        target = target_of(said, run)
        if target is None:
            left_out.append((run.run_id, "nobody has said what its answer should be"))
        else:
            members.append(Member(run, target))
    if not members:
        raise InputError(
            f"no run with the tag {name[:40]!r} has an expected answer; say it with "
            "`rlmscope mark RUN --expected TEXT`"
        )
    return RegressionSet(name, tuple(members), tuple(left_out))


def set_sizes(home: Home) -> dict[str, int]:
    """The tags that are sets, by name, with how many runs have the tag and a known answer."""
    said = opinions(home)
    known = (said.tags(run.run_id) for run in list_runs(home) if target_of(said, run))
    return dict(sorted(Counter(tag for tags in known for tag in tags).items()))


def target_of(said: Opinions, run: RunSummary) -> Target | None:
    """The answer that people expect of a run: the one they wrote, else its own if they called it right."""
    opinion = said.of(run.run_id)
    if opinion is None:
        return None
    if opinion.expected is not None:
        return Target(opinion.expected, opinion.how)
    return Target(run.answer) if opinion.verdict == "right" and run.answer else None


def typed_by_root(view: RunView) -> bool:
    """Whether the answer stands in the code of the cell that gave it: the root may have written it after it
    read what the cells before had printed, and then no replay of that code can change it."""
    top = next((span for span in view.spans if span.kind == "run" and span.parent_id is None), None)
    number = None if top is None else top.attributes.get(sc.ANSWER_CELL)
    answer = normalise(view.summary.answer or "")
    for span in view.spans:
        digest = span.attributes.get(sc.CODE + ".sha256")
        if span.kind == "cell" and span.depth == 0 and span.cell == number and isinstance(digest, str):
            return answer in normalise(view.payload(digest) or "")
    return True  # it was forced, or nothing is known of it: only the root could tell


def check_set(
    home: Home,
    members: Iterable[Member],
    play: Play,
    *,
    before: Mapping[str, bool] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[Result]:
    """Play each member again and compare; a result comes when it is there.

    `before` says of runs whether they passed at the last check. A member that cannot be played is undecided:
    the others are checked all the same. Ends early when `cancelled`.
    """
    for member in members:
        if cancelled():
            return
        try:
            view = load_run(home, member.run.run_id)
            played = play(view, member)
        except RLMScopeError as error:
            played, view = Played(None, undecided=str(error), why="unplayable"), None
        yield _result(home, view, member, played, (before or {}).get(member.run.run_id, member.was_right))


def _result(
    home: Home, view: RunView | None, member: Member, played: Played, was_passing: bool | None
) -> Result:
    target = member.target
    undecided = played.undecided
    passed = None if undecided is not None else same_answer(played.answer, target.text, target.how)
    changed = undecided is None and same_answer(played.answer, member.run.answer) is not True
    moved = Moved()
    if changed and view is not None and played.run_id is not None:
        moved = moved_by(home, view, played.run_id, target)
    words, why = undecided or moved.words, played.why
    if passed is None and undecided is None:
        words = f"Only a judge could tell ({target.how}); what a model says decides no check."
        why = "judge"
        if target.how in LOOKED_FOR:
            words, why = "The search for the expected text took too long.", "pattern"
    return Result(
        member, played, passed, was_passing, changed, moved.before, moved.now, moved.proven, words, why
    )


@dataclass(frozen=True, slots=True)
class Moved:
    """Spans that moved an answer, in the old and the new record, and what is known of it in a sentence."""

    before: tuple[str, ...] = ()
    now: tuple[str, ...] = ()
    proven: bool = False
    words: str = ""


def moved_by(home: Home, view: RunView, now_id: str, target: Target) -> Moved:
    """What moved the answer of a run that was played again as `now_id`: the frontier between both records,
    and where one of the two answers is right and the other wrong, what a short diagnosis of the wrong one
    proves.
    """
    from traces.diff import diff

    try:
        now = load_run(home, now_id)
        found = diff(now, view)
    except RLMScopeError as error:
        return Moved(words=f"What moved the answer is not known: {error}")
    if found.plan is not None:
        return Moved(words="The root wrote another plan, so no single call can be said to have moved it.")
    pairs = [(row.a, row.b) for row in found.frontier if row.a is not None and row.b is not None]
    if not pairs:
        return Moved(words="No sub-call was answered otherwise; what moved the answer is not known.")
    right = [same_answer(one.summary.answer, target.text, target.how) for one in (now, view)]
    proven: frozenset[str] = frozenset()
    if right in ([False, True], [True, False]):
        wrong, good = (now, view) if right[1] else (view, now)
        proven = _culprits(home, wrong, good, target)
    chosen = [pair for pair in pairs if proven.intersection(pair)] or pairs
    words = ""
    if not proven and len(pairs) > 1:
        words = f"{len(pairs):,} calls were answered otherwise; it was not narrowed down which of them count."
    now_spans, old_spans = zip(*chosen[:_MOVED], strict=True)
    return Moved(old_spans, now_spans, bool(proven), words)


def _culprits(home: Home, wrong: RunView, good: RunView, target: Target) -> frozenset[str]:
    """The spans that a diagnosis proves to have made an answer wrong; none when it proves nothing."""
    from traces.diagnose import diagnose

    try:
        found = diagnose(home, wrong, good=good, target=target, budget=DIAGNOSIS)
    except RLMScopeError:
        return frozenset()
    return frozenset(culprit.span_id for culprit in found.culprits) if found.proven else frozenset()
