"""Strategies that show their root texts of the corpus; no code is written, no worker started.

The span layout is that of every run: each root call stands in an iteration of its own, which says what of the
corpus the call was given to read.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.endings import MOST_MISFITS, Outcome
from rlm_core.errors import InputError, LimitReached, ModelError
from rlm_core.lm_handler import Completion, Message
from rlm_core.models import is_demo
from rlm_core.orchestrator import Orchestrator
from rlm_core.prompt_families import known_window
from rlm_core.root_calls import RootCalls
from rlm_core.root_window import RootWindow
from rlm_core.source_ranges import Prompt
from rlm_core.strategies import texts, words
from rlm_core.strategies.texts import Piece
from rlm_core.telemetry import Attribute, RunSpan

_ROOM: Final = 400  # tokens of a request beside its texts and its question


class Reading(Orchestrator):
    """Asks the root about texts until it has the answer in plain text."""

    async def _within_time(self, span: RunSpan, stack: contextlib.AsyncExitStack) -> Outcome:
        """Read under the run's wall-clock limit."""
        span.set({sc.PROMPTS_VERSION: f"{self.state.options.strategy}/{words.VERSION}"})
        self.state.sources.search_shown(Prompt(self.corpus), span)  # each iteration says what it shows
        if not self.corpus.chars:
            return Outcome("error", error="no document of the corpus has any text to be read")
        root = RootWindow(RootCalls(self.state, self.path, self.depth), self._history)
        reason: Any
        try:
            async with asyncio.timeout(self.state.ledger.seconds_left):
                return await self._read(span, root)
        except TimeoutError:
            reason, why = "timeout", "the time limit of the run is reached"
        except LimitReached as limit:
            reason, why = "budget", f"the budget is used up: {limit}"
        except (InputError, OSError) as error:
            return Outcome("error", error=str(error))
        return await self._stopped(span, root, reason, why)

    async def _read(self, span: RunSpan, root: RootWindow) -> Outcome:
        """Read and answer. Raises `LimitReached` and `ModelError`."""
        raise NotImplementedError

    async def _stopped(self, span: RunSpan, root: RootWindow, reason: Any, why: str) -> Outcome:
        """The outcome after a limit; what was to be read in one call is not asked for a second time."""
        return Outcome(reason, error=why)

    async def _answer(
        self,
        span: RunSpan,
        root: RootWindow,
        messages: Sequence[Message],
        label: str,
        pieces: Sequence[Piece] = (),
    ) -> Outcome:
        """Ask for the answer; one that does not fit the schema of the run is sent back, a few times."""
        schema = self.state.options.schema
        messages = messages if schema is None else words.with_schema(messages, schema)
        outcome = replied(await self._ask(span, root, messages, label, pieces))
        for _ in range(MOST_MISFITS):
            await self._fit.read(outcome)
            if outcome.text is None or outcome.schema_problem is None:
                return outcome
            told = Message("user", words.MISFIT.format(problem=outcome.schema_problem))
            self._history.add(Message("assistant", outcome.text), told)
            outcome = replied(await self._turn_of(span, root, "the answer did not fit its schema", ()))
        await self._fit.read(outcome)
        return outcome

    async def _ask(
        self,
        span: RunSpan,
        root: RootWindow,
        messages: Sequence[Message],
        label: str,
        pieces: Sequence[Piece],
    ) -> Completion:
        """A root call with messages of its own; `pieces` are what it is given to read."""
        self._history.opening = tuple(messages)
        self._history.turns.clear()
        return await self._turn_of(span, root, label, pieces)

    async def _turn_of(
        self, span: RunSpan, root: RootWindow, label: str, pieces: Sequence[Piece]
    ) -> Completion:
        """The next root call, in an iteration of its own."""
        number = self._iterations
        self._iterations += 1
        facts: dict[str, Attribute | None] = {**self._place(number), sc.PREVIEW: label}
        if pieces and self.state.recorder.records:
            facts[sc.SHOWN_RANGES] = await asyncio.to_thread(texts.shown, self.corpus, pieces)
        iteration = self.state.recorder.start("iteration", sc.NAME_ITERATION, span, facts)
        progress = self.state.progress
        progress.iteration, progress.depth, progress.phase = number, self.depth, "asking the root"
        self.state.tell()
        try:
            completion = await root.ask(iteration, number)
        except BaseException as error:
            iteration.end("cancelled" if isinstance(error, asyncio.CancelledError) else "error")
            raise
        iteration.end("ok")
        return completion

    @property
    def _window(self) -> int | None:
        """Tokens that the root's messages may have, where that is known."""
        return self.state.options.root_window or known_window(self._root_model)

    @property
    def _root_model(self) -> str:
        return self.state.models(self.depth)[0]

    @property
    def _overhead(self) -> int:
        """Tokens of a request beside its texts, by estimate."""
        return _ROOM + len(self.question.encode("utf-8", "surrogatepass")) // texts.BYTES_PER_TOKEN


