"""A run as lines that can be checked by eye against the log that it was read from."""

from __future__ import annotations

from pathlib import Path

from traces.home import Home
from traces.importers.importing import Imported, import_paths
from traces.reading import load_run, span_detail
from traces.rows import SpanRow
from traces.view import RunView

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"
SAMPLES = LOGS / "samples"
_MARKS = {"derived": "~", "known_wrong": "x"}


def taken(home: Home, path: Path) -> list[tuple[Imported, RunView]]:
    """The runs of a file or folder, all of which must come in."""
    done = import_paths(home, [path])
    assert done and all(isinstance(one, Imported) for one in done), done
    return [(one, load_run(home, one.run_id)) for one in done if isinstance(one, Imported)]


def texts(view: RunView, kind: str, key: str) -> list[str | None]:
    """One text of all spans of a kind, in order; a key of `span_detail`."""
    return [span_detail(view, span).get(key) for span in view.spans if span.kind == kind]


def outline(view: RunView) -> str:
    """One line for each span, nested by two blanks: kind, status unless ok, model and tokens in+out of calls
    (? unknown, ~ derived), seconds and cost where known, what failed, and how its text begins.
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
        mark = _MARKS.get((span.trusted or {}).get("tokens", ""), "")
        parts.append("?" if span.tokens is None else f"{mark}{span.tokens['input']}+{span.tokens['output']}")
    if span.seconds is not None:
        parts.append(f"{span.seconds:.3f}s")
    if span.cost_usd is not None:
        parts.append(f"${span.cost_usd.normalize():f}")
    if span.error_type:
        parts.append(f"({span.error_type})")
    text = " ".join((span.preview or "").split())
    return " ".join(parts) + (f": {text[:40].rstrip()}" if text else "")
