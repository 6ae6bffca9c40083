"""Calls that no model was asked for; among them those that a limit of the run refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rlm_core import semconv as sc
from traces.rows import CALL_KINDS, SpanRow

REFUSED_WORDS: Final = "refused by a limit"  # in the place of what such a call took: it took nothing


def unsent(spans: Sequence[SpanRow]) -> frozenset[str]:
    """The ids of the root calls and sub-calls of a run that were never sent: served from a record, a cache or
    by a patch, refused, or stopped before. No attempt was made, and nothing is billed.

    The calls of another engine are none: whether its record holds every attempt is not known.
    """
    found = {
        span.span_id
        for span in spans
        if span.kind in CALL_KINDS and span.cost_status == "free" and span.tokens is None
        if span.end_ns is not None and span.trust is None
    }
    if found:
        found.difference_update(span.parent_id or "" for span in spans if span.kind == "attempt")
    return frozenset(found)


def refused(spans: Sequence[SpanRow]) -> frozenset[str]:
    """The ids of the root calls and sub-calls of a run that a limit refused.

    A call that a limit ended after it had been sent (a later attempt, or a further round of tools, was
    refused) is none: it was made, and may have cost something. Nor is one of another engine.
    """
    stopped = {
        span.span_id for span in spans if span.error_type in sc.LIMIT_ERRORS and span.status == "error"
    }
    return unsent(spans) & stopped if stopped else frozenset()


def refused_words(number: int) -> str:
    """What is said of refused calls behind the number of those that were made; empty for none. With a
    semicolon: `10, 390` could be read as one number.
    """
    return f"; {number:,} {REFUSED_WORDS}" if number else ""
