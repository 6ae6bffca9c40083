"""Playing a recorded run again: modes, outcomes, what may be asked live, what is said to be assumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_core import FunctionLMHandler, Limits, Request
from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.errors import InputError, RecordError
from tests.support.replays import live, recorded, span_of
from traces.home import Home
from traces.reading import load_run
from traces.recording import open_recording
from traces.replay import BudgetUsedUp, Replayer
from traces.replay_runs import record_replay
from traces.trial import Budget, Patch, Target
from traces.view import RunView

COUNT = (
    "replies = llm_batch([f'item {n}: how many?' for n in range(6)])\n"
    "total = sum(int(r) for r in replies)\nprint(total)"
)
SUMMARY = COUNT + "\nline = llm_query(f'say this number: {total}')\nprint(line)"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home of its own."""
    return Home.resolve(tmp_path / "home")


def counting(request: Request) -> str:
    """3 for every item but 9 for item 4; a summary repeats its number."""
    if request.prompt.startswith("say"):
        return f"it is {request.prompt.rsplit(' ', 1)[1]}"
    return "9" if "item 4" in request.prompt else "3"


def good(request: Request) -> str:
    """The sub-model without the fault."""
    return counting(request).replace("9", "3") if "item" in request.prompt else counting(request)


RIGHT = Target("18")


def faulty(view: RunView) -> str:
    """The span of the call that answered wrongly."""
    return span_of(view, "sub_call", 4)


def test_a_patch_makes_the_answer_right_without_asking_any_model(home: Home) -> None:
    view = recorded(home, COUNT, "FINAL_VAR('total')", sub=counting)
    with Replayer(home, view) as replayer:
        assert replayer.check().status == "replayable"
        trial = replayer.trial([Patch(faulty(view), "3")], target=RIGHT)
    assert (trial.outcome, trial.answer, trial.original_answer) == ("fixed", "18", "24")
    assert (trial.hits, trial.misses, trial.live_calls, trial.cost_usd) == (6, 0, 0, 0)
    assert trial.influenced == (span_of(view, "cell"),)
    assert "from iteration 1 on" in trial.assumed[0]


def test_another_answer_that_is_not_the_right_one_has_moved(home: Home) -> None:
    view = recorded(home, COUNT, "FINAL_VAR('total')", sub=counting)
    with Replayer(home, view) as replayer:
        assert replayer.trial([Patch(faulty(view), "4")], target=RIGHT).outcome == "moved"
        assert replayer.trial([Patch(faulty(view), " 9 ")], target=RIGHT).outcome == "unchanged"


def test_an_answer_that_the_root_typed_is_reached_but_not_moved(home: Home) -> None:
    view = recorded(home, COUNT, "FINAL(24)", sub=counting)
    with Replayer(home, view) as replayer:
        trial = replayer.trial([Patch(faulty(view), "3")], target=RIGHT)
    assert trial.outcome == "reached_root" and trial.answer == "24"
    assert trial.reached is not None
    assert (trial.reached.iteration, trial.reached.old, trial.reached.new) == (0, "24", "18")


def test_reask_gives_the_root_the_patched_output_and_takes_its_new_code(home: Home) -> None:
    seen: list[str] = []

    def root(request: Request) -> str:
        seen.append(request.messages[-1].content)
        return "```repl\nFINAL(total)\n```"

    view = recorded(home, COUNT, "FINAL(24)", sub=counting)
    with Replayer(home, view, handler=FunctionLMHandler(root), budget=Budget(live_calls=1)) as replayer:
        trial = replayer.trial([Patch(faulty(view), "3")], mode="reask", target=RIGHT)
        untouched = replayer.trial([], mode="reask", target=RIGHT)
    assert (trial.outcome, trial.live_calls) == ("fixed", 1)
    assert len(seen) == 1 and "\n18\n" in seen[0], "only the turn that saw other output is asked again"
    assert untouched.outcome == "unchanged"


