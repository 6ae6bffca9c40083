"""Typed values in a text, as the demo model recognises them: pattern matching, nothing else.

`values_in` finds every value with its kind; `choose` picks the one that a sentence most likely states about
the words asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from rlm_core.demo_words import EMPTY_WORDS, FUNCTION_WORDS, word_set

_MONTH: Final = (
    r"(?:jan(?:uary|eiro)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre"
    r"|octubre|noviembre|diciembre|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro)"
)
_AMOUNT: Final = r"\d+(?:[.,' ]\d{3})*(?:[.,]\d+)?"
_UNIT: Final = (
    r"(?:second|minute|hour|day|week|month|quarter|year|segundo|minuto|hora|día|semana|mes|año"
    r"|trimestre|dia|mês|ano)"
    r"(?:e?s)?|meses"
)
PATTERNS: Final[dict[str, str]] = {  # in order: the first that covers a place has it
    "email": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "url": r"(?:https?|ftp)://[^\s\"'<>)\]}|]*[^\s\"'<>)\]}|.,;:!?]",
    "uuid": r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
    "ip": r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)",
    "date": rf"\b\d{{4}}-\d{{2}}-\d{{2}}\b|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{4}}\b|\b\d{{4}}/\d{{2}}/\d{{2}}\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)?(?: de)? {_MONTH}\.?,?(?: de| of)? \d{{4}}\b"
    rf"|\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}\b",
    "money": rf"(?:\b(?:EUR|USD|GBP|CHF|BRL|MXN|JPY|CAD|AUD|US\$|R\$)|[$€£¥])\s?{_AMOUNT}(?:\s?(?:million"
    rf"|thousand|bn|m|k)\b)?"
    rf"|\b{_AMOUNT}\s?(?:million |thousand )?(?:EUR|USD|GBP|CHF|BRL|MXN|euros?|dollars?|pounds|pesos"
    rf"|reais|[€£])(?!\w)",
    "percent": r"\b\d+(?:[.,]\d+)?\s?(?:%|percent\b|per cent\b|por ciento\b|por cento\b)",
    "time": r"\b(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?:\s?[ap]m\b)?|\b(?:1[0-2]|\d)\s?[ap]m\b",
    "duration": rf"\b(?:[a-z]+ \(\d+\)|\d+(?:[.,]\d+)?)[ -](?:calendar |business |full )?(?:{_UNIT})\b",
    "code": r"(?<![\w])(?=[\w./#:+-]*\d)(?=[\w./#:+-]*[^\W\d_])[^\W_][\w]*(?:[-./#:+]\w+)*"
    r"|(?<![\w-])\d+(?:[-/]\d+)+(?!\w)|(?<![\w-])[A-Z]{2,}(?:-[A-Z]{2,})+(?!\w)",
    "number": r"(?<![\w.])[-+]?\d+(?:[.,]\d+)*(?!\w)",
}
STRONG: Final = word_set("email url uuid ip date money percent time code number quoted")
# What may stand right before a value that is being told.
_VERBS: Final = (
    r"\b(?:is|was|are|were|be|reads|equals|equal to|set to|changed to|stands at|says|answers to|becomes"
    r"|became"
    r"|es|era|fue|son|é|foi|são)(?: (?:now|currently|exactly|simply|still|ahora|agora|exatamente))?"
    r"(?: (?:assigned|given|called|named))?|\b(?:assigned|called|named)"
)
_TELLS: Final = rf"(?:{_VERBS})\W{{0,4}}$|" r"(?:[=:→—–]|->|=>|\s-)\W{0,4}$"
_HINTS: Final = (
    r"\b(?:to|as|on|enter|use|uses|type|holds|takes|carries|with|by|under|the|word|value|number|named"
    r"|called|has|have"
    r"|shows|gives|receives|keeps|con|com|tiene|tem|usa|use)\W{1,3}$"
)
_FOLLOWS: Final = r"^\W{0,3}\s(?:is|was|are|were|has been|opens|unlocks|belongs|es|fue|é|foi)\b"


@dataclass(frozen=True, slots=True)
class Value:
    """A value at [start, end) of a text."""

    start: int
    end: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look for in a sentence.

    `kind` is the type of value, `near` the words that say what ("access", "code"), `nouns` those of them that
    stand for the value itself ("code"), `never` all words of the question: no value holds one.
    """

    kind: str
    near: re.Pattern[str] | None
    nouns: re.Pattern[str] | None
    never: re.Pattern[str] | None


