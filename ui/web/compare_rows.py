"""The aligned trees of two runs as flat rows for a page: which are listed, and what stands in them.

All decisions are made here and in `compare_words`; the browser only draws. Every text is one line, bounded
and safe to show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from rlm_core import semconv as sc
from ui.figures import counted, duration, money
from ui.tree import problem
from ui.visible import line
from ui.web.compare_words import TONES, is_difference, word
from ui.web.tree_rows import pieces
from ui.web.tree_words import label

if TYPE_CHECKING:
    from traces.diff import Diff, Row
    from traces.reading import RunView, SpanRow

_TEXT_CHARS: Final = 140
_BEFORE: Final = 24  # characters shown before the first that differs
_MOST_TEXTS: Final = 2_000  # rows whose texts are read to show where they differ; others show the beginning
#: Kind -> where the texts stand that tell two such spans apart, the first that differs is shown.
_TEXTS: Final = {
    "sub_call": (sc.RESPONSE,),
    "root_call": (sc.RESPONSE,),
    "run": (sc.ANSWER,),
    "cell": (sc.CODE, sc.STDOUT, sc.EXCEPTION),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Which rows are listed. `everything`: those that are the same too. `kind`: only these, "" for all but
    attempts, which the rows of their calls stand for."""

    everything: bool = False
    kind: str = ""

    def takes(self, row: Row) -> bool:
        """Whether a row is listed for its own sake."""
        if row.kind != self.kind and (self.kind or row.kind == "attempt"):
            return False
        return self.everything or row.status != "same"


@dataclass(slots=True)
class Line:
    """One line of the list. `span` is None where it stands for rows that are not listed; `a` and `b` are None
    where a run has no such row. `look`: "parent" for what only leads to a row below, "same", "gap" or ""."""

    key: str
    span: str | None
    level: int
    label: str
    word: str
    tone: str
    a: str | None
    b: str | None
    tokens: str
    cost: str
    time: str
    opened: bool
    look: str


@dataclass
class Lines:
    """What is listed. `listed` rows fit; `hidden` ones do not, and are not there to lead to one that does;
    `attempts` are not counted as hidden."""

    lines: list[Line]
    listed: int
    hidden: int
    attempts: int

    @cached_property
    def chunks(self) -> list[tuple[str, bytes]]:
        """The lines in pieces, as `tree_view.send_pieces` takes them."""
        return pieces(self.lines, Line.__slots__)


def key_of(row: Row) -> str:
    """What names a row: the id of its span in A; where A has none that in B, marked: two records may give the
    same id to two spans."""
    return row.a or only_in_b(row.b)


def only_in_b(span_id: str | None) -> str:
    """What names the row of a span of B that has no partner."""
    return f"b.{span_id}"


def find_row(diff: Diff, ref: str) -> Row | None:
    """The row with that key, else the one of a span of B with that id; None when there is none."""
    known = next((row for row in diff.rows if key_of(row) == ref), None)
    return known or next((row for row in diff.rows if row.b == ref), None)


def first_row(diff: Diff, kind: str = "") -> Row | None:
    """The row to begin with: where the runs part, else the first that differs, else the first; of a kind, if
    one is given and the runs have any."""
    wanted = [row for row in diff.rows if row.kind == kind] or diff.rows
    parted = next((row for row in wanted if row.status == "frontier"), None)
    return parted or next((row for row in wanted if is_difference(row)), next(iter(wanted), None))


def lines_of(diff: Diff, a: RunView, b: RunView, shape: Shape) -> Lines:
    """The list of a shape, in the order of the aligned trees, with the parents of what fits."""
    kept = _kept(diff.rows, shape)
    describe = _Describer(a, b, [row for place, row in enumerate(diff.rows) if place in kept])
    lines: list[Line] = []
    left_out: list[Row] = []
    for place, row in enumerate(diff.rows):
        if place in kept:
            lines += _gap(left_out, shape)
            left_out = []
            lines.append(describe.line(row, parent=not shape.takes(row)))
        elif row.kind != "attempt":
            left_out.append(row)
    lines += _gap(left_out, shape)
    fits = sum(map(shape.takes, diff.rows))
    attempts = sum(row.kind == "attempt" for row in diff.rows) if shape.kind != "attempt" else 0
    return Lines(lines, fits, len(diff.rows) - len(kept) - attempts, attempts)


def _kept(rows: Sequence[Row], shape: Shape) -> set[int]:
    """The places of the rows that fit, and of those above them."""
    kept: set[int] = set()
    above: list[int] = []
    for place, row in enumerate(rows):
        del above[max(row.level, 0) :]
        above.append(place)
        if shape.takes(row):
            kept.update(above)
    return kept