def test_a_changed_prompt_stops_a_strict_replay_and_says_where(home: Home) -> None:
    view = recorded(home, SUMMARY, "FINAL_VAR('line')", sub=counting)
    with Replayer(home, view) as replayer:
        trial = replayer.trial([Patch(faulty(view), "3")], target=Target("it is 18"))
    assert (trial.outcome, trial.misses, trial.live_calls) == ("undecided", 1, 0)
    assert trial.stopped == "the record holds no answer to a prompt of cell 0"


def test_recompute_asks_only_for_changed_prompts_and_remembers_the_answers(home: Home) -> None:
    view = recorded(home, SUMMARY, "FINAL_VAR('line')", sub=counting)
    with Replayer(home, view, handler=live(sub=counting), budget=Budget(live_calls=1)) as replayer:
        patch = Patch(faulty(view), "3")
        first = replayer.trial([patch], mode="recompute", target=Target("it is 18"))
        again = replayer.trial([patch], mode="recompute", target=Target("it is 18"))
        other = replayer.trial([Patch(patch.span_id, "5")], mode="recompute")
        assert replayer.spent.live_calls == 1
    assert (first.outcome, first.hits, first.live_calls) == ("fixed", 6, 1)
    assert (again.outcome, again.hits, again.live_calls) == ("fixed", 7, 0)
    assert other.outcome == "undecided" and "the budget allows 1 call to a model" in (other.stopped or "")


def test_prompts_of_a_good_run_are_answered_from_its_record(home: Home) -> None:
    view = recorded(home, SUMMARY, "FINAL_VAR('line')", sub=counting)
    other = recorded(home, SUMMARY, "FINAL_VAR('line')", sub=good, run_id="20260101T000000-0000bbbb")
    with Replayer(home, view, also=[other]) as replayer:
        trial = replayer.trial([Patch(faulty(view), "3")], target=Target("it is 18"))
    assert (trial.outcome, trial.hits, trial.misses) == ("fixed", 7, 0)


def test_frozen_gives_old_replies_to_changed_prompts_and_says_so(home: Home) -> None:
    view = recorded(home, SUMMARY, "FINAL_VAR('line')", sub=counting)
    with Replayer(home, view) as replayer:
        trial = replayer.trial([Patch(faulty(view), "3")], mode="frozen")
    assert trial.answer == "it is 24"
    assert span_of(view, "sub_call", 6) in trial.influenced
    assert "1 changed prompt was given its old reply." in trial.assumed


def test_live_asks_every_sub_call_again_with_the_model_that_is_named(home: Home) -> None:
    asked: list[str] = []

    def sub(request: Request) -> str:
        asked.append(request.model)
        return good(request)

    view = recorded(home, COUNT, "FINAL_VAR('total')", sub=counting)
    with Replayer(
        home, view, handler=live(sub=sub), sub="openai/better", budget=Budget(live_calls=6)
    ) as replayer:
        trial = replayer.trial(mode="live", target=RIGHT)
    assert (trial.outcome, trial.live_calls, trial.hits) == ("fixed", 6, 0)
    assert set(asked) == {"openai/better"}


def test_with_another_sub_model_unchanged_prompts_still_come_from_the_record(home: Home) -> None:
    code = SUMMARY + "\nmore = llm_query('again', model='openai/sub')"
    view = recorded(home, code, "FINAL_VAR('line')", sub=counting)
    with Replayer(
        home, view, handler=live(sub=counting), sub="openai/better", budget=Budget(live_calls=5)
    ) as replayer:
        trial = replayer.trial([Patch(faulty(view), "3")], mode="recompute")
    assert (trial.answer, trial.hits, trial.live_calls) == ("it is 18", 7, 1)


def test_a_live_call_that_fails_decides_nothing(home: Home) -> None:
    def broken(request: Request) -> str:
        raise ValueError("no")

    view = recorded(home, SUMMARY, "FINAL_VAR('line')", sub=counting)
    with Replayer(home, view, handler=live(sub=broken), budget=Budget(live_calls=9)) as replayer:
        trial = replayer.trial([Patch(faulty(view), "3")], mode="recompute")
    assert trial.outcome == "undecided"
    assert "live call failed" in trial.assumed[-1]


