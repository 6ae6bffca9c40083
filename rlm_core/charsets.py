"""Which encoding, when a file is not valid UTF-8 and has no byte order mark. Every answer here is a guess.

The general detector (charset-normalizer) is good at other scripts, but takes Western texts for Central
European ones ("não" becomes "năo"). So texts in Latin script are told apart here, by their letters.
Known to be guessed wrong: Hungarian (as cp1252), Icelandic (as cp1250), a few words of another script.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import Final

SAMPLE_BYTES: Final = 1 << 16
_LINE_BYTES: Final = 1 << 13
_FEW: Final = 4  # this few bytes above ASCII say nothing about another script
_ENOUGH: Final = 0.9  # share of plausible characters for a Latin code page
_BAD: Final = re.compile("[\udc80-\udcff]")
_CONTROL: Final = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
_HIGH_BYTES: Final = bytes(range(0x80, 0x100))
_MANY_NULS: Final = 16
_HIGH: Final = re.compile(rb"[\x80-\xff]")
_WORDS: Final = re.compile(rb"[A-Za-z\x80-\xff]+")
_RUNS: Final = re.compile(rb"[\x80-\xff]{3,}")
_ABOVE_ASCII: Final = re.compile(r"[^\x00-\x7f]")

_WESTERN: Final = "áéíóúñüçãõâêôàèìòùäöåøæëïîûßœªº"
_CENTRAL: Final = "áéíóúýčďěňřšťžůąćęłńśźżőűöüäôĺľŕăâîşţßđ"
_TURKISH: Final = "çğıöşüâîûİ"
# Several pages share their letters: the first one wins a tie, so the most used page stands first.
_LATIN_PAGES: Final = (
    ("cp1252", _WESTERN), ("cp1250", _CENTRAL), ("iso8859_2", _CENTRAL), ("cp1254", _TURKISH),
    ("cp850", _WESTERN), ("mac_roman", _WESTERN), ("latin-1", _WESTERN),
)  # fmt: skip
_PUNCTUATION: Final = frozenset("¿¡«»‘’“”„‚–—…•€£°§©®·´\xa0×±½¼²³")
_INSIDE_WORDS: Final = frozenset("’·–—\xad")
_OTHER_SCRIPTS: Final = [
    "cp1251", "koi8_r", "cp866", "cp1253", "cp1255", "cp1256",
    "cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1252", "cp1250",
]  # fmt: skip


class Survey:
    """What one pass over a file tells that is not valid UTF-8: how nearly it is, NULs, lines to judge by."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._good = 0
        self._bad = 0
        self._rest = b""
        self._lines: list[bytes] = []
        self._room = SAMPLE_BYTES
        self.nuls = 0

    def update(self, block: bytes) -> None:
        """The next bytes of the file."""
        self.nuls += block.count(b"\0")
        if not block.isascii() or self._decoder.getstate()[0]:
            text = self._decoder.decode(block)
            bad = len(_BAD.findall(text))
            self._bad += bad
            self._good += len(text) - len(text.encode("ascii", "ignore")) - bad
        if self._room > 0:
            *lines, rest = (self._rest + block).split(b"\n")
            self._rest = rest[:_LINE_BYTES]
            for line in lines:
                self._keep(line)

    def _keep(self, line: bytes) -> None:
        if not line.isascii() and self._room > 0:
            if len(line) > _LINE_BYTES:  # cut where no character of several bytes can be open
                line = line[:_LINE_BYTES].rstrip(_HIGH_BYTES) or line[:_LINE_BYTES]
            self._lines.append(line)
            self._room -= len(line)

    def sample(self) -> bytes:
        """Lines that hold bytes above ASCII, about 64 KB of them; to be asked for after the last block."""
        self._keep(self._rest)
        return b"\n".join(self._lines)

    @property
    def is_nearly_utf8(self) -> bool:
        """Whether as many characters are right as bytes are wrong: older encodings never get near that."""
        return self._good >= max(1, self._bad)


def guess_encoding(sample: bytes) -> str:
    """The most plausible codec for lines with bytes above ASCII; cp1252 if nothing speaks for another."""
    if _is_latin_script(sample):
        scores = [(_plausible(sample, codec, letters), codec) for codec, letters in _LATIN_PAGES]
        best, codec = max(scores, key=lambda score: score[0])  # max keeps the first of equals
        if best >= _ENOUGH:
            return codec
    from charset_normalizer import from_bytes

    match = from_bytes(sample, cp_isolation=_OTHER_SCRIPTS, preemptive_behaviour=False).best()
    return match.encoding if match is not None else "cp1252"


def utf16_without_mark(head: bytes) -> str | None:
    """utf-16-le or utf-16-be if this beginning of a file with NUL bytes reads as text that way, else None.

    In UTF-16 the NULs stand on one side of the pairs; where strings are merely separated by NULs, on both.
    """
    head = head[: len(head) // 2 * 2]
    little, big = head[1::2].count(0), head[::2].count(0)
    most = max(little, big)
    if min(little, big) * 4 > most or (most < _MANY_NULS and most * 4 < len(head)):
        return None
    codec = "utf-16-le" if little > big else "utf-16-be"
    try:
        text = codecs.getincrementaldecoder(codec)().decode(head)
    except UnicodeDecodeError:
        return None
    unassigned = sum(unicodedata.category(c) in ("Cn", "Co") for c in text)
    return None if _CONTROL.search(text) or unassigned * 100 > len(text) else codec


def _is_latin_script(sample: bytes) -> bool:
    """Whether bytes above ASCII stand as accents do: in words of ASCII letters, or not in long runs."""
    high = len(_HIGH.findall(sample))
    in_words = sum(len(word) for word in _WORDS.findall(sample) if not word.isascii())
    in_runs = sum(len(run) for run in _RUNS.findall(sample))
    return high < _FEW or in_words >= 2 * high or in_runs * 4 < high


def _plausible(sample: bytes, codec: str, letters: str) -> float:
    """The share of characters above ASCII that a text in the languages of this code page would hold."""
    try:
        text = sample.decode(codec)
    except UnicodeDecodeError:
        return 0.0
    allowed = frozenset(letters + letters.upper())
    found = list(_ABOVE_ASCII.finditer(text))
    good = sum(m[0] in allowed or _stands_as_punctuation(text, m.start()) for m in found)
    return good / max(1, len(found))


def _stands_as_punctuation(text: str, position: int) -> bool:
    """A sign such as ¿ or ³ is plausible beside a word, but not inside one."""
    if text[position] not in _PUNCTUATION:
        return False
    inside = text[position - 1 : position].isalpha() and text[position + 1 : position + 2].isalpha()
    return not inside or text[position] in _INSIDE_WORDS
