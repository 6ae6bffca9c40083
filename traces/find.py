"""Where a text stands in a run: names and facts of its spans, and every text that they cite.

Plain words are found whatever their case. Regular expressions are RE2's, run by DuckDB: their time grows
with the text only, so no expression and no recorded text can hold a reader up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from traces.rows import SpanRow
from traces.view import RunView

_AT_ONCE: Final = 4_000  # texts read together
_CHARS_AT_ONCE: Final = 16_000_000  # and their characters, as far as the record says how many they have
_CITED: Final = ".sha256"
_CHARS: Final = ".chars"
_IN_PART: Final = (".preview", _CITED, _CHARS, sc.OI_INPUT, sc.OI_OUTPUT, sc.PREVIEW, sc.MESSAGES_ADDED)
_BEFORE: Final = 60  # characters of a passage before what was found
_WITHIN: Final = 160  # of what was found, and of what follows it

Found = list[tuple[SpanRow, list[str]]]  # spans in order, each with the names of the places it stands in


@dataclass(frozen=True, slots=True)
class Passage:
    """What was found (its beginning) with what stands around it."""

    before: str
    text: str
    after: str


class _Wanted(Protocol):
    def holding(self, texts: Sequence[str]) -> list[bool]:
        """For each text whether what is wanted stands in it."""
        ...

    def first(self, texts: Sequence[str]) -> list[tuple[int, int] | None]:
        """Where it stands first in each, start and end; None where it does not."""
        ...


def find_text(view: RunView, text: str) -> Found:
    """The spans of a run in which a text stands, in order; see `Search.spans`."""
    return Search(text).spans(view)


class Search:
    """A search that can be repeated while a run grows: every text of the run is read once."""

    def __init__(self, text: str, *, regex: bool = False) -> None:
        """Raises InputError when the regular expression is none."""
        self._wanted: _Wanted = _Expression(text) if regex else _Words(text)
        self._known: dict[str, bool] = {}  # texts by hash: whether it stands in them

    def spans(self, view: RunView) -> Found:
        """The spans that hold it, with the names of the places.

        Places are called as in the record, without the prefix `rlm.`, such as `prompt` or `error.message`;
        `name` is the span's own name, `messages` what was new in those of a root call.
        """
        cited = {span.span_id: list(_cited(span)) for span in view.spans}
        self._read(view, {sha256: chars for each in cited.values() for _, sha256, chars in each})
        in_facts = self._in_facts(view)
        found = []
        for span in view.spans:
            places = [place for place, sha256, _ in cited[span.span_id] if self._known.get(sha256)]
            places += in_facts.get(span.span_id, [])
            if places:
                found.append((span, list(dict.fromkeys(places))))
        return found

    def passages(self, view: RunView, found: Found) -> list[Passage | None]:
        """For each of the found spans a passage of the first of its places; None when it is gone."""
        hashes = [self._hash(span, places[0]) for span, places in found]
        texts = view.payloads({sha256 for sha256 in hashes if sha256})
        looked = [
            texts.get(sha256, "") if sha256 else dict(_facts(span)).get(places[0], "")
            for sha256, (span, places) in zip(hashes, found, strict=True)
        ]
        stands = self._wanted.first(looked)
        return [stand and _passage(text, *stand) for text, stand in zip(looked, stands, strict=True)]

    def _hash(self, span: SpanRow, place: str) -> str | None:
        """Of the text that holds it, when the place is one that cites texts."""
        cited = (sha256 for name, sha256, _ in _cited(span) if name == place and self._known.get(sha256))
        return next(cited, None)

    def _read(self, view: RunView, chars: dict[str, int]) -> None:
        """Look into those of the texts that have not been looked into yet, some thousands at a time."""
        for hashes in _portions(sorted(set(chars) - set(self._known)), chars):
            texts = view.payloads(hashes)
            self._known.update(zip(texts, self._wanted.holding(list(texts.values())), strict=True))

    def _in_facts(self, view: RunView) -> dict[str, list[str]]:
        facts = [(span.span_id, place, fact) for span in view.spans for place, fact in _facts(span)]
        distinct = list({fact for _, _, fact in facts})
        holding = {
            fact for fact, holds in zip(distinct, self._wanted.holding(distinct), strict=True) if holds
        }
        found: dict[str, list[str]] = {}
        for span_id, place, fact in facts:
            if fact in holding:
                found.setdefault(span_id, []).append(place)
        return found


def _passage(text: str, start: int, end: int) -> Passage:
    shown = min(end, start + _WITHIN)
    return Passage(
        ("…" if start > _BEFORE else "") + text[max(0, start - _BEFORE) : start],
        text[start:shown] + ("…" if shown < end else ""),
        text[end : end + _WITHIN],
    )


class _Words:
    """Upper and lower case are the same, also where their lengths differ (ß, SS)."""

    def __init__(self, text: str) -> None:
        self._folded = text.casefold()
        self._pattern = re.compile(re.escape(text), re.IGNORECASE)

    def holding(self, texts: Sequence[str]) -> list[bool]:
        return [self._folded in text.casefold() for text in texts]

    def first(self, texts: Sequence[str]) -> list[tuple[int, int] | None]:
        return [self._first(text) for text in texts]

    def _first(self, text: str) -> tuple[int, int] | None:
        if found := self._pattern.search(text):
            return found.span()
        start, length = text.casefold().find(self._folded), 0
        if start < 0:
            return None
        for place, character in enumerate(text):  # some before it are of another length when folded
            length += len(character.casefold())
            if length > start:
                return place, min(len(text), place + len(self._folded))
        return None


class _Expression:
    """A regular expression of RE2; upper and lower case are the same unless it says `(?-i)`."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        try:
            self.first([""])
        except Exception as error:  # DuckDB is imported late, and its errors with it
            reason = str(error).partition(": ")[2] or str(error)
            raise InputError(f"“{expression}” is no regular expression: {reason}") from error

    def holding(self, texts: Sequence[str]) -> list[bool]:
        return self._each("regexp_matches(t, $1, 'i')", texts)

    def first(self, texts: Sequence[str]) -> list[tuple[int, int] | None]:
        before = "length(regexp_extract(t, '^(?s:(.*?))(?:' || $1 || ')', 1, 'i'))"
        stand = f"[{before}, length(regexp_extract(t, $1, 0, 'i'))]"
        stands = self._each(f"CASE WHEN regexp_matches(t, $1, 'i') THEN {stand} END", texts)
        return [stand and (stand[0], stand[0] + stand[1]) for stand in stands]

    def _each(self, value: str, texts: Sequence[str]) -> list[Any]:
        """An expression of SQL for each text `t`."""
        import duckdb

        whole = [text if text.isascii() else _encodable(text) for text in texts]
        with duckdb.connect(":memory:") as con:
            sql = f"SELECT {value} FROM (SELECT unnest($2::VARCHAR[]) AS t)"
            return [answer for (answer,) in con.execute(sql, [self._expression, whole]).fetchall()]


