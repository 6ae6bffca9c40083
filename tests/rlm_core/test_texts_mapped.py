"""A mapped text does what the `str` would do, at places in code points, and never holds the whole of it."""

from __future__ import annotations

import copy
import json
import pickle
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_core.corpus import Corpus
from rlm_core.texts import (
    MappedText,
    Text,
    build_context,
    files,
    parts_of,
    pieces,
    re_functions,
    scan,
    take_given,
    take_touched,
)
from rlm_core.texts.documents import Documents
from rlm_core.texts.files import MappedFile, Source, Store
from rlm_core.texts.mapped import MappedText as Mapped
from rlm_core.texts.touched import note, note_whole

MIXED = st.text(st.sampled_from("ab \n\r\t\x85\u2028é€𝄞A1,"), min_size=1, max_size=80)
PART = st.text(st.sampled_from("ab \né€𝄞"), max_size=3)
PLACE = st.none() | st.integers(-90, 90)


class InMemory(MappedFile):
    """The bytes of a text as if they were mapped."""

    def __init__(self, source: Source, data: bytes) -> None:
        self._source = source
        self.bytes: Any = Findable(data)
        self.ascii = data.isascii()
        self._checkpoints = (0,)
        self._near = (0, 0)

    def is_unchanged(self) -> bool:
        return True


class Findable(bytes):
    """Bytes are enough of a map."""


def mapped(text: str, start: int = 0, end: int | None = None) -> MappedText:
    """A mapped text over characters `start` to `end` of a document."""
    data = text.encode()
    facts = {
        "number": 4, "name": "big.txt", "path": "big.txt", "bytes": len(data), "chars": len(text),
        "ascii": data.isascii(), "sha256": "", "mtime_ns": 0,
    }  # fmt: skip
    source, store = Source(facts), Store(len(data), 0)
    store._files.get(4, 1, lambda: InMemory(source, data))
    return MappedText(store, source, start, end)


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Limits at which a text of a few characters is a large one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "MOST_CHARS", 24)
        patch.setattr(scan, "MARGIN", 8)
        patch.setattr(scan, "WINDOW", 8)
        patch.setattr(pieces, "BLOCK", 4)
        patch.setattr("rlm_core.texts.mapped._BLOCK", 4)
        patch.setattr("rlm_core.texts.mapped._NEAR", 6)
        yield


