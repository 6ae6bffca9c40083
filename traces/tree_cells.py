"""What the columns of a row of the recursion tree say: how it ended, what it took. Unknown is no 0."""

from __future__ import annotations

from typing import Final, Literal

from traces.figures import money
from traces.rows import CALL_KINDS, SpanRow
from traces.summing import Spend
from traces.tree import REFUSED, Group, Node

Tone = Literal["ok", "bad", "warn", "live"]
FINE: Final = ("ok", "running")
_TONES: Final[dict[str, Tone]] = {
    "ok": "ok",
    "running": "live",
    "cancelled": "warn",
    "empty": "warn",
    REFUSED: "warn",
}


def status_cell(item: Node | Group) -> tuple[str, Tone]:
    """How a span or a group of calls ended, and how that is coloured; of what is fine itself, how many
    failed inside it.
    """
    if isinstance(item, Group):
        return _of_group(item)
    word = item.outcome
    inner = item.totals.failures - (item.span.status not in FINE and item.span.kind in ("cell", "run"))
    if word == "ok" and item.span.kind != "sub_call" and inner > 0:
        return f"{inner:,} failed", "warn"
    return word, _TONES.get(word, "bad")


def _of_group(group: Group) -> tuple[str, Tone]:
    failed = sum(count for word, count in group.counts.items() if word not in (*FINE, "empty", REFUSED))
    if failed:
        return f"{failed:,} failed", "bad"
    if group.totals.open:
        return "running", "live"
    for word in (REFUSED, "empty"):
        if number := group.counts.get(word):
            return f"{number:,} {word}", "warn"
    return "ok", "ok"


def tokens_cell(spend: Spend, span: SpanRow | None = None) -> str:
    """Tokens in and out together, the least of them where some calls do not say; nothing without a call (one
    that a limit refused is none). `span` is the one that the row stands for, if it does.
    """
    if not spend.calls:
        return ""
    if span is not None and span.kind in CALL_KINDS and span.own_tokens is None:
        return "?" if span.end_ns is not None else ""
    known = spend.input + spend.output
    return f"{known:,}" if not spend.untold else f"≥ {known:,}" if known else "?"


def cost_cell(spend: Spend, span: SpanRow | None = None) -> str:
    """Dollars, the least of them where some are not known; nothing without a call, or while it goes on."""
    if not spend.calls or (span is not None and span.kind in CALL_KINDS and span.end_ns is None):
        return ""
    return f"≥ {money(spend.known_usd)}" if spend.usd is None and spend.known_usd else money(spend.usd)
