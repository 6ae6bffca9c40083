"""How `demo/sub` looks a question up in a text: statements, the name asked for, the sentence, a value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from rlm_core import demo_values
from rlm_core.demo_question import Asked
from rlm_core.demo_values import Wanted
from rlm_core.demo_words import FUNCTION_WORDS, content_words, stem, tokens, word_set

# What the same thing is called in contracts and reports; each line is one meaning.
_SAME: Final = (
    "fee price charge cost remuneration",
    "notice cancellation-period",
    "effective effect commence start begin in-force",
    "cap limit ceiling maximum",
    "liability liable damages",
    "email e-mail mail contact",
    "tarifa precio cuota importe honorario",
    "preaviso aviso notificación",
    "límite tope máximo",
    "vigor vigencia efecto efectiva inicio",
    "correo email e-mail contacto",
    "preço taxa valor tarifa",
)
_KEYWORDS_ALONE: Final = word_set("return import raise pass break continue yield assert")
_KEYWORDS: Final = _KEYWORDS_ALONE | word_set("def class from if for while try with else elif except")


class Found(NamedTuple):
    """The best answer of a text: `sure` if the wording is plain, `quote` the sentence."""

    score: float
    sure: bool
    value: str
    quote: str


def answer_in(text: str, asked: Asked, document: str = "") -> Found | None:
    """What the text says to a question, or None. `document` is "name | head" of the text's document."""
    lines = sentences(text)
    found = _best(asked, asked.key, lines)
    named = not asked.key or bool(_key_span(document.partition(" | ")[0], asked.key))
    if (named or _key_span(document, asked.key)) and asked.words and not (found and found.sure):
        whole = _best(asked, (), lines) or _only_one(asked.kind, text, lines)
        # a document named by the key is about it: sentences that only repeat the name say nothing
        found = whole if named or (whole and whole.sure) else found or whole
    return found


def _best(asked: Asked, key: tuple[str, ...], lines: list[str]) -> Found | None:
    """The best-scoring sentence among those that hold the key."""
    weighed = (
        _weigh(asked, key, lines, number)
        for number, line in enumerate(lines)
        if not key or _key_span(line, key)
    )
    return max((f for f in weighed if f), key=lambda f: f.score, default=None)


def _weigh(asked: Asked, key: tuple[str, ...], lines: list[str], number: int) -> Found | None:
    """What a sentence says about the question, together with a neighbour if it holds no value itself."""
    share = share_of(asked.words, lines[number])
    if not key and share < 0.5:
        return None
    ranges = ((number, number + 1), (number, number + 2), (max(0, number - 1), number + 1))
    for kind in dict.fromkeys(
        (asked.kind, "any")
    ):  # a value of another kind is better than none, but never sure
        wanted = Wanted(
            kind, _any_of(asked.words), _any_of(asked.nouns), _any_of((*key, *content_words(asked.question)))
        )
        for first, last in ranges:
            if not all(_is_prose(line) for line in lines[first:last] if line is not lines[number]):
                continue
            whole = " ".join(lines[first:last])
            span = _key_span(whole, key) if key else None
            clause = _clause(whole, *span) if span else whole
            chosen = demo_values.choose(clause, wanted, _places(asked.words, key, clause))
            if chosen:
                share = share_of(asked.words, whole)
                plain = chosen[1] and kind == asked.kind and last - first == 1
                score = share * 4 + 2 * plain + (last - first == 1)
                return Found(score, bool(plain and share >= 0.5), chosen[0].text, quote_of(whole))
    return None


def share_of(words: tuple[str, ...], line: str) -> float:
    """The share of the asked words that a sentence holds, long ones counting more; 1.0 if there are none."""
    weights = {w: min(len(w), 8) for w in words}
    held = sum(n for w, n in weights.items() if _word_pattern(w).search(line))
    return held / sum(weights.values()) if words else 1.0


def quote_of(line: str) -> str:
    """A sentence as it is quoted: on one line, at most 240 characters."""
    flat = " ".join(line.split()).replace('"', "'")
    return flat if len(flat) <= 240 else flat[:240] + "..."


def _only_one(kind: str, text: str, lines: list[str]) -> Found | None:
    """A value of a distinctive kind that stands alone in the text answers a question in whatever words."""
    if kind not in ("email", "url", "uuid", "ip"):
        return None
    found = dict.fromkeys(v.text for v in demo_values.values_in(text) if v.kind == kind)
    if not found:
        return None
    value = next(iter(found))
    line = next((s for s in lines if value in s), value)
    return Found(0.0, len(found) == 1, value, quote_of(line))


# -- words of the question in a text


@cache
def _word_pattern(word: str) -> re.Pattern[str]:
    """Any spelling of a word of the question: its endings, and what the same thing is also called."""
    same = next((line.split() for line in _SAME if stem(word) in map(stem, line.split())), [])
    return re.compile("|".join(map(_beginning, dict.fromkeys([word, *same]))), re.I)


def _beginning(word: str) -> str:
    short = stem(word)
    parts = r"[\W_]*".join(re.escape(p) for p in tokens(short))
    return rf"(?<![^\W_]){parts}" + (r"s?(?![^\W_])" if len(short) <= 3 else "")


@cache
def _any_of(words: tuple[str, ...]) -> re.Pattern[str] | None:
    long = [w for w in dict.fromkeys(words) if len(w) > 1]
    return re.compile("|".join(map(_beginning, long)), re.I) if long else None


def _places(words: tuple[str, ...], key: tuple[str, ...], line: str) -> list[int]:
    span = _key_span(line, key) if key else None
    return ([span[1]] if span else []) + [m.end() for w in words for m in _word_pattern(w).finditer(line)]


