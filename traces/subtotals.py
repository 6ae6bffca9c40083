"""What the calls below one span took together."""

from __future__ import annotations

from typing import Any, Final

from traces.refused import refused
from traces.rows import SpanRow, money_json
from traces.summing import CALL_KINDS, Spend
from traces.tree import outcome
from traces.view import RunView

PARENTS: Final = ("run", "iteration", "cell", "batch")


def below(view: RunView, span: SpanRow) -> dict[str, Any] | None:
    """Tokens, dollars and numbers of the calls below a run, iteration, cell or batch; None for other spans.

    Keys: spans, calls (root calls and sub-calls), sub_calls, outcomes (of the sub-calls, by word),
    refused_sub_calls (a limit refused them: they are in no other number but that of spans), tokens,
    untold_calls (their tokens are not told), derived_calls, cost_usd (null: not known whole), known_usd (the
    lower bound then), cost_status. Attempts are in the
    figures of their calls.
    """
    if span.kind not in PARENTS:
        return None
    found, spend, outcomes, turned_away = _descendants(view, span), Spend(), dict[str, int](), 0
    no_calls = refused(found)
    for other in found:
        if other.span_id in no_calls:
            turned_away += other.kind == "sub_call"
            continue
        if other.kind in CALL_KINDS:
            spend.add_call(other)
        if other.kind == "sub_call":
            outcomes[outcome(other)] = outcomes.get(outcome(other), 0) + 1
    run = view.summary
    if span.kind == "run" and span.depth == 0 and run.has_gaps:
        spend.add_gaps(1)
        spend.untold = max(spend.untold, int(run.untold_calls > 0))
    return {
        "spans": len(found),
        "calls": spend.calls,
        "sub_calls": sum(outcomes.values()),
        "outcomes": outcomes,
        "refused_sub_calls": turned_away,
        "tokens": spend.tokens,
        "untold_calls": spend.untold,
        "derived_calls": spend.derived,
        "cost_usd": money_json(spend.usd),
        "known_usd": money_json(spend.known_usd),
        "cost_status": spend.status,
    }


def _descendants(view: RunView, span: SpanRow) -> list[SpanRow]:
    """All spans below, each once, also where parents lead round in a circle."""
    children: dict[str, list[SpanRow]] = {}
    for other in view.spans:
        if other.parent_id is not None:
            children.setdefault(other.parent_id, []).append(other)
    found, seen = [span], {span.span_id}
    for parent in found:
        for child in children.get(parent.span_id, ()):
            if child.span_id not in seen:
                seen.add(child.span_id)
                found.append(child)
    return found[1:]
