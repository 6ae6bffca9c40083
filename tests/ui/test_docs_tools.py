"""What ui/docs/tools.md and ui/docs/structured.md say is run, through a model server on 127.0.0.1."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_core.builtin_tools import BUILTIN
from rlm_core.limits import Limits
from tests.support.command import ROOT
from tests.support.loopback import Loopback, Messages, Reply, Script

DOCS = ROOT / "ui" / "docs"
TOOLS = (DOCS / "tools.md").read_text(encoding="utf-8")
STRUCTURED = (DOCS / "structured.md").read_text(encoding="utf-8")
SESSION = r"^\$ rlmscope (.*)\n((?:(?!```|\$ ).*\n)*)"
INVOICES = (
    "The invoice of March, 1,250 euros, is due in thirty days.\nThe invoice of April, 300 euros, was paid.\n"
)
Call = Callable[..., Any]


@pytest.fixture(scope="module")
def running() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


@pytest.fixture
def server(running: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loopback:
    """The server as the place of every model, and the files that the pages name where the commands run."""
    monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("RLMSCOPE_ROOT_MODEL", "openai/root-model")
    monkeypatch.setenv("RLMSCOPE_SUB_MODEL", "openai/sub-model")
    monkeypatch.chdir(tmp_path)
    Path("invoices.txt").write_text(INVOICES)
    Path("rates.py").write_text(re.findall(r"```python\n(def in_dollars.*?)```", TOOLS, re.S)[0])
    Path("schema.json").write_text(re.findall(r"```json\n(.*?)```", STRUCTURED, re.S)[0])
    return running


def masked(text: str) -> str:
    """Without what differs from run to run, and without the end of a line that a terminal cuts."""
    text = re.sub(r"20\d{6}T\d{6}-[0-9a-f]{8}|(?<=\[)[0-9a-f]{8}(?=\])", "(id)", text)
    text = re.sub(r"tokens [\d,]+ in, [\d,]+ out|· [\d.]+ m?s\b|· sandbox .*", "(*)", text)
    return re.sub(r" --home \S+|“The.*|(?<='euros' is).*", "", text).strip()


def with_tools(messages: Messages) -> Reply:
    """A sub-model that searches, forgets an argument, and converts."""
    told = [message["content"] for message in messages if message["role"] == "tool"]
    wanted = [("corpus_search", '{"query": "due"}'), ("in_dollars", '{"month": "March"}')]
    if len(told) < 2:
        return Reply(None, "tool_calls", tool_calls=wanted)
    if len(told) < 3:
        return Reply(None, "tool_calls", tool_calls=[("in_dollars", '{"euros": 1250}')])
    return Reply(f"The invoice of March is due: {told[-1]} dollars")


def test_the_session_with_tools(server: Loopback, call: Call) -> None:
    server.use(Script(root=["```repl\nFINAL(llm_query('What is due in dollars?'))\n```"], talk=with_tools))
    sessions = re.findall(SESSION, TOOLS, re.M)
    assert len(sessions) == 2
    for line, printed in sessions:
        done = call(*shlex.split(line))
        assert done.code == 0, done.err
        lines = [masked(one) for one in done.out.splitlines()]
        at = 0
        for one in filter(None, map(masked, printed.splitlines())):
            assert one in lines[at:], f"{one!r} is not among {lines[at:]}"
            at = lines.index(one, at) + 1
    assert len(server.requests) == 4, "one of the root, three of the one sub-call"
    assert "tools" not in server.requests[0]["body"] and "tool_choice" not in server.requests[1]["body"]
    assert [one["function"]["name"] for one in server.requests[1]["body"]["tools"]] == [
        "corpus_search",
        "in_dollars",
    ]


def test_tool_calls_are_shown_whole_and_played_without_being_made(server: Loopback, call: Call) -> None:
    server.use(Script(root=["```repl\nFINAL(llm_query('What is due?'))\n```"], talk=with_tools))
    words = ("--tool", "corpus_search", "--tool", "rates.py:in_dollars", "--json")
    said = call("ask", "What is due?", "invoices.txt", *words).json
    assert (said["sub_calls"], said["tool_calls"]) == (1, 3)
    spans = call("show", "last", "--json").json["spans"]
    found, wrong, right = (one["span_id"] for one in spans if one["kind"] == "tool")
    (asked,) = (one for one in spans if one["kind"] == "sub_call")
    reported = [one["body"]["usage"] for one in server.answered(len(server.requests))[1:]]
    assert asked["tokens"]["input"] == sum(usage["prompt_tokens"] for usage in reported)
    shown = call("span", "last", right, "--json").json
    assert (shown["arguments"], shown["result"]) == ('{"euros": 1250}', "1375.0")
    assert "'euros' is a required property" in call("span", "last", wrong).out
    assert "invoices.txt, bytes 0 to" in call("span", "last", found).out
    requests = len(server.requests)
    again = call("replay", "last", "--json").json
    assert again["answer"] == said["answer"] and len(server.requests) == requests


def test_the_answer_of_the_page_fits_its_schema(server: Loopback, call: Call) -> None:
    """Also of a sub-call: its value is that of its reply, in the run and when it is played."""
    asking = "x = llm_query('Which?', schema={'type': 'integer'})\nFINAL([{'month': 'March', 'euros': %s}])"
    root = [f"```repl\n{asking % one}\n```" for one in ("str(x)", "x")]
    replies = iter(["It is 1250", "1250"])
    server.use(Script(root=root, sub=lambda prompt: next(replies, "1250")))
    ((line, _), (cached, _)) = re.findall(SESSION, STRUCTURED, re.M)
    said = call(*shlex.split(line)).json
    assert said["answer"] == '[{"month": "March", "euros": 1250}]' and said["mark"] is None
    assert said["value"] == [{"month": "March", "euros": 1250}]
    spans = call("show", "last", "--json").json["spans"]
    first, _ = (one["span_id"] for one in spans if one["kind"] == "sub_call")
    shown = call("span", "last", first, "--json").json
    assert [one["error_type"] for one in shown["attempts"]] == ["schema", None]
    again = call("replay", "last", "--json").json
    assert (again["answer"], again["outcome"]) == (said["answer"], "unchanged")

    server.use(Script(root=["```repl\nFINAL(len(set(llm_batch(['same'] * 20))))\n```"]))
    said = call(*shlex.split(cached)).json
    assert (said["answer"], said["sub_calls"], said["cache_hits"]) == ("1", 20, 19)
    assert len(server.requests) == 2
    assert "20 ok [" in (shown := call("show", "last").out) and "] · 19 cache hits · " in shown
    assert call("show", "last", "--all").out.count(" · cache hit · ") == 19


def test_what_a_tool_prints_is_no_part_of_the_json(server: Loopback, call: Call) -> None:
    source = 'print("loaded")\ndef in_dollars(euros: float) -> float:\n    "Convert."\n    print("called")\n'
    Path("noisy.py").write_text(f"{source}    return euros\n")
    server.use(Script(root=["```repl\nFINAL(llm_query('What is due?'))\n```"], talk=with_tools))
    words = ("--tool", "corpus_search", "--tool", "noisy.py:in_dollars")
    done = call("ask", "What is due?", "invoices.txt", *words, "--json")
    assert done.json["answer"].endswith("1250.0 dollars")
    assert "loaded" in done.err and "called" in done.err


def test_a_sub_call_whose_replies_never_fit_says_so(server: Loopback, call: Call) -> None:
    code = "x = llm_query('Which?', schema={'type': 'integer'})\nFINAL({'kind': x.kind})"
    server.use(Script(root=[f"```repl\n{code}\n```"], sub=lambda prompt: "none"))
    said = call("ask", "Which?", "invoices.txt", "--json").json
    assert said["value"] == {"kind": "schema"} and said["failed_sub_calls"] == 1
    sent = [request["body"] for request in server.requests[1:]]
    assert len(sent) == 3 and "response_format" not in sent[0], "servers take that for objects only"
    assert sent[-1]["messages"][0]["role"] == "system"
    assert "does not fit" in sent[-1]["messages"][-1]["content"]


VALUES = """
from pydantic import BaseModel
class Count(BaseModel):
    n: int
