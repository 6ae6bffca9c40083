"""What kind of file it is: by its content first, by its name second.

Nothing is parsed here: a few bytes at the beginning (and, in zip archives and old Office files, the names in
their tables of contents) are compared.
"""

from __future__ import annotations

import codecs
import os
import re
from dataclasses import dataclass
from typing import BinaryIO, Final

from rlm_core.readers.output import Unreadable
from rlm_core.readers.reading import TEXT_READER

VERSIONS: Final = {
    "pdf": 1, "docx": 1, "pptx": 1, "sheets": 1, "parquet": 1, "html": 1, "mail": 1, "image": 1,
}  # fmt: skip
"""Reader -> version, part of every corpus id with such a document: raise it when it reads differently."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file. `reader` is the module that reads it; `suffixes` are the usual ends of its name."""

    reader: str
    title: str
    media_type: str
    suffixes: tuple[str, ...]

    @property
    def is_archive(self) -> bool:
        """Whether it is read for what it contains, and is no document itself."""
        return self.reader in ARCHIVES

    @property
    def is_stream(self) -> bool:
        """Whether it is one compressed file, which keeps its own name."""
        return self.reader in STREAMS


STREAMS: Final = frozenset({"gzip", "bzip2", "xz"})
ARCHIVES: Final = STREAMS | {"zip", "tar"}
TEXT: Final = Kind(TEXT_READER, "plain text", "text/plain", ())
_KINDS: Final = {
    kind.reader: kind
    for kind in (
        Kind("pdf", "a PDF document", "application/pdf", (".pdf",)),
        Kind(
            "docx", "a Word document",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            (".docx", ".docm", ".dotx", ".dotm"),
        ),
        Kind(
            "pptx", "a presentation",
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            (".pptx", ".pptm", ".ppsx", ".potx"),
        ),
        Kind(
            "sheets", "a workbook", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".xltx"),
        ),
        Kind("parquet", "a Parquet file", "application/vnd.apache.parquet", (".parquet", ".pq")),
        Kind("html", "an HTML page", "text/html", (".html", ".htm", ".xhtml")),
        Kind("mail", "an e-mail", "message/rfc822", (".eml",)),
        Kind("image", "an image", "image/png", (".png", ".jpg", ".jpeg", ".jpe", ".webp", ".gif")),
        Kind("zip", "a zip archive", "application/zip", (".zip",)),
        Kind("tar", "a tar archive", "application/x-tar", (".tar",)),
        Kind("gzip", "a gzip file", "application/gzip", (".gz", ".tgz")),
        Kind("bzip2", "a bzip2 file", "application/x-bzip2", (".bz2", ".tbz2", ".tbz")),
        Kind("xz", "an xz file", "application/x-xz", (".xz", ".txz")),
    )
}  # fmt: skip

_CONVERT: Final = "not read: convert it to text and add that"
_UNPACK: Final = "not read: unpack it and add the folder"
_EXPORT: Final = "not read: export it as CSV and add that"
_SAVE: Final = "not read: save it in the present format and add that"
_PNG: Final = "not read: save it as PNG or JPEG and add that"
_NO_TEXT: Final = "there is no text in it to read"
_SIGNATURES: Final = (
    (b"%PDF-", "pdf"),
    (b"PAR1", "parquet"),
    (b"PK\x05\x06", "zip"),
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x89PNG\r\n\x1a\n", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"GIF87a", "image"),
    (b"GIF89a", "image"),
)
_NOT_READ: Final = (
    (b"\x28\xb5\x2f\xfd", "a zstd file", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"Rar!\x1a\x07", "a rar archive", _UNPACK),
    (b"PK\x07\x08", "a zip archive in parts", _UNPACK),
    (b"PARE", "an encrypted Parquet file", _EXPORT),
    (b"SQLite format 3\x00", "an SQLite database", _EXPORT),
    (b"{\\rtf", "an RTF document", _CONVERT),
    (b"II*\0", "a TIFF image", _PNG),
    (b"MM\0*", "a TIFF image", _PNG),
    (b"\x7fELF", "a program (ELF)", _NO_TEXT),
)
_WEBP: Final = re.compile(rb"RIFF.{4}WEBPVP8[ LX]", re.DOTALL)
_BZIP2: Final = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")
_ZIP: Final = b"PK\x03\x04"
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PDF_WITHIN: Final = 1024  # readers of PDF accept that much before the header
_TAR_AT: Final = 257
_DIRECTORY: Final = 1 << 20  # of a zip archive, at its end: enough for thousands of names
_ENTRY: Final = re.compile(rb"PK\x01\x02.{42}(\[Content_Types\]\.xml|word/|ppt/|xl/)", re.DOTALL)
_OFFICE: Final = {b"word/": "docx", b"ppt/": "pptx", b"xl/": "sheets"}
_MIME_TYPE: Final = re.compile(rb".{26}\x08\0..mimetype(application/[\w.+-]+)", re.DOTALL)
_ODS: Final = b"application/vnd.oasis.opendocument.spreadsheet"
_OPEN: Final = {
    b"application/vnd.oasis.opendocument.text": "an OpenDocument text",
    b"application/vnd.oasis.opendocument.presentation": "an OpenDocument presentation",
    b"application/epub+zip": "an e-book",
}
_OLE_STREAMS: Final = (  # names in the directory of an old Office file, most telling first
    ("EncryptedPackage", "an encrypted Office document", "save it without the password and add that"),
    ("WordDocument", "an old Word document", _SAVE),
    ("PowerPoint Document", "an old presentation", _SAVE),
    ("__properties_version1.0", "an Outlook message", "not read: save it as .eml and add that"),
    ("Workbook", "sheets", ""),
    ("Book", "sheets", ""),
)
_PAGE: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html)[\s>]",
    re.IGNORECASE | re.DOTALL,
)
_HEADER: Final = re.compile(rb"(?:\xef\xbb\xbf)?(?:From [^\n]*\n)?[!-9;-~]+:[ \t]")
_SUFFIX_OF: Final = {suffix: kind for kind in _KINDS.values() for suffix in kind.suffixes}
_TEXT_SUFFIXES: Final = frozenset({".txt", ".text", ".csv", ".tsv", ".json", ".jsonl", ".md", ".log", ".xml"})
_OTHER_SUFFIXES: Final = frozenset({".doc", ".ppt", ".rtf"})
_MAY_BE_PAGES: Final = frozenset({"", ".txt", ".doc", ".ppt"})
_WIDE_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def recognise(file: BinaryIO, head: bytes, name: str) -> tuple[Kind, str | None]:
    """The kind of an open file with this beginning and name, and a remark where the name says otherwise.

    What is neither known here nor text by its content comes back as text. Raises `Unreadable` for what is
    known and cannot be read.
    """
    suffix = os.path.splitext(name)[1].lower()
    named = _SUFFIX_OF.get(suffix)
    kind = _by_content(file, head, suffix) or _by_markup(head, suffix) or TEXT
    if kind is named or not (named or suffix in _TEXT_SUFFIXES | _OTHER_SUFFIXES):
        return kind, None
    if kind is TEXT and suffix in _TEXT_SUFFIXES:
        return kind, None
    return kind, f"named {suffix}, but it is {kind.title}: read as that"


