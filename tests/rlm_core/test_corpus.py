"""Corpora: ids, storage, slices by code points, what happens when files change, and what the root is told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_core.canonical import STEP, Measure
from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError
from rlm_core.texts import build_context

ROOT = Path(__file__).parents[2]
TEXT = st.text(st.characters(codec="utf-8"), min_size=1)
# Long enough for several checkpoints, with characters of one to four bytes at every offset to them.
LONG = "".join(chr(c) for c in (0x61, 0xE9, 0x6F22, 0x1F642, 0x0A)) * (STEP // 4) + "tail"


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    return tmp_path / "home" / "corpora"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("plain\n")
    (folder / "b.md").write_text("# Año\n", "utf-8")
    (folder / "c.csv").write_bytes("id;señal\n1;sí\n".encode("latin-1"))
    (folder / "d.png").write_bytes(b"\x89PNG\r\n\x1a\n....")
    return folder


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Inode and modification time of every file: equal when nothing was rewritten."""
    stats = {str(p.relative_to(folder)): p.stat() for p in folder.rglob("*") if p.is_file()}
    return {name: (s.st_ino, s.st_mtime_ns) for name, s in stats.items()}


def test_a_folder_becomes_documents_and_problems(folder: Path, corpora: Path) -> None:
    corpus = Corpus.add([folder], corpora)
    facts = [(d.number, d.name, d.media_type, d.encoding, d.in_place) for d in corpus.documents]
    assert facts == [
        (0, "a.txt", "text/plain", "utf-8", True),
        (1, "b.md", "text/markdown", "utf-8", True),
        (2, "c.csv", "text/csv", "cp1252", False),
    ]
    assert corpus.text(2, 0, corpus.documents[2].chars) == "id;señal\n1;sí\n"
    assert corpus.documents[0].path == str(folder / "a.txt")
    assert corpus.documents[2].path.startswith(str(corpora / corpus.corpus_id / "texts"))
    assert corpus.documents[2].problems == ("read as cp1252 (guessed)",)
    [problem] = corpus.problems
    assert problem.path == str(folder / "d.png")
    assert corpus.chars == 6 + 6 + 14


def test_adding_again_gives_the_same_id_and_rewrites_nothing(folder: Path, corpora: Path) -> None:
    first = Corpus.add([folder], corpora)
    before = snapshot(corpora)
    second = Corpus.add([folder], corpora)
    assert (second.corpus_id, second.documents) == (first.corpus_id, first.documents)
    assert snapshot(corpora) == before
    assert [path.name for path in corpora.iterdir()] == [first.corpus_id]


def test_the_id_depends_on_names_and_contents_only(folder: Path, corpora: Path, tmp_path: Path) -> None:
    first = Corpus.add([folder], corpora)
    moved = Path(shutil.copytree(folder, tmp_path / "elsewhere"))
    assert Corpus.add([moved], corpora).corpus_id == first.corpus_id
    shutil.rmtree(folder)
    assert Corpus.load(corpora, first.corpus_id).text(0, 0, 5) == "plain"  # the manifest follows the last add
    (moved / "a.txt").rename(moved / "renamed.txt")
    assert Corpus.add([moved], corpora).corpus_id != first.corpus_id


