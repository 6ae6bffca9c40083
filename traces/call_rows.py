"""The calls of models in a run as flat rows, for spreadsheets and data frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rlm_core import semconv as sc
from traces.detail import added_messages
from traces.facts import Facts
from traces.rows import CALL_KINDS, NUMBERS, SpanRow
from traces.view import RunView

_AT_ONCE: Final = 200  # calls whose texts are held in memory together
Row = dict[str, Any]


def call_rows(view: RunView, *, texts: bool) -> Iterator[Row]:
    """A row for each root call and sub-call, in order; unknown is None.

    `run_path` is "0" in the run itself, "0.1" in a child run. `input_tokens` include `cached_read_tokens` and
    `cache_write_tokens`, `output_tokens` include `reasoning_tokens`; `cost_usd` is a Decimal, `seconds` wall
    time, `start` a datetime in UTC. `tokens_trust`, `cost_trust`, `start_trust` and `seconds_trust` are the
    marks of `traces.rows.MARKS`, None where this engine recorded the call.

    With `texts` also `messages_before`, `prompt` and `response`, whole. The prompt of a root call is what it
    was sent beyond the `messages_before` that the root call before it on its run path had been sent already.
    """
    calls = [span for span in view.spans if span.kind in CALL_KINDS]
    for at in range(0, len(calls), _AT_ONCE):
        some = calls[at : at + _AT_ONCE]
        found = _texts(view, some) if texts else ()
        for number, span in enumerate(some):
            yield {**_facts(span), **(found[number] if texts else {})}


def _facts(span: SpanRow) -> Row:
    facts = Facts(span.attributes)
    trusted = span.trusted
    given = span.own_tokens or {}
    return {
        "run_id": span.run_id,
        "run_path": facts.text(sc.RUN_PATH),
        "depth": span.depth,
        "iteration": span.iteration,
        "cell": span.cell,
        "call_index": span.call_index,
        "kind": span.kind,
        "span_id": span.span_id,
        "parent_id": span.parent_id,
        "status": span.status,
        "error_type": span.error_type,
        "error": facts.text(sc.ERROR_MESSAGE),
        "model": span.model,
        "model_returned": span.model_returned,
        "input_tokens": given.get("input"),
        "cached_read_tokens": span.cached_read,
        "cache_write_tokens": span.cache_write,
        "output_tokens": given.get("output"),
        "reasoning_tokens": facts.count(sc.USAGE_REASONING),
        "cost_usd": span.cost_usd,
        "cost_status": span.cost_status,
        "start": began(span),
        "seconds": span.seconds,
        "served_from": facts.text(sc.SERVED_FROM),
        "attempts": facts.count(sc.ATTEMPTS),
        **{f"{name}_trust": trusted.get(name) for name in NUMBERS},
    }


def began(span: SpanRow) -> datetime | None:
    """When a span began, to the microsecond; None where its record does not say."""
    if not span.start_told:
        return None
    seconds, rest = divmod(span.start_ns, 1_000_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1_000)


def _texts(view: RunView, calls: Sequence[SpanRow]) -> list[Row]:
    """What each of some calls was sent and said."""
    cited = [_cited(span) for span in calls]
    named = {sha256 for sent, reply in cited for sha256 in (*(text for _, text in sent), reply)}
    found = view.payloads({sha256 for sha256 in named if isinstance(sha256, str)})
    return [
        {
            "messages_before": Facts(span.attributes).count(sc.MESSAGES_PRIOR),
            "prompt": _prompt(span, [(role, found.get(sha256)) for role, sha256 in sent]),
            "response": found.get(reply or ""),
        }
        for span, (sent, reply) in zip(calls, cited, strict=True)
    ]


def _cited(span: SpanRow) -> tuple[list[tuple[str, str]], str | None]:
    """The messages of a call (role, hash), and the hash of its reply."""
    reply = span.attributes.get(f"{sc.RESPONSE}.sha256")
    if span.kind == "root_call":
        sent = [(one["role"], one["sha256"]) for one in added_messages(span) or ()]
    else:
        prompt = span.attributes.get(f"{sc.PROMPT}.sha256")
        sent = [("user", prompt)] if isinstance(prompt, str) else []
    return sent, reply if isinstance(reply, str) else None


def _prompt(span: SpanRow, sent: Sequence[tuple[str, str | None]]) -> str | None:
    """The prompt of a sub-call as it is; the messages of a root call each under a line with its role."""
    if span.kind == "sub_call":
        return sent[0][1] if sent else None
    whole = [f"[{role}]\n{text}" for role, text in sent if text is not None]
    return "\n\n".join(whole) if whole and len(whole) == len(sent) else None
