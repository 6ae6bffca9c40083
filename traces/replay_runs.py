"""Replays that are kept: a run like any other, with whole payloads, that says what it plays again and why.

A run of kind replay outlives the run that it plays again. Lists leave it out unless they are asked for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlm_core import semconv as sc
from rlm_core.telemetry import Attribute, Recorder, RunSpan, as_json, preview
from traces.facts import Facts
from traces.home import Home, new_run_id
from traces.recording import Recording, open_recording
from traces.trial import Mode, Patch, Target, Trial
from traces.view import RunView

if TYPE_CHECKING:
    from traces.replay import Replayer


@dataclass(frozen=True, slots=True)
class Replay:
    """What the record of a replay says of itself; None and empty where it says nothing.

    `patches` are in the order in which they were given, `target` is the answer it should give.
    """

    of: str
    mode: str | None
    patches: tuple[Patch, ...]
    target: Target | None
    outcome: str | None
    hits: int | None
    misses: int | None
    live_calls: int | None
    stopped: str | None
    assumed: tuple[str, ...]


class _ReplayRecorder(Recorder):
    """Remembers the span of the run, which the engine starts."""

    top: RunSpan | None = None

    def start(
        self, kind: sc.Kind, name: str, parent: RunSpan | None, attributes: Mapping[str, Attribute | None]
    ) -> RunSpan:
        span = super().start(kind, name, parent, attributes)
        if kind == "run" and parent is None:
            self.top = span
        return span


def record_replay(
    home: Home,
    replayer: Replayer,
    patches: Sequence[Patch] = (),
    *,
    mode: Mode = "strict",
    target: Target | None = None,
    run_id: str | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Trial:
    """Play a run again and keep that as a run of its own; the trial has its id, `run_id` or a new one.

    `cancelled` says, at the end, whether somebody stopped it.

    Raises as `Replayer.trial`, and RecordError for an id that was used before. What ended before it began
    leaves no run.
    """
    recorders: list[_ReplayRecorder] = []

    def make(*parts: Any) -> Recorder:
        recorders.append(_ReplayRecorder(*parts))
        return recorders[0]

    own_id = run_id or new_run_id()
    recording = open_recording(home, own_id, _known(replayer.view, mode), make_recorder=make)
    (recorder,) = recorders
    try:
        with recording:
            facts = _asked(recorder, replayer.view, patches, mode, target)
            trial = replayer.trial(
                patches, mode=mode, target=target, recorder=recorder, run_id=own_id, facts=facts
            )
            if recorder.top is not None:
                recorder.event(recorder.top, sc.EV_REPLAY, _came_of(trial))
            recording.close("cancelled" if cancelled() else "error" if trial.answer is None else "ok")
    finally:
        if recorder.top is None:
            _forget(recording)
    return replace(trial, run_id=own_id if recorder.top is not None else None)


def _top(view: RunView) -> Facts:
    return Facts(next((span.attributes for span in view.spans if span.kind == "run"), {}))


def _known(view: RunView, mode: Mode) -> dict[str, Attribute]:
    run = view.summary
    facts: dict[str, Attribute | None] = {
        sc.QUESTION + ".preview": preview(run.question or ""),
        sc.ROOT_MODEL: run.root_model,
        sc.SUB_MODEL: run.sub_model,
        sc.CORPUS_ID: run.corpus_id,
        sc.CORPUS_CHARS: _top(view).count(sc.CORPUS_CHARS),
        sc.REPLAY_OF: view.run_id,
        sc.REPLAY_MODE: mode,
    }
    return {key: value for key, value in facts.items() if value is not None}


def _asked(
    recorder: Recorder, view: RunView, patches: Sequence[Patch], mode: Mode, target: Target | None
) -> dict[str, Attribute | None]:
    """What a replay is to do, as facts of its run span; the texts are stored."""
    facts: dict[str, Attribute | None] = {sc.REPLAY_OF: view.run_id, sc.REPLAY_MODE: mode}
    if patches:
        listed = [{"span_id": patch.span_id, "text": patch.text} for patch in patches]
        facts |= _cited(recorder, sc.REPLAY_PATCHES, as_json(listed))
    if target is not None:
        facts |= _cited(recorder, sc.REPLAY_TARGET, target.text)
        facts |= {sc.REPLAY_MATCH: target.how, sc.REPLAY_TARGET_FROM: target.origin}
    return facts


def _cited(recorder: Recorder, prefix: str, text: str) -> dict[str, Attribute | None]:
    digest = recorder.payload(text)
    return {prefix + ".sha256": digest, prefix + ".chars": len(text), prefix + ".preview": preview(text)}


def _came_of(trial: Trial) -> dict[str, Attribute]:
    facts: dict[str, Attribute] = {
        sc.REPLAY_OUTCOME: trial.outcome,
        sc.REPLAY_HITS: trial.hits,
        sc.REPLAY_MISSES: trial.misses,
        sc.REPLAY_LIVE_CALLS: trial.live_calls,
    }
    if trial.stopped is not None:
        facts[sc.REPLAY_STOPPED] = trial.stopped
    if trial.assumed:
        facts[sc.REPLAY_ASSUMED] = as_json(list(trial.assumed))
    return facts


def _forget(recording: Recording) -> None:
    """Nothing was played: there is no run to be kept."""
    with suppress(OSError):
        recording.spool_path.unlink(missing_ok=True)


def replay_facts(view: RunView) -> Replay | None:
    """What a run says of itself as a replay; None when it is none. Its record may hold anything."""
    of = view.summary.replay_of
    if of is None:
        return None
    facts = _top(view)
    told = {name: facts.text(name + ".sha256") for name in (sc.REPLAY_PATCHES, sc.REPLAY_TARGET)}
    texts = view.payloads([sha256 for sha256 in told.values() if sha256])
    patches, target = (texts.get(sha256 or "") for sha256 in told.values())
    assumed = _parsed(facts.text(sc.REPLAY_ASSUMED))
    return Replay(
        of=of,
        mode=facts.text(sc.REPLAY_MODE),
        patches=_patches(patches),
        target=None if target is None else _target(target, facts),
        outcome=facts.text(sc.REPLAY_OUTCOME),
        hits=facts.count(sc.REPLAY_HITS),
        misses=facts.count(sc.REPLAY_MISSES),
        live_calls=facts.count(sc.REPLAY_LIVE_CALLS),
        stopped=facts.text(sc.REPLAY_STOPPED),
        assumed=tuple(one for one in assumed if isinstance(one, str)),
    )


def _target(text: str, facts: Facts) -> Target:
    from_run = facts.text(sc.REPLAY_TARGET_FROM) == "good run"
    how = facts.text(sc.REPLAY_MATCH) or "normalised"
    return Target(text, how, "good run" if from_run else "expected")


def _patches(raw: str | None) -> tuple[Patch, ...]:
    found = [one for one in _parsed(raw) if isinstance(one, dict)]
    pairs = [(one.get("span_id"), one.get("text")) for one in found]
    return tuple(Patch(span, text) for span, text in pairs if isinstance(span, str) and isinstance(text, str))


def _parsed(raw: str | None) -> list[Any]:
    try:
        made = json.loads(raw) if raw is not None else []
    except (ValueError, RecursionError):
        return []
    return made if isinstance(made, list) else []
