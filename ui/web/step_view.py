"""The view `steps` of a run: what was recorded, replayed iteration by iteration and cell by cell.

`?step=` is the number of the step, from 1, `?child=` the span of the child run it belongs to (absent: the run
itself). Without a number the first step is shown; of a run that goes on the newest, as it comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import streamlit as st

from rlm_core.errors import InputError, RLMScopeError
from traces.reading import SpanRow, resolve_span
from traces.steps import Replay, Step
from ui.visible import line
from ui.web.notices import note, problem
from ui.web.run_record import Record, Select
from ui.web.span_paths import title
from ui.web.step_outline import CHILD, STEP, outline, step_query
from ui.web.step_parts import draw

_KEPT: Final = "run-steps"  # in the session: the last replay
_SLIDER: Final = "step-slider"
_NUMBER: Final = "step-number"
_RUN: Final = "step-run"
_STYLE: Final = """
<style>
.st-key-step-ways button, .st-key-step-head button, [class*="st-key-step-calls"] button {
  min-height: 1.9rem; padding: 0 0.6rem;
}
.st-key-step-title [data-testid="stText"] { font-size: 1.2rem; font-weight: 600; }
</style>
"""


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the address asks for: a step of a run; `follows`: the newest one, whichever it is."""

    run: SpanRow | None
    steps: tuple[Step, ...]
    step: Step
    follows: bool


def show(record: Record, select: Select) -> None:
    """Draw the step that the address names, and the ways to the others."""
    st.html(_STYLE)
    replay = _replay(record)
    runs = replay.runs()
    if not runs:
        note(
            "No iteration has been recorded yet." if record.view.live else "This run recorded no iterations."
        )
        return
    shown = _shown(replay, runs, live=record.view.live)
    _choose_run(replay, runs, shown)
    _ways(shown, live=record.view.live)
    _scrubber(shown)
    try:
        draw(replay, shown.step, select, _enter)
    except RLMScopeError as error:
        problem(error)
    outline(replay, shown.steps, shown.step, _go)


def _replay(record: Record) -> Replay:
    """The steps of the run, kept for the session; of one that has grown only what is new is read."""
    kept = st.session_state.get(_KEPT)
    if isinstance(kept, Replay) and kept.view is record.view:
        return kept
    same = isinstance(kept, Replay) and kept.view.run_id == record.view.run_id
    made = st.session_state[_KEPT] = Replay(record.view, kept if same else None)
    return made


def _shown(replay: Replay, runs: Sequence[SpanRow | None], *, live: bool) -> _Shown:
    run = runs[0]
    if ref := st.query_params.get(CHILD, ""):
        try:
            named = resolve_span(replay.view, ref)
        except InputError as error:
            problem(error)
        else:
            if replay.steps(named):
                run = named
            else:
                problem(
                    f"The span {named.span_id} is no child run with steps; these are the steps of the run."
                )
    steps = replay.steps(run)
    wanted = st.query_params.get(STEP, "")
    number = int(wanted) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 9 else None
    if wanted and (number is None or not 1 <= number <= len(steps)):
        problem(f"There is no step “{wanted[:20]}” here: the steps are 1 to {len(steps):,}.")
        number = None
    follows = number is None and live
    return _Shown(run, steps, steps[-1 if follows else (number or 1) - 1], follows)


def _choose_run(replay: Replay, runs: Sequence[SpanRow | None], shown: _Shown) -> None:
    """The choice between the run and its child runs, where there are some."""
    if len(runs) < 2:
        return
    places = {"" if run is None else run.span_id: run for run in runs}
    st.session_state[_RUN] = "" if shown.run is None else shown.run.span_id

    def words(span_id: str) -> str:
        run = places[span_id]
        count = len(replay.steps(run))
        steps = f"{count:,} step" + ("" if count == 1 else "s")
        if run is None or run.parent_id is None:
            return f"The run itself ({steps})"
        return f"{title(run)} ({steps}): {line(run.preview or '')}"

    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.selectbox(
            "Steps of", list(places), format_func=words, key=_RUN, on_change=_run_chosen, width=640,
        )  # fmt: skip
        caller = None if shown.run is None else replay.step_of(shown.run)
        if caller is not None:
            st.button("Back to the step that asked it", on_click=_to, args=(caller,), shortcut="u")


def _run_chosen() -> None:
    _enter(st.session_state[_RUN])


def _enter(span_id: str) -> None:
    """Go to the first step of a child run, or of the run itself."""
    st.query_params[CHILD] = span_id
    st.query_params.pop(STEP, None)


def _to(step: Step) -> None:
    st.query_params.pop(CHILD, None)
    st.query_params.update(step_query(step))


def _go(number: int) -> None:
    st.query_params[STEP] = str(number)


def _follow() -> None:
    st.query_params.pop(STEP, None)


def _ways(shown: _Shown, *, live: bool) -> None:
    steps, at = shown.steps, shown.step.number
    iteration = shown.step.iteration
    later = [step for step in steps[at:] if step.position == 0]
    earlier = [step for step in steps[: at - 1] if step.position == 0 and step.iteration is not iteration]
    failed = [step for step in steps if step.failed]
    bad = next((step for step in failed if step.number > at), failed[0] if failed else None)
    ways: list[tuple[str, int | None, str | None]] = [
        ("Previous step", at - 1 if at > 1 else None, "k"),
        ("Next step", at + 1 if at < len(steps) else None, "j"),
    ]
    if any(step.of > 1 for step in steps):
        ways.append(("Previous iteration", earlier[-1].number if earlier else None, "Shift+k"))
        ways.append(("Next iteration", later[0].number if later else None, "Shift+j"))
    if failed:
        other = None if bad is None or bad.number == at else bad.number
        ways.append((f"Next failed step ({len(failed):,})", other, "e"))
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="step-ways"):
        for number, (label, target, key) in enumerate(ways):
            st.button(
                label, key=f"step-way-{number}", disabled=target is None, shortcut=key,
                on_click=_go, args=(target or at,),
            )  # fmt: skip
        _number(shown)
        if live and not shown.follows:
            st.button("Follow the newest", key="step-follow", on_click=_follow)
        elif shown.follows:
            st.caption("The newest step is shown, as it comes.", width="content")


def _scrubber(shown: _Shown) -> None:
    """A slider over all steps; one step needs none."""
    if len(shown.steps) > 1:
        st.session_state[_SLIDER] = shown.step.number
        st.slider(
            "Step", 1, len(shown.steps), key=_SLIDER, on_change=_moved, args=(_SLIDER,),
            label_visibility="collapsed",
        )  # fmt: skip


def _number(shown: _Shown) -> None:
    """A field for the number of a step: of many a slider cannot hit each."""
    last = len(shown.steps)
    if last < 2:
        st.caption("There is one step.", width="content")
        return
    st.session_state[_NUMBER] = shown.step.number
    st.number_input(
        "Go to step", 1, last, key=_NUMBER, on_change=_moved, args=(_NUMBER,), width=120,
        label_visibility="collapsed",
    )  # fmt: skip
    st.caption(f"of {last:,} steps", width="content")


def _moved(key: str) -> None:
    _go(st.session_state[key])
