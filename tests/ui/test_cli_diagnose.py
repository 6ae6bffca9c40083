"""`rlmscope diagnose`: verdict and proof as text and JSON, a model asked through HTTP, what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.loopback import Loopback, Messages
from tests.support.loopback import Script as Server
from tests.support.replays import filled, recorded, span_of
from traces.diagnosis_log import diagnoses
from traces.home import Home
from traces.opinions import judge
from traces.reading import list_runs, load_run
from ui.web.samples import install_examples

Call = Callable[..., Any]
BAD, GOOD = "20260101T000000-0000aaaa", "20260101T000000-0000bbbb"
EXAMPLE, ITS_TWIN = "20260105T091500-0000e002", "20260105T090000-0000e001"
COUNT = (
    "replies = llm_batch([f'item {n}: how many?' for n in range(8)])\n"
    "total = sum(int(r) for r in replies)\nprint(total)"
)


def two_runs(home: Home, *, typed: bool = False) -> str:
    """A run in which item 4 was counted wrongly and one in which it was not; the id of the wrong call."""
    last = ("FINAL(30)", "FINAL(24)") if typed else ("FINAL_VAR('total')",) * 2

    def fill(empty: Home) -> None:
        recorded(empty, COUNT, last[0], sub=lambda request: "9" if "item 4" in request.prompt else "3")
        recorded(empty, COUNT, last[1], sub=lambda _: "3", run_id=GOOD)

    filled(home, ("two runs", typed), fill)
    return span_of(load_run(home, BAD), "sub_call", 4)


def test_the_call_that_broke_the_example_is_found_without_asking_any_model(call: Call, home: Home) -> None:
    install_examples(home)
    said = call("diagnose", EXAMPLE, "--good", ITS_TWIN, "--json").json
    assert (said["verdict"], said["outcome"], said["proven"], said["live_calls"]) == (
        "sub_call", "fixed", True, 0,
    )  # fmt: skip
    assert len(said["culprits"]) == 1 and said["culprits"][0] in said["candidates"]
    assert said["patches"][0]["text"] == "billing" and said["expected"] == "22"
    assert said["suspects"] and said["findings"] and said["replays"] == len(said["trials"])
    kept = said["trials"][-1]["run_id"]
    assert [run.run_id for run in list_runs(home, replays=True) if run.replay_of == EXAMPLE] == [kept]
    (state,) = diagnoses(home, EXAMPLE)
    assert state.status == "done" and state.diagnosis is not None
    assert state.diagnosis["culprits"] == said["culprits"]


def test_the_text_says_verdict_culprit_proof_and_cost(call: Call, home: Home) -> None:
    culprit = two_runs(home)
    done = call("diagnose", BAD, "--good", GOOD)
    assert done.code == 0 and done.out.startswith("Sub-call 4 of cell 0 broke the answer: ")
    for part in (
        "\nProven by replays.\n",
        f"\nsub-call 4 of cell 0 · {culprit}\n",
        "was asked: item 4: how many?\n  said: 9\n  should have said (good run): 3\n",
        "\ncost of finding out: 2 of 200 replays, 0 of 0 calls to a model, $0\n",
    ):
        assert part in done.out, part


def test_a_text_that_a_rule_proposed_is_shown_as_tried_with_the_reason(call: Call, home: Home) -> None:
    code = (
        "found = [r for r in llm_batch([f'box {n} holds {n + 400}' for n in range(3)]) if r != 'NONE']\n"
        "code = found[0] if found else 'unknown'"
    )
    recorded(home, code, "FINAL_VAR('code')", sub=lambda _: "NONE")
    done = call("diagnose", BAD, "--expected", "401")
    assert "That is no proof" in done.out and "\nNot proven.\n" in done.out
    assert (
        "  said: NONE\n  tried in its place (expected): 401\n  suspected: The expected answer “401” stands "
        "in this prompt only, but the reply says “NONE”.\n"
    ) in done.out


def test_a_cell_at_fault_is_shown_as_the_change_of_its_code(call: Call, home: Home) -> None:
    recorded(home, COUNT.replace("in replies)", "in replies[1:])"), "FINAL_VAR('total')", sub=lambda _: "3")
    recorded(home, COUNT, "FINAL_VAR('total')", sub=lambda _: "3", run_id=GOOD)
    done = call("diagnose", BAD, "--good", GOOD)
    assert done.code == 0 and done.out.startswith("Cell 0 broke the answer: ")
    assert (
        "\n  -total = sum(int(r) for r in replies[1:])\n  +total = sum(int(r) for r in replies)\n" in done.out
    )


def test_the_expected_answer_that_a_person_keeps_is_the_target(call: Call, home: Home) -> None:
    two_runs(home)
    judge(home, BAD, verdict="wrong", expected="24", how="number")
    said = call("diagnose", BAD, "--json").json
    assert (said["expected"], said["expected_from"], said["match"]) == ("24", "expected", "number")
    said = call("diagnose", BAD, "--expected", "30", "--json").json
    assert (said["verdict"], said["replays"]) == ("right", 0)


def test_a_root_that_typed_its_answer_is_asked_again_when_calls_are_allowed(call: Call, home: Home) -> None:
    def root(messages: Messages) -> str:
        assert "24" in str(messages[-1]["content"])
        return "```repl\nFINAL(total)\n```"

    culprit = two_runs(home, typed=True)
    with Loopback(Server(root=root, sub=lambda _: "3")) as server:
        env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-none"}
        said = call("diagnose", BAD, "--good", GOOD, "--max-calls", "1", "--json", env=env).json
    assert (said["culprits"], said["outcome"], said["proven"]) == ([culprit], "reached_root", False)
    assert (said["asked_again"], said["live_calls"], said["mode"]) == (["fixed"], 1, "recompute")


def test_other_runs_of_the_question_are_offered_as_commands_and_none_is_chosen(
    call: Call, home: Home
) -> None:
    two_runs(home)
    same, wrong = "20260101T000000-0000cccc", "20260101T000000-0000dddd"
    for run_id in (same, wrong):
        recorded(
            home, COUNT, "FINAL_VAR('total')", run_id=run_id,
            sub=lambda request: "9" if "item 5" in request.prompt else "3",
        )  # fmt: skip
    judge(home, wrong, verdict="wrong")
    said = call("diagnose", BAD, "--json").json
    assert said["good_run_id"] is None and not said["proven"]
    assert [(one["run_id"], one["answer"], one["same_answer"]) for one in said["good_runs"]] == [
        (GOOD, "24", False), (same, "30", True),
    ]  # fmt: skip
    command = said["good_runs"][0]["command"].split()
    assert command[:5] == ["rlmscope", "diagnose", BAD, "--good", GOOD]
    assert f"\ncompare with a run that gave another answer, 24: {' '.join(command)}\n" in (
        call("diagnose", BAD).out
    )
    assert call(*command[1:5], "--json").json["good_runs"] == []


def test_a_report_says_whether_a_person_called_the_good_run_right(
    call: Call, home: Home, tmp_path: Path
) -> None:
    two_runs(home)
    path = tmp_path / "report.md"
    for confirmed in (False, True):
        if confirmed:
            judge(home, GOOD, verdict="right")
        assert call("diagnose", BAD, "--good", GOOD, "--report", str(path)).code == 0
        assert ("Nobody has confirmed" in path.read_text("utf-8")) is not confirmed


@pytest.mark.parametrize("ending", [".html", ".md"])
def test_a_report_is_written(call: Call, home: Home, tmp_path: Path, ending: str) -> None:
    two_runs(home)
    path = tmp_path / f"report{ending}"
    said = json.loads(call("diagnose", BAD, "--good", GOOD, "--report", str(path), "--json").out)
    assert said["report"] == str(path) and "item 4: how many?" in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--good", BAD), "names the run itself"),
        (("--good", "nothing"), "There is no run"),
        (("--max-cost", "1"), "--max-cost is for calls to a model: give --max-calls too"),
        (("--sub", "openai/x"), "--sub is for calls to a model: give --max-calls too"),
        (("--max-calls", "1", "--sub", ""), "'--sub': it is empty: name a model"),
        (("--max-calls", "1", "--root", ""), "'--root': it is empty: name a model"),
        (("--match", "roughly"), "answers are compared by"),
        (("--expected", "", "--match", "contains"), "contains needs a text to look for"),
        (
            ("--good", GOOD, "--match", "regex"),
            "regex looks for an expected text: give --expected too",
        ),
        (("--report", "report.pdf"), "report.pdf"),
        (("--max-calls", "1", "--max-cost", "1e999999"), "is more than 1,000,000,000 dollars"),
        (("--max-replays", "-1"), "--max-replays"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_played(
    call: Call, home: Home, options: tuple[str, ...], words: str
) -> None:
    two_runs(home)
    done = call("diagnose", BAD, *options)
    assert done.code == 2 and words in done.error and done.out == ""
    assert diagnoses(home) == []


def test_a_report_that_cannot_be_written_is_refused_before_and_costs_no_result_after(
    call: Call, home: Home, tmp_path: Path
) -> None:
    two_runs(home)
    folder = tmp_path / "folder.html"
    folder.mkdir()
    done = call("diagnose", BAD, "--good", GOOD, "--report", str(folder), "--json")
    assert done.code == 2 and str(folder) in done.error and done.out == "" and diagnoses(home) == []
    long = tmp_path / ("x" * 300 + ".html")  # than a name can be
    assert call("diagnose", BAD, "--good", GOOD, "--report", str(long)).code == 2
    nowhere = tmp_path / "link.html"  # what only writing finds out
    nowhere.symlink_to(tmp_path / "none" / "report.html")
    done = call("diagnose", BAD, "--good", GOOD, "--report", str(nowhere), "--json")
    said = json.loads(done.out)
    assert done.code == 1 and said["verdict"] == "sub_call" and said["report"] is None
    assert "The report cannot be written" in done.err


def test_text_of_models_cannot_drive_the_terminal(call: Call, home: Home) -> None:
    hostile = COUNT.replace("int(r)", "len(r)")
    recorded(home, hostile, "FINAL_VAR('replies')", sub=lambda request: f"\x1b[2J{request.prompt}\r")
    recorded(home, hostile, "FINAL_VAR('replies')", sub=lambda _: "\x1b]0;x\x07", run_id=GOOD)
    done = call("diagnose", BAD, "--good", GOOD)
    assert done.code == 0 and "\x1b" not in done.out + done.err and "\x07" not in done.out
