"""Dead trees go on from their records: who was told what, what a budget refused inside, and every cent."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import pytest

from rlm_core import RLM, Answer, Completion, FunctionLMHandler, Limits, Request
from rlm_core import semconv as sc
from rlm_core.errors import InputError, ModelError, RecordError
from rlm_core.lm_handler import Usage
from rlm_core.price_rows import Override
from rlm_core.pricing import PriceTable
from tests.support.dead_runs import died_at, go_on, records
from tests.support.no_workers import Cell, Repl, said, without_workers
from tests.support.scripted import FAST, cell
from traces.home import Home
from traces.reading import load_run
from traces.recording import open_recording
from traces.replay import Replayer
from traces.resume import continuation
from traces.view import RunView

RUN, AGAIN, ONCE_MORE = (f"20260101T00000{number}-0000000{number}" for number in range(3))
USAGE = Usage(input=3, output=2)
#: An output token costs a cent, whatever the input was.
CENTS = PriceTable(
    [Override(model, {"input": Decimal(0), "cached_read": Decimal(0), "cache_write": Decimal(0),
                      "output": Decimal(10_000)}, "2026-01-01") for model in ("test/root", "test/sub")]
)  # fmt: skip
Asks = Mapping[str, Sequence[str]]  # first word of a question -> the cells of its run, in order


class Model:
    """A root that writes the cells of its question, and a sub-model that repeats its prompt ("bad" fails)."""

    def __init__(self, asks: Asks) -> None:
        self.asks, self.asked = asks, Counter[str]()

    async def __call__(self, request: Request) -> Completion:
        await asyncio.sleep(0)
        if request.role == "sub":
            self.asked[request.prompt] += 1
            if request.prompt == "bad":
                raise ModelError("bad_request", "no")
            return Completion(f"<{request.prompt}>", usage=USAGE)
        found = re.search(r"# Question\n(\S+)", request.messages[1].content)
        question = found[1] if found else ""
        turn = sum(message.role == "assistant" for message in request.messages)
        self.asked[f"turn {turn} of {question}"] += 1
        forced = "Final answer now" in request.messages[-1].content
        return Completion("forced." if forced else cell(self.asks[question][turn]), usage=USAGE)


def record(home: Home, model: Model, limits: Limits) -> Answer:
    home.create()
    with (
        open_recording(home, RUN, {}) as made,
        RLM("test/root", "test/sub", handler=FunctionLMHandler(model), corpora=home.corpora, retries=FAST,
            prices=CENTS, limits=limits) as rlm,
    ):  # fmt: skip
        answer = rlm.ask("top", {"a.txt": "alpha"}, run_id=RUN, recorder=made.recorder)
        made.close("ok")
    return answer


def after(home: Home, text: str, *, run_id: str = RUN) -> int:
    """How many records there are up to the first that holds a text."""
    lines = home.spool_file(run_id).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def attempts(view: RunView) -> Decimal:
    return sum((s.cost_usd or Decimal(0) for s in view.spans if s.kind == "attempt"), Decimal(0))


# -- a tree of depth two


async def _batch(repl: Repl) -> None:
    replies = await repl.llm_batch("one", "bad", "two", "one")
    repl.print(repl.host.budget()["calls"], said(replies))


async def _children(repl: Repl) -> None:
    repl.print(said(await repl.rlm_batch("middle", "middle", contexts=["first", "second"])))


async def _middle(repl: Repl) -> None:
    asked = await asyncio.gather(repl.llm_batch("three", "four"), repl.rlm_batch("leaf", "leaf"))
    repl.print(*map(said, asked))


async def _leaf(repl: Repl) -> None:
    repl.print(said(await repl.llm_batch("five")))


async def _end(repl: Repl) -> str:
    return said(await repl.llm_batch("last"))


CELLS: dict[str, Cell] = {
    "batch": _batch,
    "children": _children,
    "middle": _middle,
    "leaf": _leaf,
    "end": _end,
}
TREE: Asks = {"top": ("batch", "children", "end"), "middle": ("middle", "end"), "leaf": ("leaf", "end")}
DEEP = Limits(max_depth=2, concurrency=2, max_workers=2)


def _goes_on(home: Home, whole: RunView, asked: Counter[str], number: int, folder: Path) -> None:
    """A run that died at a record goes on to its answer, asks nothing that was answered, and counts all."""
    dead = died_at(home, RUN, number, folder)
    view, again = load_run(dead, RUN), Model(TREE)
    answer, new, more = go_on(dead, view, again, AGAIN, prices=CENTS)
    assert (answer.text, more.playing.diverged) == (whole.summary.answer, None)
    answered = sum(s.status == "ok" for s in view.spans if s.kind in ("root_call", "sub_call"))
    in_flight = sum(s.status != "ok" for s in view.spans if s.kind == "attempt")
    assert not again.asked - asked and again.asked.total() <= asked.total() - answered + in_flight
    assert more.before.usd == attempts(view)
    counts, shown = (answer.sub_calls, answer.failed_sub_calls), new.summary
    assert counts == (shown.sub_calls, shown.failed_sub_calls)
    spent = Decimal(json.loads(new.spans[0].attributes[sc.LEDGER])["usd"]["spent"])
    assert spent == attempts(view) + attempts(new) >= attempts(whole)
    shutil.rmtree(folder)


def _every(step: int, home: Home, folder: Path) -> None:
    model = Model(TREE)
    record(home, model, DEEP)
    whole = load_run(home, RUN)
    for number in range(after(home, '"span_kind":"run"'), records(home, RUN), step):
        if load_run(died := died_at(home, RUN, number, folder / "look"), RUN).summary.stop_reason is None:
            _goes_on(home, whole, model.asked, number, folder / str(number))
        shutil.rmtree(died.root)


def test_a_tree_of_depth_two_killed_anywhere_goes_on_and_every_attempt_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_workers(monkeypatch, CELLS)
    _every(160, Home(tmp_path / "home"), tmp_path)


@pytest.mark.full
def test_a_tree_of_depth_two_killed_at_any_record_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_workers(monkeypatch, CELLS)
    _every(1, Home(tmp_path / "home"), tmp_path)


# -- who was told what


async def _nothing(repl: Repl) -> str:
    return "answered"


def test_of_equal_questions_over_other_texts_each_is_told_what_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def three(repl: Repl) -> None:
        repl.print(said(await repl.rlm_batch("part", "part", "part", contexts=["a", "b", "c"])))

    async def end(repl: Repl) -> str:
        return "done"

    without_workers(monkeypatch, {"three": three, "nothing": _nothing, "end": end})
    asks: Asks = {"top": ("three", "end"), "part": ("nothing",)}
    home, model = Home(tmp_path / "home"), Model(asks)
    record(home, model, Limits(max_calls=2))
    with Replayer(home, load_run(home, RUN)) as replayer:
        assert replayer.check().status == "replayable"
    dead = died_at(home, RUN, after(home, "answered answered !budget") + 4, tmp_path / "dead")
    again = Model(asks)
    answer, _, more = go_on(dead, load_run(dead, RUN), again, AGAIN)
    assert (answer.text, more.playing.diverged, more.playing.served_calls) == ("done", None, 3)
    assert not again.asked["turn 0 of part"]


def test_a_question_too_large_for_a_child_run_is_refused_again_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def large(repl: Repl) -> None:
        repl.print(said(await repl.rlm_batch("part " * 100)))

    without_workers(monkeypatch, {"large": large, "nothing": _nothing})
    asks: Asks = {"top": ("large", "nothing")}
    home = Home(tmp_path / "home")
    record(home, Model(asks), Limits(max_prompt_chars=100))
    with Replayer(home, load_run(home, RUN)) as replayer:
        assert replayer.check().status == "replayable"
    dead = died_at(home, RUN, records(home, RUN) - 12, tmp_path / "dead")
    assert load_run(dead, RUN).summary.stop_reason is None
    answer, _, more = go_on(dead, load_run(dead, RUN), Model(asks), AGAIN)
    assert (answer.text, more.playing.diverged) == ("answered", None) and more.playing.served_turns >= 1


# -- budgets


async def _ask_children(repl: Repl) -> None:
    repl.print(said(await repl.rlm_batch("part", "other")))


async def _inside(repl: Repl) -> str:
    return said(await repl.llm_batch("one", "two", "three"))


async def _late(repl: Repl) -> str:
    return said([*await repl.llm_batch("four"), *await repl.rlm_batch("part")])


LIMITED: dict[str, Cell] = {"children": _ask_children, "inside": _inside, "late": _late, "nothing": _nothing}
ASKS: Asks = {"top": ("children", "late", "late"), "part": ("inside",), "other": ("nothing",)}


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Home:
    """A run whose budget refused a call of a child run first, that child run answered nevertheless."""

    async def late(repl: Repl) -> None:
        repl.print(said(await repl.llm_batch(*["four"] * 9)))

    without_workers(monkeypatch, {**LIMITED, "late": late})
    home = Home(tmp_path / "home")
    answer = record(home, Model(ASKS), Limits(max_calls=4, concurrency=1, max_workers=1))
    assert (answer.stop_reason, answer.text) == ("budget", "forced.")
    without_workers(monkeypatch, LIMITED)
    return home


def test_what_a_budget_refused_inside_a_child_run_is_asked_too(stopped: Home) -> None:
    again = Model(ASKS)
    answer, new, more = go_on(stopped, load_run(stopped, RUN), again, AGAIN, max_calls=50)
    assert answer.text == "<four> <one> <two> <three>"
    shown = [text for text in new.payloads(_shown(new)).values() if "answered" in text]
    assert shown[0].startswith("<one> <two> <three> answered")
    # the child run that lacked it goes on; that of the last cell asks all of them
    assert (again.asked["three"], again.asked["one"], again.asked["two"]) == (2, 1, 1)
    assert more.playing.diverged is None


def _shown(view: RunView) -> set[str]:
    key = sc.STDOUT_SHOWN + ".sha256"
    return {str(s.attributes[key]) for s in view.spans if s.kind == "cell" and key in s.attributes}


def test_a_continued_run_that_dies_before_it_comes_to_the_refused_calls_still_asks_them(
    stopped: Home, tmp_path: Path
) -> None:
    _, first, _ = go_on(stopped, load_run(stopped, RUN), Model(ASKS), AGAIN, max_calls=50)
    later = died_at(
        stopped, AGAIN, after(stopped, '"span_kind":"iteration"', run_id=AGAIN), tmp_path / "later"
    )
    died_at(stopped, RUN, records(stopped, RUN), tmp_path / "later")
    answer, _, more = go_on(later, load_run(later, AGAIN), Model(ASKS), ONCE_MORE)
    assert answer.text == first.summary.answer == "<four> <one> <two> <three>"
    assert more.limits.max_calls == 50 and more.before.usd == attempts(load_run(stopped, RUN))


def test_only_a_limit_that_was_met_has_to_be_larger(stopped: Home, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"stopped by its budget: give a larger one \(--max-calls\)"):
        continuation(stopped, load_run(stopped, RUN), {"max_tokens": 90_000})
    home = Home(tmp_path / "other")
    assert record(home, Model(ASKS), Limits(max_tokens=1_200)).stop_reason == "budget"
    with pytest.raises(InputError, match=r"give a larger one \(--max-tokens\)"):
        continuation(home, load_run(home, RUN), {"max_calls": 90_000})


# -- what is not there any more


def test_a_run_of_the_chain_that_is_gone_is_said_since_its_part_is_paid_again(
    stopped: Home, tmp_path: Path
) -> None:
    go_on(stopped, load_run(stopped, RUN), Model(ASKS), AGAIN, max_calls=50)
    later = died_at(stopped, AGAIN, records(stopped, AGAIN) // 2, tmp_path / "later")
    more = continuation(later, load_run(later, AGAIN), {})
    assert more.warnings[0].startswith(f"nothing is served from run {RUN}: run {AGAIN} continues it, but")


def test_a_continued_run_that_died_before_it_began_names_the_one_to_resume(stopped: Home) -> None:
    with open_recording(stopped, AGAIN, {sc.RESUME_OF: RUN}):
        pass
    lines = stopped.spool_file(AGAIN).read_bytes().splitlines(keepends=True)
    stopped.spool_file(AGAIN).write_bytes(lines[0])
    with pytest.raises(RecordError, match=f"died before it began: resume run {RUN}"):
        continuation(stopped, load_run(stopped, AGAIN), {})
