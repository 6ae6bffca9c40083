"""ask, end to end with the demo model and with handlers of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlm_core.errors import ModelError
from rlm_core.lm_handler import FunctionLMHandler, Request
from traces.estimate import Estimate
from traces.home import Home
from ui.ask_outcome import estimate_words
from ui.cli import cli

COUNT = "How many tickets are about billing?"
DEMO = "demo model, no language model involved"
KEYS: dict[str, Any] = {
    "run_id": str,
    "answer": (str, type(None)),
    "stop_reason": str,
    "forced": bool,
    "iterations": int,
    "sub_calls": int,
    "cost_usd": (str, type(None)),
    "cost_status": str,
    "tokens": dict,
    "sandbox": str,
    "seconds": float,
    "question": str,
    "root_model": str,
    "sub_model": str,
    "corpus_id": str,
    "value": object,
    "confidence": (str, type(None)),
    "note": (str, type(None)),
    "mark": (str, type(None)),
    "best_partial": (str, type(None)),
    "failed_sub_calls": int,
    "refused_sub_calls": int,
    "problems": list,
    "notices": list,
    "demo": bool,
    "record": dict,
}


@pytest.fixture
def tickets(tmp_path: Path) -> Path:
    """Nine tickets, six of them about billing."""
    folder = tmp_path / "tickets"
    folder.mkdir()
    for number in range(9):
        about = "my invoice is wrong, I was charged twice" if number % 3 else "the app crashes with an error"
        (folder / f"ticket-{number}.txt").write_text(f"Ticket {number}: {about}.\n")
    return folder


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Request], Any]], None]:
    """Let a function answer instead of a model, whatever model is named."""

    def use(function: Callable[[Request], Any]) -> None:
        monkeypatch.setattr("rlm_core.models.make_handler", lambda *_, **__: FunctionLMHandler(function))

    return use


def program(*cells: str) -> Callable[[Request], str]:
    """A root that writes these cells in turn, the last for ever; sub-calls get the length of their prompt."""
    turns: Iterator[str] = iter(cells)

    def answer(request: Request) -> str:
        if request.role == "sub":
            return str(len(request.prompt))
        return f"```repl\n{next(turns, cells[-1])}\n```"

    return answer


def has_contract(document: dict[str, Any]) -> None:
    for key, kind in KEYS.items():
        assert isinstance(document[key], kind), (key, document[key])
    assert set(document["tokens"]) == {"input", "output", "total"}
    assert document["record"].keys() == {"spool", "problems", "complete"}
    for problem in document["problems"]:
        assert problem.keys() == {"path", "message"}


def test_a_count_as_json(call: Callable[..., Any], tickets: Path) -> None:
    result = call("ask", COUNT, str(tickets), "--json")
    document = result.json
    has_contract(document)
    assert (result.code, document["answer"], document["value"]) == (0, "6", 6)
    assert (document["sub_calls"], document["stop_reason"], document["forced"]) == (9, "final", False)
    assert (document["cost_usd"], document["cost_status"], document["demo"]) == ("0", "demo", True)
    assert document["record"]["complete"] and Path(document["record"]["spool"]).exists()
    assert any(DEMO in notice for notice in document["notices"]) and DEMO in result.err


def test_what_ask_says_is_what_the_record_says(call: Callable[..., Any], tickets: Path) -> None:
    asked = call("ask", COUNT, str(tickets), "--json").json
    (run,) = call("runs", "--json").json
    for key in ("run_id", "answer", "question", "stop_reason", "forced", "iterations", "sub_calls", "tokens"):
        assert run[key] == asked[key], key
    for key in ("root_model", "sub_model", "corpus_id", "demo", "cost_usd", "sandbox", "failed_sub_calls"):
        assert run[key] == asked[key], key
    assert run["seconds"] == asked["seconds"] > 0, "one run has one time"
    assert run["status"] == "ok" and run["complete"]
    spans = call("show", "last", "--json").json["spans"]
    assert sum(span["kind"] == "sub_call" for span in spans) == 9
    assert call("cost", "--json").json["total_usd"] == asked["cost_usd"]


def test_for_people(call: Callable[..., Any], tickets: Path, home: Any) -> None:
    result = call("ask", COUNT, str(tickets), "--root", "demo/root", "--sub", "demo/sub")
    lines = result.out.splitlines()
    assert (result.code, lines[0]) == (0, "6")
    assert "9 sub-calls" in result.out and DEMO in result.out
    assert lines[-1] == f"look deeper: rlmscope show last --home {home.root}"
    assert 0 < result.err.count("iteration ") < 20  # a few plain lines where there is no terminal
    assert "\x1b" not in result.out + result.err


def test_seeded_faults_repeat(call: Callable[..., Any], tickets: Path) -> None:
    def answers(*options: str) -> list[tuple[str, str]]:
        assert call("ask", COUNT, str(tickets), *options).code == 0
        spans = call("show", "last", "--json").json["spans"]
        return [(span["status"], span["preview"]) for span in spans if span["kind"] == "sub_call"]

    faults = ("--fault-rate", "0.5", "--fault-seed", "3")
    assert answers(*faults) == answers(*faults) != answers()


def test_a_corpus_id_or_its_prefix_stands_for_its_files(call: Callable[..., Any], tickets: Path) -> None:
    first = call("ask", COUNT, str(tickets), "--json").json
    for ref in (first["corpus_id"], first["corpus_id"][:6]):
        again = call("ask", COUNT, ref, "--json").json
        assert (again["answer"], again["corpus_id"]) == (first["answer"], first["corpus_id"])


def test_several_paths_are_one_corpus(call: Callable[..., Any], tickets: Path) -> None:
    files = sorted(str(path) for path in tickets.iterdir())[:4]
    assert call("ask", COUNT, *files, "--json").json["sub_calls"] == 4


def test_sources_that_cannot_be_used(call: Callable[..., Any], tickets: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for sources in (
        [str(tmp_path / "missing")],
        [str(tickets), str(tmp_path / "missing")],
        [str(tmp_path / "empty")],
        [""],
        ["0123456789abcdef"],
    ):
        result = call("ask", COUNT, *sources, "--json")
        assert (result.code, result.out) == (2, ""), sources
        assert result.err.splitlines()[-1].startswith("rlmscope: ") and "Traceback" not in result.err
    assert call("runs", "--json").json == []


def test_files_that_cannot_be_read_are_named_and_the_rest_goes_on(
    call: Callable[..., Any], tickets: Path
) -> None:
    (tickets / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8)
    (tickets / "nothing.txt").write_bytes(b"")
    result = call("ask", COUNT, str(tickets), "--json")
    document = result.json
    assert (result.code, document["answer"]) == (0, "6")
    named = " ".join(problem["path"] for problem in document["problems"])
    assert "picture.txt" in named and "nothing.txt" in named
    for problem in document["problems"]:
        assert problem["message"] in result.err


@pytest.mark.parametrize(
    "options",
    [
        ("--fault-rate", "1.5"),
        ("--fault-rate", "nan"),
        ("--fault-rate", "-0.1"),
        ("--max-iterations", "0"),
        ("--max-calls", "-1"),
        ("--max-tokens", "many"),
        ("--max-depth", "-1"),
        ("--max-cost", "0"),
        ("--max-cost", "NaN"),
        ("--max-cost", "a dollar"),
        ("--max-seconds", "0"),
        ("--max-seconds", "inf"),
        ("--concurrency", "0"),
        ("--seed", "-1"),
        ("--sandbox", "perfect"),
        ("--root", "two words"),
        ("--root", ""),
        ("--sub", ""),
        ("--root", "demo/unknown"),
        ("--sub", "http://server/model"),
    ],
)
def test_bad_options(options: tuple[str, str], call: Callable[..., Any], tickets: Path) -> None:
    result = call("ask", COUNT, str(tickets), *options)
    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines()[-1].startswith("rlmscope: ") and "Traceback" not in result.err
    assert call("runs", "--json").json == []


def test_a_missing_key_is_said_before_anything_is_read_or_started(
    call: Callable[..., Any], tickets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = call("ask", COUNT, str(tickets), "--root", "openai/gpt-5")
    assert (result.code, result.out) == (2, "")
    assert "openai/gpt-5: the environment variable OPENAI_API_KEY is missing" in result.error
    assert call("runs", "--json").json == []


def test_an_empty_question(call: Callable[..., Any], tickets: Path) -> None:
    assert call("ask", "  \n", str(tickets)).code == 2
    assert call("ask", "bad \udcff bytes", str(tickets)).code == 2


def test_a_cost_limit_needs_a_price_or_another_limit(
    call: Callable[..., Any], tickets: Path, handler: Callable[..., None]
) -> None:
    handler(program("FINAL(1)"))
    unknown = ("--root", "demo/root", "--sub", "openai/nobody-sells-this", "--max-cost", "0.5")
    result = call("ask", COUNT, str(tickets), *unknown)
    assert result.code == 2 and "openai/nobody-sells-this" in result.error and "--max-tokens" in result.error
    assert call("ask", COUNT, str(tickets), *unknown, "--max-tokens", "100000").code == 0
    assert call("ask", COUNT, str(tickets), *unknown, "--max-calls", "10").code == 0
    assert call("ask", COUNT, str(tickets), "--max-cost", "0.5").code == 0  # the demo models are free


def test_limits_reach_the_engine(
    call: Callable[..., Any], tickets: Path, handler: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler(program("FINAL(1)"))
    seen: dict[str, Any] = {}
    from rlm_core.rlm import RLM

    class Spy(RLM):
        def __init__(self, *models: str, **options: Any) -> None:
            seen.update(options, models=models)
            super().__init__(*models, **options)

    monkeypatch.setattr("rlm_core.rlm.RLM", Spy)
    options = (
        "--max-iterations 3 --max-depth 0 --max-calls 7 --max-tokens 9000 --max-cost 1.25 --max-seconds 60"
    )
    more = "--concurrency 4 --seed 5 --sandbox none --fault-rate 0.25 --fault-seed 6"
    more += " --max-tool-calls 9 --max-tool-rounds 2"
    assert call("ask", COUNT, str(tickets), *options.split(), *more.split()).code == 0
    limits = seen["limits"]
    assert (limits.max_iterations, limits.max_depth, limits.max_calls, limits.max_tokens) == (3, 0, 7, 9000)
    assert (limits.max_cost_usd, limits.max_seconds, limits.concurrency) == (Decimal("1.25"), 60.0, 4)
    assert (limits.max_tool_calls, limits.max_tool_rounds) == (9, 2)
    assert (seen["seed"], seen["sandbox"], seen["fault_rate"], seen["fault_seed"]) == (5, "none", 0.25, 6)


def test_values_keep_their_form(
    call: Callable[..., Any], tickets: Path, handler: Callable[..., None]
) -> None:
    handler(program("FINAL({'names': ('a', 'b'), 'big': 2**70, 'nan': float('nan')})"))
    document = call("ask", COUNT, str(tickets), "--json").json
    assert document["value"] == {
        "names": {"$tuple": ["a", "b"]},
        "big": {"$int": str(2**70)},
        "nan": {"$float": "nan"},
    }


def test_a_hostile_answer(call: Callable[..., Any], tickets: Path, handler: Callable[..., None]) -> None:
    evil = "\x1b]0;owned\x07[red]x[/red]\u202e\nsecond line"
    handler(program(f"FINAL({evil!r})"))
    result = call("ask", COUNT, str(tickets))
    assert result.out.startswith("␛]0;owned␇[red]x[/red]\\u202e\nsecond line\n")
    assert call("ask", COUNT, str(tickets), "--json").out.isascii()


def test_a_forced_answer_is_an_answer_and_says_so(
    call: Callable[..., Any], tickets: Path, handler: Callable[..., None]
) -> None:
    def answer(request: Request) -> str:
        return "about six" if "Final answer" in request.prompt else "```repl\nx = 1\n```"

    handler(answer)
    result = call("ask", COUNT, str(tickets), "--max-iterations", "2", "--json")
    document = result.json
    assert (result.code, document["answer"], document["forced"]) == (0, "about six", True)
    assert call("runs", "--json").json[0]["iterations"] == document["iterations"] == 2
    assert document["stop_reason"] == "max_iterations"
    assert "forced: a limit was reached" in call("ask", COUNT, str(tickets), "--max-iterations", "2").out


def test_no_answer_is_exit_1_with_the_document(
    call: Callable[..., Any], tickets: Path, handler: Callable[..., None]
) -> None:
    def refuse(_request: Request) -> str:
        raise ModelError("auth", "the key is not valid \x1b[2J")

    handler(refuse)
    result = call("ask", COUNT, str(tickets), "--json")
    has_contract(result.json)
    assert (result.code, result.json["answer"], result.json["stop_reason"]) == (1, None, "error")
    last = result.err.splitlines()[-1]
    assert last.startswith("rlmscope: the run gave no answer: ") and "the key is not valid ␛[2J" in last
    people = call("ask", COUNT, str(tickets))
    assert people.code == 1 and people.out.startswith("no answer")
    assert [run["status"] for run in call("runs", "--json").json] == ["error", "error"]


@pytest.mark.parametrize("error", [ModelError("server", "all is lost"), ZeroDivisionError("a defect")])
def test_an_engine_that_breaks_off_is_exit_1_with_what_was_recorded(
    error: Exception,
    call: Callable[..., Any],
    tickets: Path,
    handler: Callable[..., None],
    home: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handler(program("llm_query('x')", "FINAL(1)"))
    from rlm_core.rlm import RLM

    class Breaking(RLM):
        def ask(self, *arguments: Any, **options: Any) -> Any:
            super().ask(*arguments, **options)
            raise error

    monkeypatch.setattr("rlm_core.rlm.RLM", Breaking)
    result = call("ask", COUNT, str(tickets), "--json")
    document = result.json
    has_contract(document)
    assert (result.code, document["answer"], document["stop_reason"]) == (1, None, "error")
    assert (document["sub_calls"], document["iterations"]) == (1, 2)
    assert "Traceback" not in result.err
    if isinstance(error, ModelError):
        assert "all is lost" in result.err
    else:
        (log,) = (home.root / "logs").iterdir()
        assert "ZeroDivisionError" in result.err and str(log) in result.err
    (run,) = call("runs", "--json").json
    assert (run["status"], run["seconds"]) == ("error", document["seconds"])


def test_a_store_in_use_does_not_lose_the_run(
    call: Callable[..., Any], tickets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlm_core.errors import RecordError

    def busy(*_: object) -> None:
        raise RecordError("The store is in use.")

    monkeypatch.setattr("traces.ingest.ingest", busy)
    result = call("ask", COUNT, str(tickets), "--json")
    assert (result.code, result.json["answer"]) == (0, "6")
    assert any(
        "recorded in its spool but not in the store yet" in notice for notice in result.json["notices"]
    )
    assert "not in the store yet" in result.err
    monkeypatch.undo()


def test_models_from_the_environment(
    call: Callable[..., Any], tickets: Path, handler: Callable[..., None]
) -> None:
    handler(program("FINAL(1)"))

    def models(*options: str, env: dict[str, str]) -> tuple[str, str, bool]:
        document = call("ask", COUNT, str(tickets), "--json", *options, env=env).json
        said = any("demo model" in notice for notice in document["notices"])
        assert said == ("demo/" in document["root_model"] + document["sub_model"])
        return document["root_model"], document["sub_model"], document["demo"]

    both = {"RLMSCOPE_ROOT_MODEL": "openai/big", "RLMSCOPE_SUB_MODEL": "openai/small"}
    assert models(env=both) == ("openai/big", "openai/small", False)
    assert models("--root", "openai/other", env=both) == ("openai/other", "openai/small", False)
    assert models("--sub", "openai/other", env={}) == ("openai/other", "openai/other", False)
    assert models("--root", "demo/root", "--sub", "openai/small", env={}) == (
        "demo/root",
        "openai/small",
        False,
    )
    assert models("--root", "demo/root", env={}) == ("demo/root", "demo/sub", True)
    assert models("--sub", "demo/sub", env={}) == ("demo/root", "demo/sub", True)


def test_records_that_could_not_be_written_are_said(
    call: Callable[..., Any], tickets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traces.recording.Recording.problems", property(lambda _self: 3))
    result = call("ask", COUNT, str(tickets), "--json")
    assert result.code == 0 and result.json["record"]["complete"] is False
    assert "trace incomplete: 3 records could not be written" in result.err


def test_home_and_json_may_stand_anywhere_after_the_command(tickets: Path, home: Any) -> None:
    arguments = ["ask", "--json", "--home", str(home.root), COUNT, str(tickets)]
    assert CliRunner().invoke(cli, arguments).exit_code == 0


def test_what_a_run_will_take_is_said_once_there_is_a_history(
    call: Callable[..., Any], tickets: Path
) -> None:
    first = call("ask", COUNT, str(tickets), "--json")
    assert first.json["estimate"] is None and "estimate" not in first.err
    second = call("ask", COUNT, str(tickets), "--json")
    said = second.json["estimate"]
    assert (said["runs"], said["basis"]) == (1, "same_corpus")
    assert said["sub_calls"] == dict.fromkeys(("p50", "p95"), first.json["sub_calls"])
    assert said["tokens"]["p95"] == first.json["tokens"]["total"]
    took = (
        f"cost $0 (demo) · {first.json['tokens']['total']:,} tokens · {first.json['sub_calls']} sub-calls · "
    )
    assert f"estimate from 1 earlier run of these models over this corpus: {took}" in second.err


def test_an_estimate_says_the_tail_only_where_it_is_more_than_the_middle() -> None:
    usd = (Decimal("0.0012"), Decimal("0.03"))
    estimate = Estimate(9, "similar_size", usd, (1_000, 4_000), (200, 200), (2.0, 61.0))
    assert estimate_words(estimate, demo=False) == (
        "estimate from 9 earlier runs of these models over a corpus of similar size: "
        "cost $0.0012 (95 of 100 at most $0.03) · 1,000 tokens (95 of 100 at most 4,000) · 200 sub-calls · "
        "2.0 s (95 of 100 at most 1 min 01 s)"
    )


def test_a_model_whose_provider_nobody_knows_is_refused_at_once(
    call: Callable[..., Any], home: Home, tmp_path: Path
) -> None:
    (tmp_path / "note.txt").write_text("A short note.")
    refused = call("ask", "What?", str(tmp_path / "note.txt"), "--root", "nonsense")
    assert refused.code == 2 and "--root 'nonsense' names no provider that LiteLLM knows" in refused.error
    assert not list(home.spool.iterdir()) and not list(home.corpora.iterdir())
