"""Where the text of every sub-call came from in the corpus: known at once, or searched for off the call path.

A part of a prompt that is a place in the corpus is known exactly when the call is made. Text that code built
is searched for in a thread, one prompt after the other: neither the answer to the cell nor the recorded end
of the call waits for it. What it finds stands on the call's span when that is still open, else in an event of
it. `rlm_core.semconv.SOURCE_RANGES` says in which form.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.corpus_search import MOST_WINDOWS, CorpusSearch, NotSearched, Window
from rlm_core.errors import CorpusError
from rlm_core.gram_index import GRAINS, MOST_BYTES
from rlm_core.locate import Found
from rlm_core.telemetry import Recorder, RunSpan, as_json
from rlm_core.wire import Part

LEAST: Final = GRAINS[0].least  # bytes; shorter texts are not searched for
MOST_RANGES: Final = 1_000  # recorded of one prompt, the longest
MOST_WAITING: Final = 64 << 20  # characters of prompts that wait for their search
MOST_FOR_SHOWN: Final = 16 << 20  # bytes of a corpus that are indexed only for what the root is shown
FINISH_SECONDS: Final = 10.0  # what the end of a run waits for searches
_AT_ONCE: Final = 32  # prompts given to the thread together
_ENDED: Final = "the run ended before"

Range = list[int]  # [document, first byte, last byte]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt in parts: texts to be searched for, and places as byte ranges.

    `problem` says why a place could not be turned into bytes.
    """

    corpus: Corpus
    parts: tuple[str | Range, ...] = ()
    problem: str | None = None

    @classmethod
    def of(cls, corpus: Corpus, texts: Sequence[list[Part]]) -> Prompt:
        """Texts that are sent together; what is too short to be searched for is left out."""
        parts: list[str | Range] = []
        try:
            for part in (part for text in texts for part in _merged(text)):
                if not isinstance(part, str):
                    if part[2] > part[1]:
                        parts.append([part[0], *corpus.byte_range(*part)])
                elif len(part) >= LEAST or len(part.encode("utf-8", "surrogatepass")) >= LEAST:
                    parts.append(part)
        except CorpusError as error:
            return cls(corpus, problem=str(error))
        return cls(corpus, tuple(parts))

    @property
    def chars(self) -> int:
        """How many characters there are to be searched for."""
        return sum(len(part) for part in self.parts if isinstance(part, str))

    def at_once(self) -> str:
        """What is known when the call is made, as JSON."""
        return self.unsearched(self.problem or ("the search has not finished" if self.chars else None))

    def unsearched(self, why: str | None) -> str:
        """What is known without a search, as JSON; `why` there was none, None = none is needed."""
        return self.outcome([[] for _ in self.parts], why)

    def outcome(self, found: Sequence[list[Found]], why: str | None = None) -> str:
        """What a search found in each part, as JSON; `why` something was not searched."""
        ranges: list[tuple[Range, int]] = []
        for part, passages in zip(self.parts, found, strict=True):
            if not isinstance(part, str):
                ranges.append((part, 0))
            ranges += [([item.document, item.start, item.end], item.also) for item in passages]
        located = any(found)
        kept = _longest(ranges)
        value: dict[str, Any] = {
            "how": "located" if located else "reference" if ranges else "not_searched" if why else "none",
            "ranges": [place for place, _ in kept],
            "places": [self.corpus.place(*place) for place, _ in kept],
        }
        if located:
            value["also"] = [also for _, also in kept]
        if len(kept) < len(ranges):
            value["left_out"] = len(ranges) - len(kept)
        if why is not None:
            value["why"] = why
        return as_json(value)


def _merged(parts: list[Part]) -> list[Part]:
    """The parts with neighbouring texts as one."""
    merged: list[Part] = []
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
            continue
        merged += ["".join(texts), part]
        texts = []
    return [*merged, "".join(texts)]


def _longest(ranges: list[tuple[Range, int]]) -> list[tuple[Range, int]]:
    """The longest ranges, in their order."""
    if len(ranges) <= MOST_RANGES:
        return ranges
    longest = sorted(range(len(ranges)), key=lambda n: ranges[n][0][1] - ranges[n][0][2])[:MOST_RANGES]
    return [ranges[number] for number in sorted(longest)]


@dataclass(slots=True)
class _Search:
    """A search that waits or runs."""

    prompt: Prompt
    span: RunSpan
    key: str  # of the span's attribute for the outcome
    windows: Sequence[Window] = ()  # what code has looked at since the search before