def _encodable(text: str) -> str:
    """The text with a question mark for every half of a surrogate pair, which no UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _portions(hashes: Sequence[str], chars: dict[str, int]) -> Iterator[list[str]]:
    """The hashes in portions, none of many texts or of texts that are long together."""
    rest = iter(hashes)
    while portion := list(islice(rest, 1)):
        length = chars[portion[0]]
        for sha256 in rest:
            portion.append(sha256)
            length += chars[sha256]
            if len(portion) >= _AT_ONCE or length >= _CHARS_AT_ONCE:
                break
        yield portion


def _cited(span: SpanRow) -> Iterator[tuple[str, str, int]]:
    """Place, hash and number of characters (0: not said) of every text that a span cites."""
    for key, value in span.attributes.items():
        if key.endswith(_CITED) and isinstance(value, str):
            place = key.removesuffix(_CITED)
            chars = span.attributes.get(place + _CHARS)
            yield place.removeprefix("rlm."), value, chars if type(chars) is int and chars > 0 else 0
    for sha256 in _added(span.attributes.get(sc.MESSAGES_ADDED)):
        yield "messages", sha256, 0


def _added(raw: Any) -> list[str]:
    """The hashes of a root call's new messages; none when the record holds something else there."""
    try:
        pairs = json.loads(raw) if isinstance(raw, str) else []
        return [sha256 for _, sha256 in pairs if isinstance(sha256, str)]
    except (ValueError, TypeError, RecursionError):
        return []


def _facts(span: SpanRow) -> Iterator[tuple[str, str]]:
    yield "name", span.name
    yield "id", span.span_id
    for key, value in span.attributes.items():
        if isinstance(value, str) and not key.endswith(_IN_PART):
            yield key.removeprefix("rlm."), value
