"""What code in a cell can do with `context` and `documents`, and what a prompt or snippet stands for."""

from __future__ import annotations

import copy
import io
import json
import pickle
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core.corpus import Corpus
from rlm_core.texts import Documents, Text, build_context, files, parts_of
from rlm_core.texts.files import Source, Store

ROOT = Path(__file__).parents[2]
BODY = st.text(st.characters(codec="utf-8"), max_size=60)
LINES = st.text(st.sampled_from("ab \n\r\t\x85\u2028é"), max_size=40)
CONTRACTS = {
    "contracts/one.txt": "Title: One\r\nFee: 100 EUR\r\nEnd",
    "contracts/two.txt": "Title: Two\nFee: 250 EUR\nNote: señal\n",
    "notes.md": "# Notes\nno fee here",
}


def placed(piece: str) -> tuple[int, int, str]:
    """Where a piece stands; fails for a plain str."""
    assert isinstance(piece, Text)
    return piece.document, piece.start, str(piece)


def check_places(whole: Text, pieces: list[Any], expected: list[str]) -> None:
    """Pieces equal what str gives, and stand where they say."""
    assert [str(piece) for piece in pieces] == expected
    for piece in pieces:
        document, start, text = placed(piece)
        offset = start - whole.start
        assert document == whole.document
        assert str(whole)[offset : offset + len(text)] == text


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    return build_context(Corpus.from_texts(CONTRACTS, tmp_path).worker_documents())[1]


@pytest.fixture
def single(tmp_path: Path) -> Text:
    context, _ = build_context(Corpus.from_texts({"a.txt": "one\ntwo\nthree"}, tmp_path).worker_documents())
    assert isinstance(context, Text)
    return context


# -- Text


@given(body=BODY, first=st.slices(60), second=st.slices(60))
def test_slices_are_those_of_str_and_know_their_place(body: str, first: slice, second: slice) -> None:
    text = Text(body, 3, 7, "name")
    piece = text[first]
    assert piece == body[first]
    assert isinstance(piece, Text) == (first.step in (None, 1))
    if isinstance(piece, Text):
        start, _, _ = first.indices(len(body))
        assert (piece.document, piece.start, piece.name) == (3, 7 + start, "name")
        inner = piece[second]
        assert inner == body[first][second]
        if isinstance(inner, Text):
            check_places(text, [inner], [body[first][second]])


@given(body=LINES, separator=st.sampled_from([None, "\n", "a", "ab", " "]), most=st.integers(-1, 3))
def test_parts_know_their_place(body: str, separator: str | None, most: int) -> None:
    text = Text(body, 0, 5, "name")
    check_places(text, text.split(separator, most), body.split(separator, most))
    check_places(text, text.splitlines(), body.splitlines())
    check_places(text, text.splitlines(keepends=True), body.splitlines(keepends=True))
    check_places(text, list(text.lines()), [line.rstrip("\n") for line in io.StringIO(body, newline=None)])
    check_places(text, list(text.partition("a")), list(body.partition("a")))
    for name in ("strip", "lstrip", "rstrip"):
        check_places(text, [getattr(text, name)()], [getattr(body, name)()])
        check_places(text, [getattr(text, name)("a \n")], [getattr(body, name)("a \n")])


@given(body=LINES, n=st.integers(1, 12), overlap=st.integers(0, 11))
def test_chunks_cover_the_text(body: str, n: int, overlap: int) -> None:
    text = Text(body, 0, 5, "name")
    if overlap >= n:
        with pytest.raises(ValueError, match="0 <= overlap < n"):
            text.chunks(n, overlap)
        return
    chunks = text.chunks(n, overlap)
    check_places(text, chunks, [str(chunk) for chunk in chunks])
    assert all(0 < len(chunk) <= n for chunk in chunks)
    joined = "".join(str(chunk)[overlap if number else 0 :] for number, chunk in enumerate(chunks))
    assert joined == body


def test_chunks_are_cut_at_line_ends_where_one_is_in_reach() -> None:
    assert Text("aaa\nbbb\nccc").chunks(9) == ["aaa\nbbb\n", "ccc"]
    assert Text("a\n" + "b" * 12).chunks(8) == ["a\nbbbbbb", "bbbbbb"]


