"""A summary agent: reads the corpus part by part and keeps nothing but a running summary of fixed size.

The baseline "compaction" of the paper (arXiv:2512.24601), with parts as large as the root's window allows.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from rlm_core.endings import Outcome
from rlm_core.errors import ConfigError
from rlm_core.lm_handler import Message
from rlm_core.prompts import cut_middle
from rlm_core.root_window import RootWindow
from rlm_core.strategies import texts, words
from rlm_core.strategies.reading import Reading
from rlm_core.telemetry import RunSpan

UNKNOWN_WINDOW: Final = 32_000  # tokens that a model of which nothing is known is taken to take
_SUMMARY: Final = 8  # the summary has at most one such part of the window
_MOST_SUMMARY: Final = 4_000  # tokens
_LEAST_PART: Final = 200  # tokens; with less room for a part a window is of no use
_SAFETY: Final = 4  # one such part of the window stays free: tokens are an estimate
_BYTES_PER_TOKEN: Final = 3  # of UTF-8; with what stays free, text of 2 1/4 bytes a token still fits


class Compaction(Reading):
    """Reads part after part into a summary, then answers from that."""

    _summary: str = ""

    async def _read(self, span: RunSpan, root: RootWindow) -> Outcome:
        """Every part in a root call, then one for the answer; `max_iterations` counts them all."""
        part_bytes, summary_chars = self._room()
        system = Message("system", words.SUMMARISE.format(chars=summary_chars))
        parts = texts.parts(self.corpus, part_bytes)
        left, unheard = self.corpus.chars, 0
        while (part := await asyncio.to_thread(next, parts, None)) is not None:
            if self._iterations >= self.state.limits.max_iterations - 1:
                read = self.corpus.chars - left
                why = f"the limit of turns is reached; {read:,} of {self.corpus.chars:,} characters were read"
                return await self._stopped(span, root, "max_iterations", why)
            left -= sum(piece.end - piece.start for piece in part)
            text = await asyncio.to_thread(texts.render, self.corpus, part)
            messages = words.summarising(system, self.question, self._summary, left, text)
            label = f"part {self._iterations + 1}, {left:,} characters left"
            said = ((await self._ask(span, root, messages, label, part)).text or "").strip()
            self._summary = cut_middle(said, summary_chars) if said else self._summary
            self._partial = self._summary or None  # what was paid for, however the run ends
            unheard += not said
        messages = words.answering(self.question, self._summary)
        read = self._iterations
        outcome = await self._answer(span, root, messages, "the answer, from the summary")
        if unheard:
            lost = f"{unheard} of {read} parts got no reply, so nothing of them is known"
            outcome.note = "; ".join(filter(None, (lost, outcome.note)))
        return outcome

    async def _stopped(self, span: RunSpan, root: RootWindow, reason: Any, why: str) -> Outcome:
        """The best answer that the summary so far allows, in the one extra call after a limit."""
        if not self._summary:
            return Outcome(reason, error=why)
        self._history.opening = words.answering(self.question, self._summary)
        self._history.turns.clear()
        outcome = await self._force(span, root, reason, f"{why[:1].upper()}{why[1:]}.")
        outcome.note = why
        return outcome

    def _room(self) -> tuple[int, int]:
        """Bytes of a part, and characters of the summary. Raises `ConfigError` for a window too small for any
        part. Nothing that a provider counts plays a part: a replay has to make the same parts.
        """
        window = self._window or UNKNOWN_WINDOW
        summary = min(window // _SUMMARY, _MOST_SUMMARY)
        part = window - window // _SAFETY - summary - self._overhead
        if part < _LEAST_PART:
            raise ConfigError(f"a window of {window:,} tokens leaves no room for parts of the corpus")
        return part * _BYTES_PER_TOKEN, summary * _BYTES_PER_TOKEN
