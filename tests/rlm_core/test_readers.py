"""Reading paths and files: what becomes a document, in which encoding, and what is named instead."""

from __future__ import annotations

import io
import os
import socket
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core.charsets import guess_encoding
from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError
from rlm_core.readers import Unreadable
from rlm_core.readers.dispatch import FileReader, Taken
from rlm_core.readers.reading import Reading
from rlm_core.readers.signatures import recognise
from rlm_core.readers.text import BLOCK, HEAD
from rlm_core.walk import Found, find_files

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ODT = b"PK\x03\x04" + b"\0" * 22 + b"\x08\0\0\0mimetypeapplication/vnd.oasis.opendocument.textPK"
SPANISH = "El año pasado la compañía pagó 1.200 €. ¿Cuándo será la próxima sesión? ¡Mañana!\n"
PORTUGUESE = "A administração não é responsável pelas informações; condições válidas até amanhã.\n"


def read_file(path: Path, texts: Path, encoding: str | None = None) -> Reading:
    """The reading of a text; raises `Unreadable` with the line for what is none."""
    reader = FileReader(texts, texts.parent / "work", encoding)
    found = Found(str(path), path.name, str(path))
    items = reader.read_text(found)
    if items is None:
        items = reader.read(found)
    [item] = items
    if isinstance(item, Taken):
        return item.reading
    raise Unreadable(item.message)


def read(
    tmp_path: Path, data: bytes, name: str = "file.txt", encoding: str | None = None
) -> tuple[Reading, str]:
    """Write, read, and return the reading with the canonical text."""
    path = tmp_path / name
    path.write_bytes(data)
    reading = read_file(path, tmp_path / "texts", encoding)
    canonical = path if reading.in_place else tmp_path / "texts" / f"{reading.measured.sha256}.txt"
    return reading, canonical.read_bytes().decode("utf-8")


def refusal(tmp_path: Path, data: bytes, name: str = "file.txt") -> str:
    with pytest.raises(Unreadable) as caught:
        read(tmp_path, data, name)
    return str(caught.value)


# -- encodings


def test_utf8_is_read_in_place_and_line_ends_are_kept(tmp_path: Path) -> None:
    text = "one\r\ntwo\nthree\rñ 漢 🙂"
    reading, canonical = read(tmp_path, text.encode())
    assert (reading.in_place, reading.encoding, reading.remarks, canonical) == (True, "utf-8", (), text)
    assert (reading.measured.chars, reading.measured.bytes) == (len(text), len(text.encode()))
    assert reading.mtime_ns == (tmp_path / "file.txt").stat().st_mtime_ns
    assert not (tmp_path / "texts").exists()


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8-sig", b""),
        ("utf-16-le", b"\xff\xfe"),
        ("utf-16-be", b"\xfe\xff"),
        ("utf-32-le", b"\xff\xfe\0\0"),
        ("utf-32-be", b"\0\0\xfe\xff"),
    ],
)
def test_byte_order_marks(tmp_path: Path, encoding: str, mark: bytes) -> None:
    text = "Año\r\n漢字 🙂\n"
    reading, canonical = read(tmp_path, mark + text.encode(encoding))
    assert (canonical, reading.encoding, reading.in_place, reading.remarks) == (text, encoding, False, ())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", [SPANISH, "hi", "合同可以提前三十天解除 2024\n第一条\n一二三 abc\n" * 20])
def test_utf16_without_a_mark(tmp_path: Path, encoding: str, text: str) -> None:
    reading, canonical = read(tmp_path, text.encode(encoding))
    assert (canonical, reading.encoding) == (text, encoding)
    assert reading.remarks == (f"read as {encoding} (guessed: no byte order mark)",)


