"""The root's side of a run path: its turns are asked one after another, and its oldest ones are summed up by
itself where they no longer fit into its window.

When: `Options.root_window`, or what is known of the model less room for a reply; where neither is, only after
the provider has refused the messages as too long. A summary is made at most once before a turn (and once more
after a refusal), and always takes the place of one turn at least: it cannot go on for ever. Everything it
depends on is in the record, so that a replay sums up the same turns at the same places.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rlm_core.errors import ModelError
from rlm_core.history import History, tokens_of
from rlm_core.lm_handler import Completion, Message
from rlm_core.prompt_families import known_window
from rlm_core.prompts import cut_middle, final_request
from rlm_core.root_calls import RootCalls
from rlm_core.telemetry import RunSpan

_MOST_WORDS: Final = 800
_LEAST_WORDS: Final = 50
_MOST_CHARS: Final = 8 * _MOST_WORDS  # of a summary; a longer one is cut in the middle
_MOST_RATIO: Final = 4.0


@dataclass
class RootWindow:
    """Asks the root of one run path turn after turn, within its window."""

    root: RootCalls
    history: History = field(default_factory=History)
    _answered: float = 0.0  # the most tokens that an answered turn was sent, by our estimate
    _refused: bool = False  # a provider has said that the messages were too long
    _ratio: float = 1.0  # of tokens as the provider counted them to our estimate

    async def ask(self, parent: RunSpan, iteration: int) -> Completion:
        """One turn. Raises `ModelError` (kind context_window: nothing more can be summed up) or
        `LimitReached`.
        """
        played = self.root.played(iteration, False)
        await self._as_recorded(parent, iteration)
        if played is None:
            await self._make_room(parent, iteration)
        messages = self.history.messages
        try:
            completion = await self.root.call(parent, iteration, messages, played)
        except ModelError as error:
            if error.kind != "context_window" or not await self._make_room(parent, iteration, refused=True):
                raise
            messages = self.history.messages
            completion = await self._beside(parent, iteration, messages)
        self._learn(messages, completion)
        return completion

    async def ask_forced(self, parent: RunSpan, iteration: int, why: str) -> Completion:
        """The one call after a limit. Nothing is summed up any more: the oldest turns that do not fit are
        left out, and the root is told.
        """
        played = self.root.played(iteration, True)
        try:
            return await self.root.call(parent, iteration, self._closing(why), played, forced=True)
        except ModelError as error:
            if error.kind != "context_window" or len(self.history.turns) < 2:
                raise
            self._refused = True
            return await self._beside(parent, iteration, self._closing(why), forced=True)

    async def _beside(
        self,
        parent: RunSpan,
        iteration: int,
        messages: tuple[Message, ...],
        *,
        forced: bool = False,
        summed: int | None = None,
    ) -> Completion:
        """A root call that no record holds: a summary, or a turn again that was refused."""
        if self.root.state.playback is not None:
            self.root.state.playback.root_beside()
        return await self.root.call(parent, iteration, messages, None, forced=forced, summed=summed)

    # -- the window

    def _room(self) -> float | None:
        """Tokens, by our estimate, that the messages may have; None when that is not known."""
        state = self.root.state
        known = [self._answered] if self._refused and self._answered else []
        if state.options.root_window is not None:
            known.append(state.options.root_window / self._ratio)
        elif (window := known_window(state.models(self.root.depth)[0])) is not None:
            known.append((window - min(state.limits.max_tokens_root, window // 2)) / self._ratio)
        return min(known, default=None)

    def _learn(self, messages: tuple[Message, ...], completion: Completion) -> None:
        """What an answered turn tells about the window, and about our way to count."""
        estimate, usage = tokens_of(messages), completion.usage
        self._answered = max(self._answered, estimate)
        if usage.input is not None and not usage.estimated:
            self._ratio = min(max(usage.input / max(estimate, 1), 1.0), _MOST_RATIO)

    def _closing(self, why: str) -> tuple[Message, ...]:
        """The messages that ask for the forced answer."""
        room, oldest = self._room(), 0
        if room is not None and tokens_of(self.history.messages) > room:
            oldest = self.history.oldest_beyond(room - tokens_of(self.history.head))
        left_out = f" Your {oldest:,} oldest turns are left out: they no longer fit." if oldest else ""
        return (*self.history.without(oldest), final_request(why + left_out))

    # -- the summary

    async def _make_room(self, parent: RunSpan, iteration: int, *, refused: bool = False) -> bool:
        """Sum up the oldest turns if the messages do not fit; returns whether that was done.

        Half of what the opening leaves of the window is for the turns that stay, at most a quarter for the
        summary: the next one is some turns away.
        """
        self._refused = self._refused or refused
        room = self._room()
        if room is None or (tokens_of(self.history.messages) <= room and not refused):
            return False
        left = room - tokens_of(self.history.opening)
        oldest = self.history.oldest_beyond(left / 2)
        if oldest:
            words = int(min(max(left / 8, _LEAST_WORDS), _MOST_WORDS))
            asked = self.history.asking_to_sum_up(oldest, words)
            self._take(await self._beside(parent, iteration, asked, summed=oldest), oldest)
        self._insist(room)
        return oldest > 0

    async def _as_recorded(self, parent: RunSpan, iteration: int) -> None:
        """Take the summary that the record of a run that is played again has before this turn."""
        playback = self.root.state.playback
        found = None if playback is None else playback.summary(self.root.path, iteration)
        if found is None or not 0 < found.turns <= len(self.history.turns):
            return
        asked = self.history.asking_to_sum_up(found.turns, _MOST_WORDS)
        played = await self.root.call(parent, iteration, asked, found.completion, summed=found.turns)
        self._take(played, found.turns)

    def _take(self, completion: Completion, oldest: int) -> None:
        text = (completion.text or "").strip()
        if not text:
            raise ModelError("empty", "its summary of the turns that no longer fit into its window is empty")
        self.history.fold(oldest, cut_middle(text, _MOST_CHARS))

    def _insist(self, room: float) -> None:
        """Of a window that somebody has set: not even a summary helps. One that is only known of the model's
        name is for the provider to insist on.
        """
        window, needed = self.root.state.options.root_window, tokens_of(self.history.messages)
        if window is not None and needed > room:
            summed = " with older turns summed up" if self.history.folded else ""
            raise ModelError(
                "context_window",
                f"its messages need about {needed * self._ratio:,.0f} tokens{summed}, and root_window is "
                f"{window:,}; allow more, or ask for less output",
            )
