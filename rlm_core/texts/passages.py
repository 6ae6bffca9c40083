"""Passages that fit a query: BM25 over pieces of about 1,500 characters.

Words are compared without case and accents: compatibility decomposition (NFKD) without the marks U+0300 to
U+036F, then casefolded. Chinese and Japanese characters count as words. The ranking is that of the library
bm25s (its default, the variant of Lucene). Up to 16,777,216 characters all passages are ranked, and the index
of the last text is kept. A larger text is read for every query, and only passages that hold a word of the
query are ranked: the 2,000 that hold most of the words, a word weighing by its rarity; their scores compare
with each other only.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, Final

from rlm_core.texts.documents import Documents
from rlm_core.texts.mapped import MappedText
from rlm_core.texts.text import Passage, Text, chunk_end
from rlm_core.texts.touched import note

PASSAGE: Final = 1_500  # characters
INDEXED: Final = 16 << 20  # characters, of which all passages are ranked
CANDIDATES: Final = 2_000
_BLOCK: Final = 1 << 18
_WORD: Final = "[\u2e80-\u9fff]|[^\\W\u2e80-\u9fff]+"
_words: Final = re.compile(_WORD)
_inside_a_word: Final = re.compile("[^\\W\u2e80-\u9fff]").match
_ASCII: Final = bytes(range(128))
_MOST_CHANGED: Final = 64
_marks: Final = re.compile("[\u0300-\u036f]+")
_kept: dict[Any, _Index] = {}  # the last one

Given = Text | MappedText | Documents


def best(given: Given, query: str, k: int) -> list[Passage]:
    """The best passages, best first; fewer than `k` when fewer hold a word of the query.

    Raises `ValueError` for a query without a word and for k < 1.
    """
    words = _words_of(query, k)
    many = given.chars if isinstance(given, Documents) else len(given)
    if many > INDEXED:
        index = _Index(_candidates(given, words))
    elif (key := _key(given)) in _kept:
        index = _kept[key]
    else:
        _kept.clear()  # before the next one is made: there is room for one
        index = _kept[key] = _Index(_pieces(given))
    found = index.best(words, k)
    for passage in found:
        note(passage.document, passage.start, passage.start + len(passage))
    return found


def ranked(given: Given, query: str, k: int) -> list[Passage]:
    """The same for one query of the engine's own: nothing is kept, and nothing noted as given to code."""
    words = _words_of(query, k)
    many = given.chars if isinstance(given, Documents) else len(given)
    return _Index(_candidates(given, words) if many > INDEXED else _pieces(given)).best(words, k)


def _words_of(query: str, k: int) -> list[str]:
    words = list(dict.fromkeys(_words.findall(fold(query))))
    if not words or k < 1:
        raise ValueError("top needs a query with at least one word, and k of at least 1")
    return words


def _pieces(given: Given) -> Iterator[Text]:
    """All passages, in the order of the text."""
    return (piece for text in _texts(given) for block in _blocks(text) for piece in block.chunks(PASSAGE))


def fold(text: str) -> str:
    """A text as words are compared."""
    if text.isascii():
        return text.casefold()
    # a character at a time is slow, a replacement of all its occurrences is fast: they are few in most texts
    others = set(
        text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")
    )
    changed = [(char, plain) for char in others if (plain := _without_marks(char)) != char]
    if len(changed) > _MOST_CHANGED:
        return _without_marks(text).casefold()
    for char, plain in changed:
        text = text.replace(char, plain)
    return text.casefold()


def _without_marks(text: str) -> str:
    return _marks.sub("", unicodedata.normalize("NFKD", text))