def _by_content(file: BinaryIO, head: bytes, suffix: str) -> Kind | None:
    for signature, reader in _SIGNATURES:
        if head.startswith(signature):
            return _KINDS[reader]
    if head.startswith(_ZIP):
        return _zip_kind(file, head, suffix)
    if head.startswith(_OLE):
        return _ole_kind(file)
    for signature, title, advice in _NOT_READ:
        if head.startswith(signature):
            raise Unreadable(f"{title}: {advice}")
    if _WEBP.match(head):
        return _KINDS["image"]
    if _BZIP2.match(head):
        return _KINDS["bzip2"]
    if head[_TAR_AT : _TAR_AT + 5] == b"ustar":
        return _KINDS["tar"]
    return _KINDS["pdf"] if suffix == ".pdf" and b"%PDF-" in head[:_PDF_WITHIN] else None


def _by_markup(head: bytes, suffix: str) -> Kind | None:
    """Text by its bytes that is more than that: a page whose markup is dropped, a message with attachments.

    Source and other files whose name says that they are text stay text, whatever they begin with.
    """
    named = _SUFFIX_OF.get(suffix)
    if named is _KINDS["html"]:
        return named if b"\0" not in head or head.startswith(_WIDE_MARKS) else None
    if named is _KINDS["mail"]:
        return named if _HEADER.match(head) else None
    may_be_page = named or suffix in _MAY_BE_PAGES
    return _KINDS["html"] if may_be_page and _PAGE.match(head) else None


def _zip_kind(file: BinaryIO, head: bytes, suffix: str) -> Kind:
    """A zip archive, or one of the document formats that are zip archives."""
    if mime := _MIME_TYPE.match(head):
        if mime[1].startswith(_ODS):
            return _KINDS["sheets"]
        for start, title in _OPEN.items():
            if mime[1].startswith(start):
                raise Unreadable(f"{title}: {_CONVERT}")
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _DIRECTORY))
    found = [match[1] for match in _ENTRY.finditer(file.read(_DIRECTORY))]
    readers = {_OFFICE[entry] for entry in found if entry in _OFFICE}
    if len(readers) == 1 and any(entry not in _OFFICE for entry in found):
        return _KINDS[readers.pop()]
    named = _SUFFIX_OF.get(suffix)
    if named is not None and named.reader in _OFFICE.values():
        raise Unreadable(f"damaged or cut off: named {suffix}, but there is no document in it")
    return _KINDS["zip"]


def _ole_kind(file: BinaryIO) -> Kind:
    """What an old Office file holds, by the names of its streams (UTF-16, at even offsets)."""
    file.seek(0)
    names = set()
    rest = b""
    while block := file.read(_DIRECTORY):
        piece = rest + block
        names |= {name for name, _, _ in _OLE_STREAMS if name.encode("utf-16-le") + b"\0\0" in piece}
        rest = piece[-64:]
    for name, title, advice in _OLE_STREAMS:
        if name in names:
            if title in _KINDS:
                return _KINDS[title]
            raise Unreadable(f"{title}: {advice}")
    raise Unreadable(f"an old Office document: {_SAVE}")