def test_a_text_is_a_str() -> None:
    body = "Año: 12 € ```\n"
    text = Text(body, 0, 0, "name")
    assert isinstance(text, str)
    assert (repr(text), hash(text), text, f"{text}", str(text)) == (repr(body), hash(body), body, body, body)
    assert {str(text): 1, text: 2} == {body: 2}
    for plain in (
        text + "x",
        "x" + text,
        text.upper(),
        text.replace("A", "B"),
        str(text),
        f"{text}",
        "{}".format(text),  # noqa: UP032
    ):
        assert type(plain) is str
    assert "".join(["x", text]) == "x" + body
    assert re.findall(r"\d+", text) == ["12"]
    assert json.loads(json.dumps({"t": text, text: 1})) == {"t": body, body: 1}
    assert text[0] == "A" and type(text[0]) is str
    assert sorted([text, "B"]) == [text, "B"]


def test_a_text_survives_pickle_and_copy() -> None:
    text = Text("some text", 4, 9, "name")[5:]
    twins: list[Any] = [pickle.loads(pickle.dumps(text)), copy.copy(text), copy.deepcopy([text])[0]]
    for twin in twins:
        assert placed(twin) == (4, 14, "text")
        assert twin.name == "name"


def test_texts_in_pandas(documents: Documents) -> None:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(list(documents))
    assert series.str.contains("Fee").tolist() == [True, True, False]
    frame = pandas.DataFrame({"text": list(documents), "name": documents.names})
    assert frame.loc[frame["name"] == "notes.md", "text"].item() == CONTRACTS["notes.md"]


def test_five_megabytes_are_printed_whole() -> None:
    out = io.StringIO()
    with redirect_stdout(out):
        print(Text("line\n" * (1 << 20), 0, 0, "big"))
    assert len(out.getvalue()) == 5 * (1 << 20) + 1


# -- one document


def test_one_document_is_its_text_and_can_be_used_like_several(single: Text) -> None:
    assert single == "one\ntwo\nthree"
    assert (single.name, single.names, single["a.txt"]) == ("a.txt", ["a.txt"], single)
    assert [placed(line) for line in single.lines()] == [(0, 0, "one"), (0, 4, "two"), (0, 8, "three")]
    assert [match.text for match in single.search("t.")] == ["tw", "th"]
    with pytest.raises(KeyError, match=r"no document is called 'b\.txt': did you mean 'a\.txt'"):
        single["b.txt"]


# -- several documents


def test_documents_by_number_slice_and_name(documents: Documents) -> None:
    assert len(documents) == 3
    assert documents.names == list(CONTRACTS)
    assert documents[0].name == "contracts/one.txt"
    assert placed(documents[-1]) == (2, 0, CONTRACTS["notes.md"])
    assert documents["notes.md"] is documents[2]
    some = documents[0:3:2]
    assert isinstance(some, Documents)
    assert some.names == ["contracts/one.txt", "notes.md"]
    assert [str(text) for text in documents] == list(CONTRACTS.values())
    assert documents[1] in documents[1:]
    assert documents[0] not in documents[1:]
    with pytest.raises(IndexError):
        documents[3]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("two.txt", "did you mean 'contracts/two.txt'?"),
        ("contracts/tow.txt", "did you mean 'contracts/two.txt', 'contracts/one.txt'?"),
        ("zzz", "see .names"),
    ],
)
def test_an_unknown_name_gets_the_close_ones(documents: Documents, name: str, says: str) -> None:
    with pytest.raises(KeyError) as caught:
        documents[name]
    assert caught.value.args[0] == f"no document is called {name!r}: {says}"


def test_in_says_what_to_use(documents: Documents) -> None:
    with pytest.raises(TypeError, match="name in documents.names"):
        "Fee" in documents  # noqa: B015


def test_the_repr_is_short_and_reads_nothing(documents: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "open_text", None)
    chars = sum(map(len, CONTRACTS.values()))
    expected = f"<3 documents, {chars} characters: contracts/one.txt, contracts/two.txt, notes.md>"
    assert repr(documents) == str(documents) == f"{documents}" == expected
    assert documents.chars == chars
    assert parts_of(documents[2:]) == [[2, 0, 19]]


def test_search_gives_matches_with_their_lines(documents: Documents) -> None:
    one, two = documents.search(r"Fee: (?P<amount>\d+)")
    assert (one.document, two.document) == ("contracts/one.txt", "contracts/two.txt")
    assert documents[two.document][two.start : two.end] == two.text == "Fee: 250"
    assert (two.group(1), two.group("amount"), two.groups()) == ("250", "250", ("250",))
    assert placed(one.line) == (0, 12, "Fee: 100 EUR")
    assert placed(two.line) == (1, 11, "Fee: 250 EUR")
    assert repr(two) == "<Match 'contracts/two.txt' 11:19 'Fee: 250'>"
    assert [str(match.line) for match in documents.search(r"fee\b", flags=re.I)] == [
        "Fee: 100 EUR", "Fee: 250 EUR", "no fee here",
    ]  # fmt: skip
    assert [str(match.line) for match in documents.search(r"Fee.*\n")] == ["Fee: 100 EUR", "Fee: 250 EUR"]
    [across] = documents.search(re.compile(r"250.*señal", re.S))
    assert across.line == "Fee: 250 EUR\nNote: señal"


