"""export --format sft: from questions to a model server, over verdicts, to a file of training data."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from rlm_core.lm_handler import FunctionLMHandler
from tests.support.loopback import Loopback
from tests.support.loopback import Script as Server
from tests.support.replays import recorded
from tests.traces.records import record_run
from traces.home import Home
from traces.opinions import judge, tag

Call = Callable[..., Any]
RUN = "20260101T000000-0000aaaa"
KEY = "sk-proj-0123456789abcdefghijklmn"
ASK = "replies = llm_batch([f'item {n}: how many?' for n in range(3)])\nprint(replies)"
END = "FINAL(sum(int(r) for r in replies))"


def examples(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture
def run(home: Home) -> str:
    """A run whose answer, 9, somebody called right."""
    recorded(home, ASK, END, sub=lambda _: "3")
    judge(home, RUN, verdict="right")
    return RUN


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    """A server whose root gives another answer in every third run."""
    runs = itertools.count()

    def say(prompt: str) -> str:
        if prompt.startswith("item"):
            return "3"
        return f"```repl\nprint(llm_query('item'))\nFINAL({9 if next(runs) % 3 == 0 else 7})\n```"

    with Loopback(Server(sub=say)) as server:
        yield {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-none"}


@pytest.mark.full
def test_from_repeats_over_the_expected_answer_to_training_data(
    call: Call, home: Home, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("The pin is 7.\n")
    models = ("--root", "openai/gpt-5", "--sub", "openai/gpt-5-mini")
    said = call("ask", "q", str(tmp_path / "a.txt"), *models, "--repeat", "3", "--json", env=env).json
    assert [run["answer"] for run in said["runs"]] == ["9", "7", "7"]
    assert (said["answer"], said["agreement"]["share"]) == ("7", 2 / 3)
    costs = [Decimal(run["cost_usd"]) for run in said["runs"]]
    assert Decimal(said["total_cost_usd"]) == sum(costs) > Decimal(said["cost_usd"]) > 0
    for run in said["runs"]:
        call("mark", run["run_id"], "--expected", "7", "--tag", "pins")

    out = tmp_path / "train.jsonl"
    result = call("export", "--tag", "pins", "--format", "sft", "--out", str(out), "--json")
    done = result.json
    first, second, third = (run["run_id"] for run in said["runs"])
    assert (result.code, done["examples"], done["kinds"]) == (0, 2, {"sub-calls": 1, "trajectories": 1})
    assert done["runs"] == [min(second, third)] and done["duplicates"] == 2
    assert done["runs_left_out"] == [{"run_id": first, "words": "its answer is not the expected one"}]
    assert done["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert done["models"] == {"openai/gpt-5": 1, "openai/gpt-5-mini": 1}
    whole, call_ = examples(out)
    assert [m["role"] for m in whole["messages"]] == ["system", "user", "assistant"]
    assert call_["messages"] == [{"role": "user", "content": "item"}, {"role": "assistant", "content": "3"}]
    reported = whole["metadata"]["tokens"] + call_["metadata"]["tokens"]
    assert done["tokens"] == {"total": reported, "estimated": 0}


def test_turns_and_trajectories_of_one_run(call: Call, run: str, tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    kinds = ("--examples", "turns", "--examples", "trajectories")
    result = call("export", run, "--format", "sft", "--out", str(out), *kinds)
    lines = result.out.splitlines()
    assert lines[0] == "3 examples of 1 run: trajectories 1, turns 2"
    assert lines[-2:] == [f"written: {out}", f"card: {tmp_path / 't.card.md'}"]
    first, second, whole = (one["messages"] for one in examples(out))
    assert [m["role"] for m in first] == ["system", "user", "assistant"]
    assert first[-1] == {"role": "assistant", "content": f"```repl\n{ASK}\n```"}
    assert [m.get("weight") for m in second] == [None, None, 0, None, None]
    assert whole == [{k: v for k, v in m.items() if k != "weight"} for m in second]


def test_the_card_says_what_is_in_it_and_how_it_was_chosen(call: Call, run: str, tmp_path: Path) -> None:
    assert call("export", run, "--format", "sft", "--out", str(tmp_path / "t.jsonl")).code == 0
    card = (tmp_path / "t.card.md").read_text("utf-8")
    digest = hashlib.sha256((tmp_path / "t.jsonl").read_bytes()).hexdigest()
    for words in (digest, run, "4 examples of 1 run", "licence of these texts is unknown", "openai/root"):
        assert words in card, words
    assert "all of them estimated" in card


def test_equal_records_give_equal_files(call: Call, run: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        call("export", run, "last", "--format", "sft", "--out", str(tmp_path / f"{name}.jsonl"))
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_nothing_is_overwritten_and_nothing_empty_is_written(
    call: Call, home: Home, run: str, tmp_path: Path
) -> None:
    out = tmp_path / "t.jsonl"
    out.write_text("mine")
    taken = call("export", run, "--format", "sft", "--out", str(out))
    assert taken.code == 2 and "never overwrites" in taken.error and out.read_text() == "mine"
    nowhere = call("export", run, "--format", "sft", "--out", str(tmp_path / "no" / "t.jsonl"))
    assert nowhere.code == 2 and "There is no folder" in nowhere.error
    judge(home, run, verdict="unsure")
    none = call("export", run, "--format", "sft", "--out", str(tmp_path / "n.jsonl"), "--json")
    assert (none.code, none.json["path"], none.json["examples"]) == (1, None, 0)
    assert "its verdict is unsure" in none.err and sorted(p.name for p in tmp_path.glob("*n*")) == ["t.jsonl"]


def test_which_runs_must_be_said(call: Call, run: str, tmp_path: Path) -> None:
    refused = call("export", "--format", "sft", "--out", str(tmp_path / "t.jsonl"))
    assert refused.code == 2 and "name the runs to export, or --tag T, or --all" in refused.err
    nobody = call("export", "--tag", "nosuch", "--format", "sft", "--out", str(tmp_path / "t.jsonl"))
    assert (nobody.code, nobody.error) == (2, "rlmscope: no run has the tag 'nosuch'\n")
    assert call("export", "--all", "--format", "sft", "--out", str(tmp_path / "t.jsonl")).code == 0


def test_runs_of_demo_models_only_when_asked_for(call: Call, home: Home, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The pin is 7.\n")
    call("ask", "How many lines contain pin?", str(tmp_path / "a.txt"))
    call("mark", "last", "--verdict", "right")
    none = call("export", "last", "--format", "sft", "--out", str(tmp_path / "d.jsonl"))
    assert none.code == 1 and "a demo model answered in it" in none.err
    more = ("--include-demo", "--json")
    assert call("export", "last", "--format", "sft", "--out", str(tmp_path / "d.jsonl"), *more).code == 0
    assert "no language model wrote them" in (tmp_path / "d.card.md").read_text()


def test_what_looks_like_a_key_is_replaced_and_counted(call: Call, home: Home, tmp_path: Path) -> None:
    recorded(home, f"print(llm_query('use {KEY} for it'))\nFINAL(7)", sub=lambda _: "fine")
    out = tmp_path / "t.jsonl"
    done = call("export", RUN, "--any-verdict", "--format", "sft", "--out", str(out), "--json").json
    assert done["redacted"] == 2 and KEY not in out.read_text() and "use [redacted] for it" in out.read_text()


def test_a_tag_and_named_runs_are_taken_together_each_once(call: Call, home: Home, tmp_path: Path) -> None:
    other = "20260101T000000-0000bbbb"
    recorded(home, "FINAL(1)", sub=lambda _: "")
    recorded(home, "FINAL(2)", sub=lambda _: "", run_id=other)
    tag(home, RUN, ("good",))
    options = ("--tag", "good", "--any-verdict", "--format", "sft", "--out", str(tmp_path / "t.jsonl"))
    assert call("export", RUN, other, *options, "--json").json["runs"] == [RUN, other]


def test_a_run_in_which_a_check_got_the_expected_answer_is_right(
    call: Call, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(home, "FINAL(8)", sub=lambda _: "")
    call("mark", RUN, "--expected", "7", "--tag", "pins")
    again = FunctionLMHandler(lambda _: "```repl\nFINAL(7)\n```")
    monkeypatch.setattr("rlm_core.models.make_handler", lambda *_, **__: again)
    checked = call("check", "pins", "--mode", "rerun", "--json").json
    options = ("--all", "--format", "sft", "--out", str(tmp_path / "t.jsonl"), "--json")
    done = call("export", *options).json
    assert done["runs"] == [checked["results"][0]["now_run_id"]]
    assert done["runs_left_out"] == [{"run_id": RUN, "words": "its answer is not the expected one"}]
    call("mark", RUN, "--expected", "8")  # what was expected was itself wrong
    assert call("export", *options, "--out", str(tmp_path / "u.jsonl")).json["runs"] == [RUN]


def test_a_span_that_a_person_called_wrong_is_left_out(call: Call, home: Home, tmp_path: Path) -> None:
    view = recorded(home, ASK, END, sub=lambda _: "3")
    wrong = next(span.span_id for span in view.spans if span.attributes.get(sc.CALL_INDEX) == 1)
    judge(home, RUN, verdict="right")
    judge(home, RUN, span_id=wrong, verdict="wrong")
    out = tmp_path / "t.jsonl"
    done = call("export", RUN, "--examples", "sub-calls", "--format", "sft", "--out", str(out), "--json").json
    assert done["left_out"] == {"a person called it wrong": 1}
    assert wrong not in [one["metadata"]["span_id"] for one in examples(out)]


def test_many_runs_that_are_left_out_for_one_reason_are_one_line(
    call: Call, home: Home, tmp_path: Path
) -> None:
    for number in range(11):
        record_run(home, f"20260102T0304{number:02}-0000abcd")
    arguments = ("export", "--all", "--format", "sft", "--out", str(tmp_path / "t.jsonl"))
    refused = call(*arguments)
    assert "11 runs are left out: nobody said whether it is right (--json names them)" in refused.err
    assert refused.code == 1 and len(refused.err.splitlines()) == 2
    assert len(call(*arguments, "--json").json["runs_left_out"]) == 11
