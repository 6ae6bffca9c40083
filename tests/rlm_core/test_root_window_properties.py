"""Whatever the sizes of window, outputs and summaries: the root's window is kept, and the end is reached."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rlm_core.errors import ModelError
from rlm_core.history import History, tokens_of
from rlm_core.limits import Limits
from rlm_core.lm_handler import Completion, Message, Usage
from rlm_core.options import Options
from rlm_core.prompts import cell_output, turns_so_far
from rlm_core.root_window import RootWindow


class Provider:
    """Root calls without a record: refuses more tokens than `most`, by its own count, and replies."""

    path, depth = "0", 0

    def __init__(self, most: int, ratio: float, window: int | None, summary: int) -> None:
        self.most, self.ratio, self.summary = most, ratio, summary
        self.state = SimpleNamespace(
            options=Options(root_window=window),
            limits=Limits(),
            playback=None,
            models=lambda depth: ("demo/root", "demo/sub"),
        )
        self.calls: list[tuple[int | None, bool]] = []  # turns summed up, whether it was answered

    def played(self, iteration: int, forced: bool) -> None:
        return None

    async def call(
        self, parent: Any, iteration: int, messages: tuple[Message, ...], played: None, *,
        forced: bool = False, summed: int | None = None,
    ) -> Completion:  # fmt: skip
        counted = int(tokens_of(messages) * self.ratio)
        self.calls.append((summed, counted <= self.most))
        if counted > self.most:
            raise ModelError("context_window", "too long")
        return Completion("s" * self.summary if summed else "code", usage=Usage(input=counted, output=1))


@given(
    most=st.integers(300, 6_000),
    ratio=st.floats(0.5, 3.0),
    window=st.none() | st.integers(300, 6_000),
    summary=st.integers(1, 20_000),
    outputs=st.lists(st.integers(0, 8_000), max_size=25),
)
def test_summaries_never_outnumber_turns_and_no_turn_is_lost(
    most: int, ratio: float, window: int | None, summary: int, outputs: list[int]
) -> None:
    provider: Any = Provider(most, ratio, window, summary)
    asked = RootWindow(provider, History((Message("system", "s" * 400), Message("user", "q" * 200))))
    span: Any = None
    for number, chars in enumerate(outputs):
        before = len(provider.calls)
        try:
            asyncio.run(asked.ask(span, number))
        except ModelError as error:
            assert error.kind == "context_window"
            break
        made = provider.calls[before:]
        assert len(made) <= 5 and made[-1] == (None, True)  # summary, turn, refused: summary, turn
        assert sum(summed is not None for summed, _ in made) <= 2
        asked.history.add(Message("assistant", "code"), cell_output(["o" * chars], "turn"))
        assert turns_so_far(asked.history.messages) == number + 1
        assert asked.history.folded + len(asked.history.turns) == number + 1
