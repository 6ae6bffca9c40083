"""Ways to answer a question over a corpus, behind one function and one form of record.

Those of `rlm_core.strategies.coding` let the root write cells, those of `rlm_core.strategies.reading` and
`rlm_core.strategies.compaction` show it the corpus, or parts of it. All of them are baselines of the paper
(arXiv:2512.24601, section 3) or of those who measured it again; `ui/docs/strategies.md` says what each does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.endings import Outcome
from rlm_core.lm_handler import FunctionLMHandler, RecordedLMHandler
from rlm_core.options import Strategy
from rlm_core.orchestrator import Orchestrator
from rlm_core.run_state import RunState
from rlm_core.strategies.coding import CodeAct, NoSubCalls, RetrieveThenCode
from rlm_core.strategies.compaction import Compaction
from rlm_core.strategies.reading import Direct, Retrieve
from rlm_core.telemetry import Attribute

_KINDS: Final[Mapping[Strategy, type[Orchestrator]]] = {
    "rlm": Orchestrator,
    "rlm-no-subcalls": NoSubCalls,
    "direct": Direct,
    "compaction": Compaction,
    "codeact": CodeAct,
    "retrieve": Retrieve,
    "retrieve+rlm": RetrieveThenCode,
}


async def answer(
    state: RunState, corpus: Corpus, question: str, facts: Mapping[str, Attribute | None]
) -> Outcome:
    """Answer one question by the strategy of the run's options; every span is closed when this returns."""
    kind = _KINDS[state.options.strategy]
    scripted = isinstance(state.handler, FunctionLMHandler | RecordedLMHandler)
    return await kind(state, corpus, question, facts={**facts, sc.SCRIPTED: scripted or None}).run()
