"""Logs of recursive-flow: what was read off them by eye is what their import holds.

The logs were made by running it (tests/fixtures/logs/recursive_flow/make.py).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rlm_core import semconv as sc
from tests.support.outlines import LOGS, SAMPLES, outline, taken, texts
from traces.home import Home
from traces.importers.importing import Imported, Refused, import_paths
from traces.reading import load_run

FLOW = LOGS / "recursive_flow"
#: Read off the session.jsonl of each agent: one call of the model and one block of code for each turn.
WHOLE = """
run: How many days was the pump down?
  iteration: Explore
    root_call root-model 3772+21: I look at the inputs first. ```repl prin
    cell: print(list(INPUTS), len(INPUTS["context"
  iteration error (no_code_block): ERROR: Your previous reply did not conta
    root_call root-model 3800+8: I think the answer is six days.
  iteration: Decompose
    root_call root-model 3879+35: ```repl lines = INPUTS["context"].splitl
    cell: replies = llm_query_batched(["Which date
  iteration: Explore
    root_call root-model 3921+13: ```repl print("before") print(undefined_
    cell error (NameError): print("before")
  iteration: Decompose
    root_call root-model 3950+99: ```repl print("asking") [a, b] = await l
    cell: print("asking")
      batch
        run: Find the date in the text.
          iteration: Explore
            root_call root-model 3768+10: ```repl t = INPUTS["text"] print(t) ```
            cell: t = INPUTS["text"]
          iteration: Terminate
            root_call root-model 3789+10: ```repl done(t[-6:].strip(" .\\n")) ```
            cell: done(t[-6:].strip(" .\\n"))
        run: Find the date in the text.
          iteration: Explore
            root_call root-model 3768+10: ```repl t = INPUTS["text"] print(t) ```
            cell: t = INPUTS["text"]
          iteration: Terminate
            root_call root-model 3788+10: ```repl done(t[-6:].strip(" .\\n")) ```
            cell: done(t[-6:].strip(" .\\n"))
      run: How many days between the dates?
        iteration: Decompose
          root_call root-model 3769+33: ```repl x = INPUTS["dates"] [y] = await
          cell: x = INPUTS["dates"]
            run: Subtract.
              iteration: Terminate
                root_call root-model 3759+8: ```repl done("9 - 3 = 6") ```
                cell: done("9 - 3 = 6")
        iteration: Terminate
          root_call root-model 3808+8: ```repl done("9 - 3 = 6") ```
          cell: done("9 - 3 = 6")
  iteration: Terminate
    root_call root-model 4066+10: Now I know. ```repl done("6 days") ```
    cell: done("6 days")
"""
HALF = """
run lost: How many days was the pump down?
  iteration: Explore
    root_call root-model 3772+21: I look at the inputs first. ```repl prin
    cell: print(list(INPUTS), len(INPUTS["context"
  iteration error (no_code_block): ERROR: Your previous reply did not conta
    root_call root-model 3800+8: I think the answer is six days.
  iteration: Decompose
    root_call root-model 3879+35: ```repl lines = INPUTS["context"].splitl
    cell: replies = llm_query_batched(["Which date
  iteration: Explore
    root_call root-model 3921+13: ```repl print("before") print(undefined_
    cell error (NameError): print("before")
  iteration lost: Decompose
    root_call root-model 3950+99: ```repl print("asking") [a, b] = await l
    cell lost: print("asking")
      batch lost
        run lost: Find the date in the text.
        run lost: Find the date in the text.
"""

#: What no reader expects; the others in the long suite.
VALUES = [[], *(pytest.param(value, marks=pytest.mark.full) for value in ({}, None, 7))]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home.resolve(tmp_path / "home")


def test_the_folder_of_a_run_holds_what_its_log_says(home: Home) -> None:
    ((done, view),) = taken(home, FLOW / "run")
    assert outline(view) == WHOLE.strip()
    assert (done.format, done.question, done.problems) == ("recursive-flow", view.summary.question, ())
    assert view.summary.answer == "6 days" and view.summary.root_model == "root-model"
    assert view.summary.tokens == {"input": 49_837, "output": 275, "total": 50_112}
    assert view.summary.cost_usd is None and view.summary.seconds is None


def test_texts_are_whole_and_what_the_root_was_shown_is_told_apart(home: Home) -> None:
    ((_, view),) = taken(home, FLOW / "run")
    assert texts(view, "cell", "stdout")[:4] == [
        "['context'] 63",
        "['3 May', '9 May']",
        "before",
        "asking\n3 May | 9 May\n9 - 3 = 6",
    ]
    assert texts(view, "cell", "stdout_shown")[0] == "REPL output:\n['context'] 63"
    assert texts(view, "cell", "exception")[2] == "NameError: name 'undefined_name' is not defined"
    assert texts(view, "run", "answer") == ["6 days", "3 May", "9 May", "9 - 3 = 6", "9 - 3 = 6"]
    context = "Doc A: the pump failed on 3 May.\nDoc B: it ran again on 9 May.\n"
    assert texts(view, "run", "child_context")[0] == [[context]]


def test_the_messages_of_a_call_are_those_that_the_engine_shows(home: Home) -> None:
    ((_, view),) = taken(home, FLOW / "run")
    calls: list[Any] = texts(view, "root_call", "messages")
    second = calls[1]
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]
    meta = json.loads((FLOW / "run/agents/root/agent.json").read_text())
    assert second[0]["content"] == meta["system_prompt"]
    assert second[2]["content"].startswith("I look at the inputs first.")
    assert second[3]["content"] == "REPL output:\n['context'] 63"
    last = [message["content"] for message in calls[-1]]
    assert last[-1] == "\n\n".join(
        f"REPL output:\n{printed}" for printed in ("asking", "3 May | 9 May", "9 - 3 = 6")
    )  # turns of one role in a row are one message


def test_a_run_that_was_saved_half_way_gives_what_can_be_had(home: Home) -> None:
    ((done, view),) = taken(home, FLOW / "half")
    assert outline(view) == HALF.strip()
    assert view.summary.status == "interrupted"
    assert "The record ends before the run does: it has no answer." in done.missing


def test_a_trace_of_states_is_one_run_as_its_last_state_has_it(home: Home) -> None:
    ((_, view),) = taken(home, FLOW / "trace.json")
    calls = [(span.status, span.error_type) for span in view.spans if span.kind == "root_call"]
    assert calls == [("ok", None), ("error", "llm_exception"), ("ok", None), ("ok", None)]
    failed = next(span for span in view.spans if span.error_type == "llm_exception")
    assert failed.tokens is None and (failed.trusted or {})["tokens"] == "missing"
    assert view.summary.answer == "forced"


def test_nodes_that_only_earlier_states_hold_are_counted(home: Home, tmp_path: Path) -> None:
    trace = json.loads((FLOW / "trace.json").read_text())
    trace["steps"][1]["nodes"][3]["id"] = "n_taken_back"
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    ((done, _),) = taken(home, tmp_path / "trace.json")
    assert any("held 1 nodes that its last one no longer has" in sentence for sentence in done.missing)


def test_a_budget_that_was_used_up_is_no_answer(home: Home) -> None:
    ((_, view),) = taken(home, FLOW / "budget.json")
    assert (view.summary.status, view.summary.answer, view.summary.stop_reason) == ("error", None, "budget")
    assert view.spans[0].attributes[sc.ERROR_MESSAGE] == "[budget exceeded: 3790 tokens]"


def test_a_forced_turn_is_told_where_the_limit_of_the_agent_is_known(home: Home, tmp_path: Path) -> None:
    snapshot = json.loads((FLOW / "trace.json").read_text())["steps"][-1] | {"max_iters": 3}
    (tmp_path / "run.json").write_text(json.dumps(snapshot))
    ((_, view),) = taken(home, tmp_path / "run.json")
    forced = [span.attributes.get(sc.FORCED) for span in view.spans if span.kind == "iteration"]
    assert forced == [None, None, None, True] and view.summary.forced


def test_older_layouts_hold_the_same_run(home: Home, tmp_path: Path) -> None:
    flat, old = tmp_path / "flat", json.loads((FLOW / "trace.json").read_text())["steps"][-1]
    flat.mkdir()
    shutil.copy(FLOW / "run/graph.json", flat)
    for meta in sorted((FLOW / "run/agents").rglob("agent.json")):
        agent = json.loads(meta.read_text())["agent_id"]
        (flat / agent).mkdir()
        for name in ("agent.json", "session.jsonl"):
            shutil.copy(meta.parent / name, flat / agent / name)
    ((_, view),) = taken(home, flat)
    assert outline(view) == WHOLE.strip()
    old["states"] = old.pop("nodes")
    (tmp_path / "old.json").write_text(json.dumps([old]))
    ((_, view),) = taken(home, tmp_path / "old.json")
    assert view.summary.answer == "forced"


def test_a_manifest_stands_for_its_folder(home: Home) -> None:
    ((whole, _),) = taken(home, FLOW / "run")
    ((again, _),) = taken(home, FLOW / "run" / "graph.json")
    assert (again.run_id, again.new) == (whole.run_id, False)


def test_damaged_folders_say_what_is_lost(home: Home, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(FLOW / "run", run)
    session = run / "agents/root/first/session.jsonl"
    session.write_bytes(session.read_bytes()[:-40])
    (run / "agents/root/check/deep/agent.json").write_text("{")
    (run / "agents/root/second/session.jsonl").unlink()
    ((done, view),) = taken(home, run)
    told = " ".join(done.problems)
    for sentence in (
        "run/agents/root/first/session.jsonl, line 9: no node can be read there.",
        "agents/root/check/deep/agent.json cannot be read: that agent is left out.",
        "Agents named in graph.json without files: root.check.deep.",
        "second/session.jsonl is not there: what that agent did is lost.",
    ):
        assert sentence in told
    assert view.summary.answer == "6 days"
    (run / "graph.json").write_text('{"root_agent_id": "root", "agen')
    ((done, view),) = taken(home, run)
    assert "There is no readable graph.json: agents were found by their own files." in done.problems
    assert view.summary.question == "How many days was the pump down?"
    (run / "graph.json").unlink()
    assert taken(home, run)[0][0].run_id == done.run_id


def test_a_folder_with_agents_of_something_else_is_none_of_it(home: Home, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    (logs / "agents" / "mine").mkdir(parents=True)
    (logs / "agents" / "mine" / "agent.json").write_text('{"agent_id": "mine", "name": "helper"}')
    shutil.copy(FLOW / "budget.json", logs)
    came = [one for one in import_paths(home, [logs]) if isinstance(one, Imported)]
    assert [one.file for one in came] == ["logs/budget.json"]


def test_agents_that_name_each_other_as_callers_do_no_harm(home: Home, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(FLOW / "run", run)
    for name, above in (("first", "root.second"), ("second", "root.first")):
        meta = run / f"agents/root/{name}/agent.json"
        meta.write_text(json.dumps(json.loads(meta.read_text()) | {"parent_agent_id": above}))
    ((done, view),) = taken(home, run)
    assert done.problems == (
        "The agent root.first names one below it, or itself, as its caller, which cannot be: "
        "it stands at the end.",
    )
    assert view.summary.answer == "6 days"


def test_a_node_that_stands_twice_counts_once(home: Home, tmp_path: Path) -> None:
    shutil.copytree(FLOW / "run", run := tmp_path / "run")
    session = run / "agents/root/session.jsonl"
    session.write_text(session.read_text() * 2)
    ((done, view),) = taken(home, run)
    assert outline(view) == WHOLE.strip() and view.summary.tokens["total"] == 50_112
    (problem,) = done.problems
    assert problem.startswith("Nodes of the agent root that are in the record more than once")


def test_nodes_are_read_in_the_order_of_their_numbers(home: Home, tmp_path: Path) -> None:
    shutil.copytree(FLOW / "run", run := tmp_path / "run")
    session = run / "agents/root/session.jsonl"
    session.write_text("\n".join(reversed(session.read_text().splitlines())))
    ((done, view),) = taken(home, run)
    assert outline(view) == WHOLE.strip() and view.summary.answer == "6 days"
    assert "do not stand in the order of their numbers" in done.problems[0]


def test_links_in_a_folder_are_not_followed(home: Home, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(FLOW / "run", run)
    secret = tmp_path / "secret.jsonl"
    secret.write_text(json.dumps({"type": "user_query", "content": "a secret"}))
    session = run / "agents/root/first/session.jsonl"
    session.unlink()
    session.symlink_to(secret)
    ((done, _),) = taken(home, run)
    assert any("first/session.jsonl is not there" in problem for problem in done.problems)


def test_a_cut_snapshot_gives_the_turns_that_are_whole(home: Home, tmp_path: Path) -> None:
    whole = (FLOW / "trace.json").read_text()
    cut = tmp_path / "cut.json"
    cut.write_text(whole[: whole.rindex("exec_action")])
    ((done, view),) = taken(home, cut)
    assert done.problems == ("The file ends in the middle: what stands after that is lost.",)
    assert sum(span.kind == "iteration" for span in view.spans) == 4 and view.summary.answer is None


def test_the_record_of_another_version_opens(home: Home) -> None:
    ((_, view),) = taken(home, SAMPLES / "recursive_flow_run_v0_4_2")
    assert view.summary.answer == "6 days" and view.summary.tokens["total"] == 409


def test_what_holds_no_agent_is_refused_in_a_sentence(home: Home, tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "graph.json").write_text('{"root_agent_id": "root", "agents": []}')
    (refused,) = import_paths(home, [tmp_path])
    assert isinstance(refused, Refused) and "holds no agent of recursive-flow" in refused.why


def test_a_long_conversation_is_taken_in_without_growing_with_its_square(home: Home, tmp_path: Path) -> None:
    said = {"llm_action": "", "llm_output": "r", "error_output": "e"}
    turn = [{"type": kind, "reply": text, "content": text} for kind, text in said.items()]
    nodes = [{"type": "user_query", "id": "n", "content": "q"}, *turn * 750]
    (tmp_path / "long.json").write_text(json.dumps({"agent_id": "root", "query": "q", "nodes": nodes}))
    (done,) = import_paths(home, [tmp_path / "long.json"])
    assert isinstance(done, Imported)
    assert "Of very long conversations the messages of later root calls are left out." in done.missing
    assert load_run(home, done.run_id).summary.iterations == 750


@pytest.mark.parametrize("value", VALUES)
def test_nodes_with_values_of_other_types_do_no_harm(home: Home, tmp_path: Path, value: object) -> None:
    for name in (
        "id",
        "type",
        "seq",
        "content",
        "code",
        "reply",
        "input_tokens",
        "model",
        "output",
        "result",
    ):
        trace = json.loads((FLOW / "trace.json").read_text())
        for node in trace["steps"][-1]["nodes"][2:]:
            node[name] = value
        (tmp_path / "trace.json").write_text(json.dumps(trace))
        ((_, view),) = taken(home, tmp_path / "trace.json")
        assert view.summary.question == "Never ready?"
