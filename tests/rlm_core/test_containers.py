"""Archives and compressed files: what is in them becomes documents, and what does not is named."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError
from rlm_core.readers import dispatch
from rlm_core.readers.archives import members, streams, tars, zips
from rlm_core.readers.output import StagedOutput, Unreadable

Read = Callable[..., tuple[dict[str, str], dict[str, str]]]
packed = partial(gzip.compress, mtime=0)  # with the time in it every process would name its tests differently


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Add one file beside a plain one; gives texts by document name and problems by path below the folder.

    Nothing may be left outside the folder of the corpus, nor anything unfinished in it.
    """

    def read(name: str, data: bytes, **more: Any) -> tuple[dict[str, str], dict[str, str]]:
        folder = tmp_path / "docs"
        folder.mkdir()
        (folder / name).write_bytes(data)
        (folder / "zz.txt").write_text("plain")
        before = {path for path in tmp_path.rglob("*")}
        corpus = Corpus.add([folder], tmp_path / "corpora", **more)
        new = {path for path in tmp_path.rglob("*") if path not in before}
        assert {path.relative_to(tmp_path).parts[0] for path in new} == {"corpora"}
        assert [path.name for path in (tmp_path / "corpora").iterdir()] == [corpus.corpus_id]
        texts = {d.name: corpus.text(d.number, 0, d.chars) for d in corpus.documents}
        assert texts.pop("zz.txt") == "plain"
        problems = {os.path.relpath(p.path, folder): p.message for p in corpus.problems}
        assert len(problems) == len(corpus.problems)
        assert all(message and "\n" not in message for message in problems.values())
        return texts, problems

    return read


def zipped(files: dict[str, bytes] | list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in files.items() if isinstance(files, dict) else files:
            archive.writestr(name, content)
    return data.getvalue()


def tarred(*infos: tuple[tarfile.TarInfo | str, bytes], mode: Any = "w") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as archive:
        for info, content in infos:
            entry = tarfile.TarInfo(info) if isinstance(info, str) else info
            if entry.isreg():
                entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return data.getvalue()


# -- what is read


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_members_of_a_zip_archive(read: Read, method: int) -> None:
    data = zipped(
        {"b/c.txt": "año".encode(), "a.csv": "x;ñ".encode("latin-1"), "d/": b"", "e.bin": b"\0\1", "f": b""},
        method,
    )
    assert read("pack.zip", data) == (
        {"pack.zip/b/c.txt": "año", "pack.zip/a.csv": "x;ñ"},
        {
            "pack.zip/e.bin": "a binary file (NUL bytes): there is no text in it to read",
            "pack.zip/f": "an empty file: nothing to read",
        },
    )


def test_documents_of_members_are_kept_under_our_own_names(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped({"x.md": b"# one", "y.csv": b"a,b\n"}))
    corpus = Corpus.add([tmp_path / "a.zip"], tmp_path / "corpora")
    assert [(d.media_type, d.table, d.in_place) for d in corpus.documents] == [
        ("text/markdown", "", False), ("text/csv", "csv", False),
    ]  # fmt: skip
    for document in corpus.documents:
        assert Path(document.path) == corpus.folder / "texts" / f"{document.sha256}.txt"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("app.log.gz", packed(b"one\n") + packed(b"two\n")),
        ("app.log.bz2", bz2.compress(b"one\n") + bz2.compress(b"two\n")),
        ("app.log.xz", lzma.compress(b"one\n") + lzma.compress(b"two\n")),
    ],
)
def test_a_compressed_file_keeps_its_name(read: Read, name: str, data: bytes) -> None:
    assert read(name, data) == ({name: "one\ntwo\n"}, {})


def test_the_kind_of_a_compressed_file_is_that_of_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(packed(b"a,b\n"))
    [document] = Corpus.add([tmp_path / "a.csv.gz"], tmp_path / "corpora").documents
    assert (document.name, document.media_type, document.table) == ("a.csv.gz", "text/csv", "csv")


@pytest.mark.parametrize(
    ("name", "mode"),
    [("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.tgz", "w:gz"), ("a.tar.bz2", "w:bz2"), ("a.tar.xz", "w:xz")],
)
def test_tar_archives(read: Read, name: str, mode: str) -> None:
    assert read(name, tarred(("b/c.txt", b"one"), ("d.txt", b"two"), mode=mode)) == (
        {f"{name}/b/c.txt": "one", f"{name}/d.txt": "two"}, {},
    )  # fmt: skip