@cache
def _key_pattern(word: str) -> re.Pattern[str]:
    """A word of a key with its plural, a compound with any separator."""
    parts = r"[\W_]*".join(re.escape(p) for p in tokens(word))
    return re.compile(rf"(?<![^\W_]){parts}(?:e?s)?(?![^\W_])|(?<=[a-z]){parts.title()}(?![a-z])", re.I)


def _key_span(line: str, key: tuple[str, ...]) -> tuple[int, int] | None:
    """Where the words of a key stand close together: in order with at most two words between, or in any order
    with only function words between."""
    found = [list(_key_pattern(word).finditer(line)) for word in key]
    if not key or not all(found):
        return None
    for first in found[0]:
        chosen = [first, *(min(others, key=lambda m: abs(m.start() - first.start())) for others in found[1:])]
        start, end = min(m.start() for m in chosen), max(m.end() for m in chosen)
        inside = len(content_words(line[start:end])) - sum(len(content_words(m.group())) for m in chosen)
        ordered = all(a.start() < b.start() for a, b in zip(chosen, chosen[1:], strict=False))
        if inside <= (2 if ordered else 0):
            return start, end
    return None


# -- statements of a text


def sentences(text: str) -> list[str]:
    """The sentences of a text. Wrapped lines are joined; a comment behind code is a line of its own."""
    ends = r"(?<=[.!?])[\"')\]]*\s+"
    return [s.strip() for line in _statements(text) for s in re.split(ends, line) if s.strip()]


def _statements(text: str) -> Iterator[str]:
    """Lines, wrapped ones joined, without the marks of comments, bullets and quotes."""
    held, held_kind = "", ""
    for line, kind in _lines(text):
        if held and kind == held_kind and _continues(held, line, kind):
            held = f"{held} {line}"
            continue
        yield held
        held, held_kind = line, kind
    yield held


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """(line without its mark, kind): a comment behind code comes as a line of its own."""
    for raw in text.splitlines():
        if raw.lstrip().startswith(("'", '"')):
            yield "", "text"  # a string begins: it does not go on with the line before
        code, mark, comment = raw.partition(" # ") if not raw.lstrip().startswith("#") else ("", "", "")
        if mark and code.strip():
            yield _unmarked(code), "text"
            yield comment.strip(), "beside"
        else:
            yield _unmarked(raw), "comment" if raw.lstrip().startswith(("#", "//")) else "text"


def _unmarked(line: str) -> str:
    return re.sub(r"^\s*(?:#+|//+|\*|--|>|-|;;?|[\"']{3})?\s*", "", line).rstrip()


def _continues(before: str, line: str, kind: str) -> bool:
    """Whether a line goes on with the sentence before it."""
    ends = ".!?;" if kind == "comment" else ".!?:;\"'`"
    if not line or before[-1] in ends or (kind == "text" and _is_statement(line)):
        return False
    if line[0].isupper() and before[-1] not in ",:(" and before.split()[-1].lower() not in FUNCTION_WORDS:
        return False
    if kind == "comment":
        return not re.match(r"[=*-]{3}", line)
    return _is_prose(before) and _is_prose(line)


def _is_statement(line: str) -> bool:
    """Whether a line is a statement of a program rather than prose that starts with such a word."""
    first = line.split()[0].strip(":")
    return first in _KEYWORDS and (line.endswith(":") or first in _KEYWORDS_ALONE or "(" in line)


def _is_prose(line: str) -> bool:
    words = line.split()
    return (
        not _is_statement(line)
        and "=" not in words
        and sum(not _is_code(w) for w in words) >= 0.85 * len(words)
    )


def _is_code(word: str) -> bool:
    """Whether a word is program text rather than prose or a value."""
    if re.fullmatch(r"[(\[{]*([\"'])[^\"']*\1[)\]}]*,", word):
        return True
    bare = word.strip("\"'`([{<,.;:!?>}])")
    if not bare or "://" in bare:
        return word[:1] in "([{" and word[-1:] not in ")]}"
    if bare in ("=", "->", "=>", "→", "-", "—", "–", "==", "+", "%"):
        return bare in ("==", "+", "%")
    return bool(re.search(r"[()\[\]{}<>\\|;=]|_|:[\"']", bare)) or bool(re.search(r"[(\[{]", word[1:-1]))


def _clause(line: str, start: int, end: int) -> str:
    """The part of a line around [start, end) that belongs together: inside quotes, without program text."""
    line, start, end = _inside_quotes(line, start, end)
    left, right = 0, len(line)
    for word in re.finditer(r"\S+", line):
        if word.end() <= start and _is_code(word.group()):
            left = word.end()
        elif (
            word.end() <= start
            and word.group().istitle()
            and word.group() != "May"
            and word.group().lower() in FUNCTION_WORDS
        ):
            left = word.start()  # "x = 0 The north archive ...": a sentence starts, without a mark before it
        elif word.start() >= end and _is_code(word.group()):
            right = word.start()
            break
    return line[left:right]


def _inside_quotes(line: str, start: int, end: int) -> tuple[str, int, int]:
    """Clipped to the string literal around [start, end), if that holds a phrase rather than a name."""
    opens = re.compile(r"(?<!\w)[\"'](?=\S)")  # not the end of a word: `strict' argument`
    opened: re.Match[str] | None = None
    for mark in re.finditer(r"(?<!\\)(?:(?<!\w)[\"']|[\"'](?!\w))", line):
        if mark.start() >= start and opened is None:
            break
        if opened is None:
            opened = mark if opens.match(line, mark.start()) else None
        elif mark.group() == opened.group():
            inner = line[opened.end() : mark.start()]
            if mark.start() >= end and len(inner.split()) >= 4 and len(content_words(inner)) >= 2:
                return inner, start - opened.end(), end - opened.end()
            opened = None
    return line, start, end
