"""From nothing to an explained run in a minute: an invitation on the Ask page, a guide on the Run page.

The guide explains the example that is broken on purpose, in six steps: `/run?run=ID&guide=1` to `6`. Each
step puts the address on what it is about, so that the page below shows it. Figures come from the record.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.home import Home
from traces.reading import RunView, SpanRow, load_run
from ui.figures import counted
from ui.web import plain
from ui.web.notices import problem
from ui.web.places import diagnose_link
from ui.web.samples import example_note

BROKEN: Final = "20260105T091500-0000e002"
_RIGHT: Final = "20260105T090000-0000e001"
_CLOSED: Final = "first-steps-closed"  # a file of the home
_ADDRESS: Final = ("span", "view", "q", "step")  # what a step decides; the rest of an address stays


@dataclass(frozen=True, slots=True)
class _Step:
    title: str
    words: Callable[[RunView], str]
    span: Callable[[RunView], SpanRow]
    view: str | None = None
    diagnose: bool = False  # whether it leads to the page that finds the call


def invitation(home: Home) -> None:
    """Offer the guide while the home has no runs but the examples, and nobody has declined it."""
    if not _is_new(home):
        return
    with st.container(border=True, key="first-steps", horizontal=True, vertical_alignment="center"):
        st.markdown("**New here?** See in a minute what a run is, on a recorded one whose answer is wrong.")
        st.button("Show me", key="first-steps-show", type="primary", on_click=_begin)
        st.button("Not now", key="first-steps-close", type="tertiary", on_click=_decline, args=(home,))
    if st.session_state.pop("first-steps-begun", False):
        st.switch_page("pages/run.py", query_params={"run": BROKEN, "guide": "1"})


def _is_new(home: Home) -> bool:
    runs = [path.stem for path in home.spool.glob("*.jsonl")]
    return (
        BROKEN in runs
        and all(example_note(run_id) is not None for run_id in runs)
        and not (home.root / _CLOSED).exists()
    )


def _begin() -> None:
    st.session_state["first-steps-begun"] = True


def _decline(home: Home) -> None:
    with suppress(OSError):  # then it is offered once more
        (home.root / _CLOSED).touch(mode=0o600)


def guide(view: RunView) -> None:
    """The step of the guide that the address names, nothing without one; to be called above the run."""
    asked = st.query_params.get("guide")
    if asked is None:
        return
    if view.run_id != BROKEN or not view.spans:
        problem("The guide explains the broken example, and this is another run.")
        st.button("Close the guide", key="guide-close", on_click=_close)
        return
    number = int(asked) if asked in [str(n) for n in range(1, len(_STEPS) + 1)] else None
    if number is None:
        problem(f"The guide has steps 1 to {len(_STEPS)}, and no step “{asked[:20]}”; this is the first.")
    number = number or 1
    if not any(name in st.query_params for name in _ADDRESS):
        _turn_to(view, number)
    step = _STEPS[number - 1]
    with st.container(border=True, key="guide", gap="xsmall"):
        _ways(view, number, step.title)
        plain.text(step.words(view))
        if step.diagnose:
            page, query = diagnose_link(view.run_id)
            st.page_link(page, label=":blue[Find the call that broke it]", query_params=query)


def _ways(view: RunView, number: int, title: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{title}** ({number} of {len(_STEPS)})", width="stretch")
        if number < len(_STEPS):
            st.button("Next", key="guide-next", type="primary", on_click=_turn_to, args=(view, number + 1))
        else:
            st.page_link("pages/ask.py", label="Ask a question of your own", icon=":material/edit:")
        if number > 1:
            st.button("Back", key="guide-back", on_click=_turn_to, args=(view, number - 1))
        st.button("Close the guide", key="guide-close", type="tertiary", on_click=_close)


def _turn_to(view: RunView, number: int) -> None:
    """Put the address on a step and on what it is about."""
    step = _STEPS[number - 1]
    for name in _ADDRESS:
        st.query_params.pop(name, None)
    st.query_params["guide"] = str(number)
    st.query_params["span"] = step.span(view).span_id
    if step.view is not None:
        st.query_params["view"] = step.view


def _close() -> None:
    st.query_params.pop("guide", None)


# -- what the steps are about; where the record has no such span it is the run


def _run(view: RunView) -> SpanRow:
    return next((span for span in view.spans if span.kind == "run"), view.spans[0])


def _batch(view: RunView) -> SpanRow:
    return next((span for span in view.spans if span.kind == "batch"), _run(view))


def _cell(view: RunView) -> SpanRow:
    parent = _batch(view).parent_id
    return view.by_id[parent] if parent is not None else _run(view)


def _failed(view: RunView) -> SpanRow:
    calls = (span for span in view.spans if span.kind == "sub_call" and span.status == "error")
    return next(calls, _batch(view))


# -- their words


def _question(view: RunView) -> str:
    right = _right()
    wrong = "" if right is None else f" The right one is {right.answer}, as the other example found."
    return (
        f"A run is one question over one corpus. This one asked “{view.summary.question}” and answered "
        f"{view.summary.answer}, which is wrong.{wrong} On the left below stands all that it did, as a "
        "tree; on the right what you choose in it. The next steps go down to the call that broke it."
    )


def _code(view: RunView) -> str:
    return (
        "The root model is given the question, but never the documents: it writes Python, which runs locked "
        f"in and has them in a variable. Each of its turns is an iteration, here {view.summary.iterations}; "
        "each piece of code that ran is a cell. The one on the right cuts the documents up and has another "
        "model asked about every piece."
    )


def _calls(view: RunView) -> str:
    summary = view.summary
    return (
        "A sub-call is one question that the code puts to the sub-model, usually a cheaper one: here "
        f"{counted(summary.sub_calls, 'sub-call')}, one for each ticket, in one batch. The tree folds them "
        f"into one line that counts how they ended; {summary.failed_sub_calls} of them failed."
    )


def _broken(view: RunView) -> str:
    call, right = _failed(view), _right()
    same = None if right is None or call.call_index is None else right.replies.get(call.call_index)
    good = "" if same is None else f" In the other example this call was answered “{same}”."
    count = "" if right is None else f" That is why it says {view.summary.answer} and not {right.answer}."
    return (
        f"Sub-call {call.call_index} failed, a fault made on purpose, and the code went on without its "
        f"answer.{good}{count} On the right stand its prompt, its attempts, and where in the documents the "
        "prompt comes from."
    )


def _proof(view: RunView) -> str:
    right = _right()
    against = (
        "looks for suspects in it"
        if right is None
        else f"compares it with the other example, which ran the same code and found {right.answer}"
    )
    return (
        "Nobody has to find that call by reading. “Diagnose”, which stands beside the views "
        f"of every run, {against}, and runs the recorded code again with single replies replaced, "
        "until the answer comes out right. The fewest replies that do it are the cause, and the replays are "
        "the proof. No model is asked, so it costs nothing."
    )


def _cost(view: RunView) -> str:
    summary = view.summary
    price = "nothing: the demo model answers by fixed rules" if summary.demo else "what is said above"
    return (
        f"All calls together took {summary.tokens['total']:,} tokens and cost {price}. For a language model "
        "this overview says what each part cost, which calls were the dearest, and what came near a limit. "
        "Models and keys are entered under Settings; the samples on the Ask page work without."
    )


@dataclass(frozen=True, slots=True)
class _Right:
    """What the example that got it right found: its answer, and the reply of each sub-call by its index."""

    answer: str | None
    replies: dict[int, str | None]


def _right() -> _Right | None:
    """None when a person deleted that example."""
    home = Home.resolve()
    if not home.spool_file(_RIGHT).exists():
        return None
    with suppress(RLMScopeError):
        return _looked_up(home)
    return None


@lru_cache(maxsize=4)
def _looked_up(home: Home) -> _Right:
    """Looked up once: the page runs again at every click, and a recorded example stays as it is."""
    view = load_run(home, _RIGHT)
    calls = (span for span in view.spans if span.kind == "sub_call" and span.call_index is not None)
    return _Right(view.summary.answer, {call.call_index or 0: call.preview for call in calls})


_STEPS: Final = (
    _Step("A question, and a wrong answer", _question, _run),
    _Step("A model writes code", _code, _cell),
    _Step("The code asks another model", _calls, _batch),
    _Step("Where it broke", _broken, _failed),
    _Step("Find it, and prove it", _proof, _failed, diagnose=True),
    _Step("What it cost", _cost, _run, "overview"),
)
