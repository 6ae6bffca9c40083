"""The table of the iterations on a run page: what one sees of the tree without a script, and on paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Final

from traces.exporters.html_words import Clean, short, turn_number
from traces.figures import count, duration
from traces.refused import refused_words
from traces.rows import RunSummary
from traces.tree import REFUSED, Node, walk
from traces.tree_cells import cost_cell, tokens_cell
from traces.view import RunView

_TURNS: Final = 500


def turns_table(view: RunView, top: Node | None, clean: Clean) -> Iterator[str]:
    """A table of the run's own iterations as HTML; nothing for a run without any."""
    below = top.below if top is not None else []
    turns = [item for item in below if isinstance(item, Node) and item.span.kind == "iteration"]
    if not turns:
        return
    counts = [_Inside.of(turn) for turn in turns[:_TURNS]]
    nests = any(inside.runs for inside in counts)
    yield '<section id="turns" aria-label="Iterations"><h2>Iterations</h2>'
    yield '<div class="scroll"><table><thead><tr>'
    called = ("Child runs", "Sub-calls") if nests else ("Sub-calls",)
    for name in ("", "Phases", "Cells", *called, "Failed", "Tokens", "Cost", "Time"):
        yield f"<th{' class=number' if name not in ('', 'Phases') else ''}>{name}</th>"
    yield "</tr></thead><tbody>"
    for turn, inside in zip(turns, counts, strict=False):
        yield "<tr>" + "".join(_turn(view.summary, turn, inside, clean, nests)) + "</tr>"
    yield "</tbody></table></div>"
    if len(turns) > _TURNS:
        yield f"<p>and {len(turns) - _TURNS:,} more iterations</p>"
    yield "</section>"


@dataclass(frozen=True, slots=True)
class _Inside:
    """What an iteration did: its own cells, and the child runs and sub-calls of all depths."""

    cells: int
    runs: int
    calls: int
    refused: int

    @classmethod
    def of(cls, turn: Node) -> _Inside:
        nodes = [item for _, item in walk(turn.below) if isinstance(item, Node)]
        spans = [node.span for node in nodes]
        kinds = Counter(span.kind for span in spans)
        not_sent = sum(node.span.kind == "sub_call" and node.outcome == REFUSED for node in nodes)
        own = sum(span.kind == "cell" and span.depth == turn.span.depth for span in spans)
        return cls(own, kinds["run"], kinds["sub_call"] - not_sent, not_sent)


def _turn(run: RunSummary, turn: Node, inside: _Inside, clean: Clean, nests: bool) -> Iterator[str]:
    span = turn.span
    yield f"<td>{turn_number(span)}</td>"
    yield f"<td>{escape(short(clean(', '.join(span.phases))))}</td>"
    calls = count(None if run.untold_sub_calls else inside.calls)
    for value in (
        f"{inside.cells:,}",
        *([f"{inside.runs:,}"] if nests else []),
        calls + refused_words(inside.refused),
        f"{turn.totals.failures:,}",
        tokens_cell(turn.totals.spend),
        cost_cell(turn.totals.spend),
        duration(span.seconds),
    ):
        yield f"<td class=number>{escape(value)}</td>"
