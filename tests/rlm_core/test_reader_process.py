"""The child process that reads one file: whatever it does costs that file one line, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_core.corpus import Corpus, Progress
from rlm_core.errors import CorpusError
from rlm_core.readers import Unreadable, process
from rlm_core.readers.result import take_result
from rlm_core.worker import lock
from tests.support.processes import lives

ROOT = Path(__file__).parents[2]
# A child whose PDF reader is the source text in the file `reader.py`, beside the file that is read.
FAKE = (
    "import os, sys, types; sys.path.append(sys.argv.pop(1)); import json\n"
    "path = json.loads(sys.argv[-1])['path']\n"
    "fake = types.ModuleType('rlm_core.readers.formats.pdf')\n"
    "exec(open(os.path.join(os.path.dirname(path), '.reader.py')).read(), fake.__dict__)\n"
    "sys.modules[fake.__name__] = fake\n"
    "from rlm_core.readers.child import main; main()"
)
Add = Callable[..., Corpus]


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Add:
    """Add a folder with a.txt, b.pdf and c.txt, where PDF documents are read by this body of `read`."""
    monkeypatch.setattr(process, "_BOOT", FAKE)

    def add(body: str, **more: Any) -> Corpus:
        folder = tmp_path / "docs"
        folder.mkdir()
        (folder / "a.txt").write_text("first")
        (folder / "b.pdf").write_text("%PDF-1.7")
        (folder / "c.txt").write_text("last")
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        (folder / ".reader.py").write_text(f"import os, sys, time\ndef read(path, out):\n{lines}")
        return Corpus.add([folder], tmp_path / "corpora", **more)

    return add


def problem(corpus: Corpus) -> str:
    """The one line about b.pdf; the other files are read."""
    assert [d.name for d in corpus.documents] == ["a.txt", "c.txt"]
    [line] = [p.message for p in corpus.problems if p.path.endswith("b.pdf")]
    assert line and "\n" not in line
    return line


def test_text_sections_remarks_and_attachments(add: Add) -> None:
    corpus = add(
        "out.section('page', '1'); out.write('señal\\n'); out.write('\\f')\n"
        "out.section('page', '2'); out.write('zwei\\0\\ud800'); out.end_section(); out.write('tail')\n"
        "out.remark('two\\nlines'); out.attach('../x/in.txt', b'inside'); out.attach('in.pdf.gz', b'bad')\n"
        "out.problem('lost.bin', 'was lost')"
    )
    names = [d.name for d in corpus.documents]
    assert names == ["a.txt", "b.pdf", "b.pdf/x/in.txt", "b.pdf/in.pdf.gz", "c.txt"]
    document = corpus.documents[1]
    text = "señal\n\fzwei\ufffd\ufffdtail"
    assert corpus.text(1, 0, document.chars) == text
    assert (document.reader, document.media_type, document.in_place) == ("pdf", "application/pdf", False)
    assert document.problems == ("two\\nlines", "2 characters that cannot be stored are shown as U+FFFD")
    facts = [(s.kind, s.label, s.start, s.end, s.start_byte, s.end_byte) for s in document.sections]
    assert facts == [("page", "1", 0, 7, 0, 8), ("page", "2", 7, 13, 8, 18)]
    assert [corpus.place(1, *corpus.byte_range(1, a, b)) for a, b in ((0, 3), (5, 9), (8, 8), (13, 15))] == [
        "page 1", "pages 1-2", "page 2", None,
    ]  # fmt: skip
    assert corpus.text(2, 0, 6) == "inside"
    assert [(Path(p.path).name, p.message) for p in corpus.problems if "docs/b.pdf/" in p.path] == [
        ("lost.bin", "was lost")
    ]
    loaded = Corpus.load(corpus.folder.parent, corpus.corpus_id)
    assert (loaded.documents, loaded.problems) == (corpus.documents, corpus.problems)
    recorded = json.loads(corpus.record_json())["documents"]
    assert recorded[1]["sections"] == [["page", "1", 0, 8], ["page", "2", 8, 18]]
    assert "sections" not in recorded[0]


def test_columns_of_a_table_reach_the_worker(add: Add) -> None:
    corpus = add(
        "out.table = 'sheets'; out.media_type = 'text/x-own'\n"
        "out.write('# Sheet: Costs\\n'); out.section('sheet', 'Costs', {'name': 'text', 'sum': 'number'})\n"
        "out.write('name,sum\\na,1\\n')"
    )
    facts = json.loads(json.dumps(corpus.worker_documents()))
    assert facts[1]["table"] == "sheets"
    assert facts[1]["sections"] == [["sheet", "Costs", 15, 28, {"name": "text", "sum": "number"}]]
    assert corpus.documents[1].media_type == "text/x-own"
    assert corpus.place(1, 16, 17) == "sheet Costs"
    assert "table" not in facts[0] and "sections" not in facts[0]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "from rlm_core.readers import Unreadable\nraise Unreadable('locked by\\na password')",
            "locked by\\na",
        ),
        ("raise KeyError('trailer')", "cannot be read, it may be damaged: KeyError: 'trailer'"),
        ("read(path, out)", "is nested too deeply to read"),
        ("out.write('')", "a PDF document without text"),
        ("out.write(3)", "it may be damaged: TypeError"),
        ("os.abort()", "its reader crashed (SIGABRT)"),
        ("os._exit(7)", "its reader failed"),
        ("os._exit(0)", "gave no proper result"),
        ("sys.exit(0)", "gave no proper result"),
        ("open('result', 'w').write('[' * 100_000); os._exit(0)", "gave no proper result"),
        ("out.section('page', '1'); out._chars = 9; out.write('x')", "gave no proper result"),
    ],
)
def test_a_reader_that_fails_costs_one_line(add: Add, body: str, says: str) -> None:
    assert says in problem(add(body))


def test_a_reader_that_hangs_is_ended(add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_SECONDS", 1)
    assert "was not read within 1 seconds" in problem(add("time.sleep(1000)"))


@pytest.fixture
def small_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for 1 MB on disk, and for 256 MB in memory."""
    caps = process.Caps(60, 1 << 28, 1 << 20, 10, 1 << 20)
    monkeypatch.setattr(process.Caps, "of", lambda *sizes: caps)