class SourceRanges:
    """The searches of one run and its children. Used from the engine's event loop."""

    def __init__(self, recorder: Recorder) -> None:
        self.question = (
            ""  # of the run: its own words come from whoever asked, also where a document has them
        )
        self._recorder = recorder
        self._looked: WeakKeyDictionary[Corpus, deque[Window]] = WeakKeyDictionary()
        self._waiting: deque[_Search] = deque()
        self._running: list[_Search] = []
        self._chars = 0
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._corpora: dict[str, CorpusSearch] = {}  # by folder, the last used last; only the thread uses it

    def looked(self, corpus: Corpus, windows: Sequence[Window]) -> None:
        """Take note of what code has looked at, as its worker says; the newest are kept."""
        if windows:
            self._looked.setdefault(corpus, deque(maxlen=MOST_WINDOWS)).extend(windows)

    def search(self, prompt: Prompt, span: RunSpan) -> None:
        """Search for the texts of a prompt, if there are any; what comes of it gets onto the span."""
        self._search(prompt, span, sc.SOURCE_RANGES)

    def search_shown(self, text: Prompt, span: RunSpan) -> None:
        """The same for what a root model is shown. No index of a large corpus is made for that alone."""
        if self._recorder.records:
            span.set({sc.SHOWN_RANGES: text.at_once()})
        self._search(text, span, sc.SHOWN_RANGES)

    def _search(self, prompt: Prompt, span: RunSpan, key: str) -> None:
        if not prompt.chars or not self._recorder.records:
            return
        search = _Search(prompt, span, key, self._looked.pop(prompt.corpus, ()))
        if self._stopped:
            self._settle(search, prompt.unsearched(_ENDED))
        elif self._chars + prompt.chars > MOST_WAITING:
            self._settle(search, prompt.unsearched("too much other text was waiting to be searched"))
        else:
            self._chars += prompt.chars
            self._waiting.append(search)
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._work())

    async def finish(self, *, wait: bool) -> None:
        """Wait for all searches, at most `FINISH_SECONDS` (with `wait` false not at all); give up the rest.

        A cancellation ends the waiting and is not passed on: the outcome of the run is known by now.
        """
        if self._task is not None and wait:
            with suppress(asyncio.CancelledError):
                await asyncio.wait({self._task}, timeout=FINISH_SECONDS)
        self._stopped = True
        if self._task is not None:
            self._task.cancel()
        for search in (*self._running, *self._waiting):
            self._settle(search, search.prompt.unsearched(_ENDED))
        self._running = []
        self._waiting.clear()

    async def _work(self) -> None:
        while self._waiting:
            self._running = [self._waiting.popleft() for _ in range(min(_AT_ONCE, len(self._waiting)))]
            outcomes = await asyncio.to_thread(lambda: [self._outcome(search) for search in self._running])
            for search, outcome in zip(self._running, outcomes, strict=True):
                self._chars -= search.prompt.chars
                self._settle(search, outcome)
            self._running = []

    def _settle(self, search: _Search, outcome: str) -> None:
        if search.span.ended:
            search.span.event(sc.EV_SOURCES, {search.key: outcome})
        else:
            search.span.set({search.key: outcome})

    def _outcome(self, search: _Search) -> str:
        """Search for one prompt. Runs in the thread; a search that fails is said and ends nothing."""
        prompt, why = search.prompt, None
        found: list[list[Found]] = []
        try:
            corpus = self._search_of(prompt.corpus)
            corpus.look(search.windows)
            if search.key == sc.SHOWN_RANGES and corpus.weight > MOST_FOR_SHOWN and not corpus.indexed:
                return prompt.unsearched("the corpus is large, and no sub-call needed a search of it before")
            for part in prompt.parts:
                found.append([])
                try:
                    if isinstance(part, str):
                        found[-1] = self._of_the_corpus(part, corpus.find(part))
                except NotSearched as reason:
                    why = str(reason)
            return prompt.outcome(found, None if any(found) else why)
        except Exception as error:
            return prompt.unsearched(f"the search failed ({type(error).__name__})")

    def _of_the_corpus(self, text: str, found: list[Found]) -> list[Found]:
        """The passages without those that only repeat words of the question, which prompts are full of."""
        asked, data = self.question.encode("utf-8", "surrogatepass"), text.encode("utf-8", "surrogatepass")
        return [item for item in found if data[item.at :][: item.end - item.start].strip() not in asked]

    def _search_of(self, corpus: Corpus) -> CorpusSearch:
        """The search of a corpus. Those that were not used for long are given up when they hold too much."""
        key = str(corpus.folder)
        known = self._corpora.pop(key) if key in self._corpora else None
        self._corpora[key] = known or CorpusSearch(corpus, lambda: self._stopped)
        while len(self._corpora) > 1 and sum(each.weight for each in self._corpora.values()) > MOST_BYTES:
            del self._corpora[next(iter(self._corpora))]
        return self._corpora[key]
