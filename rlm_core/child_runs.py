"""`rlm_query`: a run one level deeper, a subtree of its caller's run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError, LimitReached, SandboxError
from rlm_core.sub_calls import CellScope, Reply
from rlm_core.telemetry import Attribute, RunSpan, as_json
from rlm_core.wire import OpenCall, Slot

if TYPE_CHECKING:
    from rlm_core.orchestrator import Orchestrator


async def run_child(
    parent: Orchestrator, scope: CellScope, call: OpenCall, slot: Slot, index: int, span: RunSpan
) -> Reply:
    """Answer one `rlm_query`: its answer as text, or a typed error. Counts as one sub-call of the ledger."""
    from rlm_core.orchestrator import Orchestrator, answer_reply

    state, host = parent.state, scope.host
    key = host.child_key(slot)
    if (known := host.recorded(key)) is not None:
        return known
    facts: dict[str, Attribute | None] = {
        sc.CELL: scope.number,
        sc.CALL_LINE: call.line or None,
        sc.CALL_INDEX: index,
        sc.REQUEST_HASH: key[0],
        sc.CALL_OCCURRENCE: key[1],
    }
    if slot.contexts is not None:  # as sent: places in the caller's corpus, texts where it made them itself
        facts[sc.CHILD_CONTEXT + ".sha256"] = state.recorder.payload(as_json(slot.contexts))
    try:
        if parent.depth >= state.limits.max_depth:
            raise LimitReached(
                "depth", f"child runs end at depth {state.limits.max_depth}; use llm_query or llm_batch here"
            )
        state.ledger.admit_call()
        question = host.text_of(slot.prompt)
        corpus = parent.corpus
        if slot.contexts is not None:
            corpus = Corpus.from_texts([host.text_of(parts) for parts in slot.contexts], state.scratch)
        child = Orchestrator(state, corpus, question, parent.next_child_path(), parent.depth + 1, facts)
        reply = answer_reply(await child.run(span))
    except LimitReached as error:
        kind = "depth" if error.dimension == "depth" else "budget"
        return host.refuse(scope, span, call, index, kind, str(error))
    except (CorpusError, SandboxError) as error:
        return host.refuse(scope, span, call, index, "bad_request", str(error))
    host.remember(key, reply)
    return reply
