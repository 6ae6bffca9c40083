"""Dead runs go on from their records: nothing is paid twice, and what was spent counts."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_core import RLM, FunctionLMHandler, Limits, Request
from rlm_core import semconv as sc
from rlm_core.errors import InputError, ModelError, RecordError
from rlm_core.options import DepthModels, Options
from rlm_core.tools import tool
from tests.support.dead_runs import died_at, go_on, records
from tests.support.scripted import FAST, cell
from traces.home import Home
from traces.reading import list_runs, load_run
from traces.recording import open_recording
from traces.resume import continuation
from traces.view import RunView

RUN, AGAIN, ONCE_MORE = (f"20260101T00000{number}-0000000{number}" for number in range(3))
TEXTS = {"a.txt": "alpha", "b.txt": "beta beta"}
ASK = "r = llm_batch(['how long?'] * 2, documents)\nprint(budget()['calls'], r)"
CHILDREN = "k = rlm_query_batched(['child one', 'child two'])\nprint(k)"
SUM = "t = llm_query('sum of ' + ' '.join(r))\nprint(t)"
INNER = ("a = llm_query(f'inner {len(context)}')\nprint(a)", "FINAL(a)")
TREE = (ASK, CHILDREN, SUM, "FINAL([t, *k])")


def length(request: Request) -> str:
    return f"said {len(request.prompt)}"


class Model:
    """A root that writes these cells in order, in child runs the inner ones; counts what it is asked."""

    def __init__(
        self, *codes: str, sub: Callable[[Request], Any] = lambda r: f"said {len(r.prompt)}"
    ) -> None:
        self.codes, self.sub = codes, sub
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> Any:
        if request.role == "sub":
            self.asked[request.prompt] += 1
            return self.sub(request)
        turn = sum(message.role == "assistant" for message in request.messages)
        child = "# Question\nchild" in request.messages[1].content
        self.asked[f"turn {turn} {request.messages[1].content[:200] if child else ''}"] += 1
        if "Final answer now" in request.messages[-1].content:
            return "forced."
        return cell((INNER if child else self.codes)[turn])


def record(home: Home, model: Any, *, run_id: str = RUN, status: str = "ok", **options: Any) -> RunView:
    """One run, recorded."""
    home.create()
    with (
        open_recording(home, run_id, {}) as made,
        RLM("test/root", "test/sub", handler=FunctionLMHandler(model), corpora=home.corpora, retries=FAST,
            **options) as rlm,
    ):  # fmt: skip
        rlm.ask("how many?", TEXTS, run_id=run_id, recorder=made.recorder)
        made.close(status)
    return load_run(home, run_id)


def ended(view: RunView) -> Counter[str]:
    """How often the record has an answer to each prompt."""
    calls = [s for s in view.spans if s.kind == "sub_call" and s.status == "ok" and _asked(s)]
    texts = view.payloads({str(s.attributes[sc.PROMPT + ".sha256"]) for s in calls})
    return Counter(texts[str(s.attributes[sc.PROMPT + ".sha256"])] for s in calls)


def _asked(span: Any) -> bool:
    return span.attributes.get(sc.SERVED_FROM) == "model"


def prompts(asked: Counter[str]) -> Counter[str]:
    return Counter({prompt: count for prompt, count in asked.items() if not prompt.startswith("turn")})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, RunView, Model]:
    """A run with a batch, two child runs and an answer."""
    home, model = Home(tmp_path_factory.mktemp("whole") / "home"), Model(*TREE)
    return home, record(home, model, limits=Limits(concurrency=2)), model


def killed_and_continued(
    whole: tuple[Home, RunView, Model], part: float, folder: Path
) -> tuple[RunView, RunView, Model]:
    """A run that dies after a part of its records, and the one that continues it."""
    home, _, _ = whole
    dead = died_at(home, RUN, int(part * records(home, RUN)), folder / "dead")
    view, again = load_run(dead, RUN), Model(*TREE)
    assert view.summary.status == "interrupted"
    _, new, _ = go_on(dead, view, again, AGAIN)
    return view, new, again


def _check(whole: tuple[Home, RunView, Model], part: float, folder: Path) -> None:
    _, full, model = whole
    dead, new, again = killed_and_continued(whole, part, folder)
    assert new.summary.answer == full.summary.answer and new.summary.stop_reason == "final"
    assert prompts(again.asked) == prompts(model.asked) - ended(dead), "answered calls are not asked again"
    assert new.summary.resumed_from == RUN
    turns = [s for s in new.spans if s.kind == "root_call"]
    assert len(turns) == len([s for s in full.spans if s.kind == "root_call" and _inside(s, new)])
    spent = json.loads(new.spans[0].attributes[sc.LEDGER])["calls"]["spent"]
    sent = {s.parent_id for s in dead.spans if s.kind == "attempt"}
    lost = [s for s in dead.spans if s.kind == "sub_call" and s.status == "lost" and s.span_id in sent]
    assert spent == json.loads(full.spans[0].attributes[sc.LEDGER])["calls"]["spent"] + len(lost), (
        "calls that were under way may well be billed"
    )


def _inside(span: Any, view: RunView) -> bool:
    """Whether a call of the whole run is one of a run that was not served whole."""
    paths = {s.attributes.get(sc.RUN_PATH) for s in view.spans if s.kind == "root_call"}
    return span.attributes[sc.RUN_PATH] in paths


@pytest.mark.parametrize(
    "part", [pytest.param(0.2, marks=pytest.mark.full), 0.5, pytest.param(0.85, marks=pytest.mark.full)]
)
def test_a_killed_run_goes_on_to_the_same_answer_and_asks_nothing_twice(
    whole: tuple[Home, RunView, Model], part: float, tmp_path: Path
) -> None:
    _check(whole, part, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("part", [number / 50 for number in range(4, 49)])
def test_a_run_killed_at_any_record_does(
    whole: tuple[Home, RunView, Model], part: float, tmp_path: Path
) -> None:
    _check(whole, part, tmp_path)


@pytest.mark.full
def test_a_resumed_run_that_dies_too_is_resumed_with_both_records(
    whole: tuple[Home, RunView, Model], tmp_path: Path
) -> None:
    home, full, model = whole
    folder = tmp_path / "dead"
    died_at(home, RUN, int(0.8 * records(home, RUN)), folder)
    dead = Home.resolve(folder)
    first, second, third = load_run(dead, RUN), Model(*TREE), Model(*TREE)
    go_on(dead, first, second, AGAIN)
    later = died_at(dead, AGAIN, records(dead, AGAIN) // 4, tmp_path / "later")  # in what was served
    died_at(dead, RUN, records(dead, RUN), tmp_path / "later")
    answer, new, more = go_on(later, load_run(later, AGAIN), third, ONCE_MORE)
    assert answer.text == full.summary.answer and new.summary.resumed_from == AGAIN
    assert prompts(third.asked) == prompts(model.asked) - ended(first)
    assert more.before.calls >= 4, "what both had spent"


@pytest.mark.parametrize("how", ["cancelled", pytest.param("root failed", marks=pytest.mark.full)])
def test_a_run_that_was_cancelled_or_lost_its_root_goes_on(tmp_path: Path, how: str) -> None:
    def broken(request: Request) -> Any:
        if request.role == "root" and len(request.messages) > 4:
            if how == "root failed":
                return ModelError("auth", "the key is not valid")
            rlm.cancel()
            over.wait(30)
        return model(request)

    home, model, over = Home(tmp_path), Model(ASK, SUM, "FINAL(t)"), threading.Event()
    home.create()
    handler = FunctionLMHandler(broken)
    with (
        open_recording(home, RUN, {}) as made,
        RLM("test/root", "test/sub", handler=handler, corpora=home.corpora, retries=FAST) as rlm,
    ):
        answer = rlm.ask("how many?", TEXTS, run_id=RUN, recorder=made.recorder)
        over.set()
        made.close("error")
    assert answer.stop_reason == ("cancelled" if how == "cancelled" else "error")
    again = Model(*model.codes)
    answer, _, more = go_on(home, load_run(home, RUN), again, AGAIN)
    assert (answer.text, more.playing.served_turns, more.playing.served_calls) == ("said 22", 2, 3)
    assert again.asked == {"turn 2 ": 1}


@pytest.mark.full
def test_what_the_record_answered_is_a_hit_of_the_cache_later(tmp_path: Path) -> None:
    home, codes = Home(tmp_path / "home"), ("a = llm_query('one')", "b = llm_query('one')", "FINAL(a == b)")
    record(home, Model(*codes), options=Options(cache=True))
    lines = home.spool_file(RUN).read_text("utf-8").splitlines()
    second = [at for at, line in enumerate(lines) if '"span_kind":"iteration"' in line][1]
    dead, again = died_at(home, RUN, second, tmp_path / "dead"), Model(*codes)
    answer, new, _ = go_on(dead, load_run(dead, RUN), again, AGAIN)
    assert answer.text == "True" and not prompts(again.asked)
    sources = [s.attributes[sc.SERVED_FROM] for s in new.spans if s.kind == "sub_call"]
    assert sources == ["record", "cache"]


# -- limits


def test_a_run_stopped_by_its_calls_goes_on_with_more_of_them_from_where_they_were_refused(
    tmp_path: Path,
) -> None:
    home, loop = Home(tmp_path), "r = [llm_query(f'{name} {{n}}') for n in range(9)]"
    codes = (loop.format(name="one"), loop.format(name="two"))
    view = record(home, Model(*codes, ""), limits=Limits(max_calls=1))
    assert (view.summary.stop_reason, view.summary.answer) == ("budget", "forced.")
    with pytest.raises(InputError, match=r"stopped by its budget: give a larger one \(--max-calls"):
        continuation(home, view, {})
    again = Model("", "FINAL(len([x for x in r if x]))")
    answer, new, more = go_on(home, view, again, AGAIN, max_calls=20)
    assert (answer.stop_reason, answer.text, more.before.calls) == ("final", "9", 1)
    ledger = json.loads(new.spans[0].attributes[sc.LEDGER])
    assert ledger["calls"] == {"spent": 9, "limit": 20}
    assert (more.playing.served_turns, more.playing.served_calls) == (1, 1)
    assert prompts(again.asked) == {f"one {n}": 1 for n in range(1, 9)}


def test_turns_that_were_used_up_can_be_more(tmp_path: Path) -> None:
    home = Home(tmp_path)
    view = record(home, Model("x = 1", "x += 1", "FINAL(x)"), limits=Limits(max_iterations=2))
    assert (view.summary.stop_reason, view.summary.answer) == ("max_iterations", "forced.")
    with pytest.raises(InputError, match=r"limit of turns: give a larger one \(--max-iterations\)"):
        continuation(home, view, {"max_calls": 9_000})
    answer, _, more = go_on(home, view, Model("", "", "FINAL(x)"), AGAIN, max_iterations=3)
    assert (answer.text, answer.forced, more.playing.served_turns) == ("2", False, 2)


def test_the_time_of_the_dead_run_counts(tmp_path: Path) -> None:
    home = Home(tmp_path)
    view = record(home, Model("import time\ntime.sleep(30)"), limits=Limits(max_seconds=1.0))
    with pytest.raises(InputError, match="give --max-seconds more"):
        continuation(home, view, {})
    more = continuation(home, view, {"max_seconds": 60.0})
    assert more.before.seconds >= 1.0 and more.limits.max_seconds == 60.0


# -- what was recorded, and what comes out otherwise


@pytest.mark.full
def test_failures_that_code_saw_stay_and_those_of_the_broken_off_cell_are_asked_again(tmp_path: Path) -> None:
    def failing(request: Request) -> Any:
        return ModelError("bad_request", "no") if request.prompt in ("one", "two") else request.prompt

    codes = ("a = llm_query('one')\nprint(a.kind)", "b = llm_query('two')\nc = llm_query('three')\nprint(b)")
    home = Home(tmp_path / "home")
    record(home, Model(*codes, "FINAL(0)", sub=failing))
    number = next(
        at
        for at, line in enumerate(home.spool_file(RUN).read_text("utf-8").splitlines())
        if '"three"' in line
    )
    dead = died_at(home, RUN, number, tmp_path / "dead")
    again = Model(*codes, "FINAL(str(b) + c)", sub=lambda request: request.prompt)
    answer, _, _ = go_on(dead, load_run(dead, RUN), again, AGAIN)
    assert answer.text == "twothree" and sorted(prompts(again.asked)) == ["three", "two"]


def test_a_cell_that_comes_out_otherwise_stops_the_run_unless_it_may_go_on_anyway(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    codes = ("import time\nprint(time.time_ns())", "y = llm_query('next')", "FINAL(y)")
    record(home, Model(*codes))
    dead = died_at(home, RUN, records(home, RUN) - 8, tmp_path / "dead")
    view = load_run(dead, RUN)
    answer, _, more = go_on(dead, view, Model(*codes), AGAIN)
    assert answer.text is None and (answer.error or "").startswith(
        "cell 0, run again, shows the root something else than it did, so the recorded turns after it"
    )
    assert more.playing.diverged is not None
    model = Model(*codes)
    answer, new, _ = go_on(dead, view, model, ONCE_MORE, anyway=True)
    assert answer.text == "said 4" and new.spans[0].attributes[sc.RESUME_ANYWAY] is True
    assert model.asked == {"turn 1 ": 1, "turn 2 ": 1}, "an equal call of that cell is not asked again"


def test_the_call_at_which_a_run_that_goes_on_stops_is_in_its_answer_as_in_its_record(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    codes = ("import time\nllm_query(str(time.time_ns()))", "y = llm_query('next')", "FINAL(y)")
    record(home, Model(*codes))
    dead = died_at(home, RUN, records(home, RUN) - 8, tmp_path / "dead")
    answer, new, _ = go_on(dead, load_run(dead, RUN), Model(*codes), AGAIN)
    assert "makes a call that its record does not hold" in (answer.error or "")
    made = (new.summary.sub_calls, new.summary.failed_sub_calls)
    assert (answer.sub_calls, answer.failed_sub_calls) == made == (1, 1)


@pytest.mark.full
def test_the_options_of_the_run_are_those_of_the_record(tmp_path: Path) -> None:
    home = Home(tmp_path)
    options = Options(
        cache=True, schema={"type": "integer"}, models={1: DepthModels(sub="test/other")}, root_window=90_000
    )
    view = record(
        home, Model("import os\nos.abort()", "x = 1"), options=options, limits=Limits(max_iterations=1)
    )
    more = continuation(home, view, {"max_iterations": 5})
    assert more.options == options
    _, new, _ = go_on(home, view, Model("", "FINAL(7)"), AGAIN, max_iterations=5)
    assert new.spans[0].attributes[sc.OPTIONS] == view.spans[0].attributes[sc.OPTIONS]


def test_a_tool_of_which_the_record_has_no_function_has_to_be_given(tmp_path: Path) -> None:
    def weather(place: str) -> str:
        """The weather at a place."""
        return f"rain in {place}"

    home, made = Home(tmp_path), tool(weather)
    view = record(home, Model("x = 1"), options=Options(tools=(made,)), limits=Limits(max_iterations=1))
    with pytest.raises(InputError, match="tool weather but does not hold its function: give it with --tool"):
        continuation(home, view, {"max_iterations": 2})
    assert continuation(home, view, {"max_iterations": 2}, tools={"weather": made}).options.tools == (made,)


# -- what cannot be resumed


def test_what_is_no_dead_run_is_said(whole: tuple[Home, RunView, Model], tmp_path: Path) -> None:
    home, full, _ = whole
    with pytest.raises(InputError, match="ended with an answer: there is nothing to resume"):
        continuation(home, full, {})
    other = Home(tmp_path)
    other.create()
    with open_recording(other, RUN, {}), pytest.raises(InputError, match="is still going on"):
        continuation(other, load_run(other, RUN), {})


def test_a_corpus_that_is_gone_is_said(whole: tuple[Home, RunView, Model], tmp_path: Path) -> None:
    home, _, _ = whole
    dead = died_at(home, RUN, records(home, RUN) // 2, tmp_path)
    for folder in dead.corpora.iterdir():
        folder.rename(folder.with_name("0" * 16))
    with pytest.raises(RecordError, match="cannot be resumed, because its corpus is not there as it was"):
        continuation(dead, load_run(dead, RUN), {})


@pytest.mark.full
def test_a_resumed_run_is_in_lists_and_says_whom_it_continues(
    whole: tuple[Home, RunView, Model], tmp_path: Path
) -> None:
    _, new, _ = killed_and_continued(whole, 0.97, tmp_path)
    assert new.summary.resumed_from == RUN and new.summary.to_json()["resumed_from"] == RUN
    listed = {run.run_id: run.resumed_from for run in list_runs(Home.resolve(tmp_path / "dead"))}
    assert listed == {RUN: None, AGAIN: RUN}
