"""A run as lines that can be checked by eye against the log that it was read from."""

from __future__ import annotations

from traces.rows import SpanRow
from traces.view import RunView


def outline(view: RunView) -> str:
    """One line for each span, nested by two blanks: kind, status unless ok, model and tokens in+out of calls
    (? where unknown), seconds and cost where known, what failed, and how its text begins.
    """
    depths: dict[str | None, int] = {None: -1}
    lines = []
    for span in view.spans:
        depths[span.span_id] = depths[span.parent_id] + 1
        lines.append("  " * depths[span.span_id] + _line(span))
    return "\n".join(lines)


def _line(span: SpanRow) -> str:
    parts = [span.kind + ("" if span.status == "ok" else f" {span.status}")]
    if span.kind in ("root_call", "sub_call"):
        parts.append(span.model or "?")
        parts.append("?" if span.tokens is None else f"{span.tokens['input']}+{span.tokens['output']}")
    if span.seconds is not None:
        parts.append(f"{span.seconds:.3f}s")
    if span.cost_usd is not None:
        parts.append(f"${span.cost_usd.normalize():f}")
    if span.error_type:
        parts.append(f"({span.error_type})")
    text = " ".join((span.preview or "").split())
    return " ".join(parts) + (f": {text[:40].rstrip()}" if text else "")
