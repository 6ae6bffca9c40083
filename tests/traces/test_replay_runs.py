"""A replay is kept as a run, says what it plays again, and outlives it; which runs can be played."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlm_core import FunctionLMHandler, Request
from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.errors import InputError, RunCancelled
from rlm_core.rlm import RLM
from rlm_core.telemetry import as_json
from tests.support.command import ROOT
from tests.support.scripted import Script, cell
from tests.traces.records import RUN, dump, end, header, home_in, start, write_spool
from traces.home import Home
from traces.ingest import ingest
from traces.reading import RunView, SpoolRun, list_runs, load_run
from traces.recording import open_recording
from traces.replay import BudgetUsedUp, Replayer
from traces.replay_facts import replay_facts
from traces.replay_runs import record_replay
from traces.trial import Budget, Difference, Patch, Target
from traces.upkeep import delete_run, rebuild

EXAMPLES = sorted((ROOT / "sample_data" / "examples").glob("*.jsonl"))
ASK = 'replies = llm_batch(["How many?"] * len(documents), documents)'
SUM = "total = sum(int(reply) for reply in replies)\nprint(total)"
END = 'FINAL_VAR("total")'


def counted(request: Request) -> str:
    """Counts fruit, and pears wrongly."""
    number = next(word for word in request.prompt.split() if word.isdigit())
    return "50" if "pears" in request.prompt else number


def record(home: Home, *cells: str, sub: Callable[[Request], str] = counted) -> RunView:
    """A run of these cells, recorded for real."""
    corpus = Corpus.from_texts({"a.txt": "apples 3", "b.txt": "pears 5"}, home.corpora)
    handler = FunctionLMHandler(Script([cell(code) for code in cells], sub))
    with RLM("openai/root", "openai/sub", handler=handler) as rlm, open_recording(home, RUN, {}) as made:
        rlm.ask("How many fruits?", corpus, run_id=RUN, recorder=made.recorder)
    return load_run(home, RUN)


def call_about(view: RunView, word: str) -> str:
    texts = {span.span_id: view.payload(span.attributes[sc.PROMPT + ".sha256"])
             for span in view.spans if span.kind == "sub_call"}  # fmt: skip
    return next(span_id for span_id, text in texts.items() if word in (text or ""))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return home_in(tmp_path)


def test_a_replay_says_that_its_spans_could_not_be_sent(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    view, said = record(home, ASK, SUM, END), list[str]()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "nowhere")
    with Replayer(home, view) as replayer:
        trial = record_replay(home, replayer, warn=said.append)
    assert trial.run_id is not None and load_run(home, trial.run_id).summary.complete
    (words,) = said
    assert words.startswith("No span is sent: OTEL_EXPORTER_OTLP_ENDPOINT is no address")


def test_a_replay_says_what_it_plays_and_what_came_of_it(home: Home) -> None:
    view = record(home, ASK, SUM, END)
    patch = Patch(call_about(view, "pears"), "5")
    with Replayer(home, view) as replayer:
        trial = record_replay(home, replayer, [patch], target=Target("8", "number"))
    assert (trial.outcome, trial.answer) == ("fixed", "8") and trial.run_id is not None
    spool = SpoolRun(home, trial.run_id).poll()
    stored = load_run(home, trial.run_id)
    rebuild(home)
    for played in (spool, stored, load_run(home, trial.run_id)):
        run = played.summary
        assert (run.replay_of, run.status, run.answer, run.complete) == (RUN, "ok", "8", True)
        assert (run.question, run.sub_calls, run.corpus_id) == ("How many fruits?", 2, view.summary.corpus_id)
        assert (run.cost_usd, run.root_model, run.sub_model) == (0, "openai/root", "openai/sub")
        facts = replay_facts(played)
        assert facts is not None
        assert (facts.of, facts.mode, facts.patches) == (RUN, "strict", (patch,))
        assert (facts.target, facts.outcome) == (Target("8", "number"), "fixed")
        assert (facts.hits, facts.misses, facts.live_calls, facts.stopped) == (2, 0, 0, None)
        assert facts.assumed == trial.assumed
    assert replay_facts(view) is None


def test_a_replay_outlives_the_run_that_it_plays(home: Home) -> None:
    view = record(home, ASK, SUM, END)
    with Replayer(home, view) as replayer:
        run_id = record_replay(home, replayer).run_id
    assert run_id is not None
    load_run(home, run_id)
    delete_run(home, RUN)
    left = load_run(home, run_id)
    cited = {
        value for span in left.spans for key, value in span.attributes.items() if key.endswith(".sha256")
    }
    assert cited and set(left.payloads(cited)) == cited
    with Replayer(home, left) as replayer:
        assert replayer.check().status == "replayable"
        again = record_replay(home, replayer)
    assert again.answer == "53" and load_run(home, again.run_id or "").summary.replay_of == run_id


def test_what_never_began_leaves_no_run(home: Home) -> None:
    view = record(home, ASK, SUM, END)
    with Replayer(home, view, budget=Budget(replays=1)) as replayer:
        with pytest.raises(InputError, match="nothing else can be patched"):
            record_replay(home, replayer, [Patch("feedfeedfeedfeed", "x")])
        record_replay(home, replayer)
        with pytest.raises(BudgetUsedUp):
            record_replay(home, replayer)
    ingest(home)
    assert len(list_runs(home, replays=True)) == 2 and [run.run_id for run in list_runs(home)] == [RUN]


def test_a_replay_that_cannot_go_on_has_ended_with_an_error_and_says_why(home: Home) -> None:
    """Its second call depends on the reply of the first, which is another one now."""
    chain = 'one = llm_query("first")\ntwo = llm_query("then " + one)\nprint(two)'
    view = record(home, chain, 'FINAL_VAR("two")', sub=lambda request: f"seen {len(request.prompt)}")
    first = next(span.span_id for span in view.spans if span.kind == "sub_call")
    with Replayer(home, view) as replayer:
        trial = record_replay(home, replayer, [Patch(first, "something else")])
    played = load_run(home, trial.run_id or "")
    facts = replay_facts(played)
    assert (trial.outcome, played.summary.status, played.summary.answer) == ("undecided", "error", None)
    assert facts is not None and facts.stopped == trial.stopped and facts.stopped


def test_a_replay_is_cancelled_while_a_model_keeps_silent(home: Home) -> None:
    view = record(home, ASK, SUM, END)
    asked = threading.Event()

    async def silent(request: Request) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    model, budget = FunctionLMHandler(silent), Budget(live_calls=9)
    with Replayer(home, view, handler=model, budget=budget, cancelled=asked.is_set) as replayer:
        trial = record_replay(home, replayer, mode="live", cancelled=asked.is_set)
        assert (trial.outcome, trial.stopped, trial.answer) == ("undecided", "it was cancelled", None)
        assert load_run(home, trial.run_id or "").summary.status == "cancelled"
        with pytest.raises(RunCancelled):
            replayer.check()


def test_a_record_may_say_anything_of_itself_as_a_replay(home: Home) -> None:
    wrong: dict[str, Any] = {
        sc.REPLAY_OF: "../../etc/passwd", sc.REPLAY_MODE: 7, sc.REPLAY_MATCH: ["x"],
        sc.REPLAY_PATCHES + ".sha256": "0" * 64, sc.REPLAY_TARGET + ".sha256": 3, sc.REPLAY_ASSUMED: "[1, {}",
    }  # fmt: skip
    late = {"kind": "ev", "span_id": "1", "name": sc.EV_REPLAY, "t": 5}
    late["a"] = {sc.REPLAY_OUTCOME: True, sc.REPLAY_HITS: -4, sc.REPLAY_MISSES: "many"}
    write_spool(home, [header(), start("1", kind="run", a=wrong), end("1"), late])
    facts = replay_facts(load_run(home, RUN))
    assert facts is not None
    assert facts == replace(
        facts, of="../../etc/passwd", mode=None, patches=(), target=None, outcome=None, hits=None,
        misses=None, live_calls=None, stopped=None, assumed=(),
    )  # fmt: skip


def test_patches_that_are_none_are_left_out(home: Home) -> None:
    listed = as_json([{"span_id": "1", "text": "x"}, {"span_id": 2, "text": "y"}, "z", {"text": "q"}])
    with open_recording(home, RUN, {sc.REPLAY_OF: "another"}) as made:
        span = made.recorder.start("run", sc.NAME_RUN, None, {})
        span.text(sc.REPLAY_PATCHES, listed)
        span.end()
    facts = replay_facts(load_run(home, RUN))
    assert facts is not None and facts.patches == (Patch("1", "x"),)


# -- whether a run can be played again


@pytest.mark.parametrize("spool", EXAMPLES, ids=lambda path: path.stem)
def test_every_recorded_example_comes_out_as_recorded(spool: Path, home: Home) -> None:
    """The same answer, the same output of every cell, each sub-call answered by the record."""
    shutil.copy(spool, home.spool)
    Corpus.add([ROOT / "sample_data" / "tickets"], home.corpora)
    view = load_run(home, spool.stem)
    with Replayer(home, view) as replayer:
        assert replayer.check().status == "replayable"
        trial = record_replay(home, replayer)
    assert (trial.outcome, trial.answer, trial.hits) == ("unchanged", view.summary.answer, 200)
    assert trial.misses == trial.live_calls == 0 and not trial.differences
    assert outputs(load_run(home, trial.run_id or "")) == outputs(view)


def outputs(view: RunView) -> list[tuple[Any, ...]]:
    keys = (sc.CODE, sc.STDOUT, sc.STDOUT_SHOWN, sc.EXCEPTION)
    cells = [span.attributes for span in view.spans if span.kind == "cell"]
    return [tuple(facts.get(key + ".sha256") for key in keys) for facts in cells]


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        ("import time\nprint(time.time_ns())", "not_replayable", "may depend on the time."),
        ("import uuid\nprint(uuid.uuid4())", "not_replayable", "random bytes of the system"),
        ("from secrets import token_hex\nprint(token_hex())", "not_replayable", "random bytes of the system"),
        ("from time import *\nprint(perf_counter_ns())", "not_replayable", "may depend on the time."),
        ("import random, time\nprint(random.Random().random())", "not_replayable", "on random bytes of the"),
        ("print(object())", "not_replayable", "may depend on where objects lie in memory."),
        (
            "print(list({f'name {n}' for n in range(40)}))",
            "seed_dependent",
            "may depend on the order of a set",
        ),
        (
            "import datetime\nprint(datetime.date(2026, 1, 1))\nd = dict.fromkeys(map(str, range(40)))\n"
            "print(list(d.keys() & d.keys()))",
            "seed_dependent",
            "cell 0 printed something else.",
        ),
        ("import random\nprint(random.random())", "seed_dependent", "may depend on random numbers."),
        ("print(sorted({f'name {n}' for n in range(40)}))", "replayable", "the same answer"),
    ],
    ids=[
        *("time", "uuid", "a name of a module", "all of a module", "own generator, time only imported"),
        *("address", "set", "set of keys beside a date", "random", "sorted set"),
    ],
)
def test_what_a_run_depends_on_is_said(home: Home, code: str, status: str, words: str) -> None:
    view = record(home, code, 'FINAL("done")')
    with Replayer(home, view) as replayer:
        found = replayer.check()
    assert found.status == status and words in found.words, found


@pytest.mark.parametrize(("differs_again", "status"), [(True, "not_replayable"), (False, "seed_dependent")])
def test_what_differs_with_the_same_seeds_too_depends_on_no_seed(
    home: Home, monkeypatch: pytest.MonkeyPatch, differs_again: bool, status: str
) -> None:
    view = record(home, "print(1)", 'FINAL("done")')
    differs, plays = [False, True, differs_again], list[Any]()

    def unlike(_: Replayer, played: Any) -> tuple[Difference, ...]:
        plays.extend(() if any(played is one for one in plays) else (played,))
        at = next(n for n, one in enumerate(plays) if one is played)
        return (Difference("stdout", cell=0),) if differs[at] else ()

    monkeypatch.setattr(Replayer, "unlike", unlike)
    with Replayer(home, view) as replayer:
        assert replayer.check().status == status


def test_a_library_that_changed_since_the_record_is_a_warning_and_no_verdict(home: Home) -> None:
    record(home, ASK, SUM, END)
    spool = home.spool_file(RUN)
    text = spool.read_text("utf-8")
    versions = next(
        span.attributes[sc.VERSIONS] for span in SpoolRun(home, RUN).poll().spans if span.kind == "run"
    )
    older = as_json({**json.loads(versions), "numpy": "0.0.1"})
    spool.write_text(text.replace(json.dumps(versions)[1:-1], json.dumps(older)[1:-1]), "utf-8")
    rebuild(home)
    with Replayer(home, load_run(home, RUN)) as replayer:
        found = replayer.check()
    assert found.status == "replayable"
    (warning,) = found.warnings
    assert warning.startswith("numpy was 0.0.1 when the run was recorded")


def test_the_store_holds_replays_as_a_rebuild_makes_them(home: Home) -> None:
    view = record(home, ASK, SUM, END)
    with Replayer(home, view) as replayer:
        record_replay(home, replayer, [Patch(call_about(view, "apples"), "4")])
    ingest(home)
    before = dump(home)
    rebuild(home)
    assert dump(home) == before
