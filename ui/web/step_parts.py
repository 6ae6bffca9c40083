"""What stands on the page of one step: what the root was told, its reply, the cell, its calls, variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import streamlit as st

from rlm_core import semconv as sc
from traces.imported import is_foreign
from traces.reading import RunView, SpanRow
from traces.refused import REFUSED_WORDS, refused
from traces.steps import Calls, Replay, Step
from traces.tree import OUTCOMES, outcome
from ui.figures import counted, money, spent, tokens, with_tokens
from ui.tree import problem as what_went_wrong
from ui.trust_text import marked
from ui.visible import line
from ui.web import plain
from ui.web.notices import note, problem
from ui.web.run_record import Select
from ui.web.span_paths import title
from ui.web.span_tables import taken
from ui.web.step_outline import COLOURS
from ui.web.step_variables import variables

_ROLES: Final = ("system", "user", "assistant", "tool")
_LINES: Final = 30  # of a text that are shown at first
_CODE_LINES: Final = 60
_CALLS: Final = 12  # rows of calls shown
_CHILDREN: Final = 8  # child runs shown of one row
_MISSING: Final = "This text is not in the record."


def draw(replay: Replay, step: Step, select: Select, enter: Callable[[str], None]) -> None:
    """The step. `select` goes to a span in the tree, `enter` to the steps of a child run."""
    view = replay.view
    _head(step, select)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("##### What the root was told")
        _told(replay, step)
        st.markdown("##### What it replied")
        _replied(view, step)
    with right:
        st.markdown("##### What the cell did")
        if step.cell is None:
            _no_cell(step)
        else:
            _cell(replay, step, step.cell, select, enter)
    if step.cell is not None:
        st.markdown("##### Variables")
        variables(replay, step)


def _head(step: Step, select: Select) -> None:
    span = step.span
    words = [f"Step {step.number:,}"]
    if span.iteration is not None:
        words.append(f"iteration {span.iteration:,}")
    if step.cell is not None and span.cell is not None:
        words.append(f"cell {span.cell:,}")
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="step-head"):
        with st.container(width="content", key="step-title"):
            st.text(": ".join((words[0], ", ".join(words[1:]))) if words[1:] else words[0])
        st.badge(outcome(span), color=COLOURS.get(outcome(span), "red"))
        if step.cell is not None and span.phases:
            plain.text(", ".join(span.phases))
        st.caption(taken(span), width="content")
        st.button("Show in the tree", key="step-in-tree", on_click=select, args=(span.span_id,))
    if (wrong := what_went_wrong(span)) and span.status != "running":
        problem(wrong)
    if step.of > 1:
        st.caption(f"Block {step.position + 1} of the {step.of} that this reply was run in.")


def _told(replay: Replay, step: Step) -> None:
    """The new messages: the root's own last reply, which it is always sent again, is closed at first."""
    if step.root_call is None:
        note("No root call of this step is on record.")
        return
    heard = replay.heard(step)
    if heard is None:
        note("What the root was sent is not in the record.")
        return
    if heard.earlier is None:
        note("Whether messages were sent before these is not in the record.")
    elif heard.earlier:
        st.caption(f"After {counted(heard.earlier, 'earlier message')}, which steps before show:")
    for number, (role, text) in enumerate(heard.messages):
        word = role if role in _ROLES else "message"
        size = "not in the record" if text is None else counted(len(text), "character")
        key = f"{step.root_call.span_id}-told-{number}"
        box = st.expander(f"{word}, {size}", expanded=word == "user", key=key, on_change="rerun")
        if box.open:
            with box:
                _text(text, f"{key}-text", f"message-{number + 1}.txt")


def _replied(view: RunView, step: Step) -> None:
    root = step.root_call
    if root is None:
        st.caption("(nothing on record)")
        return
    cost = money(root.cost_usd, root.cost_status)
    trust = root.trusted
    took = f"tokens {marked(tokens(root.own_tokens), trust, 'tokens')} · cost {marked(cost, trust, 'cost')}"
    if root.span_id in refused(view.spans):
        took = REFUSED_WORDS
    time = marked(taken(root), trust, "seconds")
    label = "" if root.trust is None else "time "
    st.caption(f"{took} · {label}{time}")
    if wrong := what_went_wrong(root):
        problem(wrong)
    text, named = _payload(view, root, sc.RESPONSE)
    if not named:
        st.caption("(no reply yet)" if root.status == "running" else "(no reply)")
        return
    _text(text, f"{root.span_id}-replied", "reply.txt")


def _no_cell(step: Step) -> None:
    running = step.span.status == "running"
    if step.iteration is not None and step.iteration.attributes.get(sc.FORCED) is True:
        note("A limit was reached: the root was asked for an answer in plain text, and no code is run.")
    elif running:
        st.caption("(no cell yet)")
    else:
        note("No code was run: the reply held no code block that could be run.")