@pytest.mark.needs("linux")
def test_a_reader_that_takes_too_much_memory_is_named(add: Add, small_caps: None) -> None:
    says = problem(add("x = []\nwhile True: x.append(bytearray(1 << 26))"))
    assert "needs more than 256 MB of memory" in says


@pytest.mark.needs("posix")
def test_a_text_that_never_ends_is_named(add: Add, small_caps: None) -> None:
    assert "holds more than 1 MB" in problem(add("while True: out.write('x' * 100_000)"))


def test_files_that_never_end_are_named(add: Add, small_caps: None) -> None:
    body = "for n in range(10**9):\n    open(str(n), 'wb').write(b'x' * 900_000)"
    assert "takes more than 2 MB when it is read" in problem(add(body))


def test_attachments_that_never_end_are_named(add: Add, small_caps: None) -> None:
    assert "unpacks to more than 1 MB" in problem(add("while True: out.attach('a', b'x' * 400_000)"))


def test_many_attachments_are_named(add: Add, small_caps: None) -> None:
    assert "holds more than 10 files" in problem(add("while True: out.attach('a', b'x')"))


def test_a_full_disk_is_one_sentence_and_leaves_nothing(add: Add, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="No space left on device.: free some space there"):
        add("raise OSError(28, 'No space left on device')")
    assert list((tmp_path / "corpora").iterdir()) == []


