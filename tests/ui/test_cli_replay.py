"""`rlmscope replay`: with and without patches, with a model asked through HTTP, and what it refuses."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rlm_core import FunctionLMHandler, Request
from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.rlm import RLM
from tests.support.loopback import Loopback, Messages
from tests.support.loopback import Script as Server
from tests.support.replays import filled
from tests.support.scripted import Script, cell
from traces.home import Home
from traces.opinions import judge
from traces.prices import set_price
from traces.reading import RunView, list_runs, load_run
from traces.recording import open_recording
from ui.control import ask_to_stop
from ui.web.first_steps import BROKEN
from ui.web.samples import install_examples

Call = Callable[..., Any]
RUN = "20270115T080000-00000001"
MODELS = ("openai/root", "openai/sub")
TEXTS = {"a.txt": "apples 3", "b.txt": "pears 5", "c.txt": "plums 9"}
LEAVES = 'replies = llm_batch(["How many?"] * len(documents), documents)'
SUM = 'total = llm_query("Add up: " + ", ".join(replies))\nprint(total)'


def answer(prompt: str) -> str:
    """A sub-model that counts and adds up without a mistake."""
    if prompt.startswith("Add up: "):
        return str(sum(map(int, re.findall(r"\d+", prompt))))
    return next(word for word in prompt.split() if word.isdigit())


def mistaken(request: Request) -> str:
    """The same, which counts ten times as many pears."""
    return "50" if "pears" in request.prompt else answer(request.prompt)


def typed(messages: Messages) -> str:
    """A root that types the last number it was shown."""
    return cell(f'FINAL("{re.findall(r"[0-9]+", str(messages[-1]["content"]))[0]}")')


def recorded(home: Home, *, typing: bool = False) -> RunView:
    """A run that counts 62 fruits, because of the pears; there are 17."""
    end = 'FINAL("62")' if typing else 'FINAL_VAR("total")'

    def fill(empty: Home) -> None:
        handler = FunctionLMHandler(Script([cell(code) for code in (LEAVES, SUM, end)], mistaken))
        corpus = Corpus.from_texts(TEXTS, empty.corpora)
        with RLM(*MODELS, handler=handler) as rlm, open_recording(empty, RUN, {}) as made:
            rlm.ask("How many fruits?", corpus, run_id=RUN, recorder=made.recorder)
        load_run(empty, RUN)

    filled(home, ("counted fruits", typing), fill)
    return load_run(home, RUN)


def pears(view: RunView) -> str:
    """The call that was answered wrongly."""
    texts = {span.span_id: view.payload(span.attributes[sc.PROMPT + ".sha256"])
             for span in view.spans if span.kind == "sub_call"}  # fmt: skip
    return next(span_id for span_id, text in texts.items() if "pears" in (text or ""))


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback(Server(root=typed, sub=answer)) as running:
        yield running


@pytest.fixture
def asked(server: Loopback) -> dict[str, str]:
    """The environment in which the server is the models'; it has heard nothing yet."""
    server.use(Server(root=typed, sub=answer))
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-none"}


@pytest.fixture
def broken(home: Home) -> RunView:
    """The broken example, in a home that has not read its corpus."""
    install_examples(home)
    return load_run(home, BROKEN)


# -- from the record alone


def test_a_run_plays_again_as_it_was(call: Call, home: Home, broken: RunView) -> None:
    said = call("replay", BROKEN, "--json").json
    assert (said["replayable"], said["outcome"], said["flipped"]) == (True, "unchanged", False)
    assert said["answer"] == said["original_answer"] == broken.summary.answer
    assert (said["hits"], said["misses"], said["live_calls"], said["cost_usd"]) == (200, 0, 0, "0")
    assert [run.run_id for run in list_runs(home, replays=True) if run.replay_of == BROKEN] == [
        said["run_id"]
    ]
    assert [corpus.name for corpus in Corpus.list(home.corpora)] == ["tickets"]


def test_patched_replies_give_the_right_answer(call: Call, broken: RunView, tmp_path: Path) -> None:
    first = next(span for span in broken.spans if span.kind == "sub_call" and span.status == "error")
    (tmp_path / "reply.txt").write_text("billing", "utf-8")
    for patch in (f"{first.span_id}=billing", f"{first.span_id[:9]}=@{tmp_path / 'reply.txt'}"):
        said = call("replay", BROKEN, "--patch", patch, "--expected", "22.", "--json").json
        assert (said["outcome"], said["answer"], said["match"]) == ("fixed", "22", "normalised")
        assert said["patches"] == [{"span_id": first.span_id, "text": "billing"}]
    done = call("replay", BROKEN, "--patch", f"{first.span_id}=billing")
    assert done.code == 0 and done.out.startswith("The answer is another one.\n\nanswer: 22\nbefore: 21\n")


