"""Untrusted text (from models, corpora, errors) made safe to show: on a terminal, in a report.

A terminal obeys escape sequences wherever they come from, and every reader bidirectional marks. Everything
that is not plain printable text is therefore shown as a visible stand-in; nothing is dropped.
"""

from __future__ import annotations

import re
from typing import Final

# C0 and C1 controls, direction marks, invisible characters that can hide or reorder text, separators that act
# as line breaks, tag characters, lone surrogates. Joiners (U+200C, U+200D) stay: scripts and emoji need them.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def _stand_in(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def block(text: str) -> str:
    """Text over several lines: line feeds and tabs stay, all else that a terminal obeys becomes visible."""
    return _UNSAFE.sub(lambda match: match[0] if match[0] in "\n\t" else _stand_in(match), text)


def line(text: object) -> str:
    """Text on one line: white space becomes one blank, all else that a terminal obeys becomes visible."""
    return _UNSAFE.sub(_stand_in, " ".join(str(text).split()))
