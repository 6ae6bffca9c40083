"""Strings that look like keys, taken out of texts that leave the record.

By form alone: a key that looks like any other word stays. The forms are those that issuers publish for
scanners (GitHub's secret scanning patterns, gitleaks), and values that a text itself calls a key or password.
"""

from __future__ import annotations

import re
from typing import Final

REDACTED: Final = "[redacted]"
_FORMS: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}|\bglpat-[\w-]{20,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{35}|\bya29\.[\w-]{20,}"
    r"|\bxox[abeoprs]-[\w-]{10,}|\bhf_[A-Za-z0-9]{30,}|\bgsk_[A-Za-z0-9]{30,}|\bnpm_[A-Za-z0-9]{36}"
    r"|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
    re.DOTALL,
)
_NAMED: Final = re.compile(
    r"(?i)(\b[\w-]*(?:api[_-]?key|secret|passw(?:or)?d|access[_-]?token|auth[_-]?token)[\w-]*"
    r"[\"']?\s*[:=]\s*[\"']?|\bbearer\s+)(?=[\w./+=~-]*\d)(?=[\w./+=~-]*[A-Za-z])([\w./+=~-]{16,})"
)


def redacted(text: str) -> tuple[str, int]:
    """The text with `REDACTED` in place of what looks like a key, and in how many places."""
    text, forms = _FORMS.subn(REDACTED, text)
    text, named = _NAMED.subn(rf"\g<1>{REDACTED}", text)
    return text, forms + named
