"""One run of the real engine that does everything a run can do, and where each part of it is found again.

`ITEMS` is list A6 of what must be recorded, item by item: who reads it has the map of the record.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy
import pandas
import pytest
from click.testing import CliRunner

import rlm_core
from rlm_core import RLM, Completion, FunctionLMHandler, Limits, Request
from rlm_core.corpus import Corpus
from rlm_core.errors import ModelError
from rlm_core.lm_handler import Usage
from rlm_core.normalise import normalise
from rlm_core.price_rows import Override
from rlm_core.pricing import PriceTable
from rlm_core.prompts import PROMPTS_VERSION, SYSTEM
from tests.support.scripted import FAST, cell
from traces.home import Home
from traces.recording import open_recording
from ui.cli import cli

RUN = "20260101T000000-0000000a"
QUESTION = "Which of the notes speak of a refund?"
ROOT, SUB = "openai/gpt-4o", "openai/gpt-4o-mini"
RATES = {"input": "2.5", "cached_read": "1.25", "cache_write": "2.5", "output": "10"}
PRICE = Override(ROOT, {name: Decimal(rate) for name, rate in RATES.items()}, "2026-01-01")
ALPHA = "Alpha: the customer asked for a refund of 12 euro and got it.\n" * 4
BETA = "Beta: a parcel came late; nobody minded, and nothing was paid back.\n" * 4
LIMITS = Limits(output_shown_chars=400, max_calls=50, max_depth=1)

CODES = (
    # 0: reads the corpus, prints more than is shown, warns past Python's own streams
    "import os, sys\nnotes = [d for d in documents]\nprint('x' * 1000)\nprint('careful', file=sys.stderr)\n"
    "sent = os.write(2, b'from below')",
    # 1: one call with a place, then a batch: a retry, a failure, a text that code built
    "first = llm_query('Who is this about?', documents[0][:60])\n"
    "asked = ['busy once', 'always refused', f'Judge: <{documents[1][5:150]}>']\n"
    "found = llm_batch(asked)\nleft = budget()",
    # 2: reads what came before, changes one value, then fails
    "count = len(found)\nfirst = first.upper()\n1 / 0",
    # 3: pays for an answer, then its worker dies
    "gone = llm_query('paid once')\nimport os\nsent = os.write(2, b'last words')\nos._exit(7)",
    # 4: asks the same again: the answer is in the record
    "again = llm_query('paid once')",
    # 5: a child run over a text of its own
    "child = rlm_query('Is it polite?', 'Good morning, dear Sir.')",
    # 6: a call that cannot be made
    "foreign = llm_query('who am I?', model='openai/other')",
    # 7: the end
    "verdict = {'refunds': 1, 'of': count}\nFINAL_VAR('verdict')",
)
CHILD = "print(context)\nFINAL(True)"


def usage(given: int, made: int) -> Usage:
    return Usage(input=given, output=made, cached_read=10, cache_write=0, reasoning=2)


def answered(request: Request, text: str, number: int) -> Completion:
    raw = {"prompt_tokens": 100, "completion_tokens": 20}
    name = request.model.removeprefix("openai/")
    return Completion(
        text,
        usage=usage(100, 20),
        reasoning="I thought about it." if request.role == "root" else None,
        model_returned=f"{name}-2026",
        response_id=f"id-{number}",
        raw_usage=raw,
    )


class Model:
    """Answers by script; "busy once" is told to wait once, "always refused" never gets an answer."""

    def __init__(self) -> None:
        self._turns, self._calls, self._busy = iter(CODES), 0, 1

    def __call__(self, request: Request) -> Completion:
        if request.role == "sub":
            return self._sub(request)
        is_child = "Is it polite?" in request.messages[1].content
        return self._answer(request, cell(CHILD if is_child else next(self._turns)))

    def _sub(self, request: Request) -> Completion:
        if request.prompt == "busy once" and self._busy:
            self._busy = 0
            raise ModelError("rate_limit", "slow down", retryable=True, retry_after=0.001, status=429)
        if request.prompt == "always refused":
            raise ModelError("refused", "not this one", status=400)
        return self._answer(request, f"Seen:  {request.prompt[:9]}.")

    def _answer(self, request: Request, text: str) -> Completion:
        self._calls += 1
        return answered(request, text, self._calls)


@dataclass(frozen=True)
class Read:
    """The record as the command line shows it."""

    show: dict[str, Any]
    details: tuple[dict[str, Any], ...]
    summary: dict[str, Any]
    corpus_id: str

    def of(self, kind: str, number: int = 0, depth: int = 0) -> dict[str, Any]:
        """The span of a kind at a depth, by its place in the record."""
        found = [each for each in self.details if (each["kind"], each["depth"]) == (kind, depth)]
        return found[number]

    def call(self, start: str, number: int = 0) -> dict[str, Any]:
        """The sub-call whose prompt begins so."""
        found = [d for d in self.details if d["kind"] == "sub_call" and (d["prompt"] or "").startswith(start)]
        return found[number]


def called(home: Home, *words: str) -> Any:
    result = CliRunner().invoke(cli, [*words, "--home", str(home.root)])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout) if "--json" in words else result.stdout


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    yield Home(tmp_path_factory.mktemp("complete") / "home")


@pytest.fixture(scope="module")
def read(home: Home) -> Read:
    corpus = Corpus.from_texts({"a.txt": ALPHA, "b.txt": BETA}, home.corpora)
    models = RLM(
        ROOT,
        SUB,
        handler=FunctionLMHandler(Model()),
        limits=LIMITS,
        seed=5,
        retries=FAST,
        prices=PriceTable([PRICE]),
    )
    with open_recording(home, RUN, {}) as recording, models as rlm:
        answer = rlm.ask(QUESTION, corpus, run_id=RUN, recorder=recording.recorder)
    assert recording.problems == 0 and answer.value == {"refunds": 1, "of": 3}, answer
    show = called(home, "show", RUN, "--json")
    details = tuple(called(home, "span", RUN, span["span_id"], "--json") for span in show["spans"])
    return Read(show, details, called(home, "runs", "--json")[0], corpus.corpus_id)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def value_hash(read: Read, number: int, name: str) -> str:
    """What the variable table of a cell says about a name."""
    return next(row["hash"] for row in read.of("cell", number)["variables"] if row["name"] == name)


Look = Callable[[Read], object]
"""What must be recorded -> where it is found, and what is found there."""
ITEMS: dict[str, tuple[Look, object]] = {
    # corpus
    "corpus: hash": (
        lambda r: r.of("run")["facts"]["corpus.id"] == r.corpus_id == r.summary["corpus_id"],
        True,
    ),
    "corpus: document table": (
        lambda r: [
            (d["name"], d["chars"], d["sha256"]) for d in json.loads(r.of("run")["corpus"])["documents"]
        ],
        [("a.txt", len(ALPHA), sha256(ALPHA)), ("b.txt", len(BETA), sha256(BETA))],
    ),
    "corpus: what `context` was": (lambda r: json.loads(r.of("run")["corpus"])["context"], "documents"),
    "corpus: of a child run": (lambda r: r.of("run", 0, 1)["child_context"], [["Good morning, dear Sir."]]),
    "corpus: size": (
        lambda r: [r.of("run")["facts"][key] for key in ("corpus.text_chars", "corpus.documents")],
        [len(ALPHA) + len(BETA), 2],
    ),
    # root calls
    "root: every message, system prompt first": (
        lambda r: [
            (m["role"], sha256(m["content"]) == m["sha256"]) for m in r.of("root_call", 1)["messages"]
        ],
        [("system", True), ("user", True), ("assistant", True), ("user", True)],
    ),
    "root: system prompt by hash": (lambda r: r.of("root_call")["messages"][0]["sha256"], sha256(SYSTEM)),
    "root: question and context": (lambda r: QUESTION in r.of("root_call")["messages"][1]["content"], True),
    "root: response": (lambda r: r.of("root_call")["response"], cell(CODES[0])),
    "root: reasoning": (lambda r: r.of("root_call")["reasoning"], "I thought about it."),
    "root: model, asked for and answered": (
        lambda r: [r.of("root_call")[key] for key in ("model", "model_returned")],
        [ROOT, "gpt-4o-2026"],
    ),
    "root: parameters": (lambda r: r.of("root_call")["parameters"], {"max_tokens": LIMITS.max_tokens_root}),
    "root: response id": (lambda r: r.of("root_call")["facts"]["gen_ai.response.id"], "id-1"),
    "root: finish reason": (lambda r: r.of("root_call")["finish_reasons"], ["stop"]),
    "root: usage by class": (
        lambda r: r.of("root_call")["classes"],
        {"input": 90, "cached_read": 10, "cache_write": 0, "output": 20},
    ),
    "root: reasoning tokens": (
        lambda r: r.of("root_call")["facts"]["gen_ai.usage.reasoning.output_tokens"],
        2,
    ),
    "root: usage as reported": (
        lambda r: r.of("root_call")["attempts"][0]["usage_raw"],
        {"prompt_tokens": 100, "completion_tokens": 20},
    ),
    "root: price row": (
        lambda r: [r.of("root_call")["price"][k] for k in ("model", "cached_read_per_mtok")],
        [ROOT, "1.25"],
    ),
    "root: cost by that row": (
        # 90 x 2.50 + 10 x 1.25 + 20 x 10 dollars a million
        lambda r: r.of("root_call")["cost_usd"],
        "0.0004375",
    ),
    # cells
    "cell: code": (lambda r: [r.of("cell", n)["code"] for n in range(len(CODES))], list(CODES)),
    "cell: how its code was found": (lambda r: r.of("cell")["facts"]["code.how"], "fence"),
    "cell: output in full, errors in their place": (
        lambda r: r.of("cell")["stdout"],
        "x" * 1000 + "\ncareful\n",
    ),
    "cell: output as shown to the root": (
        lambda r: [r.of("cell")["stdout_shown"][:201], "characters" in r.of("cell")["stdout_shown"]],
        ["x" * 200 + "\n", True],
    ),
    "cell: what was shown is what the root got": (
        lambda r: r.of("cell")["stdout_shown"] in r.of("root_call", 1)["messages"][-1]["content"],
        True,
    ),
    "cell: both hashes": (
        lambda r: [r.of("cell")["hashes"][k] == sha256(r.of("cell")[k]) for k in ("stdout", "stdout_shown")],
        [True, True],
    ),
    "cell: true length of the output": (lambda r: r.of("cell")["facts"]["stdout.true_chars"], 1009),
    "cell: rule of what is kept and shown": (
        lambda r: r.of("cell")["output_rule"],
        {"kept_chars": 200_000, "shown_chars": 400, "of": "head and tail, half each"},
    ),
    "cell: output of C code": (lambda r: r.of("cell")["native_output"], "from below"),
    "cell: last words of a lost worker": (lambda r: r.of("cell", 3)["native_output"], "last words"),
    "cell: exception": (
        lambda r: [r.of("cell", 2)["exception"].splitlines()[-1], r.of("cell", 2)["facts"]["exception.type"]],
        ["ZeroDivisionError: division by zero", "ZeroDivisionError"],
    ),
    "cell: line of the exception": (lambda r: "line 3" in r.of("cell", 2)["exception"], True),
    "cell: duration": (
        lambda r: 0 <= r.of("cell")["facts"]["cell.wall_seconds"] <= _seconds(r.of("cell")),
        True,
    ),
    "cell: names read": (lambda r: r.of("cell", 2)["names_read"], ["first", "found", "len"]),
    "cell: hashes of the values it read": (
        lambda r: r.of("cell", 2)["values_read"] == {"first": value_hash(r, 1, "first"), "found": None},
        True,
    ),
    "cell: names written": (lambda r: r.of("cell", 2)["names_written"], ["first", "count"]),
    "cell: hashes and previews of the values it wrote": (
        lambda r: [
            (row["name"], row["type"], row["change"], row["preview"], len(row["hash"]))
            for row in r.of("cell", 2)["variables"]
        ],
        [("first", "str", "changed", "SEEN:  WHO IS TH.", 32), ("count", "int", "new", "3", 32)],
    ),
    "cell: hash of a value after a rebuild": (
        lambda r: r.of("cell", 7)["values_read"],
        lambda r: {"count": value_hash(r, 2, "count")},
    ),
    "cell: what a lost worker took along": (lambda r: r.of("cell", 3)["names_lost"], ["gone", "os", "sent"]),
    "cell: which worker": (
        lambda r: [r.of("cell", n)["facts"]["worker.generation"] for n in (3, 4)],
        [0, 1],
    ),
    "cell: death and rebuild": (
        lambda r: [event["name"] for event in r.of("cell", 3)["events"]],
        ["worker_died", "worker_rebuilt"],
    ),
    "cell: findings": (
        lambda r: [f["rule"] for f in r.of("cell", 4)["findings"]] == [],
        True,
    ),
    # sub-calls
    "sub-call: ordinal by submission": (
        lambda r: [
            d["facts"]["call.ordinal"] for d in r.details if d["kind"] == "sub_call" and d["cell"] == 1
        ],
        [0, 1, 2, 3],
    ),
    "sub-call: call site": (
        lambda r: [(r.call(p)["cell"], r.call(p)["facts"]["call.line"]) for p in ("Who is", "busy once")],
        [(1, 1), (1, 3)],
    ),
    "sub-call: identity": (
        lambda r: [r.call(p)["facts"]["call.id"] for p in ("Who is", "busy once", "Judge")],
        ["0/1", "0/2", "0/4"],
    ),
    "sub-call: parent": (lambda r: r.call("Who is")["parent_id"], lambda r: r.of("cell", 1)["span_id"]),
    "sub-call: depth and path": (
        lambda r: (r.call("Who is")["depth"], r.call("Who is")["facts"]["run.path"]),
        (0, "0"),
    ),
    "sub-call: batch and slot": (
        lambda r: [(r.call(p)["parent_id"], r.call(p)["call_index"]) for p in ("busy once", "Judge")],
        lambda r: [(r.of("batch")["span_id"], 0), (r.of("batch")["span_id"], 2)],
    ),
    "batch: size, failures, line": (
        lambda r: [r.of("batch")["facts"][k] for k in ("batch.size", "batch.failed", "call.line")],
        [3, 1, 3],
    ),
    "sub-call: prompt in full": (
        lambda r: r.call("Who is")["prompt"],
        "Who is this about?\n\n" + ALPHA[:60],
    ),
    "sub-call: hash of the prompt": (
        lambda r: r.call("Who is")["facts"]["hash.prompt"],
        sha256("Who is this about?\n\n" + ALPHA[:60]),
    ),
    "sub-call: where its text came from": (
        lambda r: (r.call("Who is")["source_ranges"]["how"], r.call("Who is")["source_ranges"]["ranges"]),
        ("reference", [[0, 0, 60]]),
    ),
    "sub-call: where text that code built came from": (
        lambda r: (r.call("Judge")["source_ranges"]["how"], r.call("Judge")["source_ranges"]["ranges"]),
        ("located", [[1, 5, 150]]),
    ),
    "sub-call: response in full": (lambda r: r.call("busy once")["response"], "Seen:  busy once."),
    "sub-call: normalised hash": (
        lambda r: r.call("busy once")["facts"]["hash.response_normalised"],
        sha256("seen: busy once"),
    ),
    "sub-call: attempts": (
        lambda r: [
            (a["attempt"], a["status"], a["error_type"], a["http_status"], a["retry_after_seconds"])
            for a in r.call("busy once")["attempts"]
        ],
        [(0, "error", "rate_limit", 429, None), (1, "ok", None, None, 0.001)],
    ),
    "sub-call: how it failed": (
        lambda r: (
            [r.call("always")[k] for k in ("status", "error_type")]
            + [r.call("always")["facts"]["error.message"]]
        ),
        ["error", "refused", "not this one"],
    ),
    "sub-call: start and end of every try": (
        lambda r: all(
            d["start_ns"] <= a["start_ns"] <= a["end_ns"] <= d["end_ns"]
            for d in r.details
            for a in d["attempts"]
        ),
        True,
    ),
    "sub-call: from the model or from the record": (
        lambda r: [r.call("paid once", n)["facts"]["served_from"] for n in (0, 1)],
        ["model", "record"],
    ),
    "sub-call: one served from the record is the same, at no cost": (
        lambda r: [
            (d["response"], d["cost_usd"], d["facts"]["hash.response_normalised"])
            for d in [r.call("paid once", 1)]
        ],
        lambda r: [
            (d["response"], "0", d["facts"]["hash.response_normalised"]) for d in [r.call("paid once", 0)]
        ],
    ),
    "sub-call: prompt of one that could not be made": (
        lambda r: [r.call("who am I?")[key] for key in ("status", "error_type", "prompt")],
        ["error", "bad_request", "who am I?"],
    ),
    "child run: call site and question": (
        lambda r: (
            [r.of("run", 0, 1)[key] for key in ("question", "cell", "depth")]
            + [
                r.of("run", 0, 1)["facts"][key]
                for key in ("call.line", "call.ordinal", "call.id", "run.path")
            ]
        ),
        ["Is it polite?", 5, 1, 1, 0, "0/7", "0.1"],
    ),
    "child run: answer": (lambda r: [r.of("run", 0, 1)[k] for k in ("answer", "value")], ["True", "true"]),
    # what code was told
    "budget() as code saw it": (
        lambda r: [
            (e["name"], e["attributes"]["name"], json.loads(e["attributes"]["reply"])["calls"])
            for e in r.of("cell", 1)["events"]
        ],
        [("host_reply", "budget", 46)],
    ),
    # environment
    "environment: seeds": (
        lambda r: r.of("run")["seeds"],
        {"python_hash": 5, "random": 5, "numpy": 5, "fault": 0, "fault_rate": 0.0},
    ),
    "environment: interpreter": (
        lambda r: [r.of("run")["versions"][key] for key in ("python", "implementation")],
        [platform.python_version(), platform.python_implementation()],
    ),
    "environment: libraries": (
        lambda r: [r.of("run")["versions"][key] for key in ("numpy", "pandas")],
        [numpy.__version__, pandas.__version__],
    ),
    "environment: system": (lambda r: r.of("run")["versions"]["platform"].split()[0], platform.system()),
    "environment: engine": (
        lambda r: [r.of("run")["versions"]["rlmscope"], r.summary["engine_version"]],
        [rlm_core.__version__] * 2,
    ),
    "environment: prompts": (lambda r: r.of("run")["facts"]["prompts.version"], f"{PROMPTS_VERSION}/gpt"),
    "environment: limits": (
        lambda r: [r.of("run")["limits"][key] for key in ("output_shown_chars", "max_calls", "max_depth")],
        [400, 50, 1],
    ),
    "environment: retry policy": (
        lambda r: r.of("run")["retries"]["max_tries"],
        FAST.max_tries,
    ),
    "environment: sandbox": (
        lambda r: (
            r.of("run")["facts"]["sandbox.level"] == r.summary["sandbox"]
            and "limits" in r.of("run")["sandbox_layers"]
        ),
        True,
    ),
    # final
    "final: how and by which expression": (
        lambda r: [r.of("run")["facts"][k] for k in ("answer.via", "answer.expression", "answer.cell")],
        ["FINAL_VAR", "verdict", 7],
    ),
    "final: value": (lambda r: json.loads(r.of("run")["value"]), {"refunds": 1, "of": 3}),
    "final: text": (
        lambda r: r.of("run")["answer"] == r.summary["answer"] == "{'refunds': 1, 'of': 3}",
        True,
    ),
    "final: how it ended": (
        lambda r: [r.of("run")["facts"]["stop_reason"], r.summary["status"], r.summary["forced"]],
        ["final", "ok", False],
    ),
    "final: ledger": (
        lambda r: [r.of("run")["ledger"][key]["spent"] for key in ("calls", "tokens")],
        # 5 sub-calls and the child run; 4 answers of the sub-model and 9 of the root, 120 tokens each
        [6, 1560],
    ),
    "final: nothing is missing": (
        lambda r: [
            r.summary["complete"],
            r.summary["problems"],
            {name for d in r.details for name in d["missing"]},
        ],
        [True, 0, set()],
    ),
}


def _seconds(span: dict[str, Any]) -> float:
    return (span["end_ns"] - span["start_ns"]) / 1e9


@pytest.mark.parametrize("item", ITEMS)
def test_is_recorded_and_read_back(item: str, read: Read) -> None:
    look, expected = ITEMS[item]
    assert look(read) == (expected(read) if callable(expected) else expected)


def test_people_are_shown_every_item(read: Read, home: Home) -> None:
    """Every text, structure and fact that the JSON document of a span has stands in what people read."""
    for detail in read.details:
        out = called(home, "span", RUN, detail["span_id"])
        for key, value in detail["facts"].items():
            assert f"{key}: " in out, (detail["kind"], key, value)
        for key, digest in detail["hashes"].items():
            assert digest in out or key in ("variables", "child_context"), (detail["kind"], key)
        for key in ("code", "stdout", "prompt", "response", "exception", "native_output", "question"):
            assert not detail[key] or detail[key].rstrip("\n") in out, (detail["kind"], key)
        for key in ("limits", "seeds", "versions", "ledger", "retries", "values_read", "price"):
            assert all(f"{name}: " in out for name in detail[key] or ()), (detail["kind"], key)


def test_normalisation_is_the_one_of_the_engine() -> None:
    assert normalise("Seen:  busy once.") == "seen: busy once"
