"""Whether what a reply names stands in its prompt: numbers, dates, codes, names, rare labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rlm_core import semconv as sc
from rlm_core.normalise import normalise
from traces.finding import spans_of
from traces.replies import is_telling, one_digit_away, unfounded
from traces.reply_facts import FEW, RARE, Found, Reply, Signal, short, texts_of
from traces.view import RunView

_QUOTED: Final = 60
_MOST_SLIPS: Final = 3  # values of one reply for which a near number is looked for


@dataclass(slots=True)
class _Absent:
    """What a reply names and its prompt does not: comparable form -> as written; `near` maps a number to one
    of the prompt that is a digit away.
    """

    values: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    near: dict[str, str] = field(default_factory=dict)


def against_prompts(view: RunView, families: Mapping[str, Sequence[Reply]], odd: Sequence[Reply]) -> Found:
    """Signals of values, names and rare labels (`odd`) that stand nowhere in the prompt."""
    labels = {reply.span.span_id: reply.label or "" for reply in odd}
    naming = {
        reply.span.span_id: reply
        for family in families.values()
        for reply in family
        if reply.values or reply.names
    }
    absent: dict[str, _Absent] = {}
    asked = [reply.span for reply in ({reply.span.span_id: reply for reply in odd} | naming).values()]
    told = _told_by_tools(view)
    for span_id, prompt in texts_of(view, asked, sc.PROMPT):
        prompt = "\n".join([prompt, *told.get(span_id, ())])
        if span_id in labels and labels[span_id] not in normalise(prompt):
            words = f"The label “{short(labels[span_id], _QUOTED)}” stands nowhere in the prompt, and hardly "
            yield span_id, Signal("format", f"{words}any sibling gave it.")
        if span_id in naming:
            absent[span_id] = _absent(naming[span_id], prompt)
    for family in families.values():
        yield from _values([reply for reply in family if reply.values], absent)
        yield from _names([reply for reply in family if reply.names], absent)


def _told_by_tools(view: RunView) -> dict[str, list[str]]:
    """What tools told the model of a call: it stands to its reply as the prompt does."""
    told: dict[str, list[str]] = defaultdict(list)
    for span_id, text in texts_of(view, spans_of(view, "tool"), sc.TOOL_RESULT):
        told[view.by_id[span_id].parent_id or ""].append(text)
    return told


def _absent(reply: Reply, prompt: str) -> _Absent:
    values = unfounded(reply.values, prompt)
    near = {
        value: other
        for value, written in list(values.items())[:_MOST_SLIPS]
        if (other := one_digit_away(written, prompt)) is not None
    }
    folded = prompt.casefold() if reply.names else ""
    names = {name: written for name, written in reply.names.items() if name not in folded}
    return _Absent(values, names, near)


def _values(family: Sequence[Reply], absent: Mapping[str, _Absent]) -> Found:
    """Where many siblings name what is not in their prompts, the task is to work it out: no evidence, unless
    nearly all of them name something of their prompts besides. Among few siblings only values that are hardly
    chance count.
    """
    wrong = {span_id: dict(absent[span_id].values) for span_id in _ids(family) if span_id in absent}
    if len(family) < FEW:
        wrong = {key: {v: w for v, w in values.items() if is_telling(v)} for key, values in wrong.items()}
    wrong = {key: values for key, values in wrong.items() if values}
    if len(family) >= FEW and len(wrong) > RARE * len(family):
        named = {reply.span.span_id: len(reply.values) for reply in family}
        wrong = {key: values for key, values in wrong.items() if len(values) == named[key]}
    if len(family) < FEW or len(wrong) <= RARE * len(family):
        for span_id, values in wrong.items():
            yield span_id, _value(values, absent[span_id].near)


def _value(wrong: Mapping[str, str], near: Mapping[str, str]) -> Signal:
    if slips := [(written, near[value]) for value, written in wrong.items() if value in near]:
        written, other = slips[0]
        words = f"{short(written, 24)} stands in the reply but nowhere in the prompt; {short(other, 24)}, "
        return Signal("digit", f"{words}a digit away, stands there.")
    shown = ", ".join(short(written, 24) for written in list(wrong.values())[:3])
    more = f" and {len(wrong) - 3:,} more" if len(wrong) > 3 else ""
    stand = "stand" if len(wrong) > 1 else "stands"
    return Signal("value", f"{shown}{more} {stand} in the reply but nowhere in the prompt.")


def _names(family: Sequence[Reply], absent: Mapping[str, _Absent]) -> Found:
    """Names that stand neither in the prompt nor in the reply of any sibling, where that is rare."""
    said = Counter(name for reply in family for name in reply.names)
    wrong = {
        span_id: [written for name, written in absent[span_id].names.items() if said[name] == 1]
        for span_id in _ids(family)
        if span_id in absent
    }
    wrong = {span_id: names for span_id, names in wrong.items() if names}
    if len(family) >= FEW and len(wrong) <= RARE * len(family):
        for span_id, names in wrong.items():
            words = f"The name {short(names[0], _QUOTED)} stands in the reply but nowhere in the prompt."
            yield span_id, Signal("name", words)


def _ids(family: Sequence[Reply]) -> list[str]:
    return [reply.span.span_id for reply in family]
