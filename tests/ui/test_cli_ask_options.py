"""What the options of ask that say how a run goes about its question come to, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlm_core.lm_handler import FunctionLMHandler, Request
from rlm_core.options import STRATEGIES, DepthModels, Options
from ui.cli import cli

Call = Callable[..., Any]
SCHEMA = '{"type": "integer"}'
TOOLS = '''
"""Tools of a person's own."""
from __future__ import annotations
from rlm_core.tools import tool

def rate(currency: str) -> float:
    """The rate of a currency in euros."""
    return 2.0

def bare(currency):
    return 1

READY = tool(rate, name="ready")
NUMBER = 7
'''


@pytest.fixture
def document(tmp_path: Path) -> str:
    (tmp_path / "a.txt").write_text("The pin is 7.\n")
    return str(tmp_path / "a.txt")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(TOOLS)
    return tmp_path / "own.py"


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """The options that reach the engine, whose models are functions of the test."""
    from rlm_core.rlm import RLM

    def answer(request: Request) -> str:
        return "```repl\nFINAL(7)\n```"

    seen: list[Options] = []

    class Spy(RLM):
        def __init__(self, *models: str, **options: Any) -> None:
            seen.append(options["options"])
            super().__init__(*models, **{**options, "options": None})

    monkeypatch.setattr("rlm_core.models.make_handler", lambda *_, **__: FunctionLMHandler(answer))
    monkeypatch.setattr("rlm_core.rlm.RLM", Spy)
    return seen


def test_every_option_reaches_the_engine(
    call: Call, document: str, tools: Path, given: list[Options]
) -> None:
    words = f"--strategy retrieve+rlm --cache --root-window 9000 --passages 3 --tool {tools}:rate"
    depths = "--max-depth 2 --at 1:root=openai/a,sub=openai/b --at 2:sub=demo/sub"
    result = call("ask", "q", document, *words.split(), *depths.split(), "--schema", SCHEMA, "--json")
    assert result.code == 0, result.err
    (options,) = given
    assert (options.strategy, options.cache, options.schema) == ("retrieve+rlm", True, {"type": "integer"})
    assert (options.root_window, options.passages) == (9000, 3)
    assert options.models == {1: DepthModels("openai/a", "openai/b"), 2: DepthModels(sub="demo/sub")}
    assert [(spec.name, list(spec.parameters["properties"])) for spec in options.tool_specs] == [
        ("rate", ["currency"])
    ]
    assert result.json["strategy"] == "retrieve+rlm" and not result.json["demo"]
    assert any("openai/a, openai/b" in notice for notice in result.json["notices"])


def test_without_options_the_plain_way_is_taken(call: Call, document: str, given: list[Options]) -> None:
    result = call("ask", "q", document, "--json")
    assert given == [Options()]
    assert (result.json["strategy"], result.json["cache_hits"], result.json["tool_calls"]) == ("rlm", 0, 0)


def test_a_schema_may_be_a_file_and_a_tool_may_be_made_already(
    call: Call, document: str, tools: Path, given: list[Options], tmp_path: Path
) -> None:
    (tmp_path / "schema.json").write_text("\ufeff" + SCHEMA, "utf-8")
    options = ("--schema", str(tmp_path / "schema.json"), "--tool", f"{tools}:READY", "--tool", "calculate")
    assert call("ask", "q", document, *options).code == 0
    assert given[0].schema == {"type": "integer"}
    assert [spec.name for spec in given[0].tool_specs] == ["ready", "calculate"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--strategy", "guess"), "there is no strategy 'guess'; there are rlm, "),
        (("--schema", "{"), "the schema is not JSON"),
        (("--schema", '{"type": "nothing"}'), "the schema cannot be used: the schema is no JSON schema"),
        (("--schema", "nowhere.json"), "neither a JSON object nor a file"),
        (("--at", "root=demo/root"), "names no depth; it must be DEPTH:root=MODEL,sub=MODEL"),
        (("--at", "1:demo/root"), "names no models"),
        (("--at", "1:sub=demo/sub,sub=demo/sub"), "names no models"),
        (("--at", "1:sub="), "--at 1: sub model is empty"),
        (("--at", "1:sub=demo/sub", "--at", "1:root=demo/root"), "depth 1 twice"),
        (("--at", "3:sub=demo/sub"), "no run gets there: --max-depth is 1"),
        (("--tool", "nothing"), "no built-in tool 'nothing'; there are calculate, corpus_read"),
        (("--tool", "nowhere.py:x"), "no Python file here"),
        (("--tool", "OWN:nothing"), "holds no 'nothing'"),
        (("--tool", "OWN:NUMBER"), "holds no function but a value called 'NUMBER'"),
        (("--tool", "OWN:bare"), "bare in "),
        (("--tool", "OWN:rate", "--tool", "OWN:rate"), "two tools are called rate"),
        (("--match", "exact"), "--match compares the answers of repeats"),
        (("--repeat", "2", "--match", "judge"), "answers of runs are compared by normalised"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    call: Call, document: str, tools: Path, options: tuple[str, ...], words: str
) -> None:
    result = call("ask", "q", document, *(one.replace("OWN", str(tools)) for one in options))
    assert result.code == 2 and words in result.err and "Traceback" not in result.err
    assert result.err.splitlines()[-1].startswith(("rlmscope: ", "Error: "))


def test_a_file_of_tools_that_does_not_run_is_named_with_its_error(
    call: Call, document: str, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    result = call("ask", "q", document, "--tool", f"{tmp_path / 'broken.py'}:x")
    assert result.code == 2 and "broken.py cannot be run: ModuleNotFoundError" in result.error


def test_a_cost_limit_must_hold_for_the_models_of_child_runs_too(call: Call, document: str) -> None:
    options = ("--at", "1:sub=openai/nobody-sells-this", "--max-cost", "1")
    result = call("ask", "q", document, *options)
    assert result.code == 2 and "the price of openai/nobody-sells-this is unknown" in result.err


def test_the_help_names_every_strategy() -> None:
    words = CliRunner().invoke(cli, ["ask", "--help"]).output
    assert all(name in words for name in STRATEGIES)
