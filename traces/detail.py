"""One span in full: the document of `rlmscope span`."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from rlm_core import semconv as sc
from traces.facts import class_tokens
from traces.imported import import_facts, trust_reasons
from traces.refused import refused
from traces.rows import SpanRow, money_json
from traces.span_images import span_images
from traces.spool import DECODER
from traces.subtotals import below
from traces.view import RunView

_DEEPEST: Final = 100
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
#: Payloads that stand on spans: key of the document -> prefix of the attributes.
_TEXTS: Final = {
    "question": sc.QUESTION,
    "answer": sc.ANSWER,
    "value": sc.ANSWER_VALUE,
    "corpus": sc.CORPUS,
    "prompt": sc.PROMPT,
    "response": sc.RESPONSE,
    "reasoning": sc.REASONING,
    "code": sc.CODE,
    "stdout": sc.STDOUT,
    "stdout_shown": sc.STDOUT_SHOWN,
    "exception": sc.EXCEPTION,
    "native_output": sc.NATIVE_OUTPUT,
    "best_partial": sc.BEST_PARTIAL,
    "arguments": sc.TOOL_ARGUMENTS,
    "result": sc.TOOL_RESULT,
}
#: Payloads that hold JSON.
_TABLES: Final = {"variables": sc.VARIABLES, "child_context": sc.CHILD_CONTEXT}
_STRUCTURES: Final = {
    "source_ranges": sc.SOURCE_RANGES,
    "names_read": sc.NAMES_READ,
    "values_read": sc.VALUES_READ,
    "names_written": sc.NAMES_WRITTEN,
    "names_lost": sc.LOST_NAMES,
    "output_rule": sc.STDOUT_RULE,
    "findings": sc.FINDINGS,
    "parameters": sc.PARAMETERS,
    "finish_reasons": sc.FINISH_REASONS,
    "usage_raw": sc.USAGE_RAW,
    "price": sc.COST_PRICE,
    "limits": sc.LIMITS,
    "retries": sc.RETRIES,
    "ledger": sc.LEDGER,
    "seeds": sc.SEEDS,
    "versions": sc.VERSIONS,
    "sandbox_layers": sc.SANDBOX_LAYERS,
}
#: Said in another key of the document already, or by another vocabulary once more.
_SAID: Final = frozenset(
    (
        sc.KIND,
        sc.PREVIEW,
        sc.MESSAGES_ADDED,
        sc.ROLE,
        sc.DEPTH,
        sc.ITERATION,
        sc.CELL,
        sc.PHASE,
        sc.CALL_INDEX,
        sc.IMAGES,
    )
    + (sc.COST_USD, sc.COST_STATUS, sc.OI_KIND, sc.OI_MODEL, sc.OI_COST, sc.OI_INPUT, sc.OI_OUTPUT)
    + (sc.OI_PROMPT_TOKENS, sc.OI_COMPLETION_TOKENS, sc.OI_TOTAL_TOKENS)
    + (sc.TRUST, sc.TRUST_WHY)
    + (sc.IMPORT_FORMAT, sc.IMPORT_ENGINE, sc.IMPORT_FILE, sc.IMPORT_MISSING, sc.IMPORT_PROBLEMS)
    + tuple(_STRUCTURES.values())
    + tuple(
        prefix + part for prefix in (_TEXTS | _TABLES).values() for part in (".sha256", ".chars", ".preview")
    )
)
_ATTEMPT_FACTS: Final = {
    "attempt": sc.ATTEMPT,
    "tool_round": sc.TOOL_ROUND,
    "error_message": sc.ERROR_MESSAGE,
    "http_status": sc.HTTP_STATUS,
    "model_returned": sc.RESPONSE_MODEL,
    "response_id": sc.RESPONSE_ID,
    "usage_raw": sc.USAGE_RAW,
    "wait_seconds": sc.RETRY_WAIT,
    "retry_after_seconds": sc.RETRY_AFTER,
    "finish_reasons": sc.FINISH_REASONS,
    "demo_fault": sc.DEMO_FAULT,
}


def span_detail(view: RunView, span: SpanRow) -> dict[str, Any]:
    """The keys of `SpanRow.to_json`, whole texts, decoded structures, attempts, events and all attributes.

    `hashes` names the sha256 of each text, `classes` its tokens by billable class, `below` what the calls
    below a run, iteration, cell or batch took (see `traces.subtotals.below`), and `facts` holds every
    attribute that no other key says, without the prefix `rlm.`: nothing that was recorded is left out.
    A text is null where the span has none; `missing` lists texts whose payload is not in the record.
    `images` are those that a call was shown (`traces.span_images`).
    `refused` says that it is a call that a limit of the run refused: it was never sent.
    `trust_why` are sentences about numbers by what they are, null where this engine recorded the span; of the
    span of a run `import` says what it was read from (`traces.imported.ImportFacts`), null for our own.
    `messages` (of a root call) are {role, sha256, content}; `messages_complete` is false when earlier ones
    are not in the record.
    """
    attributes = span.attributes
    messages, complete = _messages(view, span)
    named = {key: attributes.get(prefix + ".sha256") for key, prefix in {**_TEXTS, **_TABLES}.items()}
    hashes = [*named.values(), *(message["sha256"] for message in messages or ())]
    texts = view.payloads({sha256 for sha256 in hashes if isinstance(sha256, str)})
    bodies = {key: texts.get(sha256) if isinstance(sha256, str) else None for key, sha256 in named.items()}
    detail = span.to_json()
    detail.update({key: decoded(text) if key in _TABLES else text for key, text in bodies.items()})
    detail.update({key: decoded(attributes.get(name)) for key, name in _STRUCTURES.items()})
    detail["missing"] = sorted(key for key, text in bodies.items() if text is None and named[key] is not None)
    detail["messages"] = messages and [{**m, "content": texts.get(m["sha256"])} for m in messages]
    detail["messages_complete"] = complete
    detail["images"] = span_images(span)
    detail["attempts"] = [_attempt(child) for child in view.spans if _is_attempt_of(child, span)]
    detail["hashes"] = {key: sha256 for key, sha256 in named.items() if sha256 is not None}
    detail["classes"] = class_tokens(span.tokens, span.cached_read, span.cache_write) if span.tokens else None
    detail["facts"] = {
        key.removeprefix("rlm."): value for key, value in sorted(attributes.items()) if key not in _SAID
    }
    detail["below"] = below(view, span)
    detail["refused"] = span.span_id in refused(view.spans)
    detail["trust_why"] = trust_reasons(span) if span.trust is not None else None
    if span.kind == "run" and span.parent_id is None:
        source = import_facts(view)
        detail["imported_from"] = view.summary.imported_from
        detail["import"] = None if source is None else source.to_json()
    detail["events"] = view.events(span.span_id)
    detail["attributes"] = dict(attributes)
    return detail


def _is_attempt_of(child: SpanRow, span: SpanRow) -> bool:
    return child.kind == "attempt" and child.parent_id == span.span_id


def _attempt(span: SpanRow) -> dict[str, Any]:
    facts = {key: span.attributes.get(name) for key, name in _ATTEMPT_FACTS.items()}
    facts |= {key: decoded(facts[key]) for key in ("finish_reasons", "usage_raw")}
    return {
        "span_id": span.span_id,
        "status": span.status,
        "start_ns": span.start_ns,
        "end_ns": span.end_ns,
        "seconds": span.seconds,
        "tokens": span.tokens,
        "cost_usd": money_json(span.cost_usd),
        "cost_status": span.cost_status,
        "error_type": span.error_type,
        **facts,
    }


def _messages(view: RunView, span: SpanRow) -> tuple[list[dict[str, Any]] | None, bool | None]:
    return sent_messages(view, span) if span.kind == "root_call" else (None, None)


def sent_messages(view: RunView, span: SpanRow) -> tuple[list[dict[str, Any]], bool]:
    """What a root call was sent, {role, sha256} each, and whether the record has all of it: each call says
    how many messages it shares with the one before on its path.
    """
    path = span.attributes.get(sc.RUN_PATH)
    history: list[dict[str, Any]] = []
    complete = True
    for call in view.spans:
        if call.kind != "root_call" or call.attributes.get(sc.RUN_PATH) != path:
            continue
        prior, added = call.attributes.get(sc.MESSAGES_PRIOR, 0), added_messages(call)
        if type(prior) is not int or not 0 <= prior <= len(history) or added is None:
            prior, complete = len(history), False
        history = history[:prior] + (added or [])
        if call.span_id == span.span_id:
            break
    return history, complete


def added_messages(call: SpanRow) -> list[dict[str, Any]] | None:
    """The messages {role, sha256} that a root call was sent beyond those of the one before on its path; None
    when the record of them is not what it should be.
    """
    raw = call.attributes.get(sc.MESSAGES_ADDED)
    pairs = decoded(raw) if raw is not None else []
    if not isinstance(pairs, list) or not all(_is_message(pair) for pair in pairs):
        return None
    return [{"role": role, "sha256": sha256} for role, sha256 in pairs]


def _is_message(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)


def decoded(raw: object) -> Any:
    """A JSON text as a structure; text that is not JSON comes back as it is: nothing is hidden.

    The structure can be printed as JSON again: numbers are finite, texts have no lone surrogates, and what is
    nested too deep for that stays text.
    """
    if not isinstance(raw, str):
        return raw
    try:
        value = DECODER.decode(raw)
        if "\\u" in raw:
            plain = json.dumps(value, ensure_ascii=False)
            value = DECODER.decode(_LONE_SURROGATE.sub(lambda found: f"\\\\u{ord(found[0]):04x}", plain))
    except (ValueError, RecursionError):
        return raw
    return value if _is_shallow(value) else raw


def _is_shallow(value: Any) -> bool:
    level, depth = [value], 0
    while level:
        if depth > _DEEPEST:
            return False
        nested = [item for item in level if isinstance(item, dict | list)]
        inner = [item.values() if isinstance(item, dict) else item for item in nested]
        level, depth = [part for parts in inner for part in parts], depth + 1
    return True