def test_the_answer_that_a_person_expects_is_the_one_to_be_reached(
    call: Call, home: Home, broken: RunView
) -> None:
    first = next(span for span in broken.spans if span.kind == "sub_call" and span.status == "error")
    judge(home, BROKEN, verdict="wrong", expected="about 22", how="number")
    patch = ("--patch", f"{first.span_id}=billing")
    said = call("replay", BROKEN, *patch, "--json").json
    assert (said["outcome"], said["expected"], said["match"]) == ("fixed", "about 22", "number")
    said = call("replay", BROKEN, *patch, "--match", "exact", "--json").json
    assert (said["outcome"], said["match"]) == ("moved", "exact")


def test_code_of_a_cell_can_be_replaced(call: Call, home: Home) -> None:
    view = recorded(home)
    last = [span for span in view.spans if span.kind == "cell"][-1]
    said = call("replay", RUN, "--patch", f'{last.span_id}=FINAL("none")', "--json").json
    assert (said["outcome"], said["answer"]) == ("moved", "none")


def test_a_changed_prompt_stops_a_strict_replay(call: Call, home: Home) -> None:
    view = recorded(home)
    done = call("replay", RUN, "--patch", f"{pears(view)}=5", "--expected", "17")
    assert done.code == 0 and done.out.startswith("The record alone cannot tell.\n")
    assert "\nstopped: " in done.out and "1 prompt that no record holds" in done.out


def test_a_frozen_replay_blames_nobody_and_says_what_it_did(call: Call, home: Home) -> None:
    view = recorded(home)
    said = call("replay", RUN, "--patch", f"{pears(view)}=5", "--mode", "frozen", "--json").json
    assert (said["answer"], said["live_calls"]) == ("62", 0)
    assert any("its old reply" in sentence for sentence in said["assumed"])


def test_lists_leave_replays_out_and_last_is_none(call: Call, home: Home) -> None:
    recorded(home)
    again = call("replay", "last", "--json").json["run_id"]
    assert [run["run_id"] for run in call("runs", "--json").json] == [RUN]
    every = {run["run_id"]: run["replay_of"] for run in call("runs", "--replays", "--json").json}
    assert every == {RUN: None, again: RUN} and again in call("runs", "--replays").out
    assert call("show", "last", "--json").json["run"]["run_id"] == RUN


def test_show_says_of_a_replay_what_it_plays(call: Call, home: Home) -> None:
    view = recorded(home)
    patch = ("--patch", f"{pears(view)}=5", "--mode", "frozen", "--expected", "17")
    again = call("replay", RUN, *patch, "--json").json["run_id"]
    out = call("show", again).out
    assert f"\nreplay of {RUN}, mode frozen: " in out
    assert f"\nreplaced {pears(view)}: 5\nshould be: 17\n" in out
    told = call("show", again, "--json").json["replay"]
    assert (told["of"], told["mode"], told["expected"], told["live_calls"]) == (RUN, "frozen", "17", 0)
    assert told["patches"] == [{"span_id": pears(view), "text": "5"}]
    assert "replay" not in call("show", RUN, "--json").json
    corpus = view.summary.corpus_id or ""
    assert call("corpus", "show", corpus, "--json").json["runs"] == [RUN]
    assert sorted(call("corpus", "remove", corpus, "--json").json["runs"]) == sorted([RUN, again])


# -- with a model


def test_recompute_asks_for_the_prompts_that_changed(
    call: Call, home: Home, server: Loopback, asked: dict[str, str]
) -> None:
    view = recorded(home)
    set_price(home, "openai/sub", {"input": Decimal(1000), "output": Decimal(2000)})
    patch = ("--patch", f"{pears(view)}=5", "--mode", "recompute", "--expected", "17")
    said = call("replay", RUN, *patch, "--json", env=asked).json
    assert (said["outcome"], said["answer"], said["misses"], said["live_calls"]) == ("fixed", "17", 1, 1)
    assert said["hits"] == 3 and len(server.requests) == 1
    assert "Add up: 3, 5, 9" in str(server.requests[0]["body"]["messages"])
    assert Decimal(said["cost_usd"]) == paid(server)
    summary = load_run(home, said["run_id"]).summary
    assert summary.cost_usd == paid(server) and summary.answer == "17"


def paid(server: Loopback) -> Decimal:
    """What the server's replies cost at the price that the tests set."""
    used = [entry["body"]["usage"] for entry in server.responses]
    return sum(
        (Decimal(use["prompt_tokens"]) / 1000 + Decimal(use["completion_tokens"]) * 2 / 1000 for use in used),
        Decimal(0),
    )


