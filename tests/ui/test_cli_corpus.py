"""corpus add, list, show, remove; asking over what was added; progress, Ctrl-C, hostile names."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus, Progress
from traces.home import Home
from traces.recording import open_recording
from ui import corpora
from ui.adding import AddProgress, fraction

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0  # seconds; only a hung test waits so long
EVIL = "x\x1b[31m\x07 [red]m[bold] :smile: \u202etxt.\x9b\u200b\u2028"
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u202a-\u202e]")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Three texts, one in an older encoding, among files that cannot be documents."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "one.txt").write_text("one refund\n")
    (folder / "two.md").write_text("two\n")
    (folder / "old.txt").write_bytes(b"caf\xe9\n")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    (folder / "empty.txt").touch()
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    return folder


def ids(home: Home) -> list[str]:
    return [info.corpus_id for info in Corpus.list(home.corpora)]


# -- add


def test_broken_files_among_good_ones_are_one_line_each(
    call: Callable[..., Any], docs: Path, home: Home
) -> None:
    result = call("corpus", "add", str(docs), "--json")
    document = result.json
    assert result.code == 0 and ids(home) == [document["corpus_id"]]
    assert {key: document[key] for key in ("name", "documents", "chars", "bytes")} == {
        "name": "docs", "documents": 3, "chars": 20, "bytes": 21,
    }  # fmt: skip
    named = [Path(problem["path"]).name for problem in document["problems"]]
    assert named == ["broken.pdf", "empty.txt", "picture.png", "old.txt"]
    assert result.err.splitlines() == [f"{p['path']}: {p['message']}" for p in document["problems"]]


def test_people_get_counts_and_the_next_command(call: Callable[..., Any], docs: Path, home: Home) -> None:
    result = call("corpus", "add", str(docs), "--name", "Mixed  bag")
    (corpus_id,) = ids(home)
    assert result.out.splitlines() == [
        f"corpus {corpus_id} (Mixed bag): 3 documents, 20 characters, 21 bytes",
        "3 files or folders above are not in it",
        "1 remark above on how documents were read",
        f"go on: rlmscope ask QUESTION {corpus_id} --home {home.root}",
    ]


def test_the_same_documents_are_the_same_corpus(call: Callable[..., Any], docs: Path, home: Home) -> None:
    first, again = (call("corpus", "add", str(docs), "--json").json for _ in range(2))
    assert first == again and ids(home) == [first["corpus_id"]]


def test_an_encoding_is_taken_at_its_word(call: Callable[..., Any], docs: Path, home: Home) -> None:
    call("corpus", "add", str(docs / "old.txt"), "--encoding", "iso8859-5")
    (corpus_id,) = ids(home)
    assert Corpus.load(home.corpora, corpus_id).text(0, 0, 4) == "cafщ"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.txt"], "does not exist"),
        (["docs/empty.txt"], "an empty file"),
        (["docs", "--encoding", "klingon"], "there is no text encoding 'klingon'"),
        (["docs", "--name", " "], "the name of a corpus"),
        ([], "Missing argument 'PATH...'"),
        ([""], "an empty text names no file or folder"),
    ],
)
def test_what_cannot_be_added_is_one_sentence(
    call: Callable[..., Any], docs: Path, home: Home, words: list[str], said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(docs.parent)
    result = call("corpus", "add", *words, "--json")
    assert (result.code, result.out) == (2, "") and said in result.error
    assert list(home.corpora.iterdir()) == []


# -- list and show


def test_an_empty_home_says_what_to_do(call: Callable[..., Any]) -> None:
    assert call("corpus", "list").out == "no corpora yet; add one with: rlmscope corpus add PATH\n"
    assert call("corpus", "list", "--json").json == []


def test_the_list_has_every_corpus_also_one_that_is_broken(
    call: Callable[..., Any], docs: Path, home: Home
) -> None:
    good = call("corpus", "add", str(docs), "--json").json
    bad = call("corpus", "add", str(docs / "one.txt"), "--json").json["corpus_id"]
    (home.corpora / bad / "manifest.json").write_text("{}")
    listed = {entry["corpus_id"]: entry for entry in call("corpus", "list", "--json").json}
    assert {key: listed[good["corpus_id"]][key] for key in good} == good
    assert listed[bad]["documents"] is None and listed[bad]["chars"] is None
    assert [problem["path"] for problem in listed[bad]["problems"]] == [bad]
    shown = call("corpus", "list").out
    assert re.search(rf"(?m)^{bad} +\(cannot be used: .* \? +\? +\? +\?", shown)
    assert re.search(rf"(?m)^{good['corpus_id']} +docs +3 +20 +21 bytes +3 ", shown)
    assert call("corpus", "show", bad).code == 2


def test_show_takes_an_id_a_prefix_or_a_name(call: Callable[..., Any], docs: Path) -> None:
    corpus_id = call("corpus", "add", str(docs), "--name", "Mine", "--json").json["corpus_id"]
    shown = [call("corpus", "show", ref, "--json").json for ref in (corpus_id, corpus_id[:5], "Mine")]
    assert shown[0] == shown[1] == shown[2]
    assert (shown[0]["readers"], shown[0]["pages"], shown[0]["runs"]) == ({"text": 3}, None, [])
    by_name = {document["name"]: document for document in shown[0]["document_list"]}
    assert list(by_name) == ["old.txt", "one.txt", "two.md"]
    assert by_name["two.md"]["kind"] == "Markdown" and by_name["one.txt"]["in_place"]
    assert by_name["old.txt"]["remarks"] == ["read as cp1252 (guessed)"]


def test_a_name_of_two_corpora_is_said_to_be_ambiguous(call: Callable[..., Any], docs: Path) -> None:
    for name in ("one.txt", "two.md"):
        call("corpus", "add", str(docs / name), "--name", "twice")
    result = call("corpus", "show", "twice")
    assert result.code == 2 and "means several corpora" in result.error
    assert "no corpus has the id or name 'thrice'" in call("corpus", "show", "thrice").error


def test_show_names_every_problem_and_every_changed_file(call: Callable[..., Any], docs: Path) -> None:
    call("corpus", "add", str(docs))
    (docs / "one.txt").write_text("another text\n")
    (docs / "two.md").unlink()
    out = call("corpus", "show", "docs").out
    problems, changed = out.split("\nnot in it:\n")[1].split("\n\n")
    assert [line.split(": ")[0].rsplit("/")[-1] for line in problems.splitlines()] == [
        "broken.pdf", "empty.txt", "picture.png",
    ]  # fmt: skip
    assert changed.splitlines() == [
        "changed or gone since then (2 files), so add the corpus again:",
        "one.txt",
        "two.md",
    ]
    assert call("corpus", "show", "docs", "--json").json["changed"] == ["one.txt", "two.md"]


def test_a_long_list_of_documents_says_that_it_is_cut(call: Callable[..., Any], home: Home) -> None:
    Corpus.from_texts({f"d{n}": "text" for n in range(60)}, home.corpora, name="many")
    short = call("corpus", "show", "many").out
    assert "50 of 60 documents; --limit 0 lists all" in short and "d49 " in short and "d50 " not in short
    assert "d59 " in call("corpus", "show", "many", "--limit", "0").out
    assert len(call("corpus", "show", "many", "--json").json["document_list"]) == 60


def test_nothing_is_wider_than_the_terminal(
    call: Callable[..., Any], home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    Corpus.from_texts({"日本語" * 60: "text"}, home.corpora, name="名" * 90)
    from rich.cells import cell_len

    for words in (("list",), ("show", "名" * 90)):
        for line in call("corpus", *words).out.splitlines()[-2:]:
            assert cell_len(line) <= 80


# -- remove


def test_rename_changes_the_name_only(call: Callable[..., Any], docs: Path) -> None:
    added = call("corpus", "add", str(docs), "--json").json
    renamed = call("corpus", "rename", added["corpus_id"][:6], "Papers", "--json").json
    assert (renamed["name"], renamed["corpus_id"]) == ("Papers", added["corpus_id"])
    assert (
        call("corpus", "rename", "Papers", "Files").out
        == f"corpus {added['corpus_id']} is called Files now\n"
    )
    assert call("corpus", "show", "Files", "--json").json["documents"] == added["documents"]
    assert call("corpus", "rename", "Papers", "x").code == call("corpus", "rename", "Files", "").code == 2


@pytest.mark.parametrize("words", [(), ("--json",), ("--yes",)])
def test_remove_asks_nobody_where_nobody_is(
    call: Callable[..., Any], docs: Path, home: Home, words: tuple[str, ...]
) -> None:
    corpus_id = call("corpus", "add", str(docs), "--json").json["corpus_id"]
    assert call("corpus", "remove", corpus_id, *words).code == 0
    assert ids(home) == [] and (docs / "one.txt").exists()
    assert call("corpus", "remove", corpus_id, *words).code == 2


def test_remove_says_which_runs_used_it(call: Callable[..., Any], docs: Path) -> None:
    run = call("ask", "How many documents mention refund?", str(docs), "--json").json
    document = call("corpus", "remove", run["corpus_id"], "--yes", "--json").json
    assert (document["runs"], document["removed"], document["documents"]) == ([run["run_id"]], True, 3)
    assert call("show", run["run_id"], "--json").json["run"]["answer"] == run["answer"]


def test_a_corpus_of_a_run_at_work_stays(call: Callable[..., Any], docs: Path, home: Home) -> None:
    corpus_id = call("corpus", "add", str(docs), "--json").json["corpus_id"]
    with open_recording(home, "20270115T080000-00000001", {sc.CORPUS_ID: corpus_id}) as recording:
        facts = {sc.RUN_PATH: "0", sc.CORPUS_ID: corpus_id}
        recording.recorder.start("run", sc.NAME_RUN, None, facts)
        result = call("corpus", "remove", corpus_id, "--yes")
    assert result.code == 2 and "20270115T080000-00000001 is at work" in result.error
    assert ids(home) == [corpus_id]


def test_a_broken_corpus_can_be_removed(call: Callable[..., Any], docs: Path, home: Home) -> None:
    corpus_id = call("corpus", "add", str(docs), "--json").json["corpus_id"]
    (home.corpora / corpus_id / "manifest.json").write_text("{")
    assert call("corpus", "remove", corpus_id, "--yes", "--json").json["documents"] is None
    assert list(home.corpora.iterdir()) == []


def test_uploaded_files_go_with_the_last_corpus_that_reads_them(call: Callable[..., Any], home: Home) -> None:
    folder = home.root / corpora.UPLOADS / "ticket" / "1"
    folder.mkdir(parents=True)
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(name)
    both = call("corpus", "add", str(folder), "--json").json["corpus_id"]
    one = call("corpus", "add", str(folder / "a.txt"), "--json").json["corpus_id"]
    call("corpus", "remove", both, "--yes")
    assert [path.name for path in folder.iterdir()] == ["a.txt"]
    call("corpus", "remove", one, "--yes")
    assert list((home.root / corpora.UPLOADS).iterdir()) == []


# -- ask


def test_ask_takes_a_name_and_a_path_wins(
    call: Callable[..., Any], docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "How many documents mention refund?"
    named = call("corpus", "add", str(docs), "--name", "one.txt", "--json").json["corpus_id"]
    asked = call("ask", question, "one.txt", "--json")
    assert asked.json["corpus_id"] == named and "the path of that name" not in asked.err
    monkeypatch.chdir(docs)
    asked = call("ask", question, "one.txt", "--json")
    assert asked.json["corpus_id"] != named
    assert f"one.txt is read as the path of that name; for the corpus give its id, {named}" in asked.err
    again = call("ask", question, str(docs), "--json")
    assert again.json["corpus_id"] == named and "path of that name" not in again.err


def test_ask_says_why_a_name_is_no_corpus(call: Callable[..., Any], docs: Path) -> None:
    for name in ("one.txt", "two.md"):
        call("corpus", "add", str(docs / name), "--name", "twice")
    assert "means several corpora" in call("ask", "q", "twice").err
    assert "'thrice' is no file or folder here" in call("ask", "q", "thrice").err


def test_no_run_starts_over_files_that_have_changed(call: Callable[..., Any], docs: Path) -> None:
    call("corpus", "add", str(docs))
    os.utime(docs / "one.txt", ns=(1, 1))  # only the time: the contents are compared
    assert call("ask", "How many documents mention refund?", "docs", "--json").code == 0
    (docs / "one.txt").write_text("another text\n")
    (docs / "two.md").unlink()
    asked = call("ask", "How many documents mention refund?", "docs")
    assert asked.code == 2
    assert "one.txt has changed since it was added" in asked.err and "(1 more changed too)" in asked.err
    assert len(call("runs", "--json").json) == 1


# -- hostile names


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Files whose names a terminal or a markup would obey."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    (folder / EVIL).write_text("text\n")
    (folder / f"{EVIL}.pdf").write_bytes(b"%PDF-1.7")
    Path(os.fsdecode(os.fsencode(folder) + b"/bad\xff.txt")).write_text("text\n")
    return folder


def test_names_reach_the_terminal_as_text_only(call: Callable[..., Any], hostile: Path) -> None:
    added = call("corpus", "add", str(hostile), "--name", EVIL)
    corpus_id = added.out.split()[1]
    shown = [call("corpus", *words) for words in (("list",), ("show", corpus_id), ("remove", corpus_id))]
    for result in (added, *shown):
        assert not FORBIDDEN.search(result.out) and not FORBIDDEN.search(result.err)
    assert "[red]m[bold] :smile:" in shown[1].out  # neither markup nor emoji codes


def test_json_has_the_names_and_is_plain_ascii(call: Callable[..., Any], hostile: Path) -> None:
    out = call("corpus", "add", str(hostile), "--json").out
    assert out.isascii() and len(json.loads(out)["problems"]) == 1


# -- progress and Ctrl-C


def test_off_a_terminal_a_line_is_said_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = [100.0]
    with AddProgress(lambda: now[0]) as shown:
        for done, moment in ((1, 101.0), (2, 105.5), (3, 106.0), (4, 111.0)):
            now[0] = moment
            shown.update(Progress(done, 2000, done * 1000, 2_000_000, EVIL))
    assert capsys.readouterr().err.splitlines() == [
        "reading: 2 of 2,000 files · 2.0 KB of 2.0 MB",
        "reading: 4 of 2,000 files · 4.0 KB of 2.0 MB",
    ]


def test_the_bar_never_goes_back_nor_beyond_its_end() -> None:
    states = [Progress(0, 0, 0, 0, ""), Progress(0, 3, 0, 10, "a"), Progress(1, 3, 9, 10, "a")]
    shown = [fraction(state) for state in [*states, Progress(3, 3, 99, 10, "c")]]
    assert shown == sorted(shown) and (shown[0], shown[-1]) == (0.0, 1.0)


def on_terminal(*words: str, answer: str = "", env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """The command with a terminal for stdin and stderr: its exit code, stdout, and what the terminal got."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ui", *words]
    settings = {**os.environ, "TERM": "xterm", "COLUMNS": "100", **(env or {})}
    process = subprocess.Popen(
        command, cwd=ROOT, env=settings, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    got = b""
    if answer:
        while b"remove it for good?" not in got:
            got += os.read(ours, 65536)
        os.write(ours, answer.encode())
    try:
        while part := os.read(ours, 65536):
            got += part
    except OSError:  # how Linux says that the other end is closed
        pass
    out, _ = process.communicate(timeout=PATIENCE)
    os.close(ours)
    return process.returncode, out.decode(), got.decode(errors="replace")


@pytest.mark.needs("posix")
def test_two_thousand_small_files_with_a_bar(tmp_path: Path, home: Home) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(2000):
        (folder / f"[red]{number:04}\x1b]0;evil\x07.txt").write_text(f"document {number}\n")
    words = ("corpus", "add", str(folder), "--json", "--home", str(home.root))
    code, out, shown = on_terminal(*words)
    assert code == 0 and json.loads(out)["documents"] == 2000
    assert re.search(r"of 2,000 files · [\d.]+ KB of 27 KB", shown) and "[red]" in shown
    assert "\x1b]0;evil" not in shown


@pytest.mark.needs("posix")
@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 0), ("n\n", 1, 1)])
def test_on_a_terminal_remove_asks(
    call: Callable[..., Any], docs: Path, home: Home, answer: str, code: int, left: int
) -> None:
    corpus_id = call("corpus", "add", str(docs), "--json").json["corpus_id"]
    words = ("corpus", "remove", corpus_id, "--home", str(home.root))
    ended, _, shown = on_terminal(*words, answer=answer)
    assert (ended, len(ids(home))) == (code, left)
    assert f"corpus {corpus_id} (docs): no recorded run was asked over it" in shown