def test_broken_utf16_shows_the_bad_place(tmp_path: Path) -> None:
    data = b"\xff\xfe" + "one\ntwo".encode("utf-16-le") + b"\x00\xd8" + "x\n".encode("utf-16-le")
    reading, canonical = read(tmp_path, data)
    assert canonical == "one\ntwo\ufffdx\n"
    assert reading.remarks == ("not valid utf-16-le: 1 bad place is shown as U+FFFD, the first in line 2",)


@pytest.mark.parametrize(
    "text", [SPANISH, PORTUGUESE, "Niño", "Nº 12: RESOLUÇÃO", "20 €", "l’été à Noël", "Größe"]
)
def test_western_texts_are_read_right(tmp_path: Path, text: str) -> None:
    reading, canonical = read(tmp_path, text.encode("cp1252"))
    assert (canonical, reading.encoding) == (text, "cp1252")
    assert reading.remarks == ("read as cp1252 (guessed)",)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (SPANISH.replace("€", "eur"), "cp850"),
        ("Zażółć gęślą jaźń. Umowa może być rozwiązana.", "cp1250"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "iso8859_2"),
        ("Sözleşme otuz gün önceden feshedilebilir. İyi günler, çok şık ağaç.", "cp1254"),
        ("Договор может быть расторгнут любой из сторон с уведомлением за тридцать дней.", "koi8_r"),
        ("契約は、いずれの当事者も三十日前の通知により解除することができる。", "cp932"),
        ("任何一方均可提前三十天通知解除合同。这是一个测试文件。", "gb18030"),
    ],
)
def test_other_old_encodings(tmp_path: Path, text: str, encoding: str) -> None:
    reading, canonical = read(tmp_path, text.encode(encoding))
    assert (canonical, reading.encoding) == (text, encoding)


