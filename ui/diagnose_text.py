"""What a diagnosis found, as lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from shlex import quote
from typing import TYPE_CHECKING, Final

from rlm_core import semconv as sc
from traces.candidates import texts_of
from traces.diagnosis_words import name_of, put_in
from traces.imported import asked_words, not_again
from traces.same_answer import explain
from traces.trial import MODES
from ui.figures import counted, money
from ui.visible import line

if TYPE_CHECKING:
    from traces.diagnosis import Culprit, Diagnosis
    from traces.view import RunView
    from ui.good_offers import Offer

_SHOWN: Final = 300  # characters of a text
_CODE_LINES: Final = 40
_LISTED: Final = 10  # culprits, suspects
_TRIALS: Final = 12  # at each end of the list of trials


def diagnosis_lines(
    view: RunView, good: RunView | None, found: Diagnosis, home: str = "", offers: Sequence[Offer] = ()
) -> Iterator[str]:
    """The verdict in words, the culprits, the proof, what it rests on, what it cost, where to look further;
    `home` is the option that names the home, if one does, `offers` are runs it could be compared with.
    """
    yield line(found.words)
    yield from _how_sure(found)
    yield ""
    yield f"question: {_text(asked_words(view.summary))}"
    yield f"answer: {_text(view.summary.answer)}"
    if found.target is not None:
        yield f"should be: {_text(found.target.text)} ({_origin(found)}; {explain(found.target.how)})"
    for culprit in found.culprits[:_LISTED]:
        yield ""
        yield from _culprit(view, culprit)
        yield from _why_tried(found, culprit)
    if len(found.culprits) > _LISTED:
        yield f"and {counted(len(found.culprits) - _LISTED, 'more culprit')} (--json lists all)"
    if not found.culprits:
        yield from _suspects(view, found)
    yield ""
    yield from _proof(view, found)
    yield from (f"assumed: {line(sentence)}" for sentence in found.assumed)
    yield from (f"warning: {line(sentence)}" for sentence in found.warnings)
    yield _cost(found)
    yield from _further(view, found, good, home)
    for offer in offers:
        same = "the same answer" if offer.same_answer else "another answer"
        yield line(f"compare with a run that gave {same}, {_short(offer.answer)}: {offer.command}")


def _how_sure(found: Diagnosis) -> Iterator[str]:
    if found.culprits:
        yield "Proven by replays." if found.proven else "Not proven."
    if found.stopped:
        yield f"stopped: {line(found.stopped)}"


def _origin(found: Diagnosis) -> str:
    return "as in the good run" if found.target and found.target.origin == "good run" else "expected"


def _culprit(view: RunView, culprit: Culprit) -> Iterator[str]:
    span = view.by_id.get(culprit.span_id)
    if span is None:
        return
    said = texts_of(view, [span]).get(span.span_id)
    yield f"{name_of(span)} · {culprit.span_id}"
    if culprit.kind == "cell":
        yield "  its code, - as it was, + as it should have been:"
        yield from _code(said or "", culprit.patch)
        return
    yield from _block("  was asked", _asked(view, culprit))
    failed = span.attributes.get(sc.ERROR_MESSAGE)
    if said is None and isinstance(failed, str):
        yield f"  failed: {_text(failed)}"
    else:
        yield from _block("  said", said)
    label = "should have said" if culprit.origin in ("good run", "user") else "tried in its place"
    yield from _block(f"  {label} ({culprit.origin})", culprit.patch)


def _why_tried(found: Diagnosis, culprit: Culprit) -> Iterator[str]:
    """The evidence against a call that was tried as a suspect."""
    for suspect in found.suspects if found.good_run_id is None and culprit.origin != "user" else ():
        if suspect["span_id"] == culprit.span_id:
            yield f"  suspected: {' '.join(line(signal['words']) for signal in suspect['signals'][:2])}"


def _code(was: str, should_be: str) -> Iterator[str]:
    lines = list(unified_diff(was.splitlines(), should_be.splitlines(), lineterm="", n=2))[2:]
    yield from (f"  {line(one)}" for one in lines[:_CODE_LINES] if not one.startswith("@@"))
    if len(lines) > _CODE_LINES:
        yield f"  and {counted(len(lines) - _CODE_LINES, 'more line')} (--json has the code)"


def _asked(view: RunView, culprit: Culprit) -> str | None:
    prefix = sc.QUESTION if culprit.kind == "run" else sc.PROMPT
    digest = view.by_id[culprit.span_id].attributes.get(prefix + ".sha256")
    return view.payload(digest) if isinstance(digest, str) else None


def _suspects(view: RunView, found: Diagnosis) -> Iterator[str]:
    if found.suspects:
        yield ""
        yield "look first at:"
    for suspect in found.suspects[:_LISTED]:
        span = view.by_id[suspect["span_id"]]
        words = " ".join(line(signal["words"]) for signal in suspect["signals"][:2])
        yield f"  {name_of(span)} · {span.span_id}: {words}"
    if len(found.suspects) > _LISTED:
        yield f"  and {counted(len(found.suspects) - _LISTED, 'more sub-call')} (--json lists them)"


def _proof(view: RunView, found: Diagnosis) -> Iterator[str]:
    if found.replayability is not None:
        yield f"replay: {line(found.replayability.words)}"
        yield f"mode {found.mode}: {MODES[found.mode]}"
    if found.candidates:
        outcomes = Counter(trial.outcome for trial in found.trials)
        came = ", ".join(f"{count:,} {outcome.replace('_', ' ')}" for outcome, count in outcomes.items())
        tested, replays = counted(len(found.candidates), "candidate"), counted(len(found.trials), "replay")
        yield f"tested: {tested}; {replays}{f': {came}' if came else ''}"
    trials = list(enumerate(found.trials, 1))
    cut = len(trials) > 2 * _TRIALS
    for number, trial in [*trials[:_TRIALS], *trials[-_TRIALS:]] if cut else trials:
        names = [name_of(view.by_id[one.span_id]) for one in trial.patches if one.span_id in view.by_id]
        named = ", ".join(names) if len(names) <= 3 else f"{len(names):,} candidates together"
        if len(names) == 1:
            named += f" = {_short(put_in(view, trial.patches[0].span_id, trial.patches[0].text))}"
        mode = "" if trial.mode == found.mode else f" ({trial.mode})"
        kept = f", recorded as {trial.run_id}" if trial.run_id else ""
        outcome = trial.outcome.replace("_", " ")
        yield f"  {number}. {named}{mode}: {outcome}, {_short(trial.answer)}{kept}"
        if cut and number == _TRIALS:
            yield "  ..."


def _cost(found: Diagnosis) -> str:
    spent, budget = found.spent, found.budget
    dollars = "" if budget.usd is None else f" of {money(budget.usd, None)}"
    return (
        f"cost of finding out: {spent.replays:,} of {counted(budget.replays, 'replay')}, "
        f"{spent.live_calls:,} of {counted(budget.live_calls, 'call')} to a model, "
        f"{money(spent.usd, None)}{dollars}"
    )


def _further(view: RunView, found: Diagnosis, good: RunView | None, home: str) -> Iterator[str]:
    if found.culprits and found.outcome == "reached_root" and not found.asked_again:
        against = "" if good is None else f" --good {good.run_id}"
        given = found.target is not None and found.target.origin == "expected"
        wanted = f" --expected={quote(found.target.text)}" if given and found.target else ""
        command = f"rlmscope diagnose {found.run_id}{against}{wanted} --max-calls 3 --repeat 3{home}"
        yield line(f"ask the root again: {command}")
    if found.culprits:
        yield f"look deeper: rlmscope span {found.run_id} {found.culprits[0].span_id}{home}"
    if good is not None:
        yield f"compare: rlmscope diff {found.run_id} {good.run_id}{home}"
    elif not found.proven and found.verdict != "right" and not_again(view.summary) is None:
        yield f"make a twin to compare with: rlmscope replay {found.run_id} --mode live{home}"


def _block(name: str, text: str | None) -> Iterator[str]:
    yield f"{name}: {_text(text)}"


def _text(text: str | None) -> str:
    if text is None:
        return "(not recorded)"
    shown = line(text)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}… ({len(text):,} characters)"


def _short(text: str | None) -> str:
    shown = line(text or "no answer")
    return shown if len(shown) <= 60 else shown[:59] + "…"
