"""Strings that look like keys, taken out of texts that leave the record.

By form alone: a key that looks like any other word stays. The forms are those that issuers publish for
scanners (GitHub's secret scanning patterns, gitleaks), and values that a text itself calls a key or password.
They are taken for keys when less of them is there than is issued: records cut texts off.
What comes before a dot or a digit is bounded in every form: texts are untrusted, and a search must not be
quadratic in their length.
"""

from __future__ import annotations

import re
from typing import Final

REDACTED: Final = "[redacted]"
#: Where a key can begin: not inside a word, but after an escape of a JSON string.
_EDGE: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4}))"
_DIGIT: Final = r"(?=[A-Za-z_-]{0,200}\d)"
_FORMS: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    rf"|{_EDGE}(?:(?:sk|pk|rk)[-_]{_DIGIT}[A-Za-z0-9_-]{{16,}}"
    rf"|(?:gh[pousr]_|hf_|gsk_|npm_){_DIGIT}[A-Za-z0-9]{{10,}}|(?:github_pat_|glpat-){_DIGIT}[\w-]{{10,}}"
    rf"|(?:AKIA|ASIA)[0-9A-Z]{{16}}\b|AIza[\w-]{{10,}}|ya29\.[\w-]{{10,}}|xox[abeoprs]-[\w-]{{10,}}"
    r"|eyJ[\w-]{10,600}\.eyJ[\w-]{10,}(?:\.[\w-]*)?)",
    re.DOTALL,
)
_NAME: Final = (
    r"(?:(?:api[_-]?key|secret|passw(?:or)?d|access[_-]?token|auth[_-]?token)[\w-]{0,60}"
    r"\\{0,3}[\"']?\s{0,20}[:=]\s{0,20}\\{0,3}[\"']?|\bbearer\s{1,20})"
)
_NAMED: Final = re.compile(
    rf"(?i)({_NAME})(?=[\w./+=~-]{{0,200}}\d)(?=[\w./+=~-]{{0,200}}[A-Za-z])([\w./+=~-]{{16,}})"
)
_BEGINS: Final = (
    r"(?:(?:sk|pk|rk)[-_]|gh[pousr]_|github_pat_|glpat-|AKIA|ASIA|AIza|ya29\.|xox[abeoprs]-|hf_|gsk_|npm_)"
)
#: A key cut in its middle, as Python's reprlib does it, or at its end in a row of `rlm.variables`.
_HALF: Final = re.compile(
    rf"{_EDGE}{_BEGINS}"
    rf"(?:{_DIGIT}[\w-]{{4,200}}(?:\.\.\.|…)[\w-]*|[\w-]{{4,200}}(?=\",\"(?:size|type)\":))"
)
#: The same at the end of a text that was cut off.
_AT_END: Final = re.compile(rf"({_EDGE}(?={_BEGINS})|(?i:{_NAME}))[\w./+=~-]{{4,200}}\Z")
#: What is left of a key behind the place where a value was cut in its middle.
_LEFT: Final = re.compile(rf"(?<=\.\.\.)(?=[\w.-]{{0,200}}[A-Za-z]){_DIGIT}[\w.-]{{16,}}")
_ROW: Final = '"preview":"'  # in the rows of `rlm.variables`
_BREAKS: Final = ("...", "…", _ROW)
#: What a key of such a form holds; looking for these is a hundred times faster, and most texts hold none.
_FORM_SIGNS: Final = (
    *("sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    *("glpat-", "AKIA", "ASIA", "AIza", "ya29.", "xox", "hf_", "gsk_", "npm_", "eyJ", "PRIVATE KEY"),
)
_NAME_SIGNS: Final = ("apikey", "api_key", "api-key", "secret", "passw", "token", "bearer")


def redacted(text: str, *, cut: bool = False) -> tuple[str, int]:
    """The text with `REDACTED` in place of what looks like a key, and in how many places. `cut`: its end may
    be missing, and with it that of a key.
    """
    places = 0
    formed = any(sign in text for sign in _FORM_SIGNS)
    broken = any(sign in text for sign in _BREAKS)
    if formed:
        if broken:
            text, places = _HALF.subn(REDACTED, text)
        text, more = _FORMS.subn(REDACTED, text)
        places += more
    folded = text.casefold()
    called = any(sign in folded for sign in _NAME_SIGNS)
    if called:
        text, more = _NAMED.subn(rf"\g<1>{REDACTED}", text)
        places += more
    if cut and (formed or called):
        text, more = _AT_END.subn(rf"\g<1>{REDACTED}", text)
        places += more
    if broken and (cut or _ROW in text):
        text, more = _LEFT.subn(REDACTED, text)
        places += more
    return text, places
