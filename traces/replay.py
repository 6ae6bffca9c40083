"""Playing a recorded run again, with patches: what would the answer have been?

The run is executed by the engine itself (`rlm_core`): its recorded cells run in a sandboxed worker over the
recorded corpus, while root turns and sub-calls are answered from the record (`traces.playing`). The root's
code stays as recorded unless mode "reask" asks for it; a patch that only changes what the root was shown is
`reached_root`, never "unchanged". Method: counterfactual replay, `traces.trial` holds the words.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from types import TracebackType
from typing import Final, Self

from rlm_core import semconv as sc
from rlm_core.answer import Answer
from rlm_core.conversation import told_schema
from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError, InputError, ModelError, RecordError, RLMScopeError, RunCancelled
from rlm_core.lm_handler import Completion, LMHandler, Message, Request
from rlm_core.normalise import normalise
from rlm_core.pricing import PriceTable
from rlm_core.progress import Watcher
from rlm_core.rlm import RLM
from rlm_core.telemetry import Attribute, Recorder, as_json
from traces.detail import decoded
from traces.finding import number_of
from traces.home import Home
from traces.judging import Judge, Judged
from traces.opinions import LOOKED_FOR
from traces.playing import Deck, Patches, Playing
from traces.program import read_program, read_replies
from traces.recorded_settings import lacking, with_models
from traces.same_answer import same_answer
from traces.trial import Budget, Difference, Mode, Outcome, Patch, Replayability, Spent, Target, Trial
from traces.view import RunView

_TOLD: Final = 20  # differences whose texts are looked up
_CANCELLED: Final = "it was cancelled"
_SEED_STEP: Final = 0x5EED  # added to the seeds of the second check


class BudgetUsedUp(RLMScopeError):
    """No further replay may be made."""


class Replayer:
    """One recorded run, played again as often as the budget allows. A context manager; not thread-safe.

    `also` are further records whose replies may serve a prompt that this record does not hold (a good run, a
    twin). `handler` is who is asked live; by default the recorded models, or `root` and `sub` in their place,
    through LiteLLM. `sandbox` is the least level of the workers, by default today's minimum.

    Raises InputError or RecordError, in one sentence, when the record cannot be played.
    """

    def __init__(
        self,
        home: Home,
        view: RunView,
        *,
        also: Sequence[RunView] = (),
        handler: LMHandler | None = None,
        root: str | None = None,
        sub: str | None = None,
        budget: Budget = Budget(),  # noqa: B008 - immutable
        prices: PriceTable | None = None,
        sandbox: str | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self.view = view
        self.program = read_program(view)
        self.budget = budget
        self.spent = Spent()
        self._deck = Deck(self.program)
        self._calls = {call.span_id: call for call in self.program.calls.values()}
        self._cells = {cell.span_id: cell for cell in self.program.cells.values()}
        self._others = [Deck(read_replies(other)) for other in also]
        self._cancelled = cancelled or (lambda: False)
        self._corpus = _corpus(home, self.program.corpus_id)
        self._models = {"root": root or self.program.root_model, "sub": sub or self.program.sub_model}
        self._options = with_models(self.program.options, root, sub)
        nobody = handler is None and budget.live_calls <= 0
        self._rlm = RLM(
            self._models["root"],
            self._models["sub"],
            limits=self.program.limits,
            options=self._options,
            handler=_Nobody() if nobody else handler,
            prices=prices,
            sandbox=sandbox,
        )
        self._prices = prices or PriceTable()
        self._judged: dict[tuple[str, str], Judged] = {}
        self._memo: dict[str, dict[str, object]] = {}
        self._checked: Replayability | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release connections and the engine's thread."""
        self._rlm.close()

    def check(self) -> Replayability:
        """Whether the run comes out as recorded: played without a patch with its own seeds, then with others;
        if that is unlike, with its own once more, to tell what depends on seeds from what depends on chance.

        Worked out once; it counts as no replay. Raises RunCancelled.
        """
        from traces.replayability import replayability

        if self._checked is None:
            first = self._unpatched(self.program.seed)
            other = again = None
            if not self.unlike(first):
                other = self._unpatched(self.program.seed + _SEED_STEP)
                again = self._unpatched(self.program.seed) if self.unlike(other) else None
            self._checked = replayability(self, first, other, again)
        return self._checked

    def _unpatched(self, seed: int) -> Played:
        played = self._play(Patches(), "strict", seed)
        if self._cancelled() or played[1].stop_reason == "cancelled":
            raise RunCancelled("the replay was cancelled")
        return played

    def holds(self, trial: Trial, target: Target | None = None) -> bool | None:
        """Whether the patches of a trial come to the same with other hash and random seeds, without asking
        any model (what was answered live before is known); None where that cannot be told. It counts as no
        replay.
        """
        found = self._resolved(trial.patches)
        playing, answer = self._play(found, "strict", self.program.seed + _SEED_STEP)
        outcome = self._outcome(playing, answer, target, self._reached(playing), None)
        return outcome == trial.outcome if outcome != "undecided" or playing.misses == 0 else None

    def unlike(self, played: Played) -> tuple[Difference, ...]:
        """Where an unpatched replay and the record part, in order; texts are whole."""
        playing, answer = played
        found = [one for one in playing.differences if one.what in ("stdout", "exception", "cell", "shown")]
        found += [
            Difference("uncalled", call.key[0], cell=call.key[1], span_id=call.span_id)
            for call in playing.uncalled()
        ]
        if playing.stopped is not None:
            found.append(Difference("call", new=playing.stopped))
        elif (broken := _broken_off(answer)) is not None:
            found.append(Difference("call", new=broken))
        elif answer.text != self.program.answer:
            found.append(Difference("answer", old=self.program.answer, new=answer.text))
        return tuple(self._with_text(one) for one in found[:_TOLD])

    def trial(
        self,
        patches: Sequence[Patch] = (),
        *,
        mode: Mode = "strict",
        target: Target | None = None,
        recorder: Recorder | None = None,
        run_id: str | None = None,
        facts: Mapping[str, Attribute | None] | None = None,
        on_event: Watcher | None = None,
    ) -> Trial:
        """One replay with these patches. `recorder`, `run_id` and `facts` record it as a run; `on_event` is
        told how far it is, from another thread.

        Raises InputError for a patch that names no sub-call, child run or cell, `BudgetUsedUp` when no
        further replay may be made.
        """
        if self.spent.replays >= self.budget.replays:
            raise BudgetUsedUp(f"the budget of {number_of(self.budget.replays, 'replay')} is used up")
        found = self._resolved(patches)
        began = time.monotonic()
        self.spent = replace(self.spent, replays=self.spent.replays + 1)
        playing, answer = self._play(
            found, mode, self.program.seed, recorder=recorder, run_id=run_id, facts=facts,
            on_event=on_event,
        )  # fmt: skip
        usd = answer.cost_usd if playing.live else Decimal(0)
        total = None if usd is None or self.spent.usd is None else self.spent.usd + usd
        self.spent = before = replace(self.spent, live_calls=self.spent.live_calls + playing.live, usd=total)
        judged = self._judge(answer.text, target)
        reached = self._reached(playing)
        return Trial(
            patches=tuple(patches),
            mode=mode,
            outcome=self._outcome(playing, answer, target, reached, judged),
            answer=answer.text,
            original_answer=self.program.answer,
            how=None if target is None else target.how,
            hits=playing.hits,
            misses=playing.misses,
            live_calls=playing.live + self.spent.live_calls - before.live_calls,
            cost_usd=None if usd is None else _more(usd, before, self.spent),
            seconds=time.monotonic() - began,
            reached=reached,
            differences=tuple(self._with_text(one) for one in playing.differences[:_TOLD]),
            shown=tuple(playing.shown),
            influenced=self._influenced(playing),
            ambiguous=tuple(sorted(self.program.ambiguous)),
            assumed=(*self._assumed(playing, found, mode, reached), *((judged.words,) if judged else ())),
            stopped=playing.stopped or _broken_off(answer),
            run_id=run_id,
        )

    def _play(
        self,
        patches: Patches,
        mode: Mode,
        seed: int,
        *,
        recorder: Recorder | None = None,
        run_id: str | None = None,
        facts: Mapping[str, Attribute | None] | None = None,
        on_event: Watcher | None = None,
    ) -> Played:
        before = self.spent
        playing = Playing(
            self._deck,
            patches,
            mode,
            self._models_on,
            lambda: self._refusal(before, playing.live),
            self.view.payload,
            self._others,
            self._memo,
            lacking(self._options),
        )
        limits = self.program.limits
        if self.budget.usd is not None and before.usd is not None:
            limits = replace(
                limits, max_cost_usd=self.budget.usd - before.usd, max_calls=self.budget.live_calls
            )
        program = self.program
        answer = self._rlm.play(
            playing,
            program.question,
            self._corpus,
            seed=seed,
            limits=limits,
            aliases=self._aliases(),
            run_id=run_id,
            recorder=recorder,
            facts=facts,
            on_event=on_event,
            cancelled=self._cancelled,
        )
        return playing, answer

    def _models_on(self, path: str) -> tuple[str, str]:
        """Root and sub model of this replay on a run path."""
        return self._options.models_at(path.count("."), self._models["root"], self._models["sub"])

    def _aliases(self) -> dict[str, str]:
        """The models of the record, which its code may name, and those in their places, at all depths."""
        paths = ["0" + ".1" * depth for depth in (0, *sorted(self.program.options.models))]
        pairs = [zip(self.program.models_at(path), self._models_on(path), strict=True) for path in paths]
        return {recorded: now for pair in reversed(pairs) for recorded, now in pair}

    def _refusal(self, before: Spent, live: int = 0) -> str | None:
        """Why no live call may be made now."""
        if self._cancelled():
            return _CANCELLED
        if before.live_calls + live >= self.budget.live_calls:
            return f"the budget allows {number_of(self.budget.live_calls, 'call')} to a model"
        if self.budget.usd is not None and (before.usd is None or before.usd >= self.budget.usd):
            return f"the budget of {self.budget.usd} USD is used up"
        return None

    def _resolved(self, patches: Sequence[Patch]) -> Patches:
        calls, cells = {}, {}
        for patch in patches:
            call, cell = self._calls.get(patch.span_id), self._cells.get(patch.span_id)
            if call is not None:
                calls[call.key] = {"ok": patch.text}
            elif cell is not None:
                cells[cell.path, cell.number] = patch.text
            else:
                raise InputError(
                    f"span {patch.span_id[:40]!r} is no sub-call, child run or cell of this run: "
                    "nothing else can be patched"
                )
        return Patches(calls, cells)

    def out_of_reach(self, patches: Sequence[Patch]) -> frozenset[str]:
        """The spans among those of some patches that stand in a cell which is not run again, being killed or
        interrupted, or below one: nothing can be replaced there. Other code for that cell makes it run.
        """
        program = self.program
        anew = {(cell.path, cell.number) for patch in patches if (cell := self._cells.get(patch.span_id))}
        kept = {key for key, cell in program.cells.items() if not cell.again} - anew
        callers = {call.child_path: call.key[:2] for call in program.calls.values() if call.child_path}

        def lies_in_kept(span_id: str) -> bool:
            call, cell = self._calls.get(span_id), self._cells.get(span_id)
            place = call.key[:2] if call is not None else callers.get(cell.path) if cell is not None else None
            while place is not None and place not in kept:
                place = callers.get(place[0])
            return place is not None

        return frozenset(patch.span_id for patch in patches if kept and lies_in_kept(patch.span_id))

    def _outcome(
        self,
        playing: Playing,
        answer: Answer,
        target: Target | None,
        reached: Difference | None,
        judged: Judged | None,
    ) -> Outcome:
        original = self.program.answer
        if playing.stopped is not None or (playing.failed and playing.mode != "live"):
            return "undecided"
        if answer.stop_reason == "cancelled":
            return "undecided"
        if answer.text is None and original is not None:
            return "error"
        if target is not None:
            is_right, was_right = (
                same_answer(text, target.text, target.how) for text in (answer.text, original)
            )
            if (is_right or (judged and judged.yes)) and not was_right:
                return "fixed"
        if answer.text != original and same_answer(answer.text, original) is not True:
            return "moved"
        return "unchanged" if reached is None else "reached_root"

    def ask_again(self, span_id: str) -> str | None:
        """What the sub-model replies today to the recorded prompt of a sub-call: one live call.

        None when the budget does not allow it, the record does not hold the prompt, or the model fails; also
        of a call with tools or images, which would be another one without them.
        """
        span = self.view.by_id[span_id]
        digest = span.attributes.get(sc.PROMPT + ".sha256")
        prompt = self.view.payload(digest) if isinstance(digest, str) else None
        if span.kind != "sub_call" or prompt is None or self._refusal(self.spent) is not None:
            return None
        said = decoded(span.attributes.get(sc.PARAMETERS))
        said = said if isinstance(said, dict) else {}
        if said.get("tools") or span.attributes.get(sc.IMAGES):
            return None
        schema = said["schema"] if isinstance(said.get("schema"), dict) else None
        opening = [] if schema is None else [told_schema(as_json(schema))]
        limits = self.program.limits
        _, model = self._models_on("0" + ".1" * span.depth)
        request = Request(
            model,
            (*opening, Message("user", prompt)),
            "sub",
            max_tokens=limits.max_tokens_sub,
            schema=schema,
            timeout=limits.request_timeout,
        )
        try:
            completion = self._rlm.complete(request)
        except ModelError:
            completion = None
        usd = Decimal(0) if completion is None else self._prices.price(model, completion.usage).usd
        total = None if usd is None or self.spent.usd is None else self.spent.usd + usd
        self.spent = replace(self.spent, live_calls=self.spent.live_calls + 1, usd=total)
        return None if completion is None else completion.text or None

    def _judge(self, given: str | None, target: Target | None) -> Judged | None:
        """What a model says of an answer that no rule can compare; asked once for each answer."""
        if target is None or given is None or same_answer(given, target.text, target.how) is not None:
            return None
        if target.how in LOOKED_FOR:
            return Judged(None, "The search for the expected text took too long: it cannot be told.")
        key = (normalise(given), target.text)
        if key not in self._judged:
            spent, allowed = self.spent, self.budget
            usd = None if allowed.usd is None or spent.usd is None else allowed.usd - spent.usd
            left = replace(allowed, live_calls=allowed.live_calls - spent.live_calls, usd=usd)
            judge = Judge(self._rlm.complete, self._models["root"], budget=left, prices=self._prices)
            self._judged[key] = judge.same_answer(self.program.question, given, target.text)
            total = None if spent.usd is None or judge.spent.usd is None else spent.usd + judge.spent.usd
            self.spent = replace(spent, live_calls=spent.live_calls + judge.spent.live_calls, usd=total)
        return self._judged[key]

    def _reached(self, playing: Playing) -> Difference | None:
        """The first output that differs and that the root was shown before another turn."""
        turns = self.program.turns
        last: dict[str, int] = {}
        for path, turn in turns:
            last[path] = max(turn, last.get(path, 0))
        shown = (one for one in playing.differences if one.what == "shown")
        first = next((one for one in shown if (one.iteration or 0) < last.get(one.path, 0)), None)
        return None if first is None else self._with_text(first)

    def _with_text(self, one: Difference) -> Difference:
        """The difference with the recorded text in place of its hash."""
        if one.what not in ("shown", "stdout") or one.old is None:
            return one
        return replace(one, old=self.view.payload(one.old) or "(the record does not hold the text)")

    def _influenced(self, playing: Playing) -> tuple[str, ...]:
        """Recorded sub-calls whose prompt changed, and cells whose output did."""
        calls = [call.span_id for call in playing.uncalled()]
        cells = [one.span_id for one in playing.differences if one.what == "stdout" and one.span_id]
        return tuple(dict.fromkeys([*calls, *cells]))

    def _assumed(
        self, playing: Playing, patches: Patches, mode: Mode, reached: Difference | None
    ) -> tuple[str, ...]:
        said = []
        if reached is not None and mode != "reask":
            following = (reached.iteration or 0) + 1
            said.append(
                f"The root would have seen other output from iteration {following} on; that it had written "
                "the same code all the same is assumed."
            )
        if playing.not_again:
            numbers = ", ".join(str(cell.number) for cell in playing.not_again[:10])
            said.append(f"Cells that were killed or interrupted are not run again: cell {numbers}.")
        if mode == "frozen" and playing.misses:
            count = number_of(
                playing.misses,
                "changed prompt was given its old reply",
                "changed prompts were given their old replies",
            )
            said.append(f"{count}.")
        if playing.failed:
            count = number_of(len(playing.failed), "live call failed", "live calls failed")
            said.append(f"{count}: {playing.failed[0][:200]}")
        if playing.anew and mode != "live":
            count = number_of(playing.anew, "prompt that the record lacks", "prompts that the record lacks")
            said.append(f"{self._models['sub']} was asked {count}; asked once more it may answer otherwise.")
        if playing.replanned:
            said.append("A child run was given other inputs; its recorded code was run over them.")
        if unused := [key for key in patches.calls if key not in playing.served]:
            count = number_of(len(unused), "patched call was", "patched calls were")
            said.append(f"{count} not made any more.")
        return tuple(said)


Played = tuple[Playing, Answer]


def _more(usd: Decimal, before: Spent, after: Spent) -> Decimal | None:
    """What a trial cost, with what was spent since."""
    return None if before.usd is None or after.usd is None else usd + after.usd - before.usd


def _broken_off(answer: Answer) -> str | None:
    """Why the engine came to no end by itself."""
    if answer.stop_reason == "cancelled":
        return _CANCELLED
    return answer.error if answer.stop_reason == "error" else None


class _Nobody:
    """The handler of replays that may ask no model."""

    async def complete(self, request: Request) -> Completion:
        raise ModelError("bad_request", "this replay may ask no model")

    async def aclose(self) -> None:
        """Nothing to release."""


def _corpus(home: Home, corpus_id: str) -> Corpus:
    """The corpus of a run, unchanged. Raises RecordError when it is gone or another one now."""
    try:
        corpus = Corpus.load(home.corpora, corpus_id)
        corpus.check()
    except CorpusError as error:
        raise RecordError(
            f"The run cannot be replayed, because its corpus is not there as it was: {error}"
        ) from None
    return corpus