@pytest.fixture(autouse=True)
def patched_re(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of `re` as a worker has them."""
    for name in ("search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn"):
        monkeypatch.setattr(re, name, getattr(re, name))
    re_functions.install()


def plain(value: Any) -> Any:
    """A result with every text as a plain str."""
    if isinstance(value, MappedText):
        return value.peek(0, len(value))
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (list, tuple, pieces.Lazy)):
        return [plain(item) for item in value]
    return value


def outcome(act: Callable[[], Any]) -> Any:
    """What an action gives, or the kind of its error."""
    try:
        return plain(act())
    except (ValueError, IndexError, TypeError) as error:
        return type(error)


def check_place(whole: MappedText, body: str, value: Any) -> None:
    """Every text in a result stands where it says."""
    for piece in value if isinstance(value, (list, tuple, pieces.Lazy)) else [value]:
        if isinstance(piece, Text | MappedText):
            offset = piece.start - whole.start
            assert piece.document == 4 and piece.name == "big.txt"
            assert body[offset : offset + len(piece)] == plain(piece)


# -- the methods of str


@given(body=MIXED, first=st.slices(90), second=st.slices(90), before=PART, behind=PART)
def test_slices_at_any_code_point(body: str, first: slice, second: slice, before: str, behind: str) -> None:
    text = mapped(before + body + behind, len(before), len(before + body))
    assert len(text) == len(body)
    piece = outcome(lambda: text[first])
    if piece is TypeError:  # too many for one str
        assert first.step not in (None, 1)
        return
    assert piece == body[first]
    if first.step in (None, 1):
        made = text[first]
        assert type(made) is (MappedText if len(body[first]) > 24 else Text)
        check_place(text, body, made)
        assert outcome(lambda: made[second]) in (body[first][second], TypeError)


@given(body=MIXED, place=st.integers(-90, 90))
def test_characters_by_number_and_in_order(body: str, place: int) -> None:
    text = mapped(body)
    assert outcome(lambda: text[place]) == outcome(lambda: body[place])
    assert "".join(text) == body


@given(body=MIXED, part=PART, start=PLACE, end=PLACE, before=PART, behind=PART)
def test_finding(body: str, part: str, start: int | None, end: int | None, before: str, behind: str) -> None:
    text = mapped(before + body + behind, len(before), len(before + body))
    assert (part in text) == (part in body)
    for name in ("find", "rfind", "index", "rindex", "count", "startswith", "endswith"):
        found = outcome(lambda: getattr(text, name)(part, start, end))  # noqa: B023
        assert found == outcome(lambda: getattr(body, name)(part, start, end)), name  # noqa: B023
    assert text.startswith(("zz", part)) == body.startswith(("zz", part))


@given(body=MIXED, part=st.none() | PART, most=st.integers(-1, 3), before=PART, behind=PART)
def test_cutting(body: str, part: str | None, most: int, before: str, behind: str) -> None:
    text = mapped(before + body + behind, len(before), len(before + body))
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("split", (part, most)), ("splitlines", ()), ("splitlines", (True,)),
        ("strip", ()), ("strip", ("ab\n",)), ("lstrip", ()), ("rstrip", ("é€",)),
    ]  # fmt: skip
    calls += [("partition", (part,)), ("rpartition", (part,))] if part is not None else []
    for name, args in calls:
        expected = outcome(lambda: getattr(body, name)(*args))  # noqa: B023
        assert outcome(lambda: getattr(text, name)(*args)) == plain(expected), (name, args)  # noqa: B023
        if not isinstance(expected, type):
            check_place(text, body, getattr(text, name)(*args))
    whole = Text(body, 4, text.start, "big.txt")
    assert plain(list(text.lines())) == plain(list(whole.lines()))


@given(body=MIXED, n=st.integers(1, 20), overlap=st.integers(0, 19))
def test_chunks_are_those_of_a_text(body: str, n: int, overlap: int) -> None:
    text, whole = mapped(body), Text(body, 4, 0, "big.txt")
    assert outcome(lambda: text.chunks(n, overlap)) == outcome(lambda: whole.chunks(n, overlap))
    if overlap < n:
        assert len(text.chunks(n, overlap)) == len(whole.chunks(n, overlap))
        check_place(text, body, text.chunks(n, overlap))


@given(body=MIXED, keys=st.lists(st.integers(-40, 40) | st.slices(40), min_size=1, max_size=5))
def test_lazy_sequences_are_indexed_like_lists(body: str, keys: list[Any]) -> None:
    """In any order of questions, on the same sequence."""
    for lazy, whole in (
        (mapped(body).splitlines(), body.splitlines()),
        (mapped(body).split(), body.split()),
        (mapped(body).chunks(3), Text(body).chunks(3)),
        (mapped(body).split("a")[::2], body.split("a")[::2]),
    ):
        for key in keys:
            assert outcome(lambda: lazy[key]) == outcome(lambda: whole[key])  # noqa: B023
        assert (len(lazy), plain(list(reversed(lazy)))) == (len(whole), plain(whole[::-1]))


@given(body=MIXED, other=MIXED)
def test_equality(body: str, other: str) -> None:
    text = mapped(body)
    assert text == body and body == text and text == mapped(body)
    assert (text == other) == (body == other) == (text == mapped(other))
    assert text != 5 and text == text


# -- regular expressions

PATTERNS = st.sampled_from(
    [
        "a", "ab", "é", "a|b", r"\w", r"\w\w?", r"\b", r"\bé", r"\d", r"\s{1,3}", r"^", r"(?m)^", r"(?m)$",
        r"(?m)^[ab]", r"[^a]", ".", "a*?", r"(a)(b)?", r"(?P<x>é)|(b)", r"(?i)A", r"(?<=a)b", r"(?<!a)b",
        r"a(?=b)", r"b(?!\n)", r"\Ba", r"(a|b){2}", r"€𝄞?", r"\Z", r"\Aa", r"(?s)a.", "", r"a\b", r"x*",
        r"[[a]", "$", r"(?x) a b", r"(?i:B)a", r"1+?,", r"\n(?:é)a?",
    ]
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:Possible nested set")
@settings(max_examples=300)
@given(body=MIXED, regex=PATTERNS, before=PART, behind=PART)
def test_matches_are_those_of_re_on_a_str(body: str, regex: str, before: str, behind: str) -> None:
    text = mapped(before + body + behind, len(before), len(before + body))
    found = list(re.finditer(regex, text))  # type: ignore[arg-type]
    expected = list(re.finditer(regex, body))
    assert [(m.regs, m.groups(), m.group(), m.lastindex) for m in found] == [
        (m.regs, m.groups(), m.group(), m.lastindex) for m in expected
    ]
    assert [m.groupdict() for m in found] == [m.groupdict() for m in expected]
    assert re.findall(regex, text) == re.findall(regex, body)  # type: ignore[call-overload]
    assert plain(re.split(regex, text)) == re.split(regex, body)  # type: ignore[call-overload]
    assert plain(re.split(regex, text, maxsplit=2)) == re.split(regex, body, maxsplit=2)  # type: ignore[call-overload]
    assert re.sub(regex, "<>", text) == re.sub(regex, "<>", body)  # type: ignore[call-overload]
    for name in ("search", "match", "fullmatch"):
        one, other = getattr(re, name)(regex, text), getattr(re, name)(regex, body)
        assert (one and (one.span(), one[0], one.start())) == (
            other and (other.span(), other[0], other.start())
        )
    hits = text.search(regex, None)
    assert [(h.start, h.end, h.text) for h in hits] == [(*m.span(), m.group()) for m in expected]
    whole = Text(body, 4, text.start, "big.txt").search(regex, None)
    assert [(h.line, h.groups()) for h in hits] == [(h.line, h.groups()) for h in whole]
    for hit in hits:
        check_place(text, body, [hit.text, hit.line])


@pytest.mark.filterwarnings("ignore:Possible nested set")
@given(body=MIXED, regex=PATTERNS)
def test_a_required_string_is_in_every_match(body: str, regex: str) -> None:
    literal, whole = scan.required(re.compile(regex))
    for match in re.finditer(regex, body):
        assert literal in match.group()
        assert not whole or literal == match.group()


def test_a_match_that_grows_gets_room_up_to_a_limit() -> None:
    body = "x" * 30 + "a" + "é" * 20 + "b" + "x" * 30
    assert re.findall("é+b?", mapped(body)) == ["é" * 20 + "b"]  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="begins at 0 has more than 24 characters"):
        re.findall("(?s).*", mapped(body))  # type: ignore[call-overload]


def test_a_compiled_pattern_refuses_and_the_reason_can_be_said() -> None:
    with pytest.raises(TypeError) as caught:
        re.compile("a").search(mapped("a" * 30))  # type: ignore[call-overload]
    assert "re.findall(pattern, text)" in re_functions.refused(f"TypeError: {caught.value}")
    assert re_functions.refused("TypeError: expected string or bytes-like object, got 'int'") == ""
    with pytest.raises(TypeError, match="bytes pattern"):
        re.search(b"a", mapped("a" * 30))  # type: ignore[call-overload]


# -- what is not done over gigabytes


@pytest.mark.parametrize(
    "act",
    [
        lambda text: f"{text}", lambda text: format(text, ">9"), lambda text: text + "x",
        lambda text: "x" + text, lambda text: text * 2, lambda text: pickle.dumps(text),
        lambda text: text[::-1],
    ],
)  # fmt: skip
def test_what_would_need_it_whole_says_what_to_use(act: Callable[[MappedText], Any]) -> None:
    with pytest.raises(TypeError) as caught:
        act(mapped("a" * 30))
    said = str(caught.value)
    assert said.startswith("a text of 30 characters is never held as one str, ") and "\n" not in said
    assert ".search(regex), .lines(), .chunks(n) or a slice" in said


@pytest.mark.parametrize("name", ["lower", "upper", "replace", "encode", "title", "join", "zfill"])
def test_a_missing_method_says_what_to_use(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"30 characters has no \.{name}\(\): use \.search\(regex\)"):
        getattr(mapped("a" * 30), name)
    with pytest.raises(AttributeError, match="no attribute 'lowr'"):
        _ = mapped("a" * 30).lowr


def test_descriptions_are_short_and_copies_are_the_same() -> None:
    text = mapped("é" * 99)
    begins = "é" * 60
    assert repr(text) == str(text) == f"<a text of 99 characters from 'big.txt' that begins {begins!r}>"
    assert copy.copy(text) is text and copy.deepcopy([text])[0] is text
    with pytest.raises(TypeError, match="unhashable"):
        hash(text)
    with pytest.raises(TypeError, match="not JSON serializable"):
        json.dumps(text)
    assert len(repr(text.splitlines())) < 300 and repr(text.splitlines()).startswith("<a sequence made as")
    assert (text.name, text.names, text["big.txt"]) == ("big.txt", ["big.txt"], text)
    with pytest.raises(KeyError, match="did you mean 'big.txt'"):
        text["big.tx"]


# -- places


def test_parts_of_a_mapped_text_are_places() -> None:
    text = mapped("ab" * 50)
    assert parts_of(text) == [[4, 0, 100]]
    assert parts_of(["see", text[10:60], text[2:4]]) == ["see\n\n", [4, 10, 60], "\n\n", [4, 2, 4]]


def test_what_was_looked_at_is_noted_once() -> None:
    take_touched()
    text = mapped("line\n" * 20)
    text.find("line", 50)
    text.count("e")
    assert text == "line\n" * 20
    assert take_touched() == []
    for start in (10, 12, 80):
        text[start : start + 5]
    text.search("ne\nl", limit=None)
    assert take_touched() == [[4, 0, 99]]
    text[3:5]
    text[40:45]
    assert take_touched() == [[4, 3, 5], [4, 40, 45]]
    assert take_touched() == []


def test_what_a_cell_was_given_is_noted_apart_from_the_calls_it_made() -> None:
    take_given()
    text = mapped("line\n" * 20)
    text[10:15]
    take_touched()
    text[12:20]
    assert take_given() == {"whole": [], "parts": [[4, 10, 20]], "left_out": 0}
    assert take_given() == {"whole": [], "parts": [], "left_out": 0}


def test_documents_that_were_given_whole_are_ranges_of_numbers() -> None:
    take_given()
    for number in (7, 3, 4, 5, 3):
        note_whole(number, 10)
    note(4, 2, 6)
    note(9, 2, 6)
    assert take_given() == {"whole": [[3, 5], [7, 7]], "parts": [[9, 2, 6]], "left_out": 0}


def test_what_is_too_much_to_be_listed_is_counted() -> None:
    take_given()
    for start in range(0, 24_000, 3):
        note(1, start, start + 1)
    for number in range(0, 4_000, 2):
        note_whole(number, 10)
    given = take_given()
    assert len(given["parts"]) == len(given["whole"]) == 1_000
    assert given["parts"][0] == [1, 0, 1] and given["left_out"] == 7_000 + 1_000


def test_a_text_that_was_made_up_is_not_noted() -> None:
    take_touched()
    assert Text("made up").search("up")
    assert take_touched() == []


def test_the_last_of_many_windows_are_kept() -> None:
    take_touched()
    text = mapped("x" * 20_000)
    for start in [*range(0, 19_000, 4), *range(19_000, 20_000, 10)]:
        text[start : start + 2]
    windows = take_touched()
    assert len(windows) == 1_000
    assert windows[-1] == [4, 19_990, 19_992] and windows[0][1] > 10_000
    assert all(start < end for _, start, end in windows)


# -- real files


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Documents]:
    """Two documents, the second one long, of characters of every length; the corpus counts as a large one."""
    chosen = random.Random(7)
    body = "".join(chosen.choices("ab é€𝄞\n", weights=[9, 9, 3, 2, 1, 1, 1], k=400_000))
    corpus = Corpus.from_texts(
        {"small.txt": "é" * 70_000, "big.txt": body}, tmp_path_factory.mktemp("corpora")
    )
    sources = [Source(facts) for facts in corpus.worker_documents()]
    return body, Documents(sources, Store(sum(source.size for source in sources), 1_000))


def test_places_in_a_file_are_found_by_its_checkpoints(large: tuple[str, Documents]) -> None:
    body, documents = large
    text = documents["big.txt"]
    assert type(text) is Mapped and len(text) == len(body)
    chosen = random.Random(8)
    for _ in range(300):
        start = chosen.randrange(len(body))
        assert text[start : start + 20] == body[start : start + 20]
        needle = body[start : start + 9]
        assert text.find(needle, start) == start
        assert text.rfind(needle, 0, start + 9) == start
    assert text.count("€") == body.count("€")
    assert len(text.split("\n")) == body.count("\n") + 1


def test_the_jump_to_a_rare_string_keeps_all_matches(large: tuple[str, Documents]) -> None:
    body, documents = large
    rare = [body[place : place + 10] for place in (5, 200_000, 399_980)]
    for part in rare:
        pattern = rf"\w?{re.escape(part)}\s?"
        [expected] = [match.span() for match in re.finditer(pattern, body)][:1]
        [found] = documents["big.txt"].search(pattern, limit=None)[:1]
        assert (found.start, found.end) == expected


def test_a_file_that_changes_is_refused_at_the_next_use(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("line\n" * 20)
    corpus = Corpus.add([path], tmp_path / "corpora")
    [source] = [Source(facts) for facts in corpus.worker_documents()]
    text = MappedText(Store(1, 0), source)
    assert text[:4] == "line"
    path.write_text("line\n" * 20)  # the same contents: only the time is another
    assert text[5:9] == "line"
    path.write_text("LINE\n" * 20)
    with pytest.raises(OSError, match="has changed since it was added to the corpus: add the corpus again"):
        text[:4]
    path.unlink()
    with pytest.raises(OSError, match="cannot be read any more"):
        MappedText(Store(1, 0), source)[:4]


def test_many_large_documents_share_a_few_open_files(tmp_path: Path) -> None:
    corpus = Corpus.from_texts([f"{number}" * 40 for number in range(1, 150)], tmp_path)
    sources = [Source(facts) for facts in corpus.worker_documents()]
    documents = Documents(sources, Store(10_000, 0))
    before = len(list(Path("/dev/fd").iterdir()))
    assert [text[0] for text in documents] == [str(number)[0] for number in range(1, 150)]
    assert len(list(Path("/dev/fd").iterdir())) - before <= 2 * files._OPEN_FILES
    chunks = documents.chunks(30)
    assert (len(chunks), chunks[-1].document) == (sum(-(-len(text) // 30) for text in documents), 148)
    assert [match.document for match in documents.search("^7{3}", None)] == ["text-7", "text-77"]


def test_a_corpus_of_at_most_64_mb_is_real_strings(tmp_path: Path) -> None:
    _, documents = build_context(Corpus.from_texts(["a" * 100, "b"], tmp_path).worker_documents())
    assert not documents.are_mapped and [type(text) for text in documents] == [Text, Text]