def test_archives_in_archives_up_to_a_depth(read: Read) -> None:
    one = zipped({"a.txt": b"text", "b.txt.gz": packed(b"log")})
    two = zipped({"one.zip": one})
    texts, problems = read("three.zip", zipped({"two.zip": two, "one.zip": one}))
    assert texts == {"three.zip/one.zip/a.txt": "text", "three.zip/one.zip/b.txt.gz": "log"}
    assert problems == {
        "three.zip/two.zip/one.zip": "a zip archive inside 2 others: unpack it and add the folder"
    }


def test_a_gzip_file_in_a_gzip_file_is_named(read: Read) -> None:
    assert read("a.gz", packed(packed(b"x"))) == (
        {}, {"a.gz": "a gzip file in a compressed file: unpack it and add what is in it"},
    )  # fmt: skip


def test_an_encoding_that_was_given_holds_for_members(read: Read) -> None:
    data = zipped({"a.txt": "Straße".encode("cp850"), "b.txt": "Straße".encode()})
    assert read("a.zip", data, encoding="CP850")[0] == {"a.zip/a.txt": "Straße", "a.zip/b.txt": "Straße"}


def test_a_lying_name_is_read_as_what_it_is(read: Read) -> None:
    assert read("notes.txt", zipped({"a.txt": b"x"})) == (
        {"notes.txt/a.txt": "x"}, {"notes.txt": "named .txt, but it is a zip archive: read as that"},
    )  # fmt: skip


def test_a_text_named_like_an_archive_is_text(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_text("no archive")
    [document] = Corpus.add([tmp_path / "a.zip"], tmp_path / "corpora").documents
    assert document.problems == ("named .zip, but it is plain text: read as that",)


def test_names_from_other_systems(read: Read) -> None:
    data = zipped({"dir\\win.txt": b"1", "n\xe4me.txt": b"2"})
    # a name in UTF-8 that does not say so, as many programs write it
    data = data.replace(b"dir/win", b"dir\\win").replace("näme".encode(), "ä".encode() + b"xyz")
    assert list(read("a.zip", data)[0]) == ["a.zip/dir/win.txt", "a.zip/äxyz.txt"]


# -- what is named instead


def test_names_that_lead_out_and_names_twice(read: Read) -> None:
    files = [
        (name, b"x") for name in ("../up.txt", "/abs.txt", "a/../../b.txt", "C:\\x.txt", "\\\\host\\y.txt")
    ]
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = zipped([*files, ("ok.txt", b"first"), ("ok.txt", b"second"), ("k.txt", b"\x1b[2J")])
    texts, problems = read("a.zip", data)
    assert texts == {"a.zip/ok.txt": "first", "a.zip/k.txt": "\x1b[2J"}
    assert set(problems.values()) == {
        "a name that leads out of the archive: not read",
        "a second file of this name in the archive: only the first is read",
    }
    assert len(problems) == 6


def test_names_that_cannot_be_shown(read: Read) -> None:
    texts, problems = read("a.zip", zipped({"a\nb.txt": b"x", "\x1b]0;t.txt": b"y"}))
    assert (list(texts), problems) == (["a.zip/a\\nb.txt", "a.zip/\\x1b]0;t.txt"], {})


def test_hidden_and_generated_members_are_passed_over(read: Read) -> None:
    files = {"a.txt": b"x", "__MACOSX/._a.txt": b"y", ".git/HEAD": b"z", "node_modules/m.js": b"w"}
    assert read("a.zip", zipped(files)) == (
        {"a.zip/a.txt": "x"}, {"a.zip": "3 hidden or generated entries passed over"},
    )  # fmt: skip


def test_links_and_devices(read: Read) -> None:
    link, hard, device = (tarfile.TarInfo(name) for name in ("link.txt", "hard.txt", "dev"))
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    hard.type, hard.linkname = tarfile.LNKTYPE, "a.txt"
    device.type = tarfile.CHRTYPE
    texts, problems = read("a.tar", tarred(("a.txt", b"x"), (link, b""), (hard, b""), (device, b"")))
    assert (texts, problems) == (
        {"a.tar/a.txt": "x"},
        {
            "a.tar/link.txt": "a link in an archive: not followed",
            "a.tar/hard.txt": "a link in an archive: not followed",
            "a.tar/dev": "a device or pipe in an archive: not read",
        },
    )


def test_a_link_in_a_zip_archive(read: Read) -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = 0o120777 << 16
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    assert read("a.zip", data.getvalue()) == ({}, {"a.zip/link": "a link in an archive: not followed"})


def encrypted(data: bytes, only: bytes | None = None) -> bytes:
    """The archive with the flag for encryption set in the table of contents (of all entries, or of one)."""
    out, place = bytearray(data), 0
    while (place := data.find(b"PK\x01\x02", place)) >= 0:
        if only is None or data[place + 46 :].startswith(only):
            out[place + 8] |= 1
        place += 1
    return bytes(out)


def test_encrypted_members(read: Read) -> None:
    data = encrypted(zipped({"a.txt": b"x", "b.txt": b"y"}), only=b"b.txt")
    assert read("a.zip", data) == (
        {"a.zip/a.txt": "x"},
        {"a.zip/b.txt": "encrypted: unpack it with its password and add the file"},
    )


def test_an_encrypted_archive(read: Read) -> None:
    assert read("a.zip", encrypted(zipped({"a.txt": b"x", "b.txt": b"y"}))) == (
        {}, {"a.zip": "an encrypted archive: unpack it with its password and add the folder"},
    )  # fmt: skip


def test_a_damaged_member_costs_only_itself(read: Read) -> None:
    data = bytearray(zipped({"a.txt": b"first" * 50, "b.txt": b"second"}, zipfile.ZIP_STORED))
    data[data.index(b"first") + 7] ^= 1
    assert read("a.zip", bytes(data)) == (
        {"a.zip/b.txt": "second"}, {"a.zip/a.txt": "damaged or cut off: not read"},
    )  # fmt: skip


@pytest.mark.parametrize("declared", [3, 10_000_000])
def test_a_size_that_is_not_true(read: Read, declared: int) -> None:
    data = bytearray(zipped({"a.txt": b"0123456789" * 99}))
    place = data.index(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<I", declared)
    assert read("a.zip", bytes(data)) == ({}, {"a.zip/a.txt": "damaged or cut off: not read"})


def test_an_unknown_method_of_packing(read: Read) -> None:
    data = bytearray(zipped({"a.txt": b"x"}))
    for mark, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = data.index(mark)
        data[place + at : place + at + 2] = struct.pack("<H", 9)
    _, problems = read("a.zip", bytes(data))
    assert problems == {"a.zip/a.txt": "packed by a method that is not known here (9): unpack it"}


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.zip", zipped({"a.txt": b"x" * 999})[:-30], "a zip archive, damaged or cut off"),
        ("a.zip", zipped({}), "an archive without files: nothing to read"),
        ("a.tar", tarred(), "a binary file"),
        ("a.gz", packed(random.Random(1).randbytes(9999))[:-2000], "a compressed file, damaged or cut off"),
        ("a.gz", packed(b"x" * 99)[:-8] + b"\1" * 8, "a compressed file, damaged"),
        ("a.bz2", bz2.compress(b"x" * 99)[:-9], "a compressed file, damaged or cut off"),
        ("a.bz2", bz2.compress(b"x" * 99)[:20] + b"\1" * 30, "a compressed file, damaged"),
        ("a.xz", lzma.compress(b"x" * 99)[:-9], "a compressed file, damaged or cut off"),
        ("a.gz", packed(b""), "an empty file: nothing to read"),
    ],
)  # fmt: skip
def test_broken_archives(read: Read, name: str, data: bytes, says: str) -> None:
    texts, problems = read(name, data)
    assert texts == {} and list(problems) == [name]
    assert says in problems[name]


