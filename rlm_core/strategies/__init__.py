"""Ways to answer a question over a corpus, behind one function and one form of record."""

from __future__ import annotations

from collections.abc import Mapping

from rlm_core.corpus import Corpus
from rlm_core.endings import Outcome
from rlm_core.orchestrator import Orchestrator
from rlm_core.run_state import RunState
from rlm_core.telemetry import Attribute


async def answer(
    state: RunState, corpus: Corpus, question: str, facts: Mapping[str, Attribute | None]
) -> Outcome:
    """Answer one question by the strategy of the run's options; every span is closed when this returns."""
    return await Orchestrator(state, corpus, question, facts=dict(facts)).run()
