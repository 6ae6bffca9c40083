"""Uploaded files: names that cannot leave their folder, good files kept, bad ones said, none overwritten."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from rlm_core.corpus import Corpus
from rlm_core.errors import InputError
from tests.support.pages import ask_page, badly_shown, problems, rows_of, texts, use
from traces.home import Home
from ui.web.uploads import keep, safe_names

TICKET = "20270115T080000-00000001"


class File(io.BytesIO):
    """An uploaded file."""

    def __init__(self, name: str, content: bytes = b"text", file_id: str | None = None) -> None:
        super().__init__(content)
        self.name = name
        self.file_id = file_id or f"{name}/{content!r}"


# -- names

_NASTY = st.sampled_from(
    ["..", "/", "\\", ".", "\0", "CON", "a.txt", "\u202e", "é", "\ud800", " ", "x" * 300]
)
_NAMES = st.lists(st.text(max_size=20) | st.lists(_NASTY, max_size=6).map("".join), max_size=8)


@given(_NAMES)
def test_no_name_leaves_its_folder_or_meets_another(given_names: list[str]) -> None:
    names = safe_names(given_names)
    assert len(names) == len(given_names) == len({name.casefold() for name in names})
    for name in names:
        assert name and name == os.path.basename(name) and name not in (".", "..") and name[0] != "."
        assert not set(name) & set('/\\:*?"<>|\0') and name == name.strip(" .")
        assert len(name.encode()) <= 200


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\notes.txt", "notes.txt"),
        ("..", "file"),
        ("", "file"),
        (".env", "env"),
        ("CON.txt", "_CON.txt"),
        ("a\nb.txt", "a_b.txt"),
        ("gnp.\u202eexe", "gnp._exe"),
        ("report.final.pdf", "report.final.pdf"),
        ("日本語.md", "日本語.md"),
    ],
)
def test_names_stay_readable(name: str, safe: str) -> None:
    assert safe_names([name]) == [safe]


def test_equal_names_get_numbers_before_their_suffix() -> None:
    assert safe_names(["a.txt", "A.TXT", "x/a.txt", "a"]) == ["a.txt", "A (2).TXT", "a (3).txt", "a"]


def test_a_long_name_keeps_its_suffix() -> None:
    (name,) = safe_names(["é" * 400 + ".pdf"])
    assert name.endswith("é.pdf") and len(name.encode()) <= 150


# -- files


def test_files_are_kept_for_their_owner_alone(home: Home) -> None:
    kept: dict[str, Path] = {}
    (path,) = keep(home, TICKET, [File("../../../evil.txt", b"hello")], kept)
    assert path.is_relative_to(home.root / "uploads" / TICKET) and path.read_bytes() == b"hello"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in path.parents[:2]} == {0o700}


def test_what_is_kept_is_written_once_and_never_overwritten(home: Home) -> None:
    kept: dict[str, Path] = {}
    first = keep(home, TICKET, [File("a.txt", b"one", "1")], kept)
    os.chmod(first[0], 0o400)
    both = keep(home, TICKET, [File("a.txt", b"one", "1"), File("a.txt", b"two", "2")], kept)
    assert both[0] == first[0] and [path.read_bytes() for path in both] == [b"one", b"two"]
    assert [path.name for path in both] == ["a.txt", "a (2).txt"]
    (alone,) = keep(home, TICKET, [File("a.txt", b"three", "3")], kept)
    assert (alone.name, alone.read_bytes(), first[0].read_bytes()) == ("a.txt", b"three", b"one")


def test_a_kept_file_that_is_gone_is_written_again(home: Home) -> None:
    kept: dict[str, Path] = {}
    keep(home, TICKET, [File("a.txt", b"one", "1")], kept)[0].unlink()
    (again,) = keep(home, TICKET, [File("a.txt", b"one", "1")], kept)
    assert again.read_bytes() == b"one"


def test_a_folder_that_cannot_be_written_is_one_sentence(home: Home) -> None:
    (home.root / "uploads").write_text("in the way")
    with pytest.raises(InputError, match="could not be kept"):
        keep(home, TICKET, [File("a.txt")], {})


# -- on the page


@pytest.fixture
def page(home: Home, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """The Ask page, ready for uploads."""
    use(home, monkeypatch)
    shown = ask_page().run()
    shown.get_by_key("ask-source").set_value("upload").run()
    return shown


def upload(page: AppTest, *files: tuple[str, bytes]) -> AppTest:
    """Take these files, and no others, as uploaded."""
    page.file_uploader[0].set_value([(name, content, "text/plain") for name, content in files]).run()
    return page


def corpora(home: Home) -> list[Corpus]:
    return [Corpus.load(home.corpora, path.parent.name) for path in home.corpora.glob("*/manifest.json")]


def test_ten_files_with_two_bad_ones(page: AppTest, home: Home) -> None:
    good = [(f"doc {n}.txt", b"text %d" % n) for n in range(8)]
    upload(page, *good, ("broken.dat", bytes(range(256)) * 8), ("empty.txt", b""))
    assert problems(page) == []
    assert ":green-badge[8 documents, 48 characters]" in [element.value for element in page.markdown]
    (lines,) = [text.split("\n") for text in texts(page) if "broken.dat" in text]
    assert [line.partition(":")[0] for line in lines] == ["broken.dat", "empty.txt"]
    (corpus,) = corpora(home)
    assert sorted(d.name for d in corpus.documents) == sorted(name for name, _ in good)


def test_nothing_to_read_is_one_sentence(page: AppTest, home: Home) -> None:
    upload(page, ("empty.txt", b""))
    sentence = "There is no document to read in empty.txt: an empty file: nothing to read."
    assert problems(page) == [sentence] and corpora(home) == []
    page.text_area(key="ask-question").set_value("Which?")
    page.button(key="ask-start").click().run()
    assert problems(page) == [sentence]  # not a second time below the first


def test_hostile_names_stay_in_the_folder_and_in_plain_elements(page: AppTest, home: Home) -> None:
    bad = "../../![HOSTILE](x)<script>\x1b[31m\u202e.txt"
    upload(page, (bad, b"a"), (bad, b"b"), ("![HOSTILE](y).txt", b""))
    (corpus,) = corpora(home)
    assert all(Path(d.path).is_relative_to(home.root / "uploads") for d in corpus.documents)
    assert "HOSTILE" in "".join(texts(page)) and badly_shown(page, "HOSTILE") == []
    assert not any(mark in text for text in texts(page) for mark in "\x1b\u202e")


def test_files_taken_off_are_no_longer_meant(page: AppTest) -> None:
    upload(page, ("a.txt", b"a"))
    page.file_uploader[0].set_value(None).run()
    page.text_area(key="ask-question").set_value("What?")
    page.button(key="ask-start").click().run()
    assert problems(page) == ["No documents are uploaded yet."]


def test_uploads_outlive_a_look_at_another_page(page: AppTest) -> None:
    upload(page, ("a.txt", b"a"))
    page.switch_page("pages/runs.py").run()
    page.switch_page("pages/ask.py").run()
    page.get_by_key("ask-source").set_value("upload").run()
    assert [row["Document"] for row in rows_of(page, "corpus-preview")] == ["a.txt"]
