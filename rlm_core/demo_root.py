"""`demo/root`: writes the cells of a run by rule, from the question alone. No language model is involved.

It is stateless in (question, number of its earlier turns, last output) and never sees the corpus. Turn 0
explores; then come the cells of the first plan whose question form fits; the last one ends the run. For some
forms the last cell hands over a variable, for others the root reads the answer from the output and types it
into the cell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from rlm_core import demo_cells as cells
from rlm_core import demo_forms as forms
from rlm_core import demo_plans as plans
from rlm_core import prompts
from rlm_core.demo_question import asking_sentence
from rlm_core.lm_handler import Message

_BROKEN: Final = "The demo model could not finish: its cells printed no answer."
_FORMS: Final = (
    forms.pairs, forms.by_label, forms.common_label, forms.by_text, forms.count_all, forms.listing,
    forms.extreme, forms.by_predicate, forms.summary,
)  # fmt: skip


def reply(messages: Sequence[Message]) -> str:
    """The root's next reply: prose and one cell, or plain text when the final answer is asked for."""
    if prompts.is_final_request(messages):
        return _forced(messages)
    if prompts.is_summary_request(messages):
        return _summary(messages)
    question = prompts.parse_question(messages)
    turn = prompts.turns_so_far(messages)
    output = prompts.last_output(messages)
    if turn == 0:
        return _turn("I look at the context first.", cells.EXPLORE)
    plan = plan_for(question)
    done = min(turn - 1, len(plan.steps))
    if re.search(r"^\s*NameError: name ", output, re.M) and done and turn <= len(plan.steps) + 2:
        merged = "\n".join(code for _, code in plan.steps[:done])
        return _turn("Some names are gone, so I run the steps so far again.", merged)
    if turn <= len(plan.steps):
        return _turn(*plan.steps[turn - 1])
    if plan.last is not None and turn <= len(plan.steps) + 2:
        return _turn("That is the answer.", plan.last)
    return _turn("The output says it; I type it in.", _typed(output))


def plan_for(question: str) -> plans.Plan:
    """The plan of the first question form that fits; the last resort shows the closest passage."""
    asked = asking_sentence(question)
    flat = forms.plain(asked)
    fitting = (plan for form in _FORMS if (plan := form(flat)) is not None)
    return next(fitting, None) or plans.lookup(asked) or plans.no_plan(asked)


def _turn(prose: str, code: str) -> str:
    return f"{prose}\n\n{prompts.fence(code.rstrip(), 'repl')}"


# -- reading back


def _told(output: str, name: str) -> str | None:
    """The JSON value on the last line `NAME: ...` of an output, as text."""
    for raw in reversed(re.findall(rf"^[ \t]*{name}: (.+)$", output, re.M)):
        try:
            value = json.loads(raw)
        except ValueError:
            continue
        return value if isinstance(value, str) else json.dumps(value)
    return None


def _typed(output: str) -> str:
    """The last cell, with the answer copied from the output."""
    value = _told(output, "ANSWER") or _BROKEN
    confidence, note = _told(output, "CONFIDENCE"), _told(output, "NOTE")
    if confidence is None and note is None:
        return f"FINAL({value!r})"
    lines = [f'answer["content"] = {value!r}']
    lines += [f'answer["confidence"] = {confidence!r}'] if confidence else []
    lines += [f'answer["note"] = {note!r}'] if note else []
    return "\n".join([*lines, 'answer["ready"] = True'])


def _summary(messages: Sequence[Message]) -> str:
    """The lines of the outputs so far that say something by name, as plain text: what `_forced` looks for."""
    told = {
        found[0].strip(): None
        for message in messages
        if message.role == "user"
        for found in re.finditer(r"^[ \t]*(?:ANSWER|TOTAL|CONFIDENCE|NOTE): .*$", message.content, re.M)
    }
    return "\n".join(told) or "The demo model has looked at the context; no cell has printed an answer yet."


def _forced(messages: Sequence[Message]) -> str:
    """The best answer that an earlier output shows, as plain text, or what is missing."""
    for message in reversed(messages):
        if message.role != "user":
            continue
        value = _told(message.content, "ANSWER")
        total = re.search(r"^[ \t]*TOTAL: (\d+)", message.content, re.M)
        if value is not None:
            return value
        if total is not None:
            return total[1]
    return "The demo model was stopped before its cells had printed an answer."
