"""Replays that are kept: a run like any other, with whole payloads, that says what it plays again and why.

A run of kind replay outlives the run that it plays again. Lists leave it out unless they are asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlm_core import semconv as sc
from rlm_core.progress import Watcher
from rlm_core.telemetry import Attribute, Recorder, RunSpan, as_json, preview
from traces.home import Home, new_run_id
from traces.recording import Recording, open_recording
from traces.replay_facts import top_facts
from traces.trial import Mode, Patch, Target, Trial
from traces.view import RunView

if TYPE_CHECKING:
    from traces.replay import Replayer


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
    on_event: Watcher | None = None,
    warn: Callable[[str], None] = lambda words: None,
) -> Trial:
    """Play a run again and keep that as a run of its own; the trial has its id, `run_id` or a new one.

    `cancelled` says, at the end, whether somebody stopped it; `on_event` is as in `Replayer.trial`; `warn` is
    told of spans that could not be sent elsewhere (`Recording.unsent`).
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
                patches, mode=mode, target=target, recorder=recorder, run_id=own_id, facts=facts,
                on_event=on_event,
            )  # fmt: skip
            if recorder.top is not None:
                recorder.event(recorder.top, sc.EV_REPLAY, _came_of(trial))
            status = "cancelled" if cancelled() else "error" if trial.answer is None else "ok"
            recording.close(status, hurried=cancelled)
    finally:
        if recorder.top is None:
            _forget(recording)
    if recording.unsent is not None:
        warn(recording.unsent)
    return replace(trial, run_id=own_id if recorder.top is not None else None)


def _known(view: RunView, mode: Mode) -> dict[str, Attribute]:
    run = view.summary
    facts: dict[str, Attribute | None] = {
        sc.QUESTION + ".preview": preview(run.question or ""),
        sc.ROOT_MODEL: run.root_model,
        sc.SUB_MODEL: run.sub_model,
        sc.CORPUS_ID: run.corpus_id,
        sc.CORPUS_CHARS: top_facts(view).count(sc.CORPUS_CHARS),
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
