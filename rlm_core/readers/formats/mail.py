"""Messages (.eml): the main headers, decoded, then the text; attachments become documents of their own.

Of a text in two forms the plain one is taken, else the HTML one without its markup. A message inside the
message follows in its place. Source: RFC 5322, RFC 2045 to 2047, RFC 2231.
"""

from __future__ import annotations

import email
import email.errors
import email.header
import email.policy
from collections.abc import Iterator
from email.message import Message
from typing import Any, Final

from rlm_core.charsets import guess_encoding
from rlm_core.readers.formats.attachments import Attachments
from rlm_core.readers.formats.html import decode, visible_text
from rlm_core.readers.output import Output, Unreadable

_MOST_BYTES: Final = 256 << 20
_MOST_DEPTH: Final = 20  # parts in parts
_MOST_PARTS: Final = 10_000
_HEADERS: Final = ("From", "To", "Cc", "Subject", "Date")
_HEADER_CHARS: Final = 10_000
_EXTENSIONS: Final = {
    "text/calendar": ".ics",
    "text/csv": ".csv",
    "application/pdf": ".pdf",
    "text/xml": ".xml",
}


def read(path: str, out: Output) -> None:
    """Read the message at `path` into `out`; see `rlm_core.readers.output`."""
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise Unreadable(f"a message of more than {_MOST_BYTES >> 20} MB: save its attachments and add those")
    message = email.message_from_bytes(data, policy=email.policy.compat32)
    del data
    reading = _Reading(out)
    text = "".join(reading.message(message))
    if not text.strip():
        raise Unreadable("a message without headers and text")
    out.write(text)
    reading.finish()


class _Reading:
    """One message with everything in it."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._attachments = Attachments(out)
        self._names: list[str] = []
        self._parts = 0
        self._pictures = 0
        self._lies: list[str] = []
        self._left = 0

    def message(self, message: Any, depth: int = 0) -> Iterator[str]:
        """The text of a message: headers, an empty line, what it says, and the names of what is attached."""
        for name in _HEADERS:
            values = [_header(value) for value in message.get_all(name, [])]
            yield from (f"{name}: {value}\n" for value in values[:1] if value)
        names, self._names = self._names, []
        body = "".join(self._part(message, depth))
        if body:
            yield f"\n{body}" if body.endswith("\n") else f"\n{body}\n"
        if self._names:
            yield f"\nAttachments: {', '.join(self._names)}\n"
        self._names = names

    def _part(self, part: Any, depth: int) -> Iterator[str]:
        self._parts += 1
        if depth > _MOST_DEPTH or self._parts > _MOST_PARTS:
            self._left += 1
            return
        kind = part.get_content_type()
        if kind == "message/rfc822" and part.is_multipart():
            yield "\n---- Message in the message ----\n"
            for inner in part.get_payload():
                yield from self.message(inner, depth + 1)
        elif kind == "multipart/alternative" and part.is_multipart():
            yield from self._alternative(part.get_payload(), depth)
        elif part.is_multipart():
            for inner in part.get_payload():
                yield from self._part(inner, depth + 1)
        elif _is_attached(part):
            self._attach(part, kind)
        elif kind == "text/html":
            yield _ended(visible_text(self._decoded(part, html=True)))
        elif kind.startswith("image/"):
            self._pictures += 1
        else:
            yield _ended(self._decoded(part).replace("\r\n", "\n"))

    def _alternative(self, parts: list[Any], depth: int) -> Iterator[str]:
        """The plain form if it says anything, else the first that does; files in any of them are taken."""
        plain_first = sorted(parts, key=lambda part: part.get_content_type() != "text/plain")
        said = False
        for part in plain_first:
            if part.is_multipart() or _is_attached(part) or not said:
                text = "".join(self._part(part, depth + 1))
                if text.strip() and not said:
                    said = True
                    yield text

    def _attach(self, part: Any, kind: str) -> None:
        number = len(self._names) + 1
        name = _file_name(part) or f"attachment {number}{_EXTENSIONS.get(kind, '')}"
        self._names.append(name)
        self._attachments.add(name, _payload(part))

    def _decoded(self, part: Any, html: bool = False) -> str:
        """The text of a part: as it declares, or as it is where that is not true."""
        data = _payload(part)
        declared = _charset(part)
        if declared:
            try:
                text = data.decode(declared)
                return text if isinstance(text, str) else ""
            except (UnicodeDecodeError, LookupError, ValueError):
                pass
        if html:
            text, _ = decode(data)
            return text
        try:
            text, codec = data.decode("utf-8"), "utf-8"
        except UnicodeDecodeError:
            codec = guess_encoding(data[: 1 << 16])
            text = data.decode(codec, "replace")
        if not data.isascii():
            self._lies.append(f"declares {declared or 'no charset'}, read as {codec}")
        return text

    def finish(self) -> None:
        """Say what was guessed and what is missing."""
        for lie in dict.fromkeys(self._lies):
            self._out.remark(f"a part {lie}")
        if self._pictures:
            pictures = "1 picture" if self._pictures == 1 else f"{self._pictures:,} pictures"
            self._out.remark(f"{pictures} in the text not read")
        if self._left:
            self._out.remark(f"{self._left:,} parts are nested too deeply or too many: not read")
        self._attachments.finish()


def _is_attached(part: Message) -> bool:
    """Whether a part is a file beside the text: it says so, has a name, or is neither text nor a picture."""
    disposition = (part.get_content_disposition() or "").lower()
    kind = part.get_content_type()
    if disposition == "attachment":
        return True
    if kind.startswith("image/"):
        return disposition != "inline" and not part.get("Content-ID") and bool(_file_name(part))
    return bool(_file_name(part)) or kind not in ("text/plain", "text/html")


def _payload(part: Any) -> bytes:
    """The bytes of a part; what is not valid in its transfer encoding stays as it is."""
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _charset(part: Any) -> str:
    """The charset that a part declares, in small letters; "" for none."""
    try:
        return str(part.get_content_charset() or "")
    except (LookupError, ValueError):
        return ""


def _file_name(part: Any) -> str:
    try:
        name = part.get_filename()
    except (LookupError, ValueError, TypeError):
        return ""
    return _header(name) if name else ""


def _header(value: Any) -> str:
    """A header as one line, its encoded words decoded; what cannot be decoded stays as it stands."""
    raw = str(value)[:_HEADER_CHARS]
    try:
        pieces = email.header.decode_header(value if isinstance(value, email.header.Header) else raw)
    except (email.errors.HeaderParseError, ValueError):
        pieces = [(raw, None)]
    text = "".join(piece if isinstance(piece, str) else _word(piece, charset) for piece, charset in pieces)
    return " ".join(text.split())


def _word(data: bytes, charset: str | None) -> str:
    """One piece of a header: by its charset, as UTF-8, or by a guess."""
    if charset == "unknown-8bit":
        charset = None
    for codec in (charset, "utf-8"):
        if codec:
            try:
                text = data.decode(codec)
            except (UnicodeDecodeError, LookupError, ValueError):
                continue
            return text if isinstance(text, str) else ""
    return data.decode(guess_encoding(data), "replace")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