@pytest.mark.needs("posix")
def test_a_reader_sees_no_key_and_no_open_file(
    add: Add, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    (tmp_path / "secret").write_text("open")
    with open(tmp_path / "secret") as secret:
        os.set_inheritable(secret.fileno(), True)
        corpus = add(
            "found = []\n"
            "for n in range(64):\n"
            "    try: found.append((n, os.fstat(n).st_ino))\n"
            "    except OSError: pass\n"
            "null = os.stat('/dev/null').st_ino\n"
            "out.write(repr([n for n, inode in found if n < 3 and inode != null or inode == "
            f"{os.fstat(secret.fileno()).st_ino}]) + ' ' + repr(sorted(os.environ)))"
        )
    text = corpus.text(1, 0, corpus.documents[1].chars)
    assert text.startswith("[] ")
    assert "KEY" not in text and "RLMSCOPE" not in text


@pytest.mark.needs("linux")
def test_a_reader_is_locked_in(add: Add, tmp_path: Path) -> None:
    if lock.untested():
        pytest.skip(f"another system: {lock.untested()}")
    outside = tmp_path / "outside.txt"
    outside.write_text("private")
    corpus = add(
        "import socket, subprocess\n"
        "def tried(what):\n"
        "    try: what()\n"
        "    except Exception as error: return type(error).__name__\n"
        "    return 'done'\n"
        f"out.write(tried(lambda: open({str(outside)!r}).read()) + ' ')\n"
        f"out.write(tried(lambda: open({str(outside)!r} + '2', 'w')) + ' ')\n"
        "out.write(tried(lambda: os.symlink('/etc/passwd', 'link')) + ' ')\n"
        "out.write(tried(lambda: socket.socket()) + ' ')\n"
        "out.write(tried(lambda: subprocess.run(['/bin/true'])) + ' ')\n"
        "out.write(tried(lambda: open('inside.txt', 'w').write('x')) + ' ')\n"
        "out.write(open(path).read())"
    )
    denied, said = ["PermissionError"] * 5 + ["done"], corpus.text(1, 0, corpus.documents[1].chars).split()
    assert (said[:6], said[6:]) == (denied, ["%PDF-1.7"])


def test_results_come_in_the_order_of_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_BOOT", FAKE)
    (tmp_path / ".reader.py").write_text(
        "import time\n"
        "def read(path, out):\n    n = int(path[-5]); time.sleep((4 - n) / 10); out.write(str(n))"
    )
    for number in range(5):
        (tmp_path / f"{number}.pdf").write_text("%PDF-")
    corpus = Corpus.add([tmp_path], tmp_path / "corpora")
    assert [corpus.text(n, 0, 1) for n in range(5)] == ["0", "1", "2", "3", "4"]


@pytest.mark.needs("linux")
def test_a_reader_dies_with_the_add_and_the_next_add_tidies_up(tmp_path: Path) -> None:
    folder, corpora = tmp_path / "docs", tmp_path / "corpora"
    folder.mkdir()
    (folder / "b.pdf").write_text("%PDF-1.7")
    (folder / ".reader.py").write_text(
        "import os, time\n"
        "def read(path, out):\n    open('pid', 'w').write(str(os.getpid()) + '.'); time.sleep(1000)"
    )
    code = (
        "import sys; from pathlib import Path; from rlm_core.readers import process\n"
        f"process._BOOT = {FAKE!r}\n"
        "from rlm_core.corpus import Corpus; Corpus.add([Path(sys.argv[1])], Path(sys.argv[2]))"
    )
    adding = subprocess.Popen([sys.executable, "-c", code, str(folder), str(corpora)], cwd=ROOT)
    pid = int(_wait_for(lambda: _text_of(corpora, ".adding-*/reading/*/pid"))[:-1])
    (folder / "b.pdf").unlink()
    (folder / "a.txt").write_text("text")
    Corpus.add([folder], corpora)
    assert list(corpora.glob(".adding-*/reading")) != [], "an add that goes on is left alone"
    adding.kill()
    adding.wait()
    _wait_for(lambda: not lives(pid))
    corpus = Corpus.add([folder], corpora)
    assert [path.name for path in corpora.iterdir()] == [corpus.corpus_id]


@pytest.mark.needs("linux")
def test_ctrl_c_ends_readers_and_leaves_nothing(tmp_path: Path, add: Add) -> None:
    pids: list[int] = []

    def progress(now: Progress) -> None:
        if said := _text_of(tmp_path / "corpora", ".adding-*/reading/*/pid"):
            pids.append(int(said[:-1]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        add("open('pid', 'w').write(str(os.getpid()) + '.'); time.sleep(1000)", progress=progress)
    assert not lives(pids[0])
    assert list((tmp_path / "corpora").iterdir()) == []


def _text_of(folder: Path, pattern: str) -> str:
    for path in folder.glob(pattern):
        text = path.read_text()
        if text.endswith("."):
            return text
    return ""


def _wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


# -- results that make no sense


GOOD: dict[str, Any] = {
    "media_type": "", "table": "", "remarks": [], "problems": [], "attached": [], "pictures": [],
    "sections": [["page", "1", 0, 2, None], ["page", "2", 2, 3, {"a": "text"}]],
}  # fmt: skip


def left_behind(folder: Path, result: Any, text: bytes = b"abc") -> Path:
    (folder / "text").write_bytes(text)
    (folder / "result").write_text(result if isinstance(result, str) else json.dumps(result))
    return folder


def test_a_good_result_is_taken(tmp_path: Path) -> None:
    result = take_result(left_behind(tmp_path, GOOD))
    assert result.measured is not None and result.measured.chars == 3
    assert [(s.label, s.start_byte, s.end_byte, s.columns) for s in result.sections] == [
        ("1", 0, 2, None), ("2", 2, 3, {"a": "text"}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"media_type": "<script>"}, {"media_type": 3}, {"table": "csv\n"}, {"remarks": "x"}, {"remarks": [3]},
        {"sections": [["page", "1", 0, 4, None]]}, {"sections": [["page", "1", 2, 1, None]]},
        {"sections": [["page", "1", -1, 1, None]]}, {"sections": [["page", "1", 0, True, None]]},
        {"sections": [["page", "1", 0, 2, None], ["page", "2", 1, 3, None]]}, {"sections": [["page", "1"]]},
        {"sections": [["chapter", "1", 0, 1, None]]}, {"sections": [["page", 1, 0, 1, None]]},
        {"sections": [["sheet", "1", 0, 1, {"a": "money"}]]}, {"sections": [["sheet", "1", 0, 1, ["a"]]]},
        {"sections": [["sheet", "1", 0, 1, {"a": []}]]}, {"sections": [["page", "1", 0, 1.0, None]]},
        {"attached": [["x", "../../secret"]]}, {"attached": [["x", "7"]]}, {"attached": [["x", "result"]]},
        {"attached": ["x"]}, {"attached": [["x", "0"], ["y", "0"]]}, {"problems": [["x"]]},
    ],
)  # fmt: skip
def test_a_result_that_makes_no_sense_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "0").write_text("attached")
    with pytest.raises(Unreadable, match="gave no proper result"):
        take_result(left_behind(tmp_path, {**GOOD, **change}))


@pytest.mark.parametrize("text", [b"\xff\xfe", b"ab\0", b"\xed\xa0\x80", b"abc\xc3"])
def test_a_text_that_is_no_utf8_is_refused(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(Unreadable, match="gave no proper result"):
        take_result(left_behind(tmp_path, {**GOOD, "sections": []}, text))


@pytest.mark.needs("posix")
@pytest.mark.parametrize("name", ["result", "text", "0"])
@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_a_link_for_a_file_is_refused(tmp_path: Path, name: str, make: Callable[[Path, Path], None]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "0").write_text("attached")
    left_behind(folder, {**GOOD, "attached": [["x", "0"]]})
    (folder / name).rename(tmp_path / "other")
    make(tmp_path / "other", folder / name)
    with pytest.raises(Unreadable, match="gave no proper result"):
        take_result(folder)


def test_lines_of_a_reader_are_short_printable_and_few(tmp_path: Path) -> None:
    lines = {"remarks": ["\x1b[2J" + "x" * 9999] * 999, "problems": [["a\n", "\ud800"]] * 9999}
    result = take_result(left_behind(tmp_path, {**GOOD, **lines}))
    assert len(result.remarks) == 21 and len(result.remarks[0]) == 300
    assert result.remarks[0].startswith("\\x1b[2J") and result.remarks[-1] == "more remarks"
    assert len(result.problems) == 2001 and result.problems[0] == ("a\\n", "\ufffd")
    with pytest.raises(Unreadable) as caught:
        take_result(left_behind(tmp_path, {"unreadable": "x\n" * 9999}))
    assert len(str(caught.value)) == 300 and "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=9),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from([*GOOD, "failed", "x"]), inner)
    ),
    max_leaves=20,
)


