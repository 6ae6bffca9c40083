"""Strategies in which the root writes cells, as in the RLM itself, but is told or given something else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from rlm_core import semconv as sc
from rlm_core.checks import SUB_CALLS
from rlm_core.environment import Environment
from rlm_core.errors import CorpusError, InputError, SandboxError
from rlm_core.history import tokens_of
from rlm_core.lm_handler import Message
from rlm_core.orchestrator import Orchestrator
from rlm_core.prompt_families import known_window
from rlm_core.source_ranges import Prompt
from rlm_core.strategies import texts, words
from rlm_core.telemetry import RunSpan
from rlm_core.wire import Part


class NoSubCalls(Orchestrator):
    """The RLM without sub-calls: its root reads what its cells print, and nobody else reads anything."""

    system: ClassVar[str] = words.NO_SUBCALLS

    def _environment(self) -> Environment:
        """A REPL without the names of sub-calls."""
        return replace(super()._environment(), without=SUB_CALLS)

    async def _opening(self, span: RunSpan) -> list[Message]:
        """The opening of the RLM under other instructions."""
        span.set({sc.PROMPTS_VERSION: f"{self.state.options.strategy}/{words.VERSION}"})
        _, *others = await super()._opening(span)
        return [Message("system", self.system), *others]


class CodeAct(NoSubCalls):
    """An agent that acts in code and searches by BM25, without sub-calls (CodeAct, arXiv:2402.01030)."""

    system = words.CODEACT


class RetrieveThenCode(Orchestrator):
    """The RLM, whose root is shown the passages that fit the question best before its first turn."""

    async def _opening(self, span: RunSpan) -> list[Message]:
        """The opening of the RLM with the passages behind it; child runs have none of their own."""
        *others, last = await super()._opening(span)
        k, room = self.state.options.passages, self._room((*others, last))
        try:
            found = await asyncio.to_thread(texts.passages, self.corpus, self.question, k)
            found, wanted = await asyncio.to_thread(texts.fitting, self.corpus, found, room), len(found)
            text = await asyncio.to_thread(texts.render, self.corpus, found)
        except (CorpusError, OSError) as error:
            raise SandboxError(str(error)) from None
        except InputError:  # a question without a word: the RLM answers it as it would without passages
            return [*others, last]
        if len(found) < wanted:
            self.state.notices.append(words.FEWER.format(shown=len(found), wanted=wanted))
        if not found:
            return [*others, last]
        read: list[Part] = [self.corpus.describe(), *(list(piece) for piece in found)]
        self.state.sources.search_shown(Prompt.of(self.corpus, [read]), span)
        return [*others, words.with_passages(last, text)]

    def _room(self, opening: Sequence[Message]) -> int | None:
        """Tokens for the passages: half of what the opening leaves of the window, the turns need the rest."""
        window = self.state.options.root_window or known_window(self.state.models(self.depth)[0])
        return None if window is None else max(0, window - tokens_of(opening)) // 2