class Direct(Reading):
    """The whole corpus in one root call, or the word that it does not fit."""

    async def _read(self, span: RunSpan, root: RootWindow) -> Outcome:
        """Count, refuse what cannot fit, else ask once."""
        needed, window = texts.tokens_of(self.corpus) + self._overhead, self._window
        span.set({sc.FITS_TOKENS: needed, sc.FITS_WINDOW: window})
        unknown = f"how much {self._root_model} takes is not known"
        if window is not None and needed > window:
            why = f"about {needed:,} tokens, and {self._root_model} takes {window:,}"
            return self._does_not_fit(span, why)
        if self.corpus.chars > (most := self.state.limits.max_prompt_chars):
            known = unknown if window is None else f"{self._root_model} takes {window:,} tokens"
            why = f"{self.corpus.chars:,} characters, and a prompt may have {most:,} here ({known})"
            return self._does_not_fit(span, why)
        if window is None and not is_demo(self._root_model):
            self.state.notices.append(f"{unknown}: it is sent about {needed:,} tokens at once")
        pieces = texts.whole(self.corpus)
        text = await asyncio.to_thread(texts.render, self.corpus, pieces)
        try:
            messages = words.reading(self.question, text)
            outcome = await self._answer(span, root, messages, "the whole corpus", pieces)
        except ModelError as error:
            if error.kind != "context_window":
                raise
            return self._does_not_fit(span, f"about {needed:,} tokens, and {error}")
        span.set({sc.FITS: True})
        return outcome

    def _does_not_fit(self, span: RunSpan, why: str) -> Outcome:
        span.set({sc.FITS: False})
        return Outcome("error", error=f"the corpus does not fit: {why}")


class Retrieve(Reading):
    """The passages that fit the question best, in one root call."""

    async def _read(self, span: RunSpan, root: RootWindow) -> Outcome:
        """Search with the words of the question, then ask once."""
        found = await asyncio.to_thread(
            texts.passages, self.corpus, self.question, self.state.options.passages
        )
        if not found:
            return Outcome("error", error="no passage of the corpus holds a word of the question")
        room = None if self._window is None else self._window - self._overhead
        found, wanted = await asyncio.to_thread(texts.fitting, self.corpus, found, room), len(found)
        if not found:
            return Outcome(
                "error", error=f"not one passage fits: {self._root_model} takes {self._window:,} tokens"
            )
        if len(found) < wanted:
            self.state.notices.append(words.FEWER.format(shown=len(found), wanted=wanted))
        text = await asyncio.to_thread(texts.render, self.corpus, found)
        label = f"{len(found)} passage{'' if len(found) == 1 else 's'}"
        return await self._answer(span, root, words.reading(self.question, text), label, found)


def replied(completion: Completion) -> Outcome:
    """The outcome of a run whose root has given its answer as plain text."""
    text = (completion.text or "").strip()
    if not text:
        why = " (its length limit was used up before)" if completion.finish_reason == "length" else ""
        return Outcome("error", error=f"the root's reply held no text{why}")
    cut = "the reply was cut off by its length limit" if completion.finish_reason == "length" else None
    return Outcome("final", text=text, form=text, via="reply", note=cut)
