"""`rlm_query`: a run one level deeper, a subtree of its caller's run."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from rlm_core import semconv as sc
from rlm_core.call_identity import template
from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError, LimitReached, ModelError, SandboxError
from rlm_core.images import unshown
from rlm_core.playback import Played
from rlm_core.run_state import RunState
from rlm_core.source_ranges import Prompt
from rlm_core.sub_calls import CellScope, Reply, SubCalls
from rlm_core.telemetry import Attribute, RunSpan, as_json, sha256_text
from rlm_core.wire import OpenCall, Slot, chars_of

if TYPE_CHECKING:
    from rlm_core.orchestrator import Orchestrator

MOST_CONTEXT_CHARS: Final = (
    64_000_000  # what a child may be given as texts; more goes through the run's corpus
)


async def run_child(
    parent: Orchestrator, scope: CellScope, call: OpenCall, slot: Slot, index: int, span: RunSpan
) -> Reply:
    """Answer one `rlm_query`: its answer as text, or a typed error. Counts as one sub-call of the ledger."""
    from rlm_core.orchestrator import Orchestrator, answer_reply

    state, host = parent.state, scope.host
    key = host.child_key(slot, call.schema)
    facts: dict[str, Attribute | None] = {
        **host.site(scope, call, index),
        sc.TEMPLATE_HASH: sha256_text(template(slot)),
        sc.REQUEST_HASH: key[0],
        sc.CALL_OCCURRENCE: key[1],
    }
    if (known := host.recorded(key)) is not None:
        return host.serve_known_child(span, facts, known)
    if (played := _played(state, host, scope, call, slot, index, key)) is not None:
        host.remember(key, played.reply)
        return host.serve_known_child(span, facts, played.reply, played.source)
    if slot.contexts is not None:  # as sent: places in the caller's corpus, texts where it made them itself
        facts[sc.CHILD_CONTEXT + ".sha256"] = state.recorder.payload(as_json(slot.contexts))
    try:
        if parent.depth >= state.limits.max_depth:
            raise LimitReached(
                "depth", f"child runs end at depth {state.limits.max_depth}; use llm_query or llm_batch here"
            )
        _check_size(slot, state.limits.max_prompt_chars)
        _check_texts(parent.corpus, slot)
        state.ledger.admit_call()
        question = host.text_of(slot.prompt)
        corpus = parent.corpus
        if slot.contexts is not None:
            texts = [host.text_of(parts) for parts in slot.contexts]
            corpus = await asyncio.to_thread(Corpus.from_texts, texts, state.scratch)
        facts[sc.PROMPT_HASH] = sha256_text(question)
        asked = Prompt.of(parent.corpus, [slot.prompt, *(slot.contexts or ())])
        facts[sc.SOURCE_RANGES] = asked.at_once()
        path = parent.next_child_path()
        if state.playback is not None:
            path = state.playback.child_path(host.place(scope, call, index), key)
        child = Orchestrator(state, corpus, question, path, parent.depth + 1, facts, asked, call.schema)
        reply = answer_reply(await child.run(span))
    except LimitReached as error:
        kind = "depth" if error.dimension == "depth" else "budget"
        return host.refuse(scope, span, call, slot, index, kind, str(error))
    except ModelError as error:
        return host.refuse(scope, span, call, slot, index, error.kind, str(error))
    except (CorpusError, SandboxError) as error:
        return host.refuse(scope, span, call, slot, index, "bad_request", str(error))
    if reply.get("err") == "budget":  # it could not ask its root even once
        scope.note_refusal()
    host.remember(key, reply)
    return reply


def _played(
    state: RunState,
    host: SubCalls,
    scope: CellScope,
    call: OpenCall,
    slot: Slot,
    index: int,
    key: tuple[str, int],
) -> Played | None:
    """The answer of a child run out of the record that is played."""
    if state.playback is None:
        return None
    question = None
    if slot.too_large is None and chars_of(slot.prompt) <= state.limits.max_prompt_chars:
        with contextlib.suppress(CorpusError):
            question = sha256_text(host.text_of(slot.prompt))
    return state.playback.child(host.place(scope, call, index), key, question)


def _check_texts(corpus: Corpus, slot: Slot) -> None:
    """Refuse a document that can only be shown: a child has no images but those of the whole corpus."""
    given = [*slot.prompt, *(part for parts in slot.contexts or () for part in parts)]
    if (problem := unshown(corpus, given)) is not None:
        raise ModelError("image", f"{problem} in llm_query; a child run that is given texts sees no image")


def _check_size(slot: Slot, most_prompt: int) -> None:
    """Refuse what cannot be a child run before any of it is read; raises `ModelError`."""
    asked, given = chars_of(slot.prompt), sum(chars_of(parts) for parts in slot.contexts or ())
    if slot.too_large is not None or asked > most_prompt or given > MOST_CONTEXT_CHARS:
        raise ModelError(
            "too_large",
            f"a child run takes a question of {most_prompt:,} characters and a context of "
            f"{MOST_CONTEXT_CHARS:,} at most; give it parts",
        )
    if not asked:
        raise ModelError("bad_request", "the question of a child run is empty")
