"""Diagnosing a wrong answer: which sub-calls, child runs or cells broke it, proven by replays.

With a good run (or a twin, the same cells with every sub-call asked again) the candidates are the frontier of
the diff and what the good run has there. All of them are tested first: unless that makes the answer right,
no part of them is blamed. Then `traces.culprits` searches for a minimal set. Without a good run, suspects are
tried one by one with texts that rules propose. Nothing is decided by a model: a trial is a replay, and one
that cannot be decided is never taken for a no. After Zeller's delta debugging; design: culprits, suspects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rlm_core.errors import InputError, RecordError, RunCancelled
from rlm_core.normalise import normalise
from traces.candidates import (
    Candidate,
    Choice,
    from_good_run,
    from_patches,
    late_cells,
    within_reach,
)
from traces.culprits import Answer, Found, OutOfBudget, minimal
from traces.diagnose_alone import diagnose_alone
from traces.diagnosis import Diagnosis, Verdict
from traces.diagnosis_log import new_diagnosis_id
from traces.diagnosis_words import (
    asked_again_words,
    assumed_words,
    found_words,
    guessed_words,
    lost_words,
    not_fixed_words,
    out_of_reach_words,
    quoted,
)
from traces.diff import Diff, diff
from traces.finding import number_of
from traces.findings import findings
from traces.home import Home
from traces.missed import with_missed
from traces.replay import BudgetUsedUp, Replayer
from traces.replay_facts import replay_facts
from traces.replay_runs import record_replay
from traces.same_answer import same_answer
from traces.suspects import Suspect, suspects
from traces.telling import Answers, child_answers, does_the_same, right_answers, telling
from traces.trial import Budget, Mode, Patch, Replayability, Target, Trial
from traces.view import RunView

_SUSPECTS: Final = 50  # that a diagnosis lists
_CANCELLED: Final = "it was cancelled"
_ALLOW: Final = "With calls to a model allowed, what the record lacks would be asked."
_ANOTHER_TIME: Final = "With other hash and random seeds the same texts do not make the answer right."
_UNTOLD: Final = (
    "Whether that holds with other hash and random seeds cannot be told without asking a model again, so it "
    "is not proven."
)
_TYPED: Final = (
    "The good run plays recorded code again in which the root had typed this same answer, so it does not "
    "tell what is right: what it shows the root is compared. The expected answer would tell more."
)


def diagnose(
    home: Home,
    view: RunView,
    *,
    good: RunView | None = None,
    target: Target | None = None,
    patches: Sequence[Patch] = (),
    budget: Budget | None = None,
    mode: Mode | None = None,
    repeat: int = 1,
    replayer: Callable[..., Replayer] = Replayer,
    tell: Callable[[Trial], None] | None = None,
    stage: Callable[[str], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    diagnosis_id: str | None = None,
    record: bool = False,
) -> Diagnosis:
    """Find out what broke the answer of a run.

    `good`: a run of the same question to compare with, whose answer is the target unless one is given.
    `patches`: texts of a person, tried in place of suspects. `mode` is "strict", or "recompute" when the
    budget allows live calls, unless given. A root that has to be asked again is asked `repeat` times. `tell`
    is called with every trial, `stage` with what comes next, in words. `record` plays the joint patch of the
    culprits once more and keeps that as a run, when a replay is left. Raises InputError for a run that goes
    on, for a comparison that does not exist or a patch that fits no span, RecordError when a record cannot be
    read.
    """
    if view.live:
        raise InputError(f"run {view.run_id} is still going on: it can be diagnosed when it has ended")
    allowed = budget or Budget()
    if target is None and good is not None and good.summary.answer is not None:
        _refuse_other_question(view, good)
        target = Target(good.summary.answer, origin="good run")
    notes = []
    if good is not None and target is not None and _typed_before(view, good, target):
        target, notes = None, [_TYPED]
    work = Work(
        view,
        good,
        target,
        allowed,
        mode or ("recompute" if allowed.live_calls > 0 else "strict"),
        tell or (lambda _: None),
        stage or (lambda _: None),
        cancelled or (lambda: False),
        diagnosis_id or new_diagnosis_id(),
        warnings=notes,
    )
    if target is not None and same_answer(view.summary.answer, target.text, target.how):
        return work.result("right", f"The answer is {quoted(view.summary.answer)}, as it should be.")
    also = () if good is None else (good,)
    try:
        player = replayer(home, view, also=also, budget=allowed, cancelled=cancelled)
    except RecordError as error:
        return work.result("not_replayable", str(error))
    with player:
        work.player = player
        if record:
            work.recorded_in = home
        return work.run(patches, repeat)


@dataclass
class Work:
    """One diagnosis at work."""

    view: RunView
    good: RunView | None
    target: Target | None
    budget: Budget
    mode: Mode
    tell: Callable[[Trial], None]
    stage: Callable[[str], None]
    cancelled: Callable[[], bool]
    diagnosis_id: str
    player: Replayer | None = None
    recorded_in: Home | None = None
    check: Replayability | None = None
    difference: Diff | None = None
    candidates: tuple[Candidate, ...] = ()
    background: tuple[Candidate, ...] = ()  # patched in every trial
    trials: list[Trial] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    stopped: str | None = None
    known: dict[frozenset[Patch], Trial] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.suspected: dict[str, Suspect] = suspects(self.view)
        if self.good is None:
            self.suspected = with_missed(self.view, self.suspected, self.target)
        children = child_answers(self.view, self.good)
        self.right = right_answers(self.target, self.view.summary.answer, children)

    # -- the way

    def run(self, patches: Sequence[Patch], repeat: int) -> Diagnosis:
        """From the check of the record to the verdict."""
        assert self.player is not None
        self.stage("playing the run again without a patch")
        try:
            self.check = check = self.player.check()
        except RunCancelled:
            self.stopped = _CANCELLED
            return self.result("undecided", f"Nothing could be decided: {self.stopped}.")
        self.warnings += check.warnings
        if check.status == "not_replayable":
            return self.result("not_replayable", check.words)
        if check.status == "seed_dependent":
            return self.result("seed_dependent", check.words)
        choice = within_reach(self._choice(patches), self.player.out_of_reach)
        self.warnings += out_of_reach_words(self.view, choice.stuck)
        try:
            return self._tried(choice, repeat) if choice.sets else self._nothing_to_try(choice, repeat)
        except OutOfBudget:
            return self.result("undecided", f"Nothing could be decided: {self.stopped}.")

    def _choice(self, patches: Sequence[Patch]) -> Choice:
        if patches:
            given = from_patches(self.view, patches, "user")
            return Choice((given,) if given else ())
        if self.good is None:
            return Choice(())
        self.stage("comparing the two runs")
        self.difference = found = diff(self.view, self.good)
        self.warnings += found.notes
        late = late_cells(self.view, self.good, found.rows, self.target)
        plan = found.plan
        parted = None if plan is None or plan.a is None or plan.b is None else (plan.a, plan.b)
        return from_good_run(
            self.view, self.good, found.frontier, self.suspected, parted if parted in late else None, late
        )

    def _tried(self, choice: Choice, repeat: int) -> Diagnosis:
        """All candidates together first, then the search for the least of them that do the same."""
        self.warnings += lost_words(self.view, choice.lost)
        joint: list[tuple[int, Trial]] = []
        inside: tuple[Sequence[Candidate], Trial] | None = None
        silent: tuple[Sequence[Candidate], Trial] | None = None
        for candidates in choice.sets:
            self.candidates = candidates
            self.stage(f"trying {_all(candidates)}")
            trial = self.play(candidates)
            joint.append((len(candidates), trial))
            if self.right_now(trial):
                return self.found(*(inside or (candidates, trial)), repeat)
            if trial.outcome == "reached_root":  # the root was shown something else, but not the right answer
                silent = silent or (candidates, trial)
            if trial.outcome == "moved" and trial.reached is not None and trial.reached.path != "0":
                inside = inside or (candidates, trial)  # a child's root typed its answer: see the next sets
        if silent:
            return self.found(*(inside or silent), repeat)
        found = self._with_noise(choice.sets[0], repeat) or self._with_late(choice.late, repeat)
        return found or self._not_fixed(joint)

    def _with_late(self, candidates: tuple[Candidate, ...], repeat: int) -> Diagnosis | None:
        """With all other code of the good run as well: what one cell shows can hide that the next one is
        wrong too. None when that does not help.
        """
        if not candidates:
            return None
        before, self.candidates = self.candidates, candidates
        self.stage(f"trying {_all(candidates)}, with later code")
        trial = self.play(candidates)
        if trial.outcome == "fixed":
            return self.found(candidates, trial, repeat)
        self.candidates = before
        return None

    def _with_noise(self, candidates: tuple[Candidate, ...], repeat: int) -> Diagnosis | None:
        """Where no model may be asked and the candidates lead to prompts that no run holds: the same with all
        other replies as the good run has them, which differ in no more than white space or letter case. None
        when that does not help.
        """
        if self.good is None or self.budget.live_calls or self.trials[-1].outcome != "undecided":
            return None
        chosen = {one.span_id for one in candidates}
        closer = from_good_run(self.view, self.good, diff(self.view, self.good, "exact").frontier, {})
        self.background = tuple(one for one in closer.sets[0] if one.span_id not in chosen)
        if not self.background:
            return None
        self.stage(f"trying them with {len(self.background):,} replies that differ in form only")
        trial = self.play(candidates)
        if trial.outcome in ("fixed", "reached_root"):
            return self.found(candidates, trial, repeat)
        self.background = ()
        return None

    def found(self, candidates: Sequence[Candidate], joint: Trial, repeat: int) -> Diagnosis:
        """The verdict on candidates that do it all together: the least of them that do it too."""
        self.candidates = tuple(candidates)
        self.stage(f"searching for the culprits among {number_of(len(candidates), 'candidate')}")
        found = self._least(candidates, joint, self.right)
        again = self.asked_again(found, repeat)
        if again and self.right and not any(one.outcome == "fixed" for one in again):
            # that output looked as if it told the right answer: now it has to be what all together show
            exact = self._least(candidates, joint, ())
            second = self.asked_again(exact, repeat) if exact.members != found.members else ()
            if any(one.outcome == "fixed" for one in second):
                found, again = exact, second
        return self.concluded(found, again)

    def _least(
        self, candidates: Sequence[Candidate], joint: Trial, right: Sequence[Answers]
    ) -> Found[Candidate]:
        def test(chosen: Sequence[Candidate]) -> Answer:
            return does_the_same(self.known.get(_key(chosen)) or self.play(chosen), joint, right)

        return minimal(candidates, test, [one.weight for one in candidates])

    def concluded(self, found: Found[Candidate], again: Sequence[Trial], untried: int = 0) -> Diagnosis:
        """The verdict on a set, after the root was asked `again` where it had to be; `untried` counts texts
        for others that might do as well.
        """
        trial = self._kept(found, self.known[_key(found.members)])
        words = [found_words(self.view, found, trial, self.target)]
        if trial.outcome != "fixed":
            answers = [one.answer for one in again]
            words.append(asked_again_words([one.outcome for one in again], answers, self.target))
        if found.ended == "unknown" and self._lacks_replies():
            words.append(_ALLOW)
        guessed = guessed_words(found.members)
        words += guessed
        if untried:
            texts = number_of(untried, "proposed text")
            words.append(f"{texts} for others could not be tried: {self.stopped}.")
        kinds = {one.culprit.kind for one in found.members}
        sure = found.ended == "minimal" and not (untried or guessed or self.background)
        return self.result(
            "sub_call" if "cell" not in kinds else "cell" if len(kinds) == 1 else "sub_call_and_cell",
            " ".join(words),
            outcome=trial.outcome,
            proven=sure and self._holds(trial),
            culprits=tuple(one.culprit for one in found.members),
            reached=trial.reached,
            asked_again=tuple(one.outcome for one in again),
            assumed=assumed_words(trial, found, self.view, len(self.background)),
        )

    def _holds(self, trial: Trial) -> bool:
        """Whether a trial proves that the answer is right then: no judge said so, and no seed decides it."""
        judged = self.target is not None and self.target.how == "judge"
        if trial.outcome != "fixed" or judged or self.cancelled():
            return False
        assert self.player is not None
        self.stage("playing the culprits' texts once more with other seeds")
        held = self.player.holds(trial, self.target)
        if held or self.cancelled():
            return not self.cancelled()
        self.warnings.append(_UNTOLD if held is None else _ANOTHER_TIME)
        return False

    def _kept(self, found: Found[Candidate], trial: Trial) -> Trial:
        """The trial that decides, played once more and recorded as a run when that was asked for."""
        if self.recorded_in is None or self.cancelled() or self._replays_left() < 1:
            return trial
        assert self.player is not None
        patches = [one.patch for one in (*found.members, *self.background)]
        kept = record_replay(
            self.recorded_in, self.player, patches, mode=self.mode, target=self.target,
            warn=self.warnings.append,
        )  # fmt: skip
        self.trials.append(kept)
        self.tell(kept)
        if kept.outcome == trial.outcome or self.cancelled():
            return trial
        self.warnings.append("Played once more, the texts of the culprits did not come to the same.")
        return kept

    def asked_again(self, found: Found[Candidate], repeat: int) -> tuple[Trial, ...]:
        """The root asked again, as often as live calls are left for, unless its answer is right already."""
        trials: list[Trial] = []
        if self.known[_key(found.members)].outcome == "fixed":
            return ()
        self.stage("asking the root again")
        with suppress(OutOfBudget):
            while len(trials) < repeat and self._calls_left():
                trials.append(self.play(found.members, "reask"))
        return tuple(trials)

    # -- verdicts without a culprit

    def _not_fixed(self, joint: Sequence[tuple[int, Trial]]) -> Diagnosis:
        words = not_fixed_words(joint, self.good is not None, self.target)
        outcome = joint[0][1].outcome
        if self._plan_diverged():
            return self.result("plan_diverged", f"{_plan_words(self.difference)} {words}", outcome=outcome)
        hint = outcome == "undecided" and self._lacks_replies()
        return self.result("undecided", f"{words} {_ALLOW}" if hint else words, outcome=outcome)

    def _nothing_to_try(self, choice: Choice, repeat: int) -> Diagnosis:
        if self._plan_diverged():
            return self.result("plan_diverged", _plan_words(self.difference))
        if self.difference is not None:
            same = "No sub-call that was asked the same was answered differently, and no cell differs."
            return self.result("undecided", " ".join(lost_words(self.view, choice.lost)) or same)
        return diagnose_alone(self, repeat)

    def right_now(self, trial: Trial) -> bool:
        """Whether a trial makes the answer right, or shows the root the right answer that it has to type."""
        told = trial.outcome == "reached_root" and any(telling(trial, one) for one in self.right)
        return trial.outcome == "fixed" or told

    def _lacks_replies(self) -> bool:
        """Whether a trial ended for want of a reply, and no model might be asked."""
        wanting = any(one.outcome == "undecided" and one.misses for one in self.trials)
        return wanting and not self.budget.live_calls

    def _plan_diverged(self) -> bool:
        """Whether the roots wrote other code; another text or number in the same code is no other plan."""
        plan = None if self.difference is None else self.difference.plan
        return plan is not None and not plan.literals

    # -- trials

    def play(self, chosen: Sequence[Candidate], mode: Mode | None = None) -> Trial:
        """One replay. Raises OutOfBudget, with the reason in `stopped`, when it may not be made."""
        assert self.player is not None
        self.stop_if_wished()
        patches = [one.patch for one in (*chosen, *self.background)]
        try:
            trial = self.player.trial(patches, mode=mode or self.mode, target=self.target)
        except BudgetUsedUp as error:
            self.stopped = str(error)
            raise OutOfBudget from None
        self.trials.append(trial)
        self.tell(trial)
        if trial.outcome == "undecided":
            self.stop_if_wished()  # a trial that was broken off says nothing
            if trial.stopped is not None and self.budget.live_calls and not self._calls_left():
                self.stopped = trial.stopped
        if mode is None:
            self.known[_key(chosen)] = trial
        return trial

    def stop_if_wished(self) -> None:
        if self.cancelled():
            self.stopped = _CANCELLED
            raise OutOfBudget

    def _replays_left(self) -> int:
        assert self.player is not None
        return self.budget.replays - self.player.spent.replays

    def _calls_left(self) -> bool:
        assert self.player is not None
        return self.player.spent.live_calls < self.budget.live_calls

    # -- the result

    def result(self, verdict: Verdict, words: str, **more: Any) -> Diagnosis:
        """The diagnosis with what is true of every verdict."""
        found = Diagnosis(
            self.diagnosis_id,
            self.view.run_id,
            verdict,
            words,
            more.pop("outcome", "unchanged" if verdict == "right" else "undecided"),
            self.mode,
            good_run_id=None if self.good is None else self.good.run_id,
            target=self.target,
            candidates=tuple(one.span_id for one in self.candidates),
            replayability=self.check,
            warnings=tuple(dict.fromkeys([*self.warnings, *self._ambiguous()])),
            suspects=tuple(one.to_json(span_id) for span_id, one in [*self.suspected.items()][:_SUSPECTS]),
            findings=tuple(one.to_json() for one in findings(self.view, self.suspected)),
            trials=tuple(self.trials),
            budget=self.budget,
            stopped=self.stopped,
        )
        spent = found.spent if self.player is None else self.player.spent
        return replace(found, spent=spent, **more)

    def _ambiguous(self) -> list[str]:
        """A warning when equal requests were answered differently: a reply stands for its place only."""
        spans = {one for trial in self.trials for one in trial.ambiguous}
        if not spans:
            return []
        return [
            f"{len(spans):,} sub-calls were asked the same as others and answered differently; each got "
            "the reply that stands in its own place."
        ]


def _refuse_other_question(view: RunView, good: RunView) -> None:
    asked, other = view.summary.question, good.summary.question
    if asked is not None and other is not None and normalise(asked) != normalise(other):
        raise InputError(
            f"run {good.run_id} was asked another question, so its answer says nothing of this one: give the "
            "expected answer as well"
        )


def _typed_before(view: RunView, good: RunView, target: Target) -> bool:
    """Whether the answer of a good run is the wrong one because that is a replay, such as a twin, whose root
    had typed its answer after the outputs of the run that it plays."""
    replay = replay_facts(good)
    typed = replay is not None and replay.outcome == "reached_root" and target.origin == "good run"
    return typed and same_answer(view.summary.answer, target.text, target.how) is True


def _all(candidates: Sequence[Candidate]) -> str:
    return "the one candidate" if len(candidates) == 1 else f"all {len(candidates):,} candidates together"


def _key(chosen: Sequence[Candidate]) -> frozenset[Patch]:
    return frozenset(one.patch for one in chosen)


def _plan_words(difference: Diff | None) -> str:
    plan = None if difference is None else difference.plan
    if plan is None:
        return ""
    where = "" if plan.iteration is None else f" from iteration {plan.iteration} on"
    return (
        f"The roots of the two runs wrote other code{where}, so single calls cannot be compared; a twin (the "
        "same cells with every sub-call asked again) can be."
    )
