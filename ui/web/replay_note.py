"""What a run page says of a run that plays another one again: of which, how, with what patches and end."""

from __future__ import annotations

from typing import Final

import streamlit as st

from traces.replay_facts import Replay, replay_facts
from traces.trial import MODES, OUTCOMES, Patch
from ui.figures import counted
from ui.web import plain
from ui.web.notices import said
from ui.web.places import run_link
from ui.web.run_record import Record
from ui.web.ways import way

_PATCHES: Final = 50  # shown; a replay of a proof has a few
_TEXT_SHOWN: Final = 200  # characters of an answer in a sentence


def replay_note(record: Record) -> None:
    """Say what is replayed; nothing for a run that is no replay."""
    if record.view.summary.replay_of is None:
        return
    replay = record.once(replay_facts)
    if replay is None:
        return
    with st.container(key="run-replay", gap="small"):
        said("Replay", "blue", " ".join(_sentences(replay)))
        with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
            way(":blue[The run that it plays again]", "run-replay-of", _go, replay.of)
            pair = {"a": replay.of, "b": record.view.run_id}
            st.page_link("pages/compare.py", label=":blue[Compare the two]", query_params=pair)
        if replay.patches:
            _patches(replay)


def _go(run_id: str, span_id: str | None = None) -> None:
    st.query_params.from_dict(run_link(run_id, span_id)[1])


def _sentences(replay: Replay) -> list[str]:
    told = [f"This run plays the run {replay.of} again."]
    mode = next((clause for name, clause in MODES.items() if name == replay.mode), None)
    if mode is not None:
        told.append(f"Mode {replay.mode}: it {mode}.")
    outcome = next((words for name, words in OUTCOMES.items() if name == replay.outcome), None)
    if replay.outcome == "moved" and replay.target is None:
        outcome = "The answer is another one than before."
    if outcome is not None:
        told.append(outcome)
    if replay.target is not None:
        text = replay.target.text
        cut = text if len(text) <= _TEXT_SHOWN else text[:_TEXT_SHOWN] + "…"
        told.append(f"It should be “{cut}”.")
    if replay.stopped:
        told.append(f"It stopped: {replay.stopped}.")
    if replay.hits is not None:
        served, asked = counted(replay.hits, "sub-call"), counted(replay.live_calls or 0, "call")
        told.append(f"{served} answered without a model, {asked} to a model.")
    return [*told, *replay.assumed]


def _patches(replay: Replay) -> None:
    label = f"What was replaced ({len(replay.patches):,})"
    whole = st.expander(label, key="run-replay-patches", on_change="rerun")
    if not whole.open:
        return
    with whole:
        for number, patch in enumerate(replay.patches[:_PATCHES]):
            _patch(replay.of, patch, number)
        if len(replay.patches) > _PATCHES:
            st.caption(f"The first {_PATCHES:,} of {len(replay.patches):,}.")


def _patch(of: str, patch: Patch, number: int) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="top"):
        way(f":blue[Replaced {number + 1}]", f"run-replay-span-{number}", _go, of, patch.span_id)
        with st.container(width="stretch"):
            plain.payload(patch.text, key=f"run-replay-patch-{number}", file_name="patch.txt")