def test_the_accent_may_come_late_in_a_large_file(tmp_path: Path) -> None:
    text = "plain line\n" * (BLOCK // 8) + PORTUGUESE
    assert read(tmp_path, text.encode("latin-1"))[1] == text


def test_bytes_that_no_page_knows_are_latin_1(tmp_path: Path) -> None:
    text = PORTUGUESE * 3 + SPANISH.replace("€", "\x81")
    reading, canonical = read(tmp_path, text.encode("latin-1"))
    assert (canonical, reading.encoding) == (text, "latin-1")
    assert reading.remarks == ("read as latin-1 (guessed)",)


def test_one_bad_byte_does_not_spoil_a_utf8_file(tmp_path: Path) -> None:
    good = SPANISH * 3000
    assert len(good.encode()) > 200_000
    data = good.encode() + b"bad \xff here\n" + good.encode()
    reading, canonical = read(tmp_path, data)
    assert canonical == good + "bad \ufffd here\n" + good
    assert reading.remarks == ("not valid utf-8: 1 bad place is shown as U+FFFD, the first in line 3,001",)
    assert reading.encoding == "utf-8"


def test_a_character_cut_off_at_the_end(tmp_path: Path) -> None:
    reading, canonical = read(tmp_path, SPANISH.encode() + "é".encode()[:1])
    assert canonical == SPANISH + "\ufffd"
    assert reading.remarks


@given(
    text=st.text(st.characters(codec="utf-8"), min_size=1),
    encoding=st.sampled_from(["utf-16", "utf-32", "utf-8-sig"]),
)
def test_marked_texts_round_trip(tmp_path_factory: Any, text: str, encoding: str) -> None:
    reading, canonical = read(tmp_path_factory.mktemp("marked"), text.encode(encoding))
    assert canonical == text
    assert reading.remarks == ()


@given(data=st.binary(min_size=1, max_size=300))
def test_any_bytes_are_read_or_named(tmp_path_factory: Any, data: bytes) -> None:
    try:
        reading, canonical = read(tmp_path_factory.mktemp("any"), data)
    except Unreadable as error:
        assert str(error) and "\n" not in str(error)
    else:
        assert len(canonical) == reading.measured.chars > 0


@given(sample=st.binary(max_size=200))
def test_a_guess_never_fails(sample: bytes) -> None:
    "".encode(guess_encoding(sample))


# -- what is not text


@pytest.mark.parametrize(
    ("data", "name", "says"),
    [
        (b"7z\xbc\xaf\x27\x1c....", "a.7z", "a 7z archive: not read: unpack it and add the folder"),
        (b"{\\rtf1 text}", "a.rtf", "an RTF document: not read: convert it to text and add that"),
        (b"PK\x03\x04....", "a.docx", "damaged or cut off: named .docx, but there is no document in it"),
        (OLE + b"\0" * 600 + "WordDocument".encode("utf-16-le") + b"\0\0", "a.doc", "an old Word document"),
        (
            OLE + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le") + b"\0\0",
            "a.docx",
            "an encrypted Office document: save it without the password",
        ),
        (ODT, "a.odt", "an OpenDocument text: not read: convert it to text and add that"),
        (bytes(range(256)) * 8, "a.pdf", "named .pdf, but it is a binary file (NUL bytes): there is no text"),
        (b"\x89PNG\r\n\x1a\n....", "a.png", "an image that is damaged or cut off"),
        (b"II*\0....", "a.tif", "a TIFF image: not read: save it as PNG or JPEG"),
        (b"\x7fELF\x02\x01", "program", "a program (ELF): there is no text in it"),
        (b"one\0two\0three\0", "list", "a binary file (NUL bytes)"),
        (bytes(range(256)) * 8, "data.bin", "a binary file (NUL bytes)"),
        (bytes(range(1, 256)) * 8, "data.bin", "a binary file"),
        (b"", "empty.txt", "an empty file"),
        (b"\xef\xbb\xbf", "mark.txt", "an empty file"),
    ],
)
def test_what_is_not_text_is_named(tmp_path: Path, data: bytes, name: str, says: str) -> None:
    assert refusal(tmp_path, data, name).startswith(says)


PAGE = b"<!-- made -->\n<!DOCTYPE html>\n<html><body>text</body></html>"
MAIL = b"From: a@example.org\nSubject: x\n\nbody\n"
XLS = OLE + b"\0" * 600 + "Workbook".encode("utf-16-le") + b"\0\0"
TAR = b"a.txt".ljust(257, b"\0") + b"ustar\x0000".ljust(255, b"\0")


def office(entry: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in ("[Content_Types].xml", "docProps/app.xml", entry):
            archive.writestr(name, "x")
    return data.getvalue()


@pytest.mark.parametrize(
    ("data", "name", "reader", "remark"),
    [
        (b"plain", "a.txt", "text", None),
        (b"plain", "README", "text", None),
        (b"plain", "a.pdf", "text", "named .pdf, but it is plain text: read as that"),
        (b"plain", "a.JPG", "text", "named .jpg, but it is plain text: read as that"),
        (b"%PDF-1.7", "a.pdf", "pdf", None),
        (b"%PDF-1.7", "a", "pdf", None),
        (b"%PDF-1.7", "a.txt", "pdf", "named .txt, but it is a PDF document: read as that"),
        (b"\n\nnoise%PDF-1.7", "a.pdf", "pdf", None),
        (b"see %PDF-1.7", "a.txt", "text", None),
        (office("word/document.xml"), "a.docx", "docx", None),
        (office("word/document2.xml"), "a.docm", "docx", None),
        (office("ppt/presentation.xml"), "a.pptx", "pptx", None),
        (office("xl/workbook.bin"), "a.xlsb", "sheets", None),
        (office("xl/workbook.xml"), "a.csv", "sheets", "named .csv, but it is a workbook: read as that"),
        (office("sub/word/document.xml"), "a.zip", "zip", None),
        (office("code.py"), "a.whl", "zip", None),
        (XLS, "a.xls", "sheets", None),
        (PAGE, "a.html", "html", None),
        (PAGE, "a.xls", "html", "named .xls, but it is an HTML page: read as that"),
        (PAGE, "a.txt", "html", "named .txt, but it is an HTML page: read as that"),
        (PAGE, "page", "html", None),
        (PAGE, "a.md", "text", None),
        (PAGE, "a.py", "text", None),
        (b"<p>part", "a.htm", "html", None),
        (b"<!--" * 16_000, "a", "text", None),
        (b"<!---->" * 9_000, "a", "text", None),
        (MAIL, "a.eml", "mail", None),
        (MAIL, "a.txt", "text", None),
        (b"no header", "a.eml", "text", "named .eml, but it is plain text: read as that"),
        (b"PAR1....", "a.parquet", "parquet", None),
        (TAR, "a.tar", "tar", None),
        (b"\x1f\x8b", "a.log.gz", "gzip", None),
        (b"BZh91AY&SY", "a.bz2", "bzip2", None),
        (b"BZhello", "a.txt", "text", None),
    ],
)
def test_kinds_by_content_first(data: bytes, name: str, reader: str, remark: str | None) -> None:
    kind, said = recognise(io.BytesIO(data), data[:HEAD], name)
    assert (kind.reader, said) == (reader, remark)


def test_a_program_behind_a_text_is_not_read_as_an_old_encoding(tmp_path: Path) -> None:
    assert "binary" in refusal(tmp_path, b"echo unpacking\n" * 9000 + bytes(range(256)) * 40, "setup.sh")


def test_nuls_late_in_a_text_are_kept_and_told(tmp_path: Path) -> None:
    reading, canonical = read(tmp_path, b"line\n" * 20_000 + b"\0\0end")
    assert canonical.endswith("line\n\0\0end")
    assert reading.remarks == ("holds 2 NUL characters",)


def test_an_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = os.open

    def guarded(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if str(path).endswith("secret.txt"):
            raise PermissionError(13, "Permission denied")
        return real_open(path, flags, *rest, **more)

    (tmp_path / "secret.txt").write_text("x")
    monkeypatch.setattr(os, "open", guarded)
    with pytest.raises(Unreadable, match="cannot be read .Permission denied.: check its permissions"):
        read_file(tmp_path / "secret.txt", tmp_path / "texts")


def test_a_vanished_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        read_file(tmp_path / "gone.txt", tmp_path / "texts")


def test_a_file_that_became_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Unreadable, match="no longer a file"):
        read_file(tmp_path / "pipe", tmp_path / "texts")


# -- finding files


def names(paths: list[Path]) -> tuple[list[str], dict[str, str]]:
    """Document names, and problems by the last part of their path."""
    found, problems = find_files(paths, Path("/nowhere"))
    assert all("\n" not in problem.path + problem.message for problem in problems)
    return [file.name for file in found], {Path(problem.path).name: problem.message for problem in problems}


def tree(root: Path, *files: str) -> Path:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}\n")
    return root


def test_folders_are_read_in_sorted_order(tmp_path: Path) -> None:
    tree(tmp_path, "b.txt", "a/z.txt", "a/b/c.txt", "c.md", "B.txt")
    assert names([tmp_path]) == (["B.txt", "a/b/c.txt", "a/z.txt", "b.txt", "c.md"], {})


def test_hidden_and_generated_entries_are_passed_over_and_counted(tmp_path: Path) -> None:
    root = tree(
        tmp_path / "src", ".git/HEAD", "a.py", "node_modules/x/y.js", "p/__pycache__/a.pyc", ".env",
        "env/pyvenv.cfg", "env/lib.py", "p/.cache/x",
    )  # fmt: skip
    found, problems = names([root])
    assert found == ["a.py"]
    assert problems["src"].startswith(
        "6 hidden or generated entries passed over (.env, .git, env, node_modules"
    )
    assert "and 1 more" in problems["src"]
    assert names([root / ".git"]) == (["HEAD"], {})


def test_links(tmp_path: Path) -> None:
    outside = tree(tmp_path / "outside", "o.txt")
    root = tree(tmp_path / "root", "a.txt", "sub/b.txt", ".data/hidden.txt")
    for link, target in {
        "leaves": outside, "leaves.txt": outside / "o.txt", "up": root,
        "loop": Path("loop"), "nothing": Path("gone"), "again.txt": Path("a.txt"),
        "in.txt": Path(".data/hidden.txt"), "in2.txt": Path(".data/hidden.txt"),
    }.items():  # fmt: skip
        (root / link).symlink_to(target)
    found, problems = names([root])
    assert found == ["a.txt", "in.txt", "sub/b.txt"]
    assert problems["leaves"] == problems["leaves.txt"]
    assert "leaves the folder, not followed" in problems["leaves"]
    assert problems["loop"] == "a link that leads back to itself"
    assert problems["nothing"] == "a link to nothing"
    assert problems["up"].startswith("a link to a folder, not followed")
    assert problems["again.txt"] == "a link to a.txt, read once under its own name"
    assert problems["in2.txt"] == "a link to hidden.txt, read once under its own name"


def test_a_link_that_was_given_is_followed(tmp_path: Path) -> None:
    tree(tmp_path / "real", "a.txt")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").symlink_to("real/a.txt")
    assert names([tmp_path / "link"]) == (["a.txt"], {})
    assert names([tmp_path / "file"]) == (["file"], {})


def test_special_files_are_named_and_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "a.txt")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        found, problems = names([tmp_path])
    assert found == ["a.txt"]
    assert problems["pipe"] == "a pipe, not a file: it is never opened"
    assert problems["socket"] == "a socket, not a file: it is never opened"
    assert "a pipe, not a file" in names([tmp_path / "pipe"])[1]["pipe"]
    assert "a device, not a file" in names([Path("/dev/null")])[1]["null"]


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "a.txt", "closed/b.txt", "z.txt")
    real_scandir = os.scandir

    def guarded(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return real_scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found, problems = names([tmp_path])
    assert found == ["a.txt", "z.txt"]
    assert problems["closed"] == "the folder cannot be listed (Permission denied): check its permissions"


def test_names_are_made_unique_by_parent_folders(tmp_path: Path) -> None:
    one = tree(tmp_path / "x/data", "readme.md", "only.txt")
    two = tree(tmp_path / "y/data", "readme.md")
    three = tree(tmp_path / "z", "readme.md")
    assert names([one, two, three])[0] == ["only.txt", "x/data/readme.md", "y/data/readme.md", "z/readme.md"]
    assert names([one / "readme.md", three / "readme.md"])[0] == ["data/readme.md", "z/readme.md"]


def test_a_file_given_twice_is_read_once(tmp_path: Path) -> None:
    tree(tmp_path, "a.txt", "sub/b.txt")
    found, problems = names([tmp_path, tmp_path / "sub", tmp_path / "a.txt"])
    assert found == ["a.txt", "sub/b.txt"]
    assert problems == {
        "sub": "1 file was given twice: read once",
        "a.txt": "1 file was given twice: read once",
    }


def test_names_that_are_no_utf8_or_hold_control_characters(tmp_path: Path) -> None:
    for name in (b"bad\xff.txt", b"bad\xfe.txt", b"two\nlines.txt"):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(name)
    found, _ = names([tmp_path])
    tails = [name.rsplit("/", 1)[-1] for name in found]
    assert tails == ["bad\ufffd.txt", "bad\ufffd.txt (2)", "two\\nlines.txt"]
    corpus = Corpus.add([tmp_path], tmp_path / "corpora")
    assert [document.in_place for document in corpus.documents] == [False, False, True]
    assert [d["path"].encode() and d["chars"] for d in corpus.worker_documents()] == [8, 8, 13]


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="nothing-here does not exist: check the path"):
        names([tree(tmp_path, "a.txt"), tmp_path / "nothing-here"])
    with pytest.raises(CorpusError, match="no file or folder was given"):
        names([])
