"""Whether two answers are the same, by every comparison that an expected answer can ask for.

Pure functions of untrusted text. Design: "Same answer". The first text is the answer given, the second the
one expected; `contains` and `regex` are the comparisons that tell them apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from itertools import islice, product
from typing import Final

from rlm_core.normalise import normalise
from traces.opinions import NORMALISED, check_how, compiled, is_empty

COMPARED_CHARS: Final = 100_000  # of an answer, by every comparison but exact and normalised
SEARCH_SECONDS: Final = 0.5  # of processor time for one search with a pattern
_KEPT: Final = 256  # searches whose outcome is kept
_NUMBER: Final = re.compile(
    r"(?:(?<!\w)[-−])?(?:\d{1,3}(?:[,_'’\u00a0\u202f]\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d{1,3}(?!\w))?"
)
_MOST_NUMBERS: Final = 1_000  # of one text
_MARKS: Final = re.compile(r"[,_'’\u00a0\u202f]")
_BULLET: Final = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,3}[.)])\s+")
_COMMA: Final = re.compile(r",(?!\d{3}(?!\d))|(?<!\d),")  # not the one between thousands
_AND: Final = re.compile(r"(?:^|\s+)(?:and|&)\s+")
_EXPLAINED: Final = {
    NORMALISED: "letter case, white space and a final full stop do not count",
    "exact": "every character counts",
    "number": "the answer holds the expected numbers; other words and other numbers do not count",
    "set": "the same items in any order; letter case and white space do not count",
    "contains": "the expected text stands in the answer; letter case and white space do not count",
    "regex": "the expected pattern is found in the answer",
    "judge": "a model judges whether they say the same, which proves nothing",
}


def same_answer(a: str | None, b: str | None, how: str = NORMALISED) -> bool | None:
    """Whether answer `a` is the expected answer `b`, compared in the way `how` (`traces.opinions.HOW`).

    None: the rule cannot tell. Only a judge could for `judge` and texts that are not equal once normalised,
    and for `number` where nothing expected is a number; nobody can where `contains` or `regex` look for an
    empty text, or where a search takes longer than `SEARCH_SECONDS`. A missing answer equals nothing. Raises
    InputError for a comparison that does not exist or a pattern that is none.
    """
    check_how(how, None)
    if a is None or b is None:
        return False
    if is_empty(how, b):
        return None
    name, _, tolerance = how.partition("±")
    if name == "number":
        return _same_numbers(a, b, Decimal(tolerance or 0))
    return _RULES[name](a, b)


def explain(how: str) -> str:
    """A comparison in words, as a clause. Raises InputError for one that does not exist."""
    check_how(how, None)
    name, _, tolerance = how.partition("±")
    return _EXPLAINED[name] + (f"; each may be off by {tolerance}" if tolerance else "")


def numbers_of(text: str) -> list[Decimal]:
    """The numbers of a text in order, at most 1,000: "EUR -1,250.50 on 3 May" holds -1250.5 and 3.

    Marks between thousands are dropped; a minus counts where no word or digit stands before it.
    """
    matches = islice(_NUMBER.finditer(text[:COMPARED_CHARS]), _MOST_NUMBERS)
    found = (match[0].replace("−", "-") for match in matches)
    return [Decimal(_MARKS.sub("", written)) for written in found]


def _same_numbers(a: str, b: str, tolerance: Decimal) -> bool | None:
    """Whether each number of b stands in a, as often as in b; None where b has none."""
    wanted, left = numbers_of(b), numbers_of(a)
    for number in wanted:
        near = min(left, key=lambda one: abs(one - number), default=None)
        if near is None or abs(near - number) > tolerance:
            return False
        left.remove(near)
    return True if wanted else None


def _same_items(a: str, b: str) -> bool:
    return any(one == other for one, other in product(_readings(a), _readings(b)))


def _readings(text: str) -> Iterator[frozenset[str]]:
    """The items of a list, where "and" belongs to a name and where it parts two of them."""
    items = _items(text[:COMPARED_CHARS])
    yield frozenset(clean for one in items if (clean := _clean(one)))
    yield frozenset(clean for one in items for part in _AND.split(one) if (clean := _clean(part)))


def _items(text: str) -> list[str]:
    """A list as JSON, as lines, with semicolons or with commas."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, list):
        return [one if isinstance(one, str) else json.dumps(one) for one in parsed]
    text = text.strip()
    if text[:1] + text[-1:] in ("[]", "{}", "()"):
        text = text[1:-1]
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        return [_BULLET.sub("", line).strip().rstrip(",;") for line in lines]
    return text.split(";") if ";" in text else _COMMA.split(text)


def _clean(item: str) -> str:
    return normalise(normalise(item).strip("\"'`“”‘’"))


@lru_cache(maxsize=_KEPT)
def _found(a: str, b: str) -> bool | None:
    """Whether a pattern is found in a text; None where the search took too long, as with patterns that can
    match in very many ways. Kept, because lists ask the same again and again.
    """
    try:
        return compiled(b).search(a, timeout=SEARCH_SECONDS) is not None
    except TimeoutError:
        return None


def _holds(a: str, b: str) -> bool:
    """Whether b stands in a, and not as a part of a longer word or number."""
    wanted = normalise(b)
    before = {True: r"(?<!\d)(?<!\d[.,])", False: r"(?<![a-z])"}[wanted[0].isdigit()]
    after = {True: r"(?![.,]?\d)", False: r"(?![a-z])"}[wanted[-1].isdigit()]
    pattern = (
        (before if wanted[0].isalnum() else "") + re.escape(wanted) + (after if wanted[-1].isalnum() else "")
    )
    return re.search(pattern, normalise(a[:COMPARED_CHARS])) is not None


_RULES: Final[Mapping[str, Callable[[str, str], bool | None]]] = {
    NORMALISED: lambda a, b: normalise(a) == normalise(b),
    "exact": lambda a, b: a == b,
    "set": _same_items,
    "contains": _holds,
    "regex": lambda a, b: _found(a[:COMPARED_CHARS], b),
    "judge": lambda a, b: True if normalise(a) == normalise(b) else None,
}