@settings(max_examples=40)
@given(result=JSON, section=st.lists(JSON, min_size=5, max_size=5), text=st.binary(max_size=9))
def test_whatever_a_reader_leaves_is_taken_or_named(
    tmp_path_factory: Any, result: Any, section: list[Any], text: bytes
) -> None:
    folder = tmp_path_factory.mktemp("left")
    for facts in (
        result,
        {**GOOD, "sections": [section]},
        {**GOOD, "sections": [["page", "1", *section[:3]]]},
    ):
        try:
            taken = take_result(left_behind(folder, facts, text))
        except Unreadable as error:
            assert str(error) and "\n" not in str(error)
        else:
            text.decode("utf-8")
            assert taken.measured is None or taken.measured.bytes == len(text)


@settings(max_examples=40)
@given(data=st.data(), text=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_places_of_sections_in_bytes(tmp_path_factory: Any, data: Any, text: str) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    sections = [["page", "x", a, b, None] for a, b in zip(cuts, cuts[1:], strict=False)]
    folder = tmp_path_factory.mktemp("sections")
    result = take_result(left_behind(folder, {**GOOD, "sections": sections}, text.encode()))
    for section in result.sections:
        assert (
            text.encode()[section.start_byte : section.end_byte].decode() == text[section.start : section.end]
        )
