"""What kind of text a reply of a sub-call is: its form, whether it declines, which numbers it names.

Pure functions of untrusted text, by rules of spelling alone: they read no meaning. Languages of the phrases:
English, Spanish, Portuguese, French and German.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from rlm_core.normalise import normalise

ReadAs = Literal["number", "number in other words", "digits", "json"]
NUMBER: Final = "a number"  # a form
_LOOKED_AT: Final = 400  # characters: who declines says so at the beginning
_LABEL_CHARS: Final = 40
_LABEL_WORDS: Final = 3
_JSON_CHARS: Final = 100_000
_KEYS: Final = 8  # of a JSON object that are named
_FENCE: Final = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_PLAIN_NUMBER: Final = re.compile(r"[-+~≈$€£]?\s*\d[\d.,]*\s*%?")
_LIST_MARK: Final = re.compile(r"^[^\S\n]*\d+[.)]\s", re.MULTILINE)
_MEASURE: Final = re.compile(r"[^\w]*\d[\d.,]*-?[^\W\d]+")  # 10-year, 30km, $5m
_DATE: Final = re.compile(r"\d+(?:[-/:]\d+)+")
_AROUND: Final = ".,;:!?()[]{}<>|\"'`*_“”‘’«»"
_CODE_CHARS: Final = (4, 80)
_NAME: Final = re.compile(r"[^\W\d_][^\W\d_]{2,}(?:[-'’][^\W\d_]+)*")
_ENDS: Final = (".", "!", "?", ":", "\u2022")  # after these a word is written large for its place
_CLOSING: Final = tuple(".!?…:;)]}>\"'`”’»|*_-")
_WORDS_CHARS: Final = 60  # shorter replies need no end
_MOST_VALUES: Final = 200  # of one reply: each may have to be looked for in the whole prompt
_TELLING_DIGITS: Final = 3  # a number of fewer digits may be counted, ranked or guessed from anywhere
_DECLINED: Final = re.compile(
    r"\b(?:i(?: a|['’])m (?:sorry|unable|not able)|i (?:can ?not|can['’]t|could not|couldn['’]t|won['’]t) "
    r"|as an ai\b|i do(?: not|n['’]t) have (?:access|enough|any information)|unable to (?:answer|determine)"
    r"|lo siento|no puedo |desculpe|não posso |je suis désolé|je ne peux pas|es tut mir leid|ich kann nicht)"
)
_NOTHING: Final = re.compile(
    r"^\W*(?:not (?:found|mentioned|stated|specified|given|available|applicable)|n/a|none|null|unknown"
    r"|no (?:information|answer|mention|data|relevant)|nothing|no se (?:encontr|mencion)|no encontrad"
    r"|não (?:encontrad|mencionad|consta)|ninguno|nenhum|pas (?:trouvé|mentionné)|nicht (?:gefunden|erwähnt))"
)


def declines(text: str) -> bool:
    """Whether a reply begins as refusals and apologies do ("I'm sorry, but I cannot ...")."""
    return _DECLINED.search(normalise(text[:_LOOKED_AT])) is not None


def found_nothing(text: str) -> bool:
    """Whether a reply begins by saying that there is nothing ("not found", "N/A", "no information ...")."""
    return _NOTHING.search(normalise(text[:_LOOKED_AT])) is not None


def form(text: str) -> str:
    """The form of a reply in words: `a number`, `a word or two`, `a JSON list`, `a JSON object with the keys
    ...` or `running text`. The names of keys are the model's.
    """
    bare = text.strip()
    fenced = _FENCE.fullmatch(bare)
    inner = fenced[1].strip() if fenced else bare
    if inner[:1] in ("{", "[") and len(inner) <= _JSON_CHARS:
        return _json_form(inner) or "running text"
    if _PLAIN_NUMBER.fullmatch(bare[:_LABEL_CHARS]) and len(bare) <= _LABEL_CHARS:
        return NUMBER
    if is_label(bare):
        return "a word or two"
    return "running text"


def is_label(text: str) -> bool:
    """Whether a text is a word or two, as the name of a class is."""
    bare = text.strip()
    return 0 < len(bare) <= _LABEL_CHARS and "\n" not in bare and len(bare.split()) <= _LABEL_WORDS


def _json_form(text: str) -> str | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list):
        return "a JSON list"
    if not value:
        return "an empty JSON object"
    keys = sorted(value)
    more = f" and {len(keys) - _KEYS} more" if len(keys) > _KEYS else ""
    return "a JSON object with the keys " + ", ".join(key[:_LABEL_CHARS] for key in keys[:_KEYS]) + more


def named_values(text: str) -> dict[str, str]:
    """The numbers, dates and codes (`PRV-65`) in a text by their comparable form, as they are written there.
    The numbers of a numbered list are none. Of very many only the first are taken.
    """
    found: dict[str, str] = {}
    for part in _LIST_MARK.sub("", text).split():
        if len(found) >= _MOST_VALUES:
            break
        word = part.strip(_AROUND)
        if _is_code(word):
            found[word.casefold()] = word
        else:
            found |= {_comparable(written): written for written in _NUMBER.findall(word)}
    return found


def names_in(text: str) -> dict[str, str]:
    """The words of a text that are written as names are (`Liberec`), by their comparable form. The first word
    of a sentence is none, unless the text is only a word or two.
    """
    found: dict[str, str] = {}
    start = not is_label(text)
    for part in text.split():
        word = part.strip(_AROUND)
        if not start and word[:1].isupper() and word[1:].islower() and _NAME.fullmatch(word):
            found[word.casefold()] = word
            if len(found) >= _MOST_VALUES:
                break
        start = part.endswith(_ENDS) or not part.strip(_AROUND + "-")
    return found


def is_closed(text: str) -> bool:
    """Whether a text ends with a mark that closes something, or has only a few words, which need none."""
    bare = text.rstrip()
    return len(bare) <= _WORDS_CHARS or bare.endswith(_CLOSING)


def can_be_read(text: str) -> frozenset[ReadAs]:
    """What program code can read a text as: `int` or `float` as it stands, the same once commas, signs of
    currencies and white space are gone, a search for digits, `json.loads`.
    """
    found: set[ReadAs] = set()
    bare = text.strip()
    if any(map(str.isdigit, bare)):
        found.add("digits")
    if len(bare) <= _LABEL_CHARS and _is_float(bare):
        found |= {"number", "number in other words"}
    elif len(bare) <= _LABEL_CHARS and _PLAIN_NUMBER.fullmatch(bare):
        found.add("number in other words")
    if 0 < len(bare) <= _JSON_CHARS and _is_json(bare):
        found.add("json")
    return frozenset(found)


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def one_digit_away(written: str, source: str) -> str | None:
    """The number of a source, as it is written there, that differs from another one in one digit, one digit
    more or less, or two digits in the wrong order; None when there is no such number of two digits or more.
    """
    digits = _comparable(written)
    if len(digits) < 2:
        return None
    return next((other for other in _NUMBER.findall(source) if _slip(digits, _comparable(other))), None)


def _slip(one: str, other: str) -> bool:
    """Whether two numbers in comparable form are one slip of the pen apart."""
    if abs(len(one) - len(other)) > 1 or min(len(one), len(other)) < 2 or one == other:
        return False
    start = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if start is None:
        return True
    a, b = one[start:], other[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def is_telling(value: str) -> bool:
    """Whether a value in comparable form hardly stands in a text by chance: a number of three digits or more,
    or a code with letters. (A date may be the source's, written in another way.)
    """
    digits = value.replace(".", "")
    return len(digits) >= _TELLING_DIGITS if digits.isdigit() else any(c.isalpha() for c in value)


def unfounded(values: Mapping[str, str], source: str) -> dict[str, str]:
    """Those of the values of `named_values` that stand nowhere in a source."""
    known = {_comparable(written) for written in _NUMBER.findall(source)} | set(_runs(source))
    missing = {value: written for value, written in values.items() if value not in known}
    if not any(map(_is_code, missing.values())):
        return missing
    folded = source.casefold()
    return {value: written for value, written in missing.items() if value not in folded}


def _is_code(word: str) -> bool:
    if not _CODE_CHARS[0] <= len(word) <= _CODE_CHARS[1]:
        return False
    digits = sum(c.isdigit() for c in word)
    lettered = 0 < digits < len(word) - 1 and any(c.isalpha() for c in word)
    return (lettered and _MEASURE.fullmatch(word) is None) or _DATE.fullmatch(word) is not None


def _runs(text: str) -> Iterator[str]:
    """Every run of digits by itself: `2024.05.01` is also 2024, 5 and 1."""
    for digits in re.findall(r"\d+", text):
        yield digits.lstrip("0") or "0"


def _comparable(written: str) -> str:
    """`1,234.50`, `1.234,50` and `1234.5` are one number: a separator before one or two last digits is the
    decimal one, all others are dropped.
    """
    whole, mark, last = written, "", ""
    for place in (len(written) - 2, len(written) - 3):
        if place > 0 and written[place] in ".,":
            whole, mark, last = written[:place], ".", written[place + 1 :].rstrip("0")
            break
    digits = re.sub(r"\D", "", whole).lstrip("0") or "0"
    return digits + (mark + last if last else "")