def test_a_twin_asks_for_every_sub_call_of_another_model(
    call: Call, home: Home, server: Loopback, asked: dict[str, str]
) -> None:
    recorded(home)
    done = call("replay", RUN, "--mode", "live", "--sub", "openai/better", "--json", env=asked)
    said = done.json
    assert (said["answer"], said["hits"], said["live_calls"], said["cost_usd"]) == ("17", 0, 4, None)
    assert {request["body"]["model"] for request in server.requests} == {"better"}
    assert "live calls go to openai/better (sub-calls); at most 100 calls" in done.err
    twin = load_run(home, said["run_id"])
    assert (twin.summary.sub_model, twin.summary.replay_of) == ("openai/better", RUN)
    calls = [span for span in twin.spans if span.kind == "sub_call"]
    assert [span.model for span in calls] == ["openai/better"] * 4


def test_asked_again_the_root_types_another_answer_and_that_is_counted(
    call: Call, home: Home, server: Loopback, asked: dict[str, str]
) -> None:
    view = recorded(home, typing=True)
    patch = ("--patch", f"{pears(view)}=5", "--expected", "17")
    reached = call("replay", RUN, *patch, "--mode", "recompute", "--json", env=asked).json
    assert (reached["outcome"], reached["answer"]) == ("reached_root", "62")
    assert (reached["reached"]["old"].strip(), reached["reached"]["new"].strip()) == ("62", "17")
    said = call("replay", RUN, *patch, "--mode", "reask", "--repeat", "2", "--json", env=asked).json
    assert (said["outcome"], said["answer"], said["fixed"], said["repeat"]) == ("fixed", "17", 2, 2)
    assert len({trial["run_id"] for trial in said["trials"]}) == 2
    done = call("replay", RUN, *patch, "--mode", "reask", "--repeat", "2", env=asked)
    assert "the answer was the one that it should be 2 of 2 times" in done.out


def test_no_more_calls_are_made_than_allowed(
    call: Call, home: Home, server: Loopback, asked: dict[str, str]
) -> None:
    view = recorded(home)
    patch = ("--patch", f"{pears(view)}=5", "--mode", "recompute", "--max-calls", "0")
    said = call("replay", RUN, *patch, "--json", env=asked).json
    assert (said["outcome"], said["live_calls"], said["flipped"]) == ("undecided", 0, True)
    assert said["stopped"] and not server.requests
    said = call("replay", RUN, "--mode", "live", "--max-calls", "3", "--json", env=asked).json
    assert said["outcome"] == "undecided" and said["live_calls"] == len(server.requests) == 3


def test_no_more_dollars_are_spent_than_allowed(
    call: Call, home: Home, server: Loopback, asked: dict[str, str]
) -> None:
    recorded(home)
    set_price(home, "openai/sub", {"input": Decimal(1000), "output": Decimal(2000)})
    said = call("replay", RUN, "--mode", "live", "--max-cost", "0.000001", "--json", env=asked).json
    assert said["outcome"] == "undecided" and said["stopped"] and not server.requests


def test_a_wish_to_stop_ends_a_replay(
    call: Call, home: Home, server: Loopback, asked: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(home)
    monkeypatch.setattr("traces.home.new_run_id", lambda: "20270115T090000-00000002")
    first = threading.Event()

    def stopped(prompt: str) -> str:
        if not first.is_set():
            first.set()
            ask_to_stop(home, "20270115T090000-00000002")
            threading.Event().wait(1.5)
        return answer(prompt)

    server.use(Server(root=typed, sub=stopped))
    chain = call("replay", RUN, "--mode", "live", env=asked)
    assert chain.code == 1 and "the replay was cancelled" in chain.err
    assert len(server.requests) < 4 and "stopped: " in chain.out


# -- what is refused


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--patch", "billing"], "is not SPAN=TEXT or SPAN=@FILE"),
        (["--patch", "feed=x"], "There is no span"),
        (["--patch", "{call}=a", "--patch", "{call}=b"], "is patched twice"),
        (["--patch", "{run}=a"], "nothing else can be patched"),
        (["--patch", "{call}=@/nowhere/x"], "cannot be read"),
        (["--max-calls", "3"], "--max-calls is for modes that ask a model, not strict"),
        (["--sub", "openai/x"], "--sub is for modes that ask a model, not strict"),
        (["--sub", ""], "Invalid value for '--sub': it is empty: name a model"),
        (["--mode", "reask", "--root", " "], "Invalid value for '--root': it is empty: name a model"),
        (["--repeat", "2"], "--repeat is for modes that ask anew"),
        (["--match", "vibes"], "answers are compared by"),
        (["--mode", "live", "--sub", "nobody/x"], "names no provider"),
        (["--mode", "live", "--max-cost", "1"], "the price of openai/sub is unknown"),
    ],
)
def test_what_cannot_be_is_one_line_and_leaves_no_run(
    call: Call, home: Home, words: list[str], complaint: str
) -> None:
    view = recorded(home)
    spans = {"call": pears(view), "run": view.spans[0].span_id}
    done = call("replay", RUN, *(word.format(**spans) for word in words))
    assert done.code == 2 and complaint in done.error and not done.out
    assert len(list_runs(home, replays=True)) == 1


