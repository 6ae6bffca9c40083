"""Adding in the large: progress, Ctrl-C, left-overs, full disks, names; lists, finding, removing."""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rlm_core import canonical
from rlm_core.corpus import Corpus, CorpusInfo, Progress, Section
from rlm_core.errors import CorpusError
from rlm_core.manifest import Contents
from rlm_core.overview import MOST_BYTES, describe
from rlm_core.readers import many
from rlm_core.texts import build_context


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    return tmp_path / "corpora"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of all kinds of work: read at once, in a thread, copied, unpacked by a child, refused."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number:02}.txt").write_text(f"text {number}\n" * 100)
    (folder / "large.txt").write_text("line\n" * 1_000_000)
    (folder / "latin.txt").write_bytes("señal\n".encode("latin-1"))
    (folder / "none.gif").write_bytes(b"GIF89a")
    shutil.make_archive(str(folder / "pack"), "zip", folder, "00.txt")
    return folder


# -- progress


def test_progress_rises_to_the_whole(folder: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "_REPORT_SECONDS", 0)
    seen: list[Progress] = []
    corpus = Corpus.add([folder], corpora, progress=seen.append)
    assert len(corpus.documents) == 33
    total = sum(path.stat().st_size for path in folder.iterdir())
    assert {(p.total_files, p.total_bytes) for p in seen} == {(34, total)}
    for one, next_one in zip(seen, seen[1:], strict=False):
        assert one.done_files <= next_one.done_files
    assert (seen[-1].done_files, seen[-1].done_bytes) == (34, total)
    assert all(0 <= p.done_bytes <= total for p in seen)
    assert {p.name for p in seen} <= {path.name for path in folder.iterdir()}


def test_progress_is_seldom(folder: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "_REPORT_SECONDS", 3600)
    seen: list[Progress] = []
    Corpus.add([folder], corpora, progress=seen.append)
    assert len(seen) == 2, "the first and the last"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("when", [1, 20, 34])
def test_what_the_watcher_raises_ends_the_add_without_a_trace(
    folder: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], when: int
) -> None:
    monkeypatch.setattr(many, "_REPORT_SECONDS", 0)

    def watcher(progress: Progress) -> None:
        if progress.done_files >= when:
            raise error

    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(error):
        Corpus.add([folder], corpora, progress=watcher)
    assert list(corpora.iterdir()) == []
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


# -- the folder of corpora


def test_left_overs_of_killed_adds_are_removed(folder: Path, corpora: Path) -> None:
    for name in (".adding-0123", ".adding-4567/texts"):
        (corpora / name).mkdir(parents=True)
    (corpora / ".adding-0123.lock").touch()
    (corpora / ".adding-4567/texts/a.txt").write_text("half")
    (corpora / ".adding-89ab.lock").touch()
    (corpora / ".removed-0123/texts").mkdir(parents=True)
    corpus = Corpus.add([folder], corpora)
    assert [path.name for path in corpora.iterdir()] == [corpus.corpus_id]


