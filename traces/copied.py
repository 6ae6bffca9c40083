"""Whether a root copied into its code what it had been shown: such code passes a fault on."""

from __future__ import annotations

import ast
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from math import inf
from typing import Final

from rlm_core import semconv as sc
from traces.rows import SpanRow
from traces.view import RunView

_WORD: Final = re.compile(r"\d+(?:[.,_'’\u00a0\u202f]\d+)*|[^\W\d]\w*(?:\.\w+)*")
_MARKS: Final = re.compile(r"[_'’\u00a0\u202f]")
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


class Copies:
    """Code of two runs, held against the outputs that their roots had been shown. The outputs of each (child)
    run are read once.
    """

    def __init__(self, bad: RunView, good: RunView) -> None:
        self._told = _Told(bad), _Told(good)

    def copied(self, bad: tuple[SpanRow, str], good: tuple[SpanRow, str]) -> bool:
        """Whether one of two cells, each with its code, holds what its root had been shown when it wrote
        that, and the other root had not.

        Single digits stand in any text by chance: they count only where no root wrote others of its own.
        """
        cells = (bad[0], good[0])
        words = [_literals(code) for _, code in (bad, good)]
        apart = words[0] - words[1], words[1] - words[0]
        copies = [
            {word for word in apart[k] if self._told[k].had(word, cells[k])}
            - {word for word in apart[k] if self._told[1 - k].had(word, cells[1 - k])}
            for k in (0, 1)
        ]
        found = copies[0] | copies[1]
        own = (any(map(str.isdigit, apart[k])) and not copies[k] for k in (0, 1))
        return any(len(word) > 1 for word in found) or (bool(found) and not any(own))


class _Told:
    """What the roots of a run and of its child runs were shown in output."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._since: dict[object, dict[str, float]] = {}

    def had(self, word: str, cell: SpanRow) -> bool:
        """Whether the root had been shown a word when it wrote a cell. Cells of one reply were written
        together.
        """
        path = cell.attributes.get(sc.RUN_PATH)
        if path not in self._since:
            self._since[path] = self._shown(self._cells[path])
        return cell.iteration is not None and self._since[path].get(word, inf) < cell.iteration

    def _shown(self, cells: list[SpanRow]) -> dict[str, float]:
        """The words of outputs, each with the iteration that first had it."""
        shown = [(cell.iteration, cell.attributes.get(sc.STDOUT_SHOWN + ".sha256")) for cell in cells]
        texts = self._view.payloads({digest for _, digest in shown if isinstance(digest, str)})
        since: dict[str, float] = {}
        for iteration, digest in shown:
            for word in _words(texts.get(str(digest), "")):
                since.setdefault(word, inf if iteration is None else iteration)
        return since

    @cached_property
    def _cells(self) -> dict[object, list[SpanRow]]:
        cells: dict[object, list[SpanRow]] = defaultdict(list)
        for span in self._view.spans:
            if span.kind == "cell":
                cells[span.attributes.get(sc.RUN_PATH)].append(span)
        return cells


def _literals(code: str) -> set[str]:
    """Words and numbers in the literals of code; not single letters, which stand anywhere by chance."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = ast.walk(ast.parse(code))
        texts = [str(node.value) for node in nodes if isinstance(node, ast.Constant)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # as of a number of 5,000 digits
        return set()
    words = {word for text in texts for word in _words(text)}
    return {word for word in words if len(word) > 1 or word.isdigit()}


def _words(text: str) -> Iterator[str]:
    """Words, and numbers as code may have them."""
    for word in _WORD.findall(text):
        if word[0].isdigit():
            yield from _readings(_MARKS.sub("", word))
        else:
            yield word


def _readings(number: str) -> Iterator[str]:
    """What a number may mean: `1,940` and `1.940` either of 1940 and 1.94, `3,9` also 3 and 9; without zeros
    that say nothing.
    """
    for thousands, point in (",.", ".,"):
        whole, _, part = number.replace(thousands, "").partition(point)
        whole, part = whole.lstrip("0") or "0", part.rstrip("0")
        yield f"{whole}.{part}" if part else whole
    if "," in number and not _THOUSANDS.fullmatch(number):
        yield from number.split(",")
