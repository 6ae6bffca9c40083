"""The main job from the command line: known answers, seeded faults, a needle in real sources."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from tests.support.command import ROOT, inside
from traces.home import Home
from traces.reading import load_run

# Other seeds can be given from outside: RLMSCOPE_SEEDS="11 12 13" make test
FULL = os.environ.get("RLMSCOPE_FULL") == "1"
SEEDS = [
    int(word) for word in os.environ.get("RLMSCOPE_SEEDS", "3 14 159 2653 58979" if FULL else "3 14").split()
]
BILLING = "How many tickets are about billing?"
DEMO = ("--root", "demo/root", "--sub", "demo/sub")


def generate(*words: str | Path) -> Any:
    """Run the generator and return what it prints."""
    command = [sys.executable, str(ROOT / "sample_data" / "generate.py"), *map(str, words)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def gold(folder: Path, question: str) -> Any:
    questions = json.loads((folder / "questions.json").read_text())
    return next(entry["answer"] for entry in questions if entry["question"] == question)


def ask(question: str, corpus: Path, home: Path, *options: str) -> Any:
    return inside("ask", question, corpus, *DEMO, "--home", home, *options)


@pytest.mark.parametrize("seed", SEEDS)
def test_tickets_of_any_seed_are_counted_with_one_sub_call_each(tmp_path: Path, seed: int) -> None:
    generate("--out", tmp_path, "--seed", str(seed), "--only", "tickets")
    said = ask(BILLING, tmp_path / "tickets", tmp_path / "home")
    assert said["answer"] == str(gold(tmp_path, BILLING)) and said["stop_reason"] == "final"
    assert said["sub_calls"] == 200 and said["confidence"] is None
    assert said["demo"] and (said["cost_usd"], said["cost_status"]) == ("0", "demo")
    assert any("no language model" in notice for notice in said["notices"])
    view = load_run(Home(tmp_path / "home"), said["run_id"])
    calls = [span for span in view.spans if span.kind == "sub_call"]
    ranges = [json.loads(call.attributes[sc.SOURCE_RANGES])["ranges"] for call in calls]
    assert sorted(places[0][0] for places in ranges) == list(range(200))


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_oblique_wording_is_answered_with_low_confidence(tmp_path: Path, seed: int) -> None:
    generate("--out", tmp_path, "--seed", str(seed), "--only", "tickets", "--oblique", "0.2")
    said = ask(BILLING, tmp_path / "tickets", tmp_path / "home")
    assert said["confidence"] == "low" and "low confidence" in said["note"]
    assert said["sub_calls"] == 200 and said["answer"] is not None


def facts_of(home: Path, run_id: str) -> list[tuple[Any, ...]]:
    """Every hash that must repeat: prompts, responses, outputs and the answer, in order."""
    view = load_run(Home(home), run_id)
    keys = (sc.PROMPT, sc.RESPONSE, sc.STDOUT, sc.STDOUT_SHOWN, sc.CODE, sc.ANSWER, sc.MESSAGES_ADDED)
    return [
        (span.kind, span.status, *(span.attributes.get(key + ".sha256") for key in keys))
        for span in sorted(
            view.spans, key=lambda span: (span.kind, span.iteration or 0, span.call_index or 0)
        )
    ]


def test_faults_differ_only_in_the_struck_calls_and_repeat_exactly(tmp_path: Path) -> None:
    generate("--out", tmp_path, "--seed", "5", "--only", "tickets")
    home, corpus = tmp_path / "home", tmp_path / "tickets"
    faults = ("--fault-rate", "0.03", "--fault-seed", "1")
    clean = ask(BILLING, corpus, home)
    struck, again = ask(BILLING, corpus, home, *faults), ask(BILLING, corpus, home, *faults)
    assert facts_of(home, struck["run_id"]) == facts_of(home, again["run_id"])
    assert struck["answer"] == again["answer"]

    def calls(run_id: str) -> dict[int | None, Any]:
        spans = load_run(Home(home), run_id).spans
        return {span.call_index: span for span in spans if span.kind == "sub_call"}

    before, after = calls(clean["run_id"]), calls(struck["run_id"])
    response, prompt = sc.RESPONSE + ".sha256", sc.PROMPT + ".sha256"
    assert all(before[n].attributes[prompt] == after[n].attributes[prompt] for n in before)
    differing = {n for n in before if before[n].attributes.get(response) != after[n].attributes.get(response)}
    hit = {n for n, span in after.items() if sc.DEMO_FAULT in span.attributes or span.status == "error"}
    assert differing == hit and 0 < len(hit) < 20


# (question, the line that is hidden, kind of value): wordings of this test, unknown to the generator
NEEDLES = [
    (
        "What is the access code for the north archive?",
        "The access code for the north archive is {}.",
        "word",
    ),
    (
        "Which value was assigned to the blue-harbor setting?",
        "blue-harbor was assigned the value {}.",
        "number",
    ),
    (
        "What is the special magic number for quiet-otter?",
        "One of the special magic numbers for quiet-otter is: {}.",
        "number",
    ),
    (
        "When does the licence of the copper kiln expire?",
        "The licence of the copper kiln expires on {}.",
        "date",
    ),
]


def value_of(kind: str, rng: random.Random) -> str:
    if kind == "date":
        return f"{rng.randint(2027, 2049)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    if kind == "number":
        return str(rng.randint(1_000_000, 9_999_999))
    return "".join(rng.choice("bcdfghjklmnpqrstvwxz") for _ in range(4)).upper() + str(
        rng.randint(1000, 9999)
    )


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """150 files of the interpreter's own standard library."""
    folder = tmp_path_factory.mktemp("sources")
    library = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(library.glob("*.py"))[:150]:
        shutil.copy(path, folder)
    assert len(list(folder.iterdir())) == 150
    return folder


@pytest.mark.parametrize("seed", SEEDS)
def test_a_needle_in_the_standard_library_is_found(sources: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    question, wording, kind = rng.choice(NEEDLES)
    value = value_of(kind, rng)
    path = rng.choice(sorted(sources.iterdir()))
    before = path.read_text(encoding="utf-8")
    lines = before.splitlines(keepends=True)
    lines.insert(rng.randrange(len(lines) + 1), f"# {wording.format(value)}\n")
    path.write_text("".join(lines), encoding="utf-8")
    try:
        said = ask(question, sources, tmp_path / "home")
    finally:
        path.write_text(before, encoding="utf-8")
    assert value in said["answer"], (question, value, said["answer"])


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_the_generators_own_needle_is_found(sources: Path, tmp_path: Path, seed: int) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(sources, copy)
    needle = generate("needle", "--into", copy, "--seed", str(seed))
    said = ask(needle["question"], copy, tmp_path / "home")
    assert str(needle["answer"]) in said["answer"]


def test_nothing_hidden_is_said_to_be_not_found(sources: Path, tmp_path: Path) -> None:
    said = ask("What is the access code for the north archive?", sources, tmp_path / "home")
    assert "not found" in said["answer"].lower()