CHILD = "found = rlm_query('a child: how many in ' + context[0][:2], context[0])\nprint(found)"


def test_a_child_run_is_served_whole_and_opened_only_for_a_patch_inside(home: Home) -> None:
    inside = "n = int(llm_query('item 4'))\nprint('seen', n)"
    view = recorded(
        home, CHILD, "FINAL_VAR('found')", sub=counting, children=[inside, "FINAL(n)"], limits=Limits()
    )
    assert view.summary.answer == "9"
    with Replayer(home, view) as replayer:
        assert replayer.check().status == "replayable"
        whole = replayer.trial()
        opened = replayer.trial([Patch(span_of(view, "sub_call"), "3")], target=Target("3"))
        answered = replayer.trial([Patch(span_of(view, "run"), "3")], target=Target("3"))
    assert (whole.hits, [path for path, _, _ in whole.shown]) == (1, ["0", "0"])
    assert opened.outcome == answered.outcome == "fixed"
    assert {path for path, _, _ in opened.shown} == {"0", "0.1"}


def test_a_child_whose_root_typed_its_answer_is_where_the_root_is_reached(home: Home) -> None:
    inside = "n = int(llm_query('item 4'))\nprint('seen', n)"
    view = recorded(home, CHILD, "FINAL_VAR('found')", sub=counting, children=[inside, "FINAL(9)"])
    with Replayer(home, view) as replayer:
        trial = replayer.trial([Patch(span_of(view, "sub_call"), "3")], target=Target("3"))
    assert trial.outcome == "reached_root"
    assert trial.reached is not None and (trial.reached.path, trial.reached.new) == ("0.1", "seen 3")


def test_a_patched_cell_runs_with_its_new_code(home: Home) -> None:
    view = recorded(home, COUNT, "FINAL_VAR('total')", sub=good)
    cell = span_of(view, "cell")
    with Replayer(home, view) as replayer:
        fewer = replayer.trial([Patch(cell, COUNT.replace("range(6)", "range(5)"))], target=Target("15"))
        more = replayer.trial([Patch(cell, COUNT.replace("range(6)", "range(7)"))])
        broken = replayer.trial([Patch(cell, "this is no code")])
    assert (fewer.outcome, fewer.hits) == ("fixed", 5)
    assert more.outcome == "undecided"
    assert broken.outcome in ("error", "undecided"), "total is not there any more"


def test_a_patch_must_name_a_call_or_a_cell_of_the_run(home: Home) -> None:
    view = recorded(home, COUNT, "FINAL_VAR('total')", sub=good)
    with Replayer(home, view) as replayer, pytest.raises(InputError, match="no sub-call, child run or cell"):
        replayer.trial([Patch(span_of(view, "iteration"), "x")])


def test_no_replay_is_made_beyond_the_budget(home: Home) -> None:
    view = recorded(home, COUNT, "FINAL_VAR('total')", sub=good)
    with Replayer(home, view, budget=Budget(replays=2)) as replayer:
        replayer.check()
        replayer.trial()
        replayer.trial()
        with pytest.raises(BudgetUsedUp, match="2 replays"):
            replayer.trial()
        assert replayer.spent.replays == 2


def test_a_cancelled_replay_asks_nobody_any_more(home: Home) -> None:
    view = recorded(home, SUMMARY, "FINAL_VAR('line')", sub=counting)
    with Replayer(
        home, view, handler=live(sub=counting), budget=Budget(live_calls=9), cancelled=lambda: True
    ) as replayer:
        trial = replayer.trial([Patch(faulty(view), "3")], mode="recompute")
    assert (trial.outcome, trial.live_calls) == ("undecided", 0)
    assert "cancelled" in (trial.stopped or "")


def test_a_corpus_that_is_gone_or_changed_is_said_in_one_sentence(home: Home) -> None:
    view = recorded(home, COUNT, "FINAL_VAR('total')", sub=good)
    for text in home.corpora.glob("*/texts/*.txt"):
        text.write_text("something else")
    with pytest.raises(RecordError, match="its corpus is not there as it was"):
        Replayer(home, view)
    Corpus.remove(home.corpora, view.summary.corpus_id or "")
    with pytest.raises(RecordError, match="there is no corpus"):
        Replayer(home, view)