pair = rlm_query("child", schema={"type": "array"})
bad = rlm_query("bad child", schema={"type": "array"})
count = llm_query("count", schema=Count)
FINAL([pair[0], bad.kind, count.n, llm_batch(["x", "x", "y"])])
"""


def in_three_runs(messages: Messages) -> str:
    """The root of a run with one child that answers as it should and one that never does."""
    asked = messages[1]["content"].split("# Context")[0]
    code = "FINAL('no')" if "bad child" in asked else "FINAL((7, 8))" if "child" in asked else VALUES
    return f"```repl\n{code}\n```"


@pytest.mark.full
def test_values_of_children_models_and_hits_are_the_same_when_played(server: Loopback, call: Call) -> None:
    server.use(Script(root=in_three_runs, sub=lambda prompt: '{"n": 4}'))
    said = call("ask", "How many?", "invoices.txt", "--cache", "--json").json
    assert said["value"] == [7, "schema", 4, ['{"n": 4}'] * 3] and said["cache_hits"] == 1
    requests = len(server.requests)
    again = call("replay", said["run_id"], "--json").json
    assert (again["outcome"], again["answer"]) == ("unchanged", said["answer"])
    assert len(server.requests) == requests
    anew = call("replay", said["run_id"], "--mode", "live", "--json").json
    assert (anew["outcome"], anew["live_calls"]) == ("unchanged", 3)
    assert len(server.requests) == requests + 3, "a hit asks nobody and is not counted as if it did"


def test_tools_and_limits_are_named_as_in_the_program() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", TOOLS, re.M)) == set(BUILTIN)
    limits = Limits()
    assert f"`--max-tool-rounds` ({limits.max_tool_rounds})" in TOOLS
    assert f"`--max-tool-calls` ({limits.max_tool_calls:,})" in TOOLS
    assert f"`tool_seconds` ({limits.tool_seconds:g} s)" in TOOLS
    assert json.loads(re.findall(r"```json\n(.*?)```", STRUCTURED, re.S)[0])["type"] == "array"
