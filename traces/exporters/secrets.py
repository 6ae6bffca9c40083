"""Strings that look like keys, taken out of texts that leave the record.

By form alone: a key that looks like any other word stays. The forms are those that issuers publish for
scanners (GitHub's secret scanning patterns, gitleaks), and values that a text itself calls a key or password.
What comes before a dot or a digit is bounded in every form: texts are untrusted, and a search must not be
quadratic in their length.
"""

from __future__ import annotations

import re
from typing import Final

REDACTED: Final = "[redacted]"
_FORMS: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\b(?:sk|pk|rk)[-_](?=[A-Za-z_-]{0,200}\d)[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}|\bglpat-[\w-]{20,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{35}|\bya29\.[\w-]{20,}"
    r"|\bxox[abeoprs]-[\w-]{10,}|\bhf_[A-Za-z0-9]{30,}|\bgsk_[A-Za-z0-9]{30,}|\bnpm_[A-Za-z0-9]{36}"
    r"|\beyJ[\w-]{10,600}\.eyJ[\w-]{10,}\.[\w-]{10,}",
    re.DOTALL,
)
_NAMED: Final = re.compile(
    r"(?i)((?:api[_-]?key|secret|passw(?:or)?d|access[_-]?token|auth[_-]?token)[\w-]{0,60}"
    r"\\{0,3}[\"']?\s{0,20}[:=]\s{0,20}\\{0,3}[\"']?|\bbearer\s{1,20})"
    r"(?=[\w./+=~-]{0,200}\d)(?=[\w./+=~-]{0,200}[A-Za-z])([\w./+=~-]{16,})"
)
#: What a key of such a form holds; looking for these is a hundred times faster, and most texts hold none.
_FORM_SIGNS: Final = (
    *("sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    *("glpat-", "AKIA", "ASIA", "AIza", "ya29.", "xox", "hf_", "gsk_", "npm_", "eyJ", "PRIVATE KEY"),
)
_NAME_SIGNS: Final = ("apikey", "api_key", "api-key", "secret", "passw", "token", "bearer")


def redacted(text: str) -> tuple[str, int]:
    """The text with `REDACTED` in place of what looks like a key, and in how many places."""
    forms = named = 0
    if any(sign in text for sign in _FORM_SIGNS):
        text, forms = _FORMS.subn(REDACTED, text)
    folded = text.casefold()
    if any(sign in folded for sign in _NAME_SIGNS):
        text, named = _NAMED.subn(rf"\g<1>{REDACTED}", text)
    return text, forms + named
