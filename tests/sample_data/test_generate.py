"""The generator of the sample corpora: same seed same bytes, true gold, needles that leave files whole."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlm_core import demo_sub
from sample_data import generate
from sample_data.generators import needle, papers, tickets
from sample_data.generators.common import Corpus

SAMPLES = Path(generate.__file__).parent


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert generate.main([str(argument) for argument in arguments]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


def tree(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def test_one_command_makes_what_the_repository_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = run(capsys, "--out", tmp_path)
    assert sum(map(len, tree(tmp_path).values())) < 3_000_000
    shutil.rmtree(tmp_path / "examples")  # recorded runs carry the time of their recording
    made = tree(tmp_path)
    assert made == {path: (SAMPLES / path).read_bytes() for path in made}
    for name in said["corpora"]:
        assert len(tree(SAMPLES / name)) == len(tree(tmp_path / name)), f"{name} holds files nobody generated"
    assert {name: len(tree(tmp_path / name)) for name in said["corpora"]} == {
        "contracts": 30, "tickets": 200, "server_log": 2, "code_repo": 7, "papers": 40, "needle": 1,
        "es_contratos": 12, "pt_chamados": 60,
    }  # fmt: skip


def test_a_seed_repeats_and_another_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        run(capsys, "--out", tmp_path / name, "--seed", seed, "--oblique", 0.2)
    first, second, other = (tree(tmp_path / name) for name in "abc")
    assert first == second and first.keys() == other.keys() and first != other


def test_one_corpus_alone_is_the_same_as_among_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "--out", tmp_path / "all", "--seed", 3)
    said = run(capsys, "--out", tmp_path / "one", "--seed", 3, "--only", "papers")
    assert said["corpora"] == {"papers": str(tmp_path / "one" / "papers")}
    assert tree(tmp_path / "one" / "papers") == tree(tmp_path / "all" / "papers")
    questions = json.loads((tmp_path / "one" / "questions.json").read_text())
    assert {q["corpus"] for q in questions} == {"papers"}
    keys = ["corpus", "question", "language", "kind", "answer", "answer_type", "sub_calls", "note"]
    assert all(list(q) == keys for q in questions)


def test_it_runs_as_a_file_from_anywhere(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(SAMPLES / "generate.py"),
        "--out",
        "made",
        "--only",
        "tickets",
        "--count",
        "5",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["corpora"] == {"tickets": "made/tickets"}
    assert len(list((tmp_path / "made" / "tickets").iterdir())) == 5


def test_a_smaller_corpus_leaves_no_file_of_the_larger_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for count in (9, 4):
        run(capsys, "--out", tmp_path, "--only", "tickets", "--count", count)
    assert len(tree(tmp_path / "tickets")) == 4


def test_a_folder_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "mine.txt").write_text("mine")
    with pytest.raises(SystemExit, match="was not made by this generator"):
        generate.main(["--out", str(tmp_path), "--only", "papers"])
    assert (tmp_path / "papers" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("words", [["--oblique", "1.5"], ["--count", "0"], ["--only", "poems"], ["needle"]])
def test_wrong_usage_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        generate.main(words)
    assert stopped.value.code == 2 and capsys.readouterr().err


# -- wording and gold


def label_of(text: str, labels: list[str]) -> str:
    return demo_sub.reply(f"Labels: {', '.join([*labels, 'other'])}\nText:\n\n{text}").text


def counts(corpus: Corpus) -> dict[str, int]:
    asked = (q for q in corpus.questions if q.kind == "count_label")
    return {re.split(r"about |sobre ", q.question)[1].rstrip("?"): q.answer for q in asked}


@pytest.mark.parametrize("seed", range(10))
def test_obvious_wording_names_exactly_one_category(seed: int) -> None:
    for corpus in (tickets.tickets(seed), tickets.pt_chamados(seed), papers.papers(seed)):
        gold = counts(corpus)
        found = [label_of(text, list(gold)) for text in corpus.files.values()]
        assert {label: found.count(label) for label in gold} == gold


@pytest.mark.parametrize("seed", range(10))
def test_oblique_wording_holds_no_word_of_the_lexicon(seed: int) -> None:
    corpus = tickets.tickets(seed, 60, oblique=1.0)
    found = {label_of(text, list(tickets.OBVIOUS)) for text in corpus.files.values()}
    assert found == {"UNSURE: other"}
    assert sum(counts(corpus).values()) == 60


def test_the_share_of_oblique_tickets_is_as_asked() -> None:
    corpus = tickets.tickets(5, 200, oblique=0.06)
    unsure = [text for text in corpus.files.values() if label_of(text, list(tickets.OBVIOUS))[:6] == "UNSURE"]
    assert len(unsure) == 12 and corpus.questions[0].note == "12 of 200 tickets are worded obliquely"


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_small_corpora_can_be_made(count: int) -> None:
    assert len(tickets.tickets(1, count, 0.5).files) == count


# -- needles


@pytest.mark.parametrize("seed", range(15))
def test_a_needle_changes_one_file_and_leaves_python_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(SAMPLES / "generators", copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "picture.bin").write_bytes(b"\xff\xfe\x00\x81")
    before = tree(copy)
    said = run(capsys, "needle", "--into", copy, "--seed", seed)
    after = tree(copy)
    assert [path for path in before if before[path] != after[path]] == [said["file"]]
    assert said["answer"] in after[said["file"]].decode() and said["question"].endswith("?")
    ast.parse(after[said["file"]])
    added = set(after[said["file"]].split(b"\n")) - set(before[said["file"]].split(b"\n"))
    assert len(added) == 1 and added.pop().strip().startswith(b"# ")


def test_a_needle_needs_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(SystemExit, match="no text file"):
        needle.hide(tmp_path, 1)