@pytest.mark.parametrize(
    ("code", "status", "cause"),
    [
        ("import time\nprint(time.time_ns())\nFINAL(1)", "not_replayable", "the time"),
        ("import os\nprint(os.urandom(4))\nFINAL(1)", "not_replayable", "random bytes of the system"),
        ("print({'a', 'b', 'c', 'dd', 'ee', 'ff'})\nFINAL(1)", "seed_dependent", "the order of a set"),
        ("import random\nprint(random.random())\nFINAL(1)", "seed_dependent", "random numbers"),
        ("import time\nbegan = time.time()\nFINAL(1)", "replayable", None),
    ],
)
def test_a_run_says_whether_it_can_be_replayed_and_why_not(
    home: Home, code: str, status: str, cause: str | None
) -> None:
    with Replayer(home, recorded(home, code, sub=good)) as replayer:
        found = replayer.check()
    assert found.status == status
    assert (found.difference.cause if found.difference else None) == cause
    assert cause is None or cause in found.words


def test_equal_requests_that_were_answered_differently_are_called_ambiguous(home: Home) -> None:
    replies = iter("345")
    code = "print([llm_query('the same') for _ in range(3)])\nFINAL(1)"
    view = recorded(home, code, sub=lambda _: next(replies))
    with Replayer(home, view) as replayer:
        assert replayer.check().status == "replayable"
        trial = replayer.trial([Patch(span_of(view, "sub_call", 1), "8")])
    assert set(trial.ambiguous) == {span_of(view, "sub_call", n) for n in range(3)}
    assert trial.differences[0].new == "['3', '8', '5']\n"


def test_every_span_of_a_replay_is_closed_that_may_not_ask_for_the_forced_answer(home: Home) -> None:
    cell = "print(llm_query('a'))"
    view = recorded(home, cell, "just words.", sub=lambda _: "x", limits=Limits(max_iterations=1))
    with Replayer(home, view) as replayer:
        trial = record_replay(home, replayer, [Patch(span_of(view, "sub_call"), "y")], mode="reask")
    assert trial.outcome == "undecided" and trial.run_id is not None
    run = load_run(home, trial.run_id)
    assert {span.status for span in run.spans} <= {"ok", "error", "cancelled"}


def test_a_patch_holds_when_other_patches_change_how_often_the_same_was_asked_before(home: Home) -> None:
    replies = iter(["one", "wrong"])
    view = recorded(
        home,
        "more = llm_query('more?')\nif more == 'yes':\n    llm_query('same')",
        "FINAL(llm_query('same'))",
        sub=lambda request: "yes" if request.prompt == "more?" else next(replies),
    )
    patches = [Patch(span_of(view, "sub_call", 0), "no"), Patch(span_of(view, "sub_call", 2), "right")]
    with Replayer(home, view) as replayer:
        trial = replayer.trial(patches, target=Target("right"))
    assert (trial.outcome, trial.answer, trial.assumed) == ("fixed", "right", ())


def test_a_replay_can_be_recorded_as_a_run_that_cost_nothing(home: Home) -> None:
    view = recorded(home, COUNT, "FINAL_VAR('total')", sub=counting)
    run_id = "20260102T000000-0000cccc"
    with Replayer(home, view) as replayer, open_recording(home, run_id, {}) as recording:
        replayer.trial([Patch(faulty(view), "3")], recorder=recording.recorder, run_id=run_id)
        recording.close("ok")
    again = load_run(home, run_id)
    assert (again.summary.answer, again.summary.sub_calls, again.summary.cost_usd) == ("18", 6, 0)
    served = [span.attributes[sc.SERVED_FROM] for span in again.spans if span.kind == "sub_call"]
    assert served == ["record"] * 4 + ["patch", "record"]
    assert not [span for span in again.spans if span.kind == "attempt"], "no model was asked"