# the first report of progress says so in a file, and never comes back
HELD = """
import sys, time
sys.path.insert(0, {root!r})
import ui.adding
def hold(self, now):
    open({reached!r}, "w").close()
    while True:  # a signal just before a long sleep would be seen only after it
        time.sleep(0.01)
ui.adding.AddProgress.update = hold
from ui.cli import main
main()
"""


@pytest.fixture
def held(tmp_path: Path, home: Home) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command that stands still in the middle of reading documents."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        reached = tmp_path / "reached"
        code = HELD.format(root=str(ROOT), reached=str(reached))
        command = [sys.executable, "-c", code, *words, "--home", str(home.root)]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, text=True, start_new_session=True, **pipes)
        started.append(process)
        deadline = time.monotonic() + PATIENCE
        while not reached.exists():
            assert time.monotonic() < deadline and process.poll() is None, process.communicate()
            time.sleep(0.02)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.needs("posix")
@pytest.mark.parametrize("words", [("corpus", "add"), ("ask", "How many?")])
@pytest.mark.parametrize("wish", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_nothing_behind_and_says_so(
    held: Callable[..., subprocess.Popen[str]], docs: Path, home: Home, words: tuple[str, ...], wish: int
) -> None:
    process = held(*words, str(docs))
    assert list(home.corpora.glob(".adding-*"))
    os.killpg(process.pid, wish)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (1, "")
    assert err.splitlines()[-1] == "rlmscope: cancelled: nothing was added, nothing is left behind"
    assert list(home.corpora.iterdir()) == []
