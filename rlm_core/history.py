"""What the root of one run path was told, and how its older turns give way to a summary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain

from rlm_core.lm_handler import Message, estimate_tokens
from rlm_core.prompts import summary_request, with_summary


@dataclass(frozen=True, slots=True)
class Turn:
    """What the root said, and what it was shown of what came of that."""

    said: Message
    shown: Message


@dataclass
class History:
    """The messages a run path began with, and its turns. The last opening message holds the question.

    `folded` turns, the oldest ones, are no longer among `turns`: a summary in the opening stands for them.
    """

    opening: tuple[Message, ...] = ()
    turns: list[Turn] = field(default_factory=list)
    folded: int = 0
    _head: tuple[Message, ...] | None = None  # the opening with the summary

    @property
    def head(self) -> tuple[Message, ...]:
        """What stands before the turns. The same objects until the next summary: only they are no news."""
        return self.opening if self._head is None else self._head

    @property
    def messages(self) -> tuple[Message, ...]:
        """All that the root is sent."""
        return self.without(0)

    def without(self, oldest: int) -> tuple[Message, ...]:
        """The messages without those of the oldest turns that are still there."""
        return (*self.head, *chain.from_iterable((turn.said, turn.shown) for turn in self.turns[oldest:]))

    def add(self, said: Message, shown: Message) -> None:
        """Take a turn in."""
        self.turns.append(Turn(said, shown))

    def oldest_beyond(self, tokens: float) -> int:
        """How many of the oldest turns have to go for the others to have at most so many tokens (by
        `tokens_of`). The last turn always stays.
        """
        left, kept = tokens, 0
        for turn in reversed(self.turns):
            left -= tokens_of((turn.said, turn.shown))
            if kept and left < 0:
                break
            kept += 1
        return len(self.turns) - kept

    def asking_to_sum_up(self, oldest: int, words: int) -> tuple[Message, ...]:
        """What the root is sent to have its oldest turns (at least one) summed up."""
        last = self.turns[oldest - 1]
        before = (*self.head, *chain.from_iterable((t.said, t.shown) for t in self.turns[: oldest - 1]))
        return (*before, last.said, summary_request(last.shown, words))

    def fold(self, oldest: int, summary: str) -> None:
        """Put a summary in the place of the oldest turns, and of the summary before it."""
        self.folded += oldest
        del self.turns[:oldest]
        if self.opening:
            *first, asked = self.opening
            self._head = (*first, with_summary(asked, summary, self.folded))


def tokens_of(messages: Iterable[Message]) -> int:
    """An estimate, as `rlm_core.lm_handler.estimate_tokens`, with four tokens for the frame of a message."""
    return sum(estimate_tokens(message.content) + 4 for message in messages)
