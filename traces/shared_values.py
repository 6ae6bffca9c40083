"""Values that two texts share: numbers, names, words, dates, addresses. Pattern matching, no model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from rlm_core.demo_words import FUNCTION_WORDS

COMPARED_CHARS: Final = 20_000  # of a text
_LEAST_CHARS: Final = 3  # of a word that says something
_VALUE: Final = re.compile(r"[^\W_]+(?:[-./@:,'’+#][^\W_]+)*")
_PARTS: Final = re.compile(r"[./@:'’+#]")
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def values_of(text: str) -> dict[str, str]:
    """What a text says that can be found in another: numbers, names, words, dates, addresses.

    Compared form (casefolded, no commas between thousands) -> as it stands in the text. Of "k-026.md" the
    parts "k-026" and "k-026.md" both count; words without meaning of their own do not.

    >>> values_of("The fee is EUR 32,000, see K-026.md")
    {'fee': 'fee', 'eur': 'EUR', '32000': '32,000', 'see': 'see', 'k-026.md': 'K-026.md', 'k-026': 'K-026'}
    """
    found: dict[str, str] = {}
    for match in _VALUE.finditer(text[:COMPARED_CHARS]):
        whole = match[0]
        named = any(char.isalpha() for char in whole)  # a number or a date says nothing in parts
        cuts = [0, *(cut.start() for cut in _PARTS.finditer(whole) if named), len(whole)]
        parts = [whole[a + 1 if a else 0 : b] for a, b in pairwise(cuts)] if len(cuts) > 2 else []
        for word in (whole, *parts):
            name = word.casefold()
            if _THOUSANDS.fullmatch(name):
                name = name.replace(",", "")
            if (
                len(name) >= _LEAST_CHARS or (word is whole and name.isdigit())
            ) and name not in FUNCTION_WORDS:
                found.setdefault(name, word)
    return found


def shared(
    found: Mapping[str, str], wanted: Mapping[str, str], frequency: Mapping[str, int]
) -> dict[str, int]:
    """Values that two texts share, the rarest first, with how many calls have each."""
    names = sorted(found.keys() & wanted.keys(), key=lambda value: (frequency[value], value))
    return {name: frequency[name] for name in names}


def told(found: Mapping[str, int], texts: Mapping[str, str], most: int) -> tuple[str, ...]:
    """The rarest values as they were written; a part of one that is told already is not told again."""
    names = list(found)[: most * 2]
    parts = {name for name in names if any(name != other and name in other for other in names)}
    return tuple(texts[name] for name in names if name not in parts)[:most]
