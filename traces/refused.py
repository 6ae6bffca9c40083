"""Calls that a limit of the run refused: code asked for them, and nothing of them was ever sent."""

from __future__ import annotations

from collections.abc import Sequence

from rlm_core import semconv as sc
from traces.rows import CALL_KINDS, SpanRow


def refused(spans: Sequence[SpanRow]) -> frozenset[str]:
    """The ids of the root calls and sub-calls of a run that a limit refused.

    A call that a limit ended after it had been sent (a later attempt, or a further round of tools, was
    refused) is none: it was made, and may have cost something. Nor is one of another engine.
    """
    found = {span.span_id for span in spans if span.error_type in sc.LIMIT_ERRORS and _is_free(span)}
    if found:
        found.difference_update(span.parent_id or "" for span in spans if span.kind == "attempt")
    return frozenset(found)


def refused_words(number: int) -> str:
    """What is said of them behind the number of calls that were made; empty where there are none. With a
    semicolon: `10, 390` could be read as one number.
    """
    return f"; {number:,} refused by a limit" if number else ""


def _is_free(span: SpanRow) -> bool:
    billed = span.cost_status != "free" or span.tokens is not None
    return span.kind in CALL_KINDS and span.status == "error" and span.trust is None and not billed