@cache
def pattern(kind: str) -> re.Pattern[str]:
    """The compiled pattern of a kind."""
    ignore_case = kind in ("email", "url", "uuid", "date", "time", "duration")
    return re.compile(PATTERNS[kind], re.I if ignore_case else 0)


def values_in(text: str, kinds: Iterable[str] = tuple(PATTERNS)) -> list[Value]:
    """All values of the given kinds, in order of place; no two overlap, earlier kinds first."""
    taken: list[Value] = []
    for kind in kinds:
        for found in pattern(kind).finditer(text):
            start, end = found.span()
            if all(end <= v.start or start >= v.end for v in taken):
                taken.append(Value(start, end, kind, found.group()))
    return sorted(taken, key=lambda v: v.start)


def choose(sentence: str, wanted: Wanted, places: Sequence[int]) -> tuple[Value, bool] | None:
    """The value that `sentence` states, and whether that is plain; None if it states none that fits.

    `places` are where the words of the question stand in the sentence.
    """
    best: tuple[float, Value] | None = None
    for value in _candidates(sentence, wanted):
        score = _score(sentence, value, wanted, places)
        if best is None or score > best[0]:
            best = score, value
    if best is None or best[0] < -1.5:
        return None
    return best[1], best[0] >= 3


def _candidates(sentence: str, wanted: Wanted) -> list[Value]:
    def allowed(value: Value) -> bool:
        whole = wanted.never.match(value.text) if wanted.never else None
        if whole and whole.end() == len(value.text):
            return False
        words = re.findall(r"[^\W_]+", value.text)
        asked = [bool(wanted.never and wanted.never.match(word)) for word in words]
        if value.kind in (
            "quoted",
            "phrase",
            "word",
        ):  # free text may hold one word of the question, not more
            return len("".join(words)) > 1 and sum(asked) <= min(1, len(words) / 2)
        return bool(words) and not all(asked)

    quoted = [q for q in _quoted(sentence) if len(q.text.split()) <= 6 and allowed(q)]
    found = list(quoted)
    for more in (values_in(sentence), _phrases(sentence, wanted), _words(sentence)):
        free = [v for v in more if all(v.end <= f.start or v.start >= f.end for f in found)]
        found += [v for v in free if allowed(v)]
    return found


def _quoted(text: str) -> list[Value]:
    marks = (
        r"`([^`\n]{1,80})`|“([^”]{1,80})”|«([^»]{1,80})»|\"([^\"\n]{1,80})\""
        r"|(?<!\w)'([^'\n]{1,80})'(?!\w)|\*\*([^*\n]{1,80})\*\*"
    )
    found = []
    for m in re.finditer(marks, text):
        group = next(g for g in range(1, 7) if m[g] is not None)
        found.append(Value(m.start(group), m.end(group), "quoted", m[group]))
    return found


def _phrases(text: str, wanted: Wanted) -> list[Value]:
    """Words without digits that follow what tells a value: "is silver heron", "codename silver heron"."""
    ends = [m.end() for m in re.finditer(rf"(?:(?:{_VERBS}|\bto)\b|[=:→—]|->|=>)[\s\"'`]{{0,3}}", text, re.I)]
    for words in (wanted.near, wanted.nouns):
        for m in words.finditer(text) if words else ():
            after = re.match(r"\w*[\s\"'`(]{1,3}", text[m.end() :])
            ends += [m.end() + after.end()] if after else []
    found: dict[int, Value] = {}
    for end in sorted(ends):
        phrase = _open_phrase(text[end:])
        first = phrase.split(" ")[0]
        if (
            " " in phrase and wanted.near and wanted.near.match(first)
        ):  # "is painted violet": the word asked leads
            end, phrase = end + len(first) + 1, phrase[len(first) + 1 :]
        later = [m.start() for m in wanted.near.finditer(phrase) if m.start()] if wanted.near else []
        phrase = phrase[: min(later, default=len(phrase))].rstrip()
        if phrase:
            found.setdefault(end, Value(end, end + len(phrase), "phrase", phrase))
    return list(found.values())


