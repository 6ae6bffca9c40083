"""What two root calls were sent, message by message: those that differ, the new ones of the turn open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Final

import streamlit as st

from traces.detail import added_messages
from traces.reading import SpanRow
from ui.figures import counted
from ui.web import plain
from ui.web.diff_view import diff_view

_LOST: Final = "(not in the record)"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation: its place from 1, role and text (None: not in the record), and whether
    the turn before was not sent it yet."""

    number: int
    role: str
    text: str | None
    new: bool

    @property
    def same_as(self) -> tuple[str, str | None]:
        """What must be equal for two messages to be the same."""
        return self.role, self.text


Pairs = Sequence[tuple[Message | None, Message | None]]


def messages_of(detail: Mapping[str, Any], span: SpanRow) -> tuple[Message, ...]:
    """The messages that a root call was sent; () for other spans."""
    listed = detail.get("messages") or ()
    added = added_messages(span)
    old = 0 if added is None else len(listed) - len(added)
    return tuple(
        Message(number, str(one["role"]), one.get("content"), number > old)
        for number, one in enumerate(listed, 1)
    )


def paired(
    one: Sequence[Message], other: Sequence[Message]
) -> Iterator[tuple[Message | None, Message | None]]:
    """Messages side by side: equal ones with each other, those between them in their order."""
    matcher = SequenceMatcher(None, [m.same_as for m in one], [m.same_as for m in other], autojunk=False)
    for _, a, b, c, d in matcher.get_opcodes():
        yield from zip_longest(one[a:b], other[c:d])


def same_message(one: Message | None, other: Message | None) -> bool:
    """Whether both sides were sent the same message."""
    return one is not None and other is not None and one.same_as == other.same_as


def compare_messages(pairs: Pairs, key: str, *, one_text: bool, whole: bool) -> None:
    """Draw the pairs; those of earlier turns, which are compared there already, and equal ones are closed."""
    differing = [(one, other) for one, other in pairs if not same_message(one, other)]
    for number, (one, other) in enumerate(differing):
        label = _label(one, other)
        place = f"{key}-message-{number}"
        if any(side is not None and side.new for side in (one, other)):
            st.caption(label)
            _diff(one, other, place, label, one_text=one_text, whole=whole)
            continue
        box = st.expander(f"{label}, not new in this turn", key=f"{place}-old", on_change="rerun")
        if box.open:
            with box:
                _diff(one, other, place, label, one_text=one_text, whole=whole)
    _same([one for one, other in pairs if one is not None and same_message(one, other)], key)


def _label(one: Message | None, other: Message | None) -> str:
    """Which messages they are, in words of ours: a role may be any text, so only known ones are named."""
    numbers = [str(side.number) if side is not None else "none" for side in (one, other)]
    role = next(side.role for side in (one, other) if side is not None)
    known = role if role in ("system", "user", "assistant", "tool") else "of another role"
    place = numbers[0] if numbers[0] == numbers[1] else f"{numbers[0]} of A, {numbers[1]} of B"
    return f"Message {place} ({known})"


def _diff(
    one: Message | None, other: Message | None, key: str, label: str, *, one_text: bool, whole: bool
) -> None:
    texts = [_LOST if side is not None and side.text is None else (side.text if side else "") or ""
             for side in (one, other)]  # fmt: skip
    a, b = (name if side is not None else f"{name} has none" for name, side in (("A", one), ("B", other)))
    diff_view(
        texts[0], texts[1], key=key, names=(a, b), label=f"{label} of A and B", one_text=one_text, whole=whole
    )


def _same(messages: Sequence[Message], key: str) -> None:
    if not messages:
        return
    size = sum(len(message.text or "") for message in messages)
    words = f"{counted(len(messages), 'message')}, the same in both: {counted(size, 'character')}"
    box = st.expander(words, key=f"{key}-messages-same", on_change="rerun")
    if box.open:
        with box:
            for message in messages:
                st.caption(_label(message, message))
                name = f"{key}-same-{message.number}"
                plain.payload(message.text or _LOST, key=name, file_name="message.txt")