def test_a_tar_archive_that_is_cut_off(read: Read) -> None:
    data = tarred(("a.txt", b"one"), ("b.txt", b"x" * 5000))[:3000]
    texts, problems = read("a.tar", data)
    assert texts == {"a.tar/a.txt": "one"}
    assert problems == {
        "a.tar/b.txt": "damaged or cut off: not read",
        "a.tar": "damaged or cut off: what comes after the members read is missing",
    }


def test_a_tar_archive_with_a_damaged_header_in_the_middle(read: Read) -> None:
    data = bytearray(tarred(("a.txt", b"one"), ("b.txt", b"two"), ("c.txt", b"three")))
    data[1024] ^= 0xFF
    texts, problems = read("a.tar", bytes(data))
    assert texts == {"a.tar/a.txt": "one"}
    assert problems == {"a.tar": "damaged or cut off: what comes after the members read is missing"}


# -- bombs


def test_a_member_out_of_all_proportion(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    data = zipped({"bomb.txt": b"\0" * (members.FREE_BYTES + (40 << 20)), "a.txt": b"x"})
    texts, problems = read("a.zip", data)
    assert texts == {"a.zip/a.txt": "x"}
    assert problems == {
        "a.zip/bomb.txt": "unpacks to more than 200 times its size, as files made to fill a disk do: not read"
    }


def test_a_stream_out_of_all_proportion(read: Read) -> None:
    _, problems = read("a.gz", packed(b"x" * (members.FREE_BYTES + (40 << 20)), 6))
    assert "unpacks to more than 200 times its size" in problems["a.gz"]


def test_members_that_overlap(read: Read) -> None:
    content = b"a line of text\n" * 9999
    block = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = block.compress(content) + block.flush()
    facts = struct.pack("<HHHHIII", 0, 8, 0, 0, zlib.crc32(content), len(packed), len(content))
    local = b"PK\x03\x04\x14\0" + facts + struct.pack("<HH", 1, 0) + b"a"
    entries = b"".join(
        b"PK\x01\x02\x14\0\x14\0" + facts + struct.pack("<HHHHHII", 1, 0, 0, 0, 0, 0, 0) + bytes([name])
        for name in b"abcdefgh"
    )
    end = struct.pack("<HHHHIIH", 0, 0, 8, 8, len(entries), len(local) + len(packed), 0)
    texts, problems = read("a.zip", local + packed + entries + b"PK\x05\x06" + end)
    assert set(texts) <= {"a.zip/a"}, "the others say that they are the same bytes"
    assert set(problems.values()) == {"damaged or cut off: not read"}


def test_the_limit_holds_for_all_depths_together(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "MOST_MEMBER_BYTES", 3 << 20)
    inner = zipped({"a.txt": os.urandom(900_000).hex().encode()})
    texts, problems = read("a.zip", zipped({f"{n}.zip": inner for n in range(3)}, zipfile.ZIP_STORED))
    assert len(texts) < 3 and any("unpacks to more than" in line for line in problems.values())


def test_many_members_are_too_many(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "MOST_MEMBERS", 10)
    _, problems = read("a.zip", zipped({f"{n}.txt": b"x" for n in range(11)}))
    assert problems == {"a.zip": "holds more than 10 files: unpack it and add the folder"}


def test_a_sparse_member_does_not_fill_the_disk(read: Read) -> None:
    info = tarfile.TarInfo("sparse.txt")
    info.type = tarfile.GNUTYPE_SPARSE
    info.size = 512
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"%011o\0%011o\0" % (0, 512)
    header[483:495] = b"%011o\0" % (0o77777777777)
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:512]))
    _, problems = read("a.tar", bytes(header) + b"x" * 512 + b"\0" * 1024)
    assert "unpacks to more than" in "".join(problems.values())


