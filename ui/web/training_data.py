"""Training data out of the chosen runs of the Runs page: what is to be in it, then the file to download."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.exporters.sft import Exported, export_sft
from traces.exporters.sft_runs import KINDS, Choice
from traces.home import Home
from ui.figures import counted
from ui.web import plain
from ui.web.notices import note, problem

_ASKED: Final = "runs-training"  # in the session: ids of the runs that data is to be made of
_MADE: Final = "runs-training-made"  # in the session: what was made last
_NAMED: Final = 10  # runs left out that are named
_RIGHT: Final = (
    "Of runs whose verdict is right, or whose answer is the expected one. Forced answers, failed cells and "
    "replies, duplicates, and whatever looks like a key are left out."
)


@dataclass(frozen=True, slots=True)
class _Made:
    """An archive with the examples and their card, and what is in it; `data` is None when there is none."""

    done: Exported
    data: bytes | None


def ask(run_ids: Sequence[str]) -> None:
    """Ask what is to be made of these runs."""
    st.session_state[_ASKED] = tuple(run_ids)
    st.session_state.pop(_MADE, None)


def _close() -> None:
    st.session_state.pop(_ASKED, None)
    st.session_state.pop(_MADE, None)


def box(home: Home) -> None:
    """The choices for the runs that were asked for, and what was made; nothing where none were."""
    run_ids: tuple[str, ...] = st.session_state.get(_ASKED, ())
    if not run_ids:
        return
    with st.container(border=True, key="runs-training-box"):
        st.markdown(f"**Training data of {counted(len(run_ids), 'run')}**: chats as JSON lines, with a card")
        st.caption(_RIGHT)
        usual = Choice()
        kinds = st.multiselect(
            "Examples", list(KINDS), list(usual.kinds), key="runs-training-kinds",
            format_func=lambda kind: f"{kind}: {KINDS[kind]}",
        )  # fmt: skip
        with st.container(horizontal=True):
            anyone = st.checkbox("Also runs that nobody called right", key="runs-training-any")
            demo = st.checkbox("Also what demo models said", key="runs-training-demo")
        with st.container(horizontal=True):
            if st.button("Make the file", key="runs-training-make", type="primary", disabled=not kinds):
                _make(home, run_ids, Choice(tuple(kinds), any_verdict=anyone, include_demo=demo))
            st.button("Close", key="runs-training-close", on_click=_close)
        if (made := st.session_state.get(_MADE)) is not None:
            _show(made, len(run_ids))


def _make(home: Home, run_ids: Sequence[str], choice: Choice) -> None:
    st.session_state.pop(_MADE, None)
    try:
        with st.spinner("Reading the runs"), tempfile.TemporaryDirectory() as scratch:
            done = export_sft(home, run_ids, Path(scratch, "training.jsonl"), choice)
            files = [] if done.path is None or done.card is None else [done.path, done.card]
            st.session_state[_MADE] = _Made(done, _archive(files) if files else None)
    except (RLMScopeError, OSError) as error:
        problem(error)


def _archive(files: Sequence[Path]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
        for path in files:
            out.write(path, path.name)
    return packed.getvalue()


def _show(made: _Made, asked: int) -> None:
    done = made.done
    if made.data is None:
        note(f"nothing was made: none of {counted(asked, 'run')} holds an example")
    else:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(done.kinds.items()))
        size = f"{done.tokens:,} tokens" + (
            f", {done.estimated:,} of them estimated" if done.estimated else ""
        )
        plain.text(
            f"{counted(done.examples, 'example')} of {counted(len(done.runs), 'run')}: {kinds}; {size}."
        )
        st.download_button(
            "Download", made.data, "training.zip", "application/zip", key="runs-training-download",
            on_click="ignore", help="training.jsonl and training.card.md, packed.",
        )  # fmt: skip
    left = [f"{run_id}: {reason}" for run_id, reason in done.runs_left_out]
    left += [f"{counted(count, 'example')}: {reason}" for reason, count in sorted(done.left_out.items())]
    if left:
        st.caption("Left out")
        plain.text("\n".join(left[:_NAMED]))
        if len(left) > _NAMED:
            st.caption(f"and {len(left) - _NAMED:,} more")
