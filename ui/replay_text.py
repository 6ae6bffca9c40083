"""What came of a replay, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rlm_core import semconv as sc
from traces.refused import refused
from traces.replay_facts import replay_facts
from traces.same_answer import explain
from traces.trial import MODES, OUTCOMES
from ui.figures import counted, duration, money
from ui.visible import block, line

if TYPE_CHECKING:
    from traces.trial import Difference, Trial
    from traces.view import RunView
    from ui.replay_command import Played

_SHOWN: Final = 200  # characters of a text on one line


def replay_lines(played: Played, home: str = "") -> Iterator[str]:
    """The outcome in a sentence, the answers, what it rests on, what it took, where to look further; `home`
    is the option that names the home, if one does.
    """
    if not played.trials:
        yield line(played.replayability.words)
        return
    first = played.trials[0]
    yield _verdict(played)
    yield ""
    yield f"answer: {_text(first.answer)}"
    if first.answer != first.original_answer:
        yield f"before: {_text(first.original_answer)}"
    if played.target is not None:
        how = f"{_origin(played)}; {explain(played.target.how)}"
        yield f"should be: {_text(played.target.text)} ({how})"
    if first.reached is not None:
        yield from _reached(first.reached)
    if first.stopped:
        yield f"stopped: {line(first.stopped)}"
    yield from (f"assumed: {line(sentence)}" for sentence in first.assumed)
    if first.ambiguous:
        yield f"ambiguous: {counted(len(first.ambiguous), 'call')} of equal prompts were answered differently"
    yield ""
    yield f"replay: {line(played.replayability.words)}"
    yield f"mode {first.mode}: {MODES[first.mode]}"
    for trial in played.trials:
        yield _facts(trial)
    yield f"look deeper: rlmscope show {first.run_id}{home}"
    yield f"compare: rlmscope diff {played.view.run_id} {first.run_id}{home}"


def replay_of_lines(view: RunView) -> Iterator[str]:
    """What `show` says of a run that plays another one again; nothing for any other."""
    replay = replay_facts(view)
    if replay is None:
        return
    yield line(f"replay of {replay.of}, mode {replay.mode or 'unknown'}: {replay.outcome or 'no outcome'}")
    for patch in replay.patches:
        yield f"replaced {line(patch.span_id)}: {_text(patch.text)}"
    if replay.target is not None:
        yield f"should be: {_text(replay.target.text)}"


def sub_calls_words(view: RunView) -> str | None:
    """How many sub-calls of a replay or resumed run were answered from where; None for any other run."""
    if not view.summary.plays_a_record:
        return None
    turned_away = refused(view.spans)
    calls = [span for span in view.spans if span.kind == "sub_call" and span.span_id not in turned_away]
    attempted = {span.parent_id for span in view.spans if span.kind == "attempt"}
    sources = [span.attributes.get(sc.SERVED_FROM) for span in calls]
    asked = sum(span.span_id in attempted for span in calls)
    record, patch, cache = (
        sum(source == name for source in sources) for name in ("record", "patch", "cache")
    )
    parts = {
        "from the record": record,
        "from a patch": patch,
        "from the cache": cache,
        "asked": asked,
        "neither served nor asked": len(calls) - record - patch - cache - asked,
    }
    told = [(words, count) for words, count in parts.items() if count > 0]
    whole = counted(len(calls), "sub-call")
    if len(told) == 1:
        return f"{whole}, all {told[0][0]}" if len(calls) > 1 else f"{whole}, {told[0][0]}"
    return ": ".join([whole, *([", ".join(f"{count:,} {words}" for words, count in told)] if told else [])])


def _verdict(played: Played) -> str:
    times = len(played.trials)
    if times > 1:
        if played.target is None:
            answers = len({trial.answer for trial in played.trials})
            return f"Played {times} times: {counted(answers, 'different answer')}."
        undecided = sum(trial.outcome in ("undecided", "error") for trial in played.trials)
        left = "" if not undecided else f" {counted(undecided, 'replay')} came to no answer: {_why(played)}."
        return (
            f"Played {times} times: the answer was the one that it should be {played.fixed} of "
            f"{counted(times - undecided, 'time')}.{left}"
        )
    first = played.trials[0]
    if first.mode == "strict" and not first.patches and first.outcome == "unchanged":
        return "The run played again gives the same answer."
    if first.outcome == "moved" and played.target is None:
        return "The answer is another one."
    return OUTCOMES[first.outcome]


def _why(played: Played) -> str:
    """Why the first replay that came to no answer did not."""
    return next((line(one.stopped) for one in played.trials if one.stopped), "the replay does not say why")


def _origin(played: Played) -> str:
    return "from a good run" if played.target and played.target.origin == "good run" else "expected"


def _reached(place: Difference) -> Iterator[str]:
    where = "a later turn" if place.iteration is None else f"iteration {place.iteration}"
    yield f"the root was shown other output in {where}:"
    yield f"  then: {_text(place.old)}"
    yield f"  now:  {_text(place.new)}"


def _facts(trial: Trial) -> str:
    parts = [
        f"run {trial.run_id}" if trial.run_id else "not recorded",
        *([counted(len(trial.patches), "patch", "patches")] if trial.patches else []),
        f"{counted(trial.hits, 'sub-call')} from the record or a patch",
        *([counted(trial.misses, "prompt") + " that no record holds"] if trial.misses else []),
        counted(trial.live_calls, "call") + " to a model",
        f"cost {money(trial.cost_usd, None)}",
        duration(trial.seconds),
    ]
    return " · ".join(parts)


def _text(text: str | None) -> str:
    if text is None:
        return "(none)"
    if "\n" in text.strip():
        return "\n" + block(text)
    shown = line(text)
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"