def test_a_run_whose_corpus_is_gone_is_said_not_to_be_replayable(call: Call, home: Home) -> None:
    view = recorded(home)
    Corpus.remove(home.corpora, view.summary.corpus_id or "")
    done = call("replay", RUN)
    assert done.code == 0 and "its corpus is not there as it was" in done.out
    told = call("replay", RUN, "--patch", f"{pears(view)}=5", "--json")
    assert told.code == 0 and told.json["replayable"] is False and told.json["trials"] == []
    assert "its corpus is not there as it was" in told.json["replayability"]["words"]
    assert (told.json["outcome"], told.json["flipped"], told.json["run_id"]) == ("undecided", False, None)
    assert (told.json["answer"], told.json["original_answer"], told.json["live_calls"]) == (None, "62", 0)
    assert len(list_runs(home, replays=True)) == 1


def test_a_run_that_does_not_come_out_as_recorded_says_so_first(call: Call, home: Home) -> None:
    handler = FunctionLMHandler(
        Script([cell("import time\nnow = time.time_ns()\nprint(now)"), cell("FINAL(now)")])
    )
    corpus = Corpus.from_texts(TEXTS, home.corpora)
    with RLM(*MODELS, handler=handler) as rlm, open_recording(home, RUN, {}) as made:
        rlm.ask("When?", corpus, run_id=RUN, recorder=made.recorder)
    done = call("replay", RUN)
    assert done.code == 0 and "replay: Not replayable: cell 0 printed something else" in done.out
    assert call("replay", RUN, "--json").json["replayable"] is False


# -- where the replies of a replay came from


def test_show_and_runs_say_how_many_sub_calls_a_model_was_asked_for(
    call: Call, home: Home, server: Loopback, asked: dict[str, str]
) -> None:
    view = recorded(home)
    again = call("replay", RUN, "--json").json["run_id"]
    patch = ("--patch", f"{pears(view)}=5")
    patched = call("replay", RUN, *patch, "--mode", "recompute", "--json", env=asked).json["run_id"]
    twin = call("replay", RUN, "--mode", "live", "--json", env=asked).json["run_id"]
    assert "4 sub-calls, all from the record ·" in call("show", again).out
    assert "4 sub-calls: 2 from the record, 1 from a patch, 1 asked ·" in call("show", patched).out
    assert "4 sub-calls, all asked ·" in call("show", twin).out
    assert "4 sub-calls ·" in call("show", RUN).out
    listed = {row.split()[0]: row for row in call("runs", "--replays").out.splitlines()}
    assert "4, none asked" in listed[again] and "4, 1 asked" in listed[patched]
    assert "4, 4 asked" in listed[twin] and "asked" not in listed[RUN]


def test_cost_counts_no_call_of_a_replay_that_was_served(
    call: Call, home: Home, server: Loopback, asked: dict[str, str]
) -> None:
    view = recorded(home)
    before = call("cost", "--json").json
    patch = ("--patch", f"{pears(view)}=5", "--mode", "recompute")
    again = call("replay", RUN, *patch, "--json", env=asked).json["run_id"]
    after = call("cost", "--json").json
    assert (before["served_calls"], after["served_calls"]) == (0, 6), (
        "three turns of the root, three sub-calls"
    )
    assert after["calls"] == before["calls"] + 1 == before["calls"] + len(server.requests)
    assert call("cost", again, "--json").json["calls"] == 1
    assert "not counted: 6 calls that no model was asked for: answered from a record" in call("cost").out
    what_if = call("cost", again, "--as", "sub=openai/gpt-5", "--json").json
    assert (what_if["calls"], what_if["served_calls"], what_if["not_billed"]) == (1, 6, 0)


def test_a_twin_that_a_limit_of_dollars_refused_made_no_calls(
    call: Call, home: Home, server: Loopback, asked: dict[str, str]
) -> None:
    recorded(home)
    set_price(home, "openai/sub", {"input": Decimal(1000), "output": Decimal(2000)})
    done = call("replay", RUN, "--mode", "live", "--max-cost", "0.000001", env=asked)
    assert "0 calls to a model" in done.out and not server.requests