def test_a_search_that_stops_says_so(documents: Documents) -> None:
    with pytest.warns(UserWarning, match="search stopped after limit=2, there is more: limit=None gives all"):
        assert len(documents.search(".", limit=2)) == 2
    assert len(documents.search("Fee", limit=2)) == 2
    assert len(documents.search("e", limit=None)) == sum(text.count("e") for text in CONTRACTS.values())


def test_lines_and_chunks_of_all_documents(documents: Documents) -> None:
    lines = [placed(line) for line in documents.lines()]
    assert lines[:4] == [(0, 0, "Title: One"), (0, 12, "Fee: 100 EUR"), (0, 26, "End"), (1, 0, "Title: Two")]
    assert len(lines) == 8
    chunks = documents.chunks(15)
    assert "".join(chunks) == "".join(CONTRACTS.values())
    assert {chunk.name for chunk in chunks} == set(CONTRACTS)


def test_texts_are_read_once_and_the_least_used_ones_leave(
    documents: Documents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    real = files.open_text

    def counted(path: str, *rest: Any) -> Any:
        opened.append(path)
        return real(path, *rest)

    monkeypatch.setattr(files, "open_text", counted)
    assert documents[0] is documents[0]
    assert len(opened) == 1
    list(documents)
    assert len(opened) == 3
    corpus = Corpus.from_texts(["a" * 60, "b" * 60, "c" * 60], tmp_path)
    small = Documents([Source(facts) for facts in corpus.worker_documents()], Store(180, 120))
    opened.clear()
    for number in (0, 1, 0, 2, 0, 1):
        small[number]
    assert len(opened) == 4


def test_a_context_needs_a_document() -> None:
    with pytest.raises(ValueError, match="at least one document"):
        build_context([])


def test_the_module_is_light() -> None:
    code = (
        "import sys, rlm_core.texts\n"
        "heavy = {'hashlib', 'difflib', 'json', 'pathlib', 'logging', 'asyncio', 'opentelemetry'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


# -- parts


class SubCallError:
    """Stands for the failed sub-call of the worker, which is known by its name only."""

    kind = "timeout"


def test_parts_of_texts_and_strings(documents: Documents) -> None:
    one, two = documents[0], documents[1]
    assert parts_of("plain") == ["plain"]
    assert parts_of(two[7:10]) == [[1, 7, 10]]
    assert parts_of(two[7:][:3].strip()) == [[1, 7, 10]]
    assert parts_of(one + "x") == [str(one) + "x"]
    assert parts_of(Text("made up")) == ["made up"]
    assert parts_of([one[:5], two[:4]]) == [[0, 0, 5], "\n\n", [1, 0, 4]]
    assert parts_of(("a", "b", one[:2], "c")) == ["a\n\nb\n\n", [0, 0, 2], "\n\nc"]
    assert parts_of(documents[:2]) == [[0, 0, len(one)], "\n\n", [1, 0, len(two)]]
    assert parts_of(["see", documents[2:]]) == ["see\n\n", [2, 0, 19]]
    assert parts_of([]) == []
    assert all(type(part) is not Text for part in parts_of([Text("x"), Text("y")]))


NOT_TEXT = "must be text (a str, a document, a slice), not {}: use str() or json.dumps()"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (12, "this " + NOT_TEXT.format("int")),
        (None, "this " + NOT_TEXT.format("NoneType")),
        ({"a": 1}, "this " + NOT_TEXT.format("dict")),
        (["a", 1.5], "snippet 2 of 2 " + NOT_TEXT.format("float")),
        ([["a"]], "snippet 1 of 1 " + NOT_TEXT.format("list")),
        (SubCallError(), "this is a failed sub-call (timeout): test `if reply:` before you use it"),
        (
            ["a", "b", SubCallError()],
            "snippet 3 of 3 is a failed sub-call (timeout): "
            "leave it out, for example [r for r in replies if r]",
        ),
    ],
)
def test_what_is_not_text_is_refused_in_one_sentence(value: object, says: str) -> None:
    with pytest.raises(TypeError) as caught:
        parts_of(value)
    assert str(caught.value) == says