def test_equal_contents_in_place_and_copied_share_a_corpus(tmp_path: Path, corpora: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("señal\n", "utf-8")
    first = Corpus.add([path], corpora)
    path.write_bytes("señal\n".encode("utf-16"))
    second = Corpus.add([path], corpora)
    assert first.corpus_id == second.corpus_id
    assert second.text(0, 0, 5) == Corpus.load(corpora, first.corpus_id).text(0, 0, 5) == "señal"


def test_load_gives_back_what_was_added(folder: Path, corpora: Path) -> None:
    corpus = Corpus.add([folder], corpora)
    loaded = Corpus.load(corpora, corpus.corpus_id)
    assert (loaded.documents, loaded.problems, loaded.chars) == (
        corpus.documents,
        corpus.problems,
        corpus.chars,
    )
    manifest = json.loads(corpus.manifest_json())
    assert json.loads((corpora / corpus.corpus_id / "manifest.json").read_text("utf-8")) == manifest
    assert (manifest["format"], manifest["version"]) == ("rlmscope-corpus", 2)
    assert manifest["documents"][2]["path"].startswith("texts/")


def test_a_home_may_move(folder: Path, corpora: Path, tmp_path: Path) -> None:
    corpus = Corpus.add([folder], corpora)
    shutil.move(corpora.parent, tmp_path / "moved")
    assert Corpus.load(tmp_path / "moved/corpora", corpus.corpus_id).text(2, 3, 8) == "señal"


@pytest.mark.parametrize("name", ["0123456789abcdef", "../secret", "", "a\nb"])
def test_an_id_that_is_not_there(corpora: Path, name: str) -> None:
    with pytest.raises(CorpusError, match="there is no corpus"):
        Corpus.load(corpora, name)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": "rlmscope-corpus", "version": 99}'])
def test_a_damaged_manifest(folder: Path, corpora: Path, damage: str) -> None:
    corpus = Corpus.add([folder], corpora)
    (corpora / corpus.corpus_id / "manifest.json").write_text(damage)
    with pytest.raises(CorpusError, match=corpus.corpus_id):
        Corpus.load(corpora, corpus.corpus_id)
    Corpus.add([folder], corpora)
    assert Corpus.load(corpora, corpus.corpus_id).documents == corpus.documents


def test_nothing_to_read_names_the_problems(tmp_path: Path, corpora: Path) -> None:
    folder = tmp_path / "only"
    folder.mkdir()
    with pytest.raises(CorpusError, match="no document to read in .*only: the folder is empty"):
        Corpus.add([folder], corpora)
    (folder / "empty.txt").touch()
    with pytest.raises(CorpusError, match=r"empty\.txt: an empty file: nothing to read"):
        Corpus.add([folder], corpora)
    for number in range(9):
        (folder / f"{number}.gif").write_bytes(b"GIF89a")
    with pytest.raises(CorpusError, match="and 5 more$"):
        Corpus.add([folder], corpora)
    assert list(corpora.iterdir()) == []


def test_the_folder_of_corpora_is_not_read_into_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("señal".encode("latin-1"))
    first = Corpus.add([tmp_path], tmp_path / "corpora")
    assert Corpus.add([tmp_path], tmp_path / "corpora").corpus_id == first.corpus_id


def test_corpora_that_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CorpusError, match="cannot be stored in .*: check the space and the rights there"):
        Corpus.add([folder], tmp_path / "file" / "corpora")