def _cell(replay: Replay, step: Step, cell: SpanRow, select: Select, enter: Callable[[str], None]) -> None:
    view = replay.view
    text, named = _payload(view, cell, sc.CODE)
    if named:
        _text(text, f"{cell.span_id}-code", "code.py", language="python")
    else:
        note(_MISSING)
    _calls(replay.calls(step), select, enter, foreign=is_foreign(view.summary))
    _output(view, cell)
    if step.run is not None and step.run.attributes.get(sc.ANSWER_CELL) == cell.cell is not None:
        answer, named = _payload(view, step.run, sc.ANSWER)
        if named:
            st.caption("This cell set the answer:")
            _text(answer, f"{cell.span_id}-answer", "answer.txt")


def _calls(calls: list[Calls], select: Select, enter: Callable[[str], None], *, foreign: bool) -> None:
    if not calls:
        st.caption("No sub-calls on record." if foreign else "No sub-calls.")
        return
    for number, each in enumerate(calls[:_CALLS]):
        _call(number, each, select)
        if each.called == "rlm_query":
            _children(each, enter)
    if len(calls) > _CALLS:
        st.caption(f"{len(calls) - _CALLS:,} more groups of calls; the tree has them all.")


def _call(number: int, calls: Calls, select: Select) -> None:
    """One line: a way to the calls, how they ended, what they took, a way to the first bad one."""
    word = f"{len(calls.members):,} x {calls.called}"
    total = calls.spend
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"step-calls-{number}"):
        st.button(word, key=f"step-call-{number}", on_click=select, args=(calls.span.span_id,))
        for name in OUTCOMES:
            if count := calls.counts.get(name):
                st.badge(f"{count:,} {name}", color=COLOURS.get(name, "red"))
        cost = spent(total.usd, total.status, total.known_usd)
        if total.calls:
            st.caption(f"{with_tokens(total.tokens, total.untold)} · cost {cost}", width="content")
        if calls.bad is not None:
            label = f"First {outcome(calls.bad)}"
            st.button(label, key=f"step-bad-{number}", on_click=select, args=(calls.bad.span_id,))


def _children(calls: Calls, enter: Callable[[str], None]) -> None:
    for child in calls.members[:_CHILDREN]:
        key = f"step-calls-child-{child.span_id}"
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key=key):
            st.button(
                f"Step into {title(child)}",
                key=f"step-into-{child.span_id}",
                on_click=enter,
                args=(child.span_id,),
            )
            with st.container(width="stretch"):
                plain.text(line(child.preview or "(its question is not on record)"))
    if len(calls.members) > _CHILDREN:
        st.caption(f"{len(calls.members) - _CHILDREN:,} more child runs; “Steps of” has them all.")


def _output(view: RunView, cell: SpanRow) -> None:
    shown, has_shown = _payload(view, cell, sc.STDOUT_SHOWN)
    whole, has_whole = _payload(view, cell, sc.STDOUT)
    if not has_shown and not has_whole:
        st.caption("(no output yet)" if cell.status == "running" else "(no output on record)")
        return
    same = shown is not None and whole is not None and shown.strip() == whole.strip()
    if has_shown:
        st.caption("Output, as the root was shown it" + (" (all of it):" if same else ":"))
        _text(shown, f"{cell.span_id}-shown", "shown.txt")
    if has_whole and not same:
        printed = cell.attributes.get(sc.STDOUT_TRUE_CHARS)
        size = "not in the record" if whole is None else counted(len(whole), "character")
        cut = whole is not None and type(printed) is int and printed > len(whole)
        of = f" of the {printed:,} it printed" if cut else ""
        box = st.expander(f"Output in full, {size}{of}", key=f"{cell.span_id}-whole-box", on_change="rerun")
        if box.open:
            with box:
                _text(whole, f"{cell.span_id}-whole", "output.txt")


def _payload(view: RunView, span: SpanRow, prefix: str) -> tuple[str | None, bool]:
    """A text of a span, None where the record does not hold it; and whether the span names one at all."""
    sha256 = span.attributes.get(prefix + ".sha256")
    return (view.payload(sha256), True) if isinstance(sha256, str) else (None, False)


def _text(text: str | None, key: str, file_name: str, language: str | None = None) -> None:
    """A text; of one with many lines the first: not every keyboard reaches into a window that scrolls."""
    if text is None:
        note(_MISSING)
        return
    if not text:
        st.caption("(empty)")
        return
    lines, most = text.count("\n") + 1, _CODE_LINES if language else _LINES
    if lines > most and not st.toggle(f"All {lines:,} lines", key=f"{key}-lines"):
        st.caption(f"The first {most}:")
        plain.code("\n".join(text.split("\n", most)[:most]), language)
    else:
        plain.payload(text, key=key, file_name=file_name, language=language)