# -- whatever bytes there are


SAMPLES = {
    zips.read: zipped({"a.txt": b"text" * 9, "b/c.txt": b"more", "d.csv": b"a,b"}),
    tars.read: tarred(("a.txt", b"text"), ("b/c.txt", b"more")),
    streams.read: packed(b"text" * 30),
}


@settings(max_examples=150)
@given(
    reader=st.sampled_from(list(SAMPLES)),
    changes=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), max_size=12),
    cut=st.none() | st.integers(0, 3000),
)
def test_any_archive_is_unpacked_or_named(
    tmp_path_factory: Any, reader: Any, changes: list[tuple[int, int]], cut: int | None
) -> None:
    data = bytearray(SAMPLES[reader])
    for place, byte in changes:
        data[place % len(data)] = byte
    folder = tmp_path_factory.mktemp("any")
    (folder / "file").write_bytes(data[:cut])
    staged = folder / "staged"
    staged.mkdir()
    with StagedOutput(staged, 100, 1 << 20) as out:
        try:
            reader(str(folder / "file"), out)
        except Unreadable as error:
            assert str(error) and "\n" not in str(error)
    assert sum(path.stat().st_size for path in staged.iterdir()) <= 1 << 20
    assert sorted(path.name for path in folder.iterdir()) == ["file", "staged"]


@settings(max_examples=8)
@given(
    data=st.sampled_from([*SAMPLES.values(), b"%PDF-1.7\n", b"PAR1", b"<html>", b"From: x\n\n"]),
    suffix=st.sampled_from(
        [".zip", ".gz", ".pdf", ".docx", ".xlsx", ".eml", ".html", ".parquet", ".txt", ""]
    ),
    changes=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), max_size=5),
    more=st.binary(max_size=50),
)
def test_any_file_costs_at_most_its_lines(
    tmp_path_factory: Any, data: bytes, suffix: str, changes: list[tuple[int, int]], more: bytes
) -> None:
    changed = bytearray(data)
    for place, byte in changes:
        changed[place % len(data)] = byte
    folder = tmp_path_factory.mktemp("add")
    (folder / "a.txt").write_text("first")
    (folder / f"b{suffix}").write_bytes(changed + more)
    corpus = Corpus.add([folder], folder / "corpora")
    assert corpus.text(0, 0, 5) == "first"
    assert len(corpus.documents) > 1 or corpus.problems
    assert [path.name for path in (folder / "corpora").iterdir()] == [corpus.corpus_id]


def test_only_an_archive_that_holds_nothing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped({"a.bin": b"\0\1\2"}))
    with pytest.raises(CorpusError, match=r"a\.zip/a\.bin: a binary file"):
        Corpus.add([tmp_path / "a.zip"], tmp_path / "corpora")