def _open_phrase(text: str) -> str:
    """The words at the start of a text up to a mark or a function word; "" if it starts with one."""
    words = re.match(r"(?:[^\W\d_]\w*(?:['-]\w+)*(?![\w-])[ ]?){1,6}", text)
    kept: list[str] = []
    for word in words.group().split() if words else ():
        if kept and (kept[0][0].islower() and word[0].isupper() or len(word) == 1):
            break
        if word.lower() in FUNCTION_WORDS or word.lower() in EMPTY_WORDS or word.lower() in _STOPS:
            break
        kept.append(word)
    phrase = " ".join(kept)
    led = re.match(r"\s(?:to|by|with|in|on|as|from|for|at|under|into)\b", text[len(phrase) :])
    return "" if phrase.endswith("ed") and led else phrase  # "changed to ..." tells no value yet


_STOPS: Final = word_set(
    "since until last next today yesterday tomorrow now because once only also if else"
    " opens unlocks belongs guards"
)


def _words(text: str) -> list[Value]:
    """Single words; a run of capitalised ones ("Northgate Castings") is one value."""
    word = r"[^\W\d_]{2,}(?:-[^\W\d_]+)*"
    name = r"[A-Z][^\W\d_]+(?:-[^\W\d_]+)*"
    return [
        Value(m.start(), m.end(), "word", m.group())
        for m in re.finditer(rf"(?<![\w-])(?:{name}(?:[ ]{name}){{1,4}}|{word})(?![\w-])", text)
        if m.group().split()[0].lower() not in FUNCTION_WORDS and m.group().lower() not in EMPTY_WORDS
    ]


def _score(sentence: str, value: Value, wanted: Wanted, places: Sequence[int]) -> float:
    score = _fit(value, wanted.kind) + _told(sentence, value, wanted)
    if places:
        # a value stands near the words it belongs to, more often behind than before them
        score -= min(
            min(3.0, (value.start - p) / 30) if value.start >= p else min(4.0, (p - value.start) / 20)
            for p in places
        )
    return score


def _told(sentence: str, value: Value, wanted: Wanted) -> float:
    """How plainly the words around a value say that it is the value."""
    before, after = sentence[max(0, value.start - 40) : value.start], sentence[value.end : value.end + 30]
    if re.search(_TELLS, before, re.I):
        return 3
    if _ends_with(before, wanted.nouns):
        return 3
    if _ends_with(before, wanted.near):
        return 1.5
    if value.kind in STRONG and wanted.near and wanted.near.match(after.lstrip(" \"'`")):
        return 2
    if value.kind in STRONG and re.search(r"\b(?:of|de)\s$", before, re.I):
        return 1.5
    if re.search(_HINTS, before, re.I) or re.search(_FOLLOWS, after, re.I):
        return 1.5
    return 0


def _ends_with(before: str, words: re.Pattern[str] | None) -> bool:
    """Whether one of the words stands right before the end, with nothing but marks after it."""
    return (
        any(re.fullmatch(r"\w{0,3}[\s\"'`(,:]*", before[m.end() :]) for m in words.finditer(before))
        if words
        else False
    )


def _fit(value: Value, kind: str) -> float:
    """How well a value fits a wanted kind; strongly negative if it cannot be one."""
    inner = value.kind
    if inner == "quoted":
        inside = [v for v in values_in(value.text) if v.end - v.start >= len(value.text) - 2]
        inner = inside[0].kind if inside else "quoted"
    if kind in ("any", "word"):
        plain = {"phrase": 1, "quoted": 4, "word": 0}.get(inner, 3)
        digits = {"phrase": 2, "quoted": 4, "word": 1, "code": 1}.get(inner, -1)
        return plain if kind == "any" else digits
    near = {
        "number": {"money": 2, "code": 2, "uuid": 1, "percent": 2, "duration": 3, "ip": 0, "time": 0},
        "money": {"number": 3, "percent": 0},
        "date": {"time": 0},
        "duration": {"number": 2},
        "time": {"date": 1, "number": 0},
        "percent": {"number": 2},
        "year": {"number": 3, "date": 1},
    }
    return 5 if inner == kind else near.get(kind, {}).get(inner, -6)
