"""Code that goes on with a value of its own where a text cannot be read, and the replies that made it so."""

from __future__ import annotations

import ast
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from rlm_core import semconv as sc
from traces.facts import Facts
from traces.replies import ReadAs
from traces.reply_facts import FEW, RARE, Found, Reply, Signal
from traces.rows import SpanRow
from traces.view import RunView

_CODE_CHARS: Final = 100_000  # longer code is not parsed
_NUMBER: Final[tuple[ReadAs, ...]] = ("number", "number in other words", "digits")
#: Name of a function that reads a text -> what it may read, the strictest first; (): another kind of thing.
_READERS: Final[dict[str, tuple[ReadAs, ...]]] = {
    **dict.fromkeys(("int", "float", "Decimal", "Fraction", "isdigit", "isdecimal", "isnumeric"), _NUMBER),
    **dict.fromkeys(("loads", "literal_eval"), ("json",)),
    **dict.fromkeys(("strptime", "fromisoformat", "index"), ()),
}
_TESTS: Final = frozenset({"isdigit", "isdecimal", "isnumeric"})
_READ_AS: Final[dict[ReadAs, str]] = {
    "number": "as a number",
    "number in other words": "as a number",
    "digits": "as a number: it holds no digit",
    "json": "as JSON",
}


@dataclass(frozen=True, slots=True)
class Fallback:
    """A line where code quietly goes on; `reads` is what its text may have been read as, strictest first."""

    line: int
    reads: tuple[ReadAs, ...]


def fallbacks_in(code: str) -> list[Fallback]:
    """Handlers that neither raise nor print nor keep the error around a call that reads a text, and `x if ...
    else constant` where x is such a call. Code that cannot be parsed has none.
    """
    if ("except" not in code and " else " not in code) or len(code) > _CODE_CHARS:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of that code: they are not ours to tell
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [found for node in ast.walk(tree) for found in _fallbacks(node)]


def _fallbacks(node: ast.AST) -> Iterator[Fallback]:
    if isinstance(node, ast.Try):
        lines = [h.lineno for h in node.handlers if not any(_tells(part) for part in ast.walk(h))]
        body: Sequence[ast.AST] = node.body
    elif isinstance(node, ast.IfExp) and isinstance(node.orelse, ast.Constant):
        lines, body = [node.lineno], [node.body]
    else:
        return
    if called := _called(body):
        yield from (Fallback(line, _READERS[called[0]]) for line in lines)


def _called(nodes: Sequence[ast.AST]) -> list[str]:
    """Names of the functions that read texts among those called, without mere tests."""
    calls = (part.func for node in nodes for part in ast.walk(node) if isinstance(part, ast.Call))
    names = (f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in calls)
    return [name for name in names if name in _READERS and name not in _TESTS]


def _tells(node: ast.AST) -> bool:
    """Whether a part of a handler lets somebody know: it raises, or calls something (print, append, ...)."""
    return isinstance(node, ast.Raise | ast.Call | ast.AugAssign)


class Fallbacks:
    """The fallbacks of a run's cells; its code is read at the first question."""

    def __init__(self, view: RunView) -> None:
        self._view = view

    @cached_property
    def by_cell(self) -> dict[str, list[Fallback]]:
        """Those of each cell that has some, by span id."""
        cells = [span for span in self._view.spans if span.kind == "cell"]
        digests = {cell.span_id: Facts(cell.attributes).text(sc.CODE + ".sha256") for cell in cells}
        texts = self._view.payloads({digest for digest in digests.values() if digest})
        found = {span_id: fallbacks_in(texts.get(digest or "", "")) for span_id, digest in digests.items()}
        return {span_id: lines for span_id, lines in found.items() if lines}

    @cached_property
    def _by_path(self) -> dict[str | None, list[tuple[SpanRow, Fallback]]]:
        found: dict[str | None, list[tuple[SpanRow, Fallback]]] = defaultdict(list)
        for span_id, lines in self.by_cell.items():
            cell = self._view.by_id[span_id]
            found[_path(cell)] += [(cell, line) for line in lines]
        return found

    def taken(self, family: Sequence[Reply]) -> Found:
        """Signals of those siblings that cannot be read as nearly all the others can, where their cell or a
        later one of the same run has a fallback for that.
        """
        if len(family) < FEW:
            return
        told: set[str] = set()
        first = family[0].span
        for cell, fallback in self._by_path.get(_path(first), []):
            how = next((r for r in fallback.reads if _readers(family, r) >= (1 - RARE) * len(family)), None)
            if how is None or cell.cell is None or first.cell is None or cell.cell < first.cell:
                continue
            for reply in family:
                if how not in reply.reads and reply.span.span_id not in told:
                    told.add(reply.span.span_id)
                    words = f"It cannot be read {_READ_AS[how]}, as {_readers(family, how):,} of "
                    words += f"{len(family):,} siblings can; line {fallback.line} of cell {cell.cell} then "
                    yield reply.span.span_id, Signal("fallback", f"{words}goes on with a value of its own.")


def _readers(family: Sequence[Reply], how: ReadAs) -> int:
    return sum(how in reply.reads for reply in family)


def _path(span: SpanRow) -> str | None:
    return Facts(span.attributes).text(sc.RUN_PATH)