def _gap(rows: Sequence[Row], shape: Shape) -> Iterator[Line]:
    """A line in the place of rows that are not listed."""
    if not rows:
        return
    words = f"{counted(len(rows), 'row')} {'not listed' if shape.kind else 'the same'}"
    level = min(row.level for row in rows)
    yield Line(f"gap {key_of(rows[0])}", None, level, words, "", "ok", "", "", "", "", "", True, "gap")


class _Describer:
    """Makes lines of rows."""

    def __init__(self, a: RunView, b: RunView, rows: Sequence[Row]) -> None:
        self._a, self._b = a, b
        differing = [row for row in rows if row.status != "same"][:_MOST_TEXTS]
        self._texts = (
            a.payloads({digest for row in differing for digest in _digests(a, row.a)}),
            b.payloads({digest for row in differing for digest in _digests(b, row.b)}),
        )

    def line(self, row: Row, *, parent: bool) -> Line:
        one = None if row.a is None else self._a.by_id.get(row.a)
        other = None if row.b is None else self._b.by_id.get(row.b)
        known, view = (one, self._a) if one is not None else (other, self._b)
        texts = self._excerpts(one, other)
        return Line(
            key=key_of(row), span=key_of(row), level=row.level,
            label=_short(label(known, view.summary.sub_model)),
            word="" if parent and row.status == "same" else word(row),
            tone=TONES.get(row.status, "ok"), a=texts[0], b=texts[1],
            tokens=signed(row.tokens, lambda number: f"{number:,}"),
            cost=signed(row.usd, lambda usd: money(usd, None)), time=signed(row.seconds, duration),
            opened=True, look="parent" if parent else "same" if row.status == "same" else "",
        )  # fmt: skip

    def _excerpts(self, one: SpanRow | None, other: SpanRow | None) -> tuple[str | None, str | None]:
        """Of both sides the text that tells them apart, from shortly before where they part."""
        found = [self._texts_of(span, texts) for span, texts in zip((one, other), self._texts, strict=True)]
        for left, right in zip(*found, strict=False):
            if left is not None and right is not None and left != right:
                at = _parting(left, right)
                return _from(left, at), _from(right, at)
        return _beginning(one, found[0]), _beginning(other, found[1])

    def _texts_of(self, span: SpanRow | None, texts: Mapping[str, str]) -> list[str | None]:
        """The texts that tell a span from another, None where one was not read."""
        names = () if span is None else _TEXTS.get(span.kind, ())
        return [texts.get(str(span.attributes.get(f"{name}.sha256"))) for name in names if span is not None]


def _digests(view: RunView, span_id: str | None) -> Iterator[str]:
    span = view.by_id.get(span_id or "")
    if span is None:
        return
    for name in _TEXTS.get(span.kind, ()):
        if isinstance(digest := span.attributes.get(f"{name}.sha256"), str):
            yield digest


def _parting(one: str, other: str) -> int:
    """The place of the first character that differs."""
    return next(
        (at for at, (x, y) in enumerate(zip(one, other, strict=False)) if x != y), min(len(one), len(other))
    )


def _from(text: str, at: int) -> str:
    start = at - _BEFORE if at > _TEXT_CHARS // 2 else 0
    return _short(("…" if start else "") + text[start : start + 2 * _TEXT_CHARS]) or "(empty)"


def _beginning(span: SpanRow | None, texts: Sequence[str | None]) -> str | None:
    """What went wrong in a span, else its beginning; None without a span."""
    if span is None:
        return None
    wrong = problem(span)
    if wrong or span.kind not in _TEXTS:
        return _short(wrong or "")
    recorded = span.preview if span.kind == "cell" else span.attributes.get(f"{_TEXTS[span.kind][0]}.preview")
    return _short(next((text for text in texts if text), "") or str(recorded or span.preview or ""))


def _short(text: str) -> str:
    shown = line(text[: _TEXT_CHARS * 2])
    return shown if len(shown) <= _TEXT_CHARS else shown[: _TEXT_CHARS - 1] + "…"


def signed(gap: Decimal | float | int | None, words: Callable[[Any], str]) -> str:
    """How far B is from A, with a sign; "" where it is nothing, rounded to nothing, or not known."""
    if not gap or words(abs(gap)) == words(0):
        return ""
    return f"{'+' if gap > 0 else '−'}{words(abs(gap))}"