def test_a_full_disk_is_one_sentence(folder: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**where: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(canonical, "mkstemp", full)
    with pytest.raises(
        CorpusError, match="cannot be stored in .* .No space left on device.: check the space"
    ):
        Corpus.add([folder], corpora)
    assert list(corpora.iterdir()) == []


@pytest.mark.parametrize("name", ["manifest.json", "checkpoints.bin"])
def test_a_disk_that_is_full_at_the_end_is_one_sentence(
    folder: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (folder / "long.txt").write_text("señal\n" * 20_000, "utf-8")
    for method in ("write_text", "write_bytes"):
        real = getattr(Path, method)

        def write(self: Path, *args: Any, real: Any = real) -> Any:
            if self.name == name:
                raise OSError(28, "No space left on device")
            return real(self, *args)

        monkeypatch.setattr(Path, method, write)
    with pytest.raises(CorpusError, match="No space left on device"):
        Corpus.add([folder], corpora)
    assert list(corpora.iterdir()) == []


def test_a_folder_that_may_not_be_written_to(folder: Path, corpora: Path, no_root_rights: None) -> None:
    corpora.mkdir(mode=0o500)
    with pytest.raises(
        CorpusError, match="cannot be stored in .* .Permission denied.: check the space and the r"
    ):
        Corpus.add([folder], corpora)
    corpora.chmod(0o700)


# -- names and encodings


def test_a_corpus_is_called_as_asked_or_after_its_files(folder: Path, corpora: Path) -> None:
    assert Corpus.add([folder], corpora).name == "docs"
    named = Corpus.add([folder], corpora, name=" Kündigungen\n2024 ")
    assert named.name == "Kündigungen\\n2024"
    assert Corpus.load(corpora, named.corpus_id).name == "Kündigungen\\n2024"
    assert Corpus.add([folder], corpora).name == "Kündigungen\\n2024", "adding again keeps the name"
    two = Corpus.add([folder / "00.txt", folder / "01.txt", folder / "02.txt"], corpora)
    assert two.name == "00.txt and 2 more"
    assert Corpus.from_texts(["a", "b"], corpora).name == "text-1 and 1 more"
    assert Corpus.from_texts("a", corpora, name="mine").name == "mine"
    assert json.loads(named.record_json())["name"] == "Kündigungen\\n2024"


@pytest.mark.parametrize("name", ["", " ", "x" * 201])
def test_a_name_that_is_none(folder: Path, corpora: Path, name: str) -> None:
    with pytest.raises(CorpusError, match="the name of a corpus (is empty or blank|has 1 to 200 characters)"):
        Corpus.add([folder], corpora, name=name)


def test_an_encoding_that_was_given_replaces_every_guess(tmp_path: Path, corpora: Path) -> None:
    texts = {"utf8.txt": "ж", "marked.txt": "ж", "old.txt": "жук", "wide.txt": "жук"}
    for (name, text), encoding in zip(texts.items(), ["utf-8", "utf-16", "cp866", "utf-16-le"], strict=True):
        (tmp_path / name).write_bytes(text.encode(encoding))
    corpus = Corpus.add([tmp_path / name for name in texts], corpora, encoding="IBM866")
    read = {d.name: (corpus.text(d.number, 0, d.chars), d.encoding, d.problems) for d in corpus.documents}
    assert read["utf8.txt"] == ("ж", "utf-8", ())
    assert read["marked.txt"] == ("ж", "utf-16-le", ())
    assert read["old.txt"] == ("жук", "cp866", ("read as cp866 (as asked for)",))
    wide = Corpus.add([tmp_path / "wide.txt"], corpora, encoding="utf-16-le")
    assert wide.text(0, 0, 3) == "жук"


def test_bad_places_in_the_encoding_that_was_given_are_told(tmp_path: Path, corpora: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\n\x81\xff")
    [document] = Corpus.add([tmp_path / "a.txt"], corpora, encoding="cp1252").documents
    assert document.problems == (
        "read as cp1252 (as asked for)",
        "not valid cp1252: 1 bad place is shown as U+FFFD, the first in line 2",
    )


@pytest.mark.parametrize("encoding", ["", "klingon", "hex", "undefined", "x\0", "../../x"])
def test_an_encoding_that_does_not_exist(folder: Path, corpora: Path, encoding: str) -> None:
    with pytest.raises(CorpusError, match="there is no text encoding .*: use a name such as cp1252"):
        Corpus.add([folder], corpora, encoding=encoding)
    assert not corpora.exists()


# -- lists


def test_the_list_of_corpora(folder: Path, corpora: Path) -> None:
    assert Corpus.list(corpora) == []
    old = Corpus.add([folder / "00.txt"], corpora, name="old")
    new = Corpus.add([folder / "01.txt", folder / "latin.txt", folder / "none.gif"], corpora, name="new")
    broken = Corpus.from_texts("x", corpora)
    for corpus, seconds in ((old, 1), (new, 3), (broken, 2)):
        os.utime(corpus.folder / "manifest.json", (seconds, seconds))
    (broken.folder / "manifest.json").write_text("{")
    os.utime(broken.folder / "manifest.json", (2, 2))
    (corpora / "notes").mkdir()
    (corpora / "file").touch()
    first, second, third = Corpus.list(corpora)
    assert first == CorpusInfo(new.corpus_id, "new", 2, 706, 707, 1, datetime.fromtimestamp(3, UTC))
    assert (second.corpus_id, second.documents, second.name) == (broken.corpus_id, 0, "")
    assert second.broken is not None and "cannot be used" in second.broken
    assert (third.corpus_id, third.name, third.broken) == (old.corpus_id, "old", None)


def test_a_list_shows_the_latest_name(corpora: Path) -> None:
    corpus_id = Corpus.from_texts("x", corpora, name="one").corpus_id
    shown = [Corpus.list(corpora)[0]]
    for name in ("two", "six"):  # as long as the one before
        Corpus.rename(corpora, corpus_id, name)
        shown += Corpus.list(corpora)
    assert [info.name for info in shown] == ["one", "two", "six"]
    assert len({info.added for info in shown}) == 1


def test_a_name_that_cannot_be_written_leaves_the_corpus_as_it_was(
    corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus.from_texts("x", corpora, name="one")
    before = sorted(corpus.folder.iterdir())

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "utime", full)
    with pytest.raises(CorpusError, match="No space left on device"):
        Corpus.rename(corpora, corpus.corpus_id, "two")
    assert sorted(corpus.folder.iterdir()) == before and Corpus.list(corpora)[0].name == "one"


def test_finding_a_corpus(folder: Path, corpora: Path) -> None:
    ids = [Corpus.from_texts(f"text {n}", corpora, name=f"name {n % 40}").corpus_id for n in range(45)]
    assert Corpus.find(corpora, ids[7]) == ids[7]
    assert Corpus.find(corpora, ids[7][:12]) == ids[7]
    assert Corpus.find(corpora, "name 7") == ids[7]
    with pytest.raises(CorpusError, match="'name 1' means several corpora .*: give more of the id"):
        Corpus.find(corpora, "name 1")
    first = next(c for c in "0123456789abcdef" if sum(i.startswith(c) for i in ids) > 1)
    with pytest.raises(CorpusError, match="means several corpora"):
        Corpus.find(corpora, first)
    for nothing in ("", "zz", "name", "../x", "a\nb"):
        with pytest.raises(CorpusError, match="no corpus has the id or name"):
            Corpus.find(corpora, nothing)


def test_removing_a_corpus_keeps_the_files_of_the_user(folder: Path, corpora: Path) -> None:
    before = sorted(folder.iterdir())
    corpus = Corpus.add([folder], corpora)
    other = Corpus.from_texts("other", corpora)
    Corpus.remove(corpora, corpus.corpus_id)
    assert sorted(folder.iterdir()) == before
    assert [info.corpus_id for info in Corpus.list(corpora)] == [other.corpus_id]
    assert [path.name for path in corpora.iterdir()] == [other.corpus_id]
    for corpus_id in (corpus.corpus_id, "../docs", ""):
        with pytest.raises(CorpusError, match="there is no corpus"):
            Corpus.remove(corpora, corpus_id)
    assert sorted(folder.iterdir()) == before


def test_what_uses_a_removed_corpus_is_told_or_goes_on(folder: Path, corpora: Path) -> None:
    corpus = Corpus.add([folder], corpora)
    _, documents = build_context(corpus.worker_documents())
    Corpus.remove(corpora, corpus.corpus_id)
    number = next(d.number for d in corpus.documents if d.name == "latin.txt")
    assert corpus.text(0, 0, 6) == str(documents["00.txt"])[:6] == "text 0"
    with pytest.raises(CorpusError, match="cannot be read any more .*: add the corpus again"):
        corpus.text(number, 0, 3)
    with pytest.raises(OSError, match="cannot be read any more .*: add the corpus again"):
        str(documents["latin.txt"])


def test_changed_files_are_told_without_reading_them(folder: Path, corpora: Path) -> None:
    corpus = Corpus.add([folder], corpora)
    assert corpus.changed() == []
    (folder / "03.txt").write_text("longer than it was" * 1000)
    (folder / "05.txt").unlink()
    os.utime(folder / "07.txt", (1, 1))
    assert corpus.changed() == ["03.txt", "05.txt", "07.txt"]
    assert corpus.text(7, 0, 6) == "text 7", "the same bytes at another time are the same text"
    assert corpus.changed() == ["03.txt", "05.txt"]


def test_a_manifest_of_version_1_still_loads(folder: Path, corpora: Path) -> None:
    corpus = Corpus.add([folder], corpora)
    path = corpus.folder / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    manifest["version"] = 1
    del manifest["name"]
    path.write_text(json.dumps(manifest, indent=1), "utf-8")
    loaded = Corpus.load(corpora, corpus.corpus_id)
    assert loaded.documents == corpus.documents
    assert loaded.name == "00.txt and 32 more"


def test_the_id_of_plain_texts_is_that_of_earlier_versions(corpora: Path) -> None:
    assert Corpus.from_texts({"a.txt": "one", "b.csv": "x,y\n"}, corpora).corpus_id == "40d9c2a2f46a9345"


# -- sections


def with_sections(corpora: Path, reader: str, kinds: list[str], table: str = "") -> Corpus:
    """A corpus of one text that has such sections, one for each character."""
    corpus = Corpus.from_texts({"doc": "x" * len(kinds)}, corpora)
    sections = tuple(
        Section(kind, str(number + 1), number, number + 1, None, number, number + 1)
        for number, kind in enumerate(kinds)
    )
    document = replace(corpus.documents[0], reader=reader, sections=sections, table=table)
    return Corpus(corpus.folder, Contents("", (document,), ()))


def test_places(corpora: Path) -> None:
    pages = with_sections(corpora, "pdf", ["page"] * 9)
    asked = ((0, 1), (2, 5), (8, 9), (0, 9), (4, 4), (9, 9), (20, 30))
    assert [pages.place(0, *place) for place in asked] == [
        "page 1", "pages 3-5", "page 9", "pages 1-9", "page 5", None, None,
    ]  # fmt: skip
    assert pages.place(1, 0, 1) is pages.place(-1, 0, 1) is None
    mixed = with_sections(corpora, "x", ["slide", "sheet"])
    assert mixed.place(0, 0, 2) == "slide 1 to sheet 2"
    assert Corpus.from_texts("plain", corpora).place(0, 0, 2) is None


def test_the_description_says_how_parts_are_separated(corpora: Path) -> None:
    pages = describe(with_sections(corpora, "pdf", ["page"] * 9))
    assert "[0] doc (9 pages, 9 characters)" in pages
    assert '"\\f" stands between pages.' in pages
    sheets = describe(with_sections(corpora, "sheets", ["sheet"], "sheets"))
    assert "(1 sheet, 1 characters)" in sheets and '"# Sheet: NAME"' in sheets
    assert "read as tables (see `.tables`): sheets 1." in sheets
    plain = describe(Corpus.from_texts("plain", corpora))
    assert "\\f" not in plain and "tables" not in plain
    assert all(len(text.encode()) <= MOST_BYTES for text in (pages, sheets, plain))