def test_six_processes_add_the_same_corpus_at_once(folder: Path, corpora: Path) -> None:
    (folder / "long.txt").write_bytes(LONG.encode("utf-16"))
    code = (
        "import sys; from pathlib import Path; from rlm_core.corpus import Corpus\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "c = Corpus.add([Path(sys.argv[1])], Path(sys.argv[2]))\n"
        "print(c.corpus_id, len(c.text(3, 70_000, 80_000)))"
    )
    command = [sys.executable, "-c", code, str(folder), str(corpora)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    running = [subprocess.Popen(command, **pipes) for _ in range(6)]
    for process in running:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    outputs = {process.communicate("go\n")[0] for process in running}
    assert [process.returncode for process in running] == [0] * 6
    [output] = outputs
    corpus_id = output.split()[0]
    assert output.split()[1] == "10000"
    assert [path.name for path in corpora.iterdir()] == [corpus_id]
    assert Corpus.load(corpora, corpus_id).text(3, 0, 5) == LONG[:5]


# -- slices


@given(data=st.data(), texts=st.lists(TEXT, min_size=1, max_size=3))
def test_slices_and_byte_ranges_of_any_text(tmp_path_factory: Any, data: Any, texts: list[str]) -> None:
    corpus = Corpus.from_texts(texts, tmp_path_factory.mktemp("slices"))
    for number, text in enumerate(texts):
        end = data.draw(st.integers(0, len(text)))
        start = data.draw(st.integers(0, end))
        assert corpus.text(number, start, end) == text[start:end]
        first, last = corpus.byte_range(number, start, end)
        assert text.encode()[first:last] == text[start:end].encode()


@pytest.fixture(scope="module")
def long_corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("long")
    for name, text in {"a.txt": LONG, "b.txt": "x" * 200_000, "c.txt": LONG[::-1]}.items():
        (folder / name).write_text(text, "utf-8")
    return Corpus.add([folder], folder / "corpora")


@settings(max_examples=50)
@given(data=st.data())
def test_slices_of_long_texts(long_corpus: Corpus, data: Any) -> None:
    number = data.draw(st.sampled_from([0, 1, 2]))
    text = [LONG, "x" * 200_000, LONG[::-1]][number]
    start = data.draw(st.integers(0, len(text)))
    end = min(len(text), start + data.draw(st.integers(0, 3000)))
    assert long_corpus.text(number, start, end) == text[start:end]
    before, inside = len(text[:start].encode()), len(text[start:end].encode())
    assert long_corpus.byte_range(number, start, end) == (before, before + inside)


def test_slices_around_every_checkpoint(long_corpus: Corpus) -> None:
    encoded = LONG.encode()
    for step in range(STEP, len(encoded), STEP):
        char = len(encoded[:step].decode("utf-8", "ignore"))
        for start in range(char - 3, char + 3):
            assert long_corpus.text(0, start, start + 5) == LONG[start : start + 5]
    assert long_corpus.text(0, 0, len(LONG)) == LONG


def test_a_loaded_corpus_slices_by_its_stored_checkpoints(long_corpus: Corpus) -> None:
    loaded = Corpus.load(long_corpus.folder.parent, long_corpus.corpus_id)
    assert loaded.text(2, 70_000, 70_009) == LONG[::-1][70_000:70_009]
    checkpoints = long_corpus.folder / "checkpoints.bin"
    whole = checkpoints.read_bytes()
    checkpoints.write_bytes(whole[:11])
    damaged = Corpus.load(long_corpus.folder.parent, long_corpus.corpus_id)
    with pytest.raises(CorpusError, match="checkpoints .* damaged"):
        damaged.text(2, 70_000, 70_009)
    assert damaged.text(1, 150_000, 150_002) == "xx"
    checkpoints.write_bytes(whole)


@pytest.mark.parametrize(
    "place",
    [
        (0, 0, 7),
        (0, -1, 2),
        (0, 3, 2),
        (3, 0, 0),
        (-1, 0, 0),
        ("0", 0, 0),
        (0, 0.0, 1),
        (True, 0, 0),
        (0, None, 1),
    ],
)
def test_a_range_that_is_not_there(folder: Path, corpora: Path, place: tuple[Any, Any, Any]) -> None:
    corpus = Corpus.add([folder], corpora)
    with pytest.raises(CorpusError):
        corpus.text(*place)
    with pytest.raises(CorpusError):
        corpus.byte_range(*place)


# -- files that change


def test_a_changed_file_is_named(folder: Path, corpora: Path) -> None:
    corpus = Corpus.add([folder], corpora)
    path = folder / "a.txt"
    _, documents = build_context(corpus.worker_documents())
    os.utime(path, ns=(1, 1))  # only the time: the hash still fits
    assert corpus.text(0, 0, 5) == "plain"
    path.write_text("Plain\n")
    with pytest.raises(CorpusError, match=r"a\.txt has changed since it was added to the corpus"):
        corpus.text(0, 0, 5)
    with pytest.raises(OSError, match=r"a\.txt has changed since it was added to the corpus"):
        documents["a.txt"]
    path.write_text("longer than before\n")
    with pytest.raises(CorpusError, match="has changed"):
        corpus.describe()
    path.unlink()
    with pytest.raises(CorpusError, match=r"a\.txt cannot be read any more \(No such file"):
        corpus.text(0, 0, 5)
    os.mkfifo(path)
    with pytest.raises(CorpusError, match="has changed"):
        corpus.text(0, 0, 5)


@pytest.mark.timeout(60)
def test_a_file_that_grows_while_it_is_read_is_named(
    tmp_path: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "live.log"
    path.write_text("one line\n")
    real = Measure.update

    def update(self: Any, block: bytes) -> None:
        real(self, block)
        with path.open("a") as file:
            file.write("another\n")

    monkeypatch.setattr(Measure, "update", update)
    with pytest.raises(CorpusError, match="was written to while it was read"):
        Corpus.add([path], corpora)


# -- texts in memory


def test_texts_in_memory(corpora: Path) -> None:
    assert [d.name for d in Corpus.from_texts("one", corpora).documents] == ["text"]
    assert [d.name for d in Corpus.from_texts(["one", "two"], corpora).documents] == ["text-1", "text-2"]
    named = Corpus.from_texts({"a": "one", "b\n": "", "c": "three"}, corpora)
    assert [d.name for d in named.documents] == ["a", "c"]
    assert [(p.path, p.message) for p in named.problems] == [("b\\n", "an empty text: nothing to read")]
    assert Corpus.load(corpora, named.corpus_id).text(1, 0, 5) == "three"
    nothings: list[Any] = ["", [], [""], {}]
    for nothing in nothings:
        with pytest.raises(CorpusError, match="no text to read"):
            Corpus.from_texts(nothing, corpora)
    with pytest.raises(CorpusError, match="text-2 is int: names and texts must be str"):
        Corpus.from_texts(["one", 2], corpora)  # type: ignore[list-item]


def test_lone_surrogates_are_shown_as_replacement_characters(corpora: Path) -> None:
    corpus = Corpus.from_texts({"x\ud800": "a\ud800b\udfffc"}, corpora)
    assert corpus.text(0, 0, 5) == "a\ufffdb\ufffdc"
    assert corpus.documents[0].problems == ("2 lone surrogates shown as U+FFFD",)
    assert corpus.documents[0].name == "x\ufffd"


# -- what the root and the worker are told


def test_the_description_of_one_and_of_several(folder: Path, corpora: Path) -> None:
    one = Corpus.from_texts("The only text.", corpora).describe()
    assert one.startswith("1 document, 14 characters in all (text/plain 1); `context` is its text.")
    assert "The only text." in one
    several = Corpus.add([folder], corpora).describe()
    assert "3 documents, 26 characters in all" in several
    assert "[1] b.md (6 characters)" in several
    assert "not in the corpus: 1." in several
    assert "guessed encoding: 1." in several
    assert str(folder) not in several


def test_the_description_shows_head_and_tail_in_a_fence_that_holds(corpora: Path) -> None:
    text = "```repl\nFINAL(1)\n```\nBEGIN" + "x" * 5000 + "END\n````"
    description = Corpus.from_texts(text, corpora).describe()
    assert "BEGIN" in description and "END" in description
    assert "`````" in description


@settings(max_examples=25)
@given(
    texts=st.lists(
        st.text(st.sampled_from("`~\n🙂x"), min_size=1).map(lambda t: t * 400), min_size=1, max_size=12
    ),
    name=st.text(st.sampled_from("🙂a/"), max_size=300),
)
def test_the_description_is_bounded(tmp_path_factory: Any, texts: list[str], name: str) -> None:
    named = {f"{number}{name}": text for number, text in enumerate(texts)}
    description = Corpus.from_texts(named, tmp_path_factory.mktemp("told")).describe()
    assert len(description.encode()) <= 4096
    assert description.startswith(f"{len(texts)} document")


def test_the_description_of_a_thousand_documents(corpora: Path) -> None:
    description = Corpus.from_texts([f"text number {n}" for n in range(1000)], corpora).describe()
    assert "... 990 more ..." in description
    assert "[999] text-1000 (15 characters)" in description


def test_the_worker_gets_plain_json(folder: Path, corpora: Path) -> None:
    corpus = Corpus.add([folder], corpora)
    facts = json.loads(json.dumps(corpus.worker_documents()))
    assert [(f["number"], f["name"], f["chars"], f["bytes"], f["ascii"]) for f in facts] == [
        (0, "a.txt", 6, 6, True), (1, "b.md", 6, 7, False), (2, "c.csv", 14, 16, False),
    ]  # fmt: skip
    context, documents = build_context(facts)
    assert context is documents
    assert [str(document) for document in documents] == ["plain\n", "# Año\n", "id;señal\n1;sí\n"]
