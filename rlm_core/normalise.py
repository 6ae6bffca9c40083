"""When two texts say the same: the normal form behind the frontier of a diff and the default comparison of
answers.
"""

from __future__ import annotations

import unicodedata


def normalise(text: str) -> str:
    """NFKC, casefold, white-space runs as one space, ends stripped, a final `.` or `!` dropped."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = " ".join(text.casefold().split())
    return text[:-1].rstrip() if text.endswith((".", "!")) else text