class _Index:
    """Passages, indexed by bm25s."""

    def __init__(self, passages: Iterable[Text]) -> None:
        import bm25s  # type: ignore[import-untyped]

        self._passages = list(passages)
        folded = [fold(passage) for passage in self._passages]
        self._model = bm25s.BM25()
        self._empty = not any(map(_words.search, folded))
        if not self._empty:
            tokens = bm25s.tokenize(
                folded, lower=False, token_pattern=_WORD, stopwords=None, show_progress=False
            )
            self._model.index(tokens, show_progress=False)

    def best(self, words: list[str], k: int) -> list[Passage]:
        if self._empty:
            return []
        scores = self._model.get_scores(words)
        order = (-scores).argsort(kind="stable")[:k]
        return [Passage.of(self._passages[at], float(scores[at])) for at in order if scores[at] > 0]


def _key(given: Given) -> Any:
    if isinstance(given, Documents):
        return given.store, tuple(number for number, _ in given.places)
    if isinstance(given, MappedText):
        return given.store, given.document, given.start, given.end
    return given.document, given.start, str(given)


def _texts(given: Given) -> Iterator[Text | MappedText]:
    return map(given.quietly, range(len(given))) if isinstance(given, Documents) else iter((given,))


def _blocks(text: Text | MappedText) -> Iterator[Text]:
    """The text itself; of a mapped one blocks that end with a line."""
    if isinstance(text, Text):
        yield text
        return
    start = 0
    while start < len(text):
        end = chunk_end(text, start, _BLOCK, 0)
        yield Text(text.peek(start, end), text.document, text.start + start, text.name)
        start = end


def _candidates(given: Given, words: list[str]) -> list[Text]:
    """The passages that are worth ranking, in the order of the text."""
    found: list[tuple[int, int, int, int]] = []  # number of the text, start, end, bits of the words
    held = [0] * len(words)
    passages = 0
    for number, text in enumerate(_texts(given)):
        for block in _blocks(text):
            folded = fold(block)
            there = [(which, word) for which, word in enumerate(words) if word in folded]
            pieces = block.chunks(PASSAGE) if there else []
            passages += len(pieces) or 1 + len(block) // PASSAGE
            bits: Counter[int] = Counter()
            for place, which in _places(pieces, there):
                bits[place] += 1 << which
                held[which] += 1
            for place, mask in bits.items():
                start = pieces[place].start - text.start
                found.append((number, start, start + len(pieces[place]), mask))
        if len(found) > 20 * CANDIDATES:
            found = _rarest(found, held, passages)
    return list(_read(given, _rarest(found, held, passages)))


def _places(pieces: list[Text], words: list[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    """Which pieces hold which of the words: number of the piece, number of the word."""
    folded = [fold(piece) for piece in pieces]
    ends = list(accumulate(len(piece) + 1 for piece in folded))
    text = "\n".join(folded)
    for number, word in words:
        at = 0
        while (at := text.find(word, at)) >= 0:
            behind = at + len(word)
            # a character of Chinese or Japanese is a word wherever it stands
            if _inside_a_word(word) and (
                _inside_a_word(text[behind : behind + 1]) or _inside_a_word(text[at - 1 : at])
            ):
                at += 1
                continue
            piece = bisect_right(ends, at)
            yield piece, number
            at = ends[piece]


def _rarest(
    found: list[tuple[int, int, int, int]], held: list[int], passages: int
) -> list[tuple[int, int, int, int]]:
    """The candidates whose words weigh most, in the order of the text."""
    weights = [math.log(1 + (passages - count + 0.5) / (count + 0.5)) for count in held]
    cache: dict[int, float] = {}

    def weight(candidate: tuple[int, int, int, int]) -> float:
        bits = candidate[3]
        if bits not in cache:
            cache[bits] = sum(w for which, w in enumerate(weights) if bits >> which & 1)
        return cache[bits]

    return sorted(sorted(found, key=weight, reverse=True)[:CANDIDATES])


def _read(given: Given, found: list[tuple[int, int, int, int]]) -> Iterator[Text]:
    for number, start, end, _ in found:
        text = given.quietly(number) if isinstance(given, Documents) else given
        piece = text.peek(start, end) if isinstance(text, MappedText) else text[start:end]
        yield Text(piece, text.document, text.start + start, text.name)
