"""Diagnosing wrong answers: runs by the real engine, recorded, with faults whose place is known."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm_core import Limits, Request
from rlm_core.errors import InputError, ModelError
from rlm_core.options import Options
from tests.support.replays import filled, live, recorded, span_of
from tests.support.trees import Condition, plan, record_pair
from traces.diagnose import diagnose
from traces.diagnosis import Diagnosis
from traces.home import Home
from traces.reading import list_runs, load_run
from traces.replay import Replayer
from traces.replay_runs import record_replay
from traces.trial import Budget, Patch, Target, Trial
from traces.view import RunView

BAD, GOOD = "20260101T000000-0000aaaa", "20260101T000000-0000bbbb"
BAD_ONE, GOOD_ONE = "20260101T000000-0000cccc", "20260101T000000-0000dddd"
COUNT = (
    "replies = llm_batch([f'item {n}: how many?' for n in range(8)])\n"
    "total = sum(int(r) for r in replies)\nprint(total)"
)
FINAL = "FINAL_VAR('total')"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home of its own."""
    return Home.resolve(tmp_path / "home")


def says(*wrong: int) -> Callable[[Request], str]:
    """A sub-model that answers 3, but 9 for some items."""
    return lambda request: "9" if any(f"item {n}:" in request.prompt for n in wrong) else "3"


def pair(home: Home, *wrong: int, codes: tuple[str, ...] = (COUNT, FINAL)) -> tuple[RunView, RunView]:
    """A run with wrong replies for some items, and one without."""

    def fill(empty: Home) -> None:
        recorded(empty, *codes, sub=says(*wrong))
        recorded(empty, *codes, sub=says(), run_id=GOOD)

    filled(home, ("pair", wrong, codes), fill)
    return load_run(home, BAD), load_run(home, GOOD)


def spans(view: RunView, *numbers: int) -> set[str]:
    return {span_of(view, "sub_call", number) for number in numbers}


def culprits(found: Diagnosis) -> set[str]:
    return {culprit.span_id for culprit in found.culprits}


@pytest.mark.parametrize("wrong", [(4,), pytest.param((1, 6), marks=pytest.mark.full), (0, 3, 7)])
def test_the_calls_that_answered_wrongly_are_named_and_proven(home: Home, wrong: tuple[int, ...]) -> None:
    bad, good = pair(home, *wrong)
    found = diagnose(home, bad, good=good)
    assert (found.verdict, found.outcome, found.proven) == ("sub_call", "fixed", True)
    assert culprits(found) == spans(bad, *wrong)
    assert {(one.patch, one.origin) for one in found.culprits} == {("3", "good run")}
    assert found.spent.live_calls == 0 and found.spent.replays == len(found.trials) <= 3 * len(wrong)
    assert found.target == Target("24", origin="good run")
    assert "sub-call" in found.words.casefold() and "“24”" in found.words


@pytest.mark.full  # a few of each stand in test_diagnosis_bench
@pytest.mark.parametrize("condition", ["paraphrase", "layers", "children"])
def test_planted_faults_are_found_exactly_in_trees_of_noise(home: Home, condition: Condition) -> None:
    tree = plan(3, condition, 2, typed=False, size=48 if condition == "children" else 40)
    planted = record_pair(home, tree)
    found = diagnose(
        home,
        load_run(home, planted.bad),
        good=load_run(home, planted.good),
        budget=Budget(60, 40),
        replayer=lambda *args, **options: Replayer(*args, handler=tree.handler("live"), **options),
    )
    assert culprits(found) == planted.culprits, found.words
    assert found.proven and found.spent.replays <= 60 and found.spent.live_calls <= 40


def test_a_cell_with_other_code_is_the_culprit(home: Home) -> None:
    wrong = COUNT.replace("for r in replies", "for r in replies[1:]")
    bad = recorded(home, wrong, FINAL, sub=says())
    good = recorded(home, COUNT, FINAL, sub=says(), run_id=GOOD)
    found = diagnose(home, bad, good=good)
    assert (found.verdict, found.proven) == ("cell", True), found.words
    assert [(one.span_id, one.patch) for one in found.culprits] == [(span_of(bad, "cell"), COUNT)]
    assert found.words.startswith("Cell 0 broke the answer")


def test_a_typed_answer_is_reached_and_only_asking_the_root_again_decides(home: Home) -> None:
    bad = recorded(home, COUNT, "FINAL(30)", sub=says(5))
    good = recorded(home, COUNT, "FINAL(24)", sub=says(), run_id=GOOD)
    free = diagnose(home, bad, good=good)
    assert (free.verdict, free.outcome, free.proven) == ("sub_call", "reached_root", False)
    assert culprits(free) == spans(bad, 5) and free.asked_again == () and free.reached is not None
    assert "only asking the root again" in free.words
    asked = diagnose(
        home, bad, good=good, budget=Budget(9, 2), repeat=2,
        replayer=lambda *args, **options: Replayer(*args, handler=live(FINAL), **options),
    )  # fmt: skip
    assert (asked.outcome, asked.asked_again, asked.proven) == ("reached_root", ("fixed", "fixed"), False)
    assert asked.spent.live_calls == 2 and "2 of 2 times" in asked.words


def test_a_twin_that_ends_in_the_typed_wrong_answer_is_compared_by_what_it_shows(home: Home) -> None:
    """The way that is advised: its twin has the right replies, but the answer is the one typed before."""
    bad = recorded(home, COUNT, "FINAL(30)", sub=says(5))
    with Replayer(home, bad, handler=live(sub=says()), budget=Budget(9, 50)) as player:
        made = record_replay(home, player, mode="live")
    assert made.outcome == "reached_root" and made.run_id is not None
    twin = load_run(home, made.run_id)
    assert twin.summary.answer == "30"
    found = diagnose(home, bad, good=twin)
    assert (found.verdict, found.outcome, found.proven) == ("sub_call", "reached_root", False), found.words
    assert culprits(found) == spans(bad, 5) and found.target is None
    assert any("does not tell what is right" in sentence for sentence in found.warnings)
    asked = diagnose(
        home, bad, good=twin, budget=Budget(9, 2), repeat=2,
        replayer=lambda *args, **options: Replayer(*args, handler=live(FINAL), **options),
    )  # fmt: skip
    assert "Asked again with that output 2 times, the root answered “24”." in asked.words
    assert diagnose(home, bad, good=twin, target=Target("24")).culprits == found.culprits
    assert diagnose(home, bad, good=twin, target=Target("30")).verdict == "right"


def test_the_answer_that_it_should_be_needs_no_diagnosis(home: Home) -> None:
    bad, _ = pair(home, 2)
    found = diagnose(home, bad, target=Target(" 30. "))
    assert (found.verdict, found.trials, found.spent.replays) == ("right", (), 0)


def test_a_run_that_uses_the_time_is_not_replayable_and_nothing_is_blamed(home: Home) -> None:
    clock = "import time\nprint(time.time_ns())\n" + COUNT
    bad, good = pair(home, 2, codes=(clock, FINAL))
    found = diagnose(home, bad, good=good)
    assert (found.verdict, found.culprits, found.trials) == ("not_replayable", (), ())
    assert found.replayability is not None and found.words == found.replayability.words


def test_other_plans_are_said_and_no_call_is_blamed(home: Home) -> None:
    bad = recorded(home, "total = int(llm_query('all at once?'))\nprint(total)", FINAL, sub=lambda _: "30")
    good = recorded(home, "print(1)", COUNT, FINAL, sub=says(), run_id=GOOD)
    found = diagnose(home, bad, good=good)
    assert (found.verdict, found.culprits) == ("plan_diverged", ())
    assert "a twin" in found.words


def test_a_good_run_that_says_the_same_everywhere_leaves_nothing_to_try(home: Home) -> None:
    bad, good = pair(home)
    found = diagnose(home, bad, good=good, target=Target("25"))
    assert (found.verdict, found.trials) == ("undecided", ())
    assert "answered differently" in found.words


def test_a_good_run_without_the_expected_answer_blames_nobody(home: Home) -> None:
    bad, good = pair(home, 2)
    found = diagnose(home, bad, good=good, target=Target("25"))
    assert (found.verdict, found.outcome, found.culprits) == ("undecided", "moved", ())
    assert "becomes “24”, which is not right" in found.words


@pytest.mark.parametrize("replays", [0, 1, 3])
def test_the_budget_is_kept_and_what_could_not_be_told_is_said(home: Home, replays: int) -> None:
    bad, good = pair(home, 0, 3, 7)
    found = diagnose(home, bad, good=good, budget=Budget(replays))
    assert found.spent.replays == len(found.trials) == replays and not found.proven
    assert found.stopped is not None and "used up" in found.stopped
    assert found.verdict == ("sub_call" if replays else "undecided")
    assert culprits(found) == (spans(bad, 0, 3, 7) if replays else set())


def test_a_wish_to_stop_ends_it_with_what_was_found(home: Home) -> None:
    bad, good = pair(home, 0, 3)
    seen: list[Trial] = []
    stages: list[str] = []
    found = diagnose(
        home, bad, good=good, tell=seen.append, stage=stages.append, cancelled=lambda: len(seen) > 0
    )
    assert found.stopped == "it was cancelled" and not found.proven
    assert tuple(seen) == found.trials and len(seen) == 1 and len(stages) >= 3


def summed(*wrong: int, spaces: bool = False) -> Callable[[Request], str]:
    """A sub-model that also adds up the numbers it is shown; its replies may end in spaces."""

    def answer(request: Request) -> str:
        if request.prompt.startswith("add"):
            return str(sum(map(int, re.findall(r"\d+", request.prompt))))
        return says(*wrong)(request) + " " * (spaces and int(request.prompt[5]) % 2)

    return answer


SUMS = (
    "replies = llm_batch([f'item {n}: how many?' for n in range(8)])\n"
    "total = ' '.join(llm_query('add ' + ' / '.join(replies[i:i + 4])) for i in (0, 4))\nprint(total)",
    FINAL,
)


def test_changed_prompts_are_asked_when_calls_are_allowed(home: Home) -> None:
    bad = recorded(home, *SUMS, sub=summed(2, 5, spaces=True))
    good = recorded(home, *SUMS, sub=summed(), run_id=GOOD)
    asked = diagnose(
        home, bad, good=good, budget=Budget(9, 4),
        replayer=lambda *args, **options: Replayer(*args, handler=live(sub=summed()), **options),
    )  # fmt: skip
    assert (asked.verdict, asked.mode, asked.proven) == ("sub_call", "recompute", True), asked.words
    assert culprits(asked) == spans(bad, 2, 5) and 0 < asked.spent.live_calls <= 4


def test_without_calls_replies_that_differ_in_form_only_are_taken_along_and_it_is_not_called_proven(
    home: Home,
) -> None:
    bad = recorded(home, *SUMS, sub=summed(2, 5, spaces=True))
    good = recorded(home, *SUMS, sub=summed(), run_id=GOOD)
    found = diagnose(home, bad, good=good)
    assert (found.verdict, found.outcome, found.proven) == ("sub_call", "fixed", False), found.words
    assert culprits(found) == spans(bad, 2, 5) and found.spent.live_calls == 0
    assert "could not be told" in found.words and "calls to a model allowed" in found.words
    assert any("white space" in sentence for sentence in found.assumed)


def test_prompts_that_no_run_holds_leave_it_open(home: Home) -> None:
    told = SUMS[0].replace("'add '", "'add ' + str(len(replies[0])) + ' '")
    bad = recorded(home, told, FINAL, sub=summed(2, spaces=True))
    good = recorded(home, SUMS[0], FINAL, sub=summed(), run_id=GOOD)
    found = diagnose(home, bad, good=good, patches=[Patch(span_of(bad, "sub_call", 2), "4")])
    assert (found.verdict, found.outcome, found.culprits) == ("undecided", "undecided", ())
    assert "calls to a model allowed" in found.words


def test_texts_of_a_person_are_tried_and_reduced_to_those_that_matter(home: Home) -> None:
    bad, _ = pair(home, 4)
    patches = [Patch(span_of(bad, "sub_call", number), "3") for number in (6, 4, 1)]
    found = diagnose(home, bad, patches=patches, target=Target("24"))
    assert (found.verdict, found.proven, culprits(found)) == ("sub_call", True, spans(bad, 4))
    assert found.culprits[0].origin == "user"


def test_the_replay_that_decides_is_kept_as_a_run_when_asked_for(home: Home) -> None:
    bad, good = pair(home, 4)
    found = diagnose(home, bad, good=good, record=True)
    kept = found.trials[-1]
    assert kept.run_id is not None and kept.outcome == "fixed"
    run = load_run(home, kept.run_id).summary
    assert (run.replay_of, run.answer) == (bad.run_id, "24")
    assert kept.run_id not in [run.run_id for run in list_runs(home)]


def test_no_good_run_leaves_suspects_with_their_evidence(home: Home) -> None:
    kind = COUNT.replace("int(r)", "int(r or 0)")
    bad = recorded(home, kind, FINAL, sub=lambda request: "" if "item 5" in request.prompt else "3")
    found = diagnose(home, bad)
    assert (found.verdict, found.proven, found.culprits) == ("suspects", False, ())
    assert found.suspects[0]["span_id"] == span_of(bad, "sub_call", 5)
    assert found.suspects[0]["signals"][0]["words"]


def test_without_a_good_run_a_slip_is_corrected_from_the_prompt_and_called_a_guess(home: Home) -> None:
    codes = (
        "asked = [f'The shop number {n} took {n * 7 + 120} EUR. How much?' for n in range(12)]\n"
        "total = sum(int(reply.split()[1]) for reply in llm_batch(asked))\nprint(total)",
        FINAL,
    )

    def sub(request: Request) -> str:
        amount = request.prompt.split(" took ")[1].split()[0]
        return "EUR 198" if amount == "148" else f"EUR {amount}"

    bad = recorded(home, *codes, sub=sub)
    right = Target(str(sum(n * 7 + 120 for n in range(12))))
    found = diagnose(home, bad, target=right)
    assert (found.verdict, found.outcome) == ("sub_call", "fixed"), found.words
    assert culprits(found) == spans(bad, 4)
    assert (found.culprits[0].patch, found.culprits[0].origin) == ("EUR 148", "source")
    assert not found.proven and "may have broken the answer" in found.words
    assert "That is no proof: the text in its place is one that a rule proposed" in found.words
    assert any("proposed by a rule" in sentence for sentence in found.assumed)
    assert any("one run alone" in sentence for sentence in found.warnings)
    untold = diagnose(home, bad)
    assert (untold.verdict, untold.outcome, untold.culprits) == ("suspects", "undecided", ())
    assert "Another answer comes of another text for sub-call 4 of cell 0." in untold.words


def test_a_slip_that_the_root_typed_is_found_though_its_output_quoted_the_right_value_before(
    home: Home,
) -> None:
    asked = "[f'The shop number {n} took {n * 7 + 120} EUR. How much?' for n in range(6)]"
    codes = (f"asked = {asked}\nprint('is it EUR 148?', llm_batch(asked)[4])", "FINAL('EUR 198')")

    def sub(request: Request) -> str:
        amount = request.prompt.split(" took ")[1].split()[0]
        return "EUR 198" if amount == "148" else f"EUR {amount}"

    bad = recorded(home, *codes, sub=sub)
    found = diagnose(home, bad, target=Target("EUR 148"))
    assert (found.verdict, found.outcome, found.proven) == ("sub_call", "reached_root", False), found.words
    assert culprits(found) == spans(bad, 4)


def test_where_any_one_of_several_texts_would_do_none_is_blamed(home: Home) -> None:
    """A reply that was cut off and one that failed: with the label that is counted, either adds the one."""
    count = (
        "asked = [f'ticket {n} about {w}: bill or bug?' for n, w in enumerate(['bill', 'bug'] * 8)]\n"
        "texts = llm_batch(asked)\n"
        "total = sum(text.strip() == 'bill' for text in texts)\nprint(total)"
    )

    def sub(request: Request) -> str:
        number = int(request.prompt.split()[1])
        return "" if number in (3, 4) else "bug" if number % 2 else "bill"

    bad = recorded(home, count, FINAL, sub=sub)
    found = diagnose(home, bad, target=Target("8"))
    assert (found.verdict, found.culprits, found.proven) == ("suspects", (), False), found.words
    assert "any one of 2 sub-calls" in found.words and "A good run or a twin tells." in found.words
    assert {trial.outcome for trial in found.trials} >= {"fixed"}


LOOKUP = (
    "asked = [f'Folder {n}: the gate has {n * 37 + 4000}. Which code opens the vault?' for n in range(5)]\n"
    "asked[2] = 'Folder 2: the vault has 7,315. Which code opens the vault?'\n"
    "found = [reply for reply in llm_batch(asked) if reply != 'NONE']\n"
    "code = found[0] if found else 'unknown'\nprint(code)"
)


@pytest.mark.parametrize("last", ["FINAL_VAR('code')", "FINAL('unknown')"])
def test_a_call_that_was_given_the_expected_answer_and_did_not_say_it_is_the_first_suspect(
    home: Home, last: str
) -> None:
    bad = recorded(home, LOOKUP, last, sub=lambda _: "NONE")
    found = diagnose(home, bad, target=Target("7315"))
    assert culprits(found) == spans(bad, 2) and not found.proven, found.words
    assert found.outcome == ("fixed" if last == "FINAL_VAR('code')" else "reached_root")
    assert (found.culprits[0].patch, found.culprits[0].origin) == ("7315", "expected")
    first = found.suspects[0]
    assert (first["span_id"], first["signals"][0]["kind"]) == (span_of(bad, "sub_call", 2), "missed")
    assert "“7315” stands in this prompt only, but the reply says “NONE”" in first["signals"][0]["words"]
    assert found.trials[0].patches == (Patch(span_of(bad, "sub_call", 2), "7315"),)


@pytest.mark.parametrize("expected", ["731", "315", "73", "vault", "NONE", "Folder", "4037000"])
def test_what_stands_in_many_prompts_or_inside_of_another_word_is_not_missed(
    home: Home, expected: str
) -> None:
    filled(home, LOOKUP, lambda empty: recorded(empty, LOOKUP, "FINAL_VAR('code')", sub=lambda _: "NONE"))
    found = diagnose(home, load_run(home, BAD), target=Target(expected))
    kinds = {signal["kind"] for suspect in found.suspects for signal in suspect["signals"]}
    assert "missed" not in kinds and found.culprits == ()


def test_where_the_root_would_have_seen_other_output_the_verdict_says_its_code_was_kept(home: Home) -> None:
    bad, good = pair(home, 4)
    shown = diagnose(home, bad, good=good)
    assert shown.reached is not None and shown.proven
    assert "in its place, and the root's code kept as recorded, it is “24”" in shown.words
    silent = COUNT.replace("print(total)", "FINAL_VAR('total')")
    bad, good = (
        recorded(home, silent, sub=says(4), run_id=BAD_ONE),
        recorded(home, silent, sub=says(), run_id=GOOD_ONE),
    )
    unseen = diagnose(home, bad, good=good)
    assert unseen.reached is None and unseen.proven and "kept as recorded" not in unseen.words


def test_a_place_for_which_the_good_run_has_no_text_is_named(home: Home) -> None:
    kind = COUNT.replace("int(r)", "int(r) if r.isdigit() else 0")

    def failing(request: Request) -> str:
        if "item 6" in request.prompt:
            raise InputError("out of order")
        return "3"

    bad = recorded(home, kind, FINAL, sub=says(4))
    good = recorded(home, kind, FINAL, sub=failing, run_id=GOOD)
    found = diagnose(home, bad, good=good, target=Target("24"))
    assert culprits(found) == spans(bad, 4), found.words
    assert any(
        "In the place of sub-call 6 of cell 0 the good run has no text" in one for one in found.warnings
    )


def test_of_calls_that_a_limit_refused_it_is_said_that_no_model_was_asked(home: Home) -> None:
    lenient = COUNT.replace("for r in replies", "for r in replies if r")
    bad = recorded(home, lenient, FINAL, sub=says(), limits=Limits(max_calls=6))
    good = recorded(home, lenient, FINAL, sub=says(), run_id=GOOD)
    found = diagnose(home, bad, good=good)
    assert found.proven and culprits(found) == spans(bad, 6, 7)
    assert "with the good run's replies in their places" in found.words and "“24”, not “18”" in found.words
    assert found.words.endswith("A limit of the run had refused these calls: no model was asked.")
    alone = diagnose(home, bad)
    assert "2 sub-calls look wrong by themselves, 2 of them because a limit of the run refused" in alone.words


def test_replies_of_a_cell_that_ran_out_of_time_are_left_aside_and_the_others_tried(home: Home) -> None:
    codes = (f"{COUNT}\nwhile True: pass", COUNT, FINAL)
    short = Limits(cell_seconds=0.3, cell_cpu_seconds=0.3)
    bad = recorded(home, *codes, sub=says(4), limits=short)
    good = recorded(home, *codes, sub=says(), run_id=GOOD, limits=short)
    found = diagnose(home, bad, good=good)
    assert (found.verdict, found.outcome, culprits(found)) == ("sub_call", "fixed", spans(bad, 12))
    assert any("place of sub-call 4 of cell 0: in a cell that was killed" in one for one in found.warnings)


def test_no_model_is_offered_where_none_could_help(home: Home) -> None:
    codes = ("n = llm_query('item 4: how many?')\nwhile True: pass", "FINAL(24)")
    short = Limits(cell_seconds=0.3, cell_cpu_seconds=0.3)
    bad = recorded(home, *codes, sub=says(4), limits=short)
    good = recorded(home, *codes, sub=says(), run_id=GOOD, limits=short)
    found = diagnose(home, bad, good=good, target=Target("25"))
    assert (found.verdict, found.outcome) == ("undecided", "undecided")
    assert found.words.endswith("was interrupted and is not run again.")


def test_where_the_good_run_has_no_reply_that_is_the_reason_and_not_that_nothing_differs(home: Home) -> None:
    codes = ("total = sum(int(r) for r in [llm_query(f'item {n}: how many?') for n in range(3)] if r)", FINAL)

    def failing(request: Request) -> str:
        if "item 1:" in request.prompt:
            raise ModelError("bad_request", "not this one")
        return "3"

    bad = recorded(home, *codes, sub=says(1))
    good = recorded(home, *codes, sub=failing, run_id=GOOD)
    found = diagnose(home, bad, good=good, target=Target("9"))
    assert found.verdict == "undecided"
    assert found.words.startswith("In the place of sub-call 1 of cell 0 the good run has no text")


def test_of_replies_that_the_cache_gave_again_it_is_said_that_a_model_gave_them_once(home: Home) -> None:
    codes = ("total = sum(int(llm_query('item 4: how many?')) for _ in range(2))", FINAL)
    bad = recorded(home, *codes, sub=says(4), options=Options(cache=True))
    good = recorded(home, *codes, sub=says(), run_id=GOOD, options=Options(cache=True))
    found = diagnose(home, bad, good=good)
    assert culprits(found) == spans(bad, 0, 1)
    assert found.words.endswith("The cache gave 1 of them the reply that an equal call had got.")


def test_culprits_in_several_child_runs_are_told_apart(home: Home) -> None:
    ask = "parts = rlm_query_batched(['child one', 'child two', 'child three'])\nFINAL(sum(map(int, parts)))"
    child = "FINAL(llm_query('how many? ' + str(budget()['iterations'])))"
    says_wrong = {"bad": lambda request: str(9 + request.occurrence), "good": lambda request: "3"}
    bad = recorded(home, ask, children=[child], sub=says_wrong["bad"])
    good = recorded(home, ask, children=[child], sub=says_wrong["good"], run_id=GOOD)
    found = diagnose(home, bad, good=good)
    assert len(found.culprits) == 3
    named = set(re.findall(r"child run [\d.]+", found.words))
    assert named == {"child run 0.1", "child run 0.2", "child run 0.3"}


def test_a_comparison_that_does_not_exist_is_refused(home: Home) -> None:
    bad, _ = pair(home, 4)
    with pytest.raises(InputError, match="compared by"):
        diagnose(home, bad, target=Target("24", "roughly"))


def test_without_a_good_run_a_suspect_is_asked_again_when_calls_are_allowed(home: Home) -> None:
    ask = "notes = [llm_query(f'Tell the colour of house {n}.') for n in range(5)]"
    read = "line = ' '.join(str(note) for note in notes)"

    def bad(request: Request) -> str:
        return "I cannot help with that." if "house 3" in request.prompt else "It is painted green."

    view = recorded(home, ask, read, "FINAL_VAR('line')", sub=bad)
    target = Target(" ".join(["It is painted green."] * 3 + ["It is blue."] + ["It is painted green."]))
    asked: list[str] = []

    def now(request: Request) -> str:
        asked.append(request.prompt)
        return "It is blue."

    def player(*given: object, **options: object) -> Replayer:
        return Replayer(*given, handler=live(sub=now), **options)  # type: ignore[arg-type]

    nobody = diagnose(home, view, target=target)
    found = diagnose(home, view, target=target, budget=Budget(live_calls=3), replayer=player)
    assert nobody.verdict == "suspects"
    assert [(one.span_id, one.origin) for one in found.culprits] == [(span_of(view, "sub_call", 3), "re-ask")]
    assert found.outcome == "fixed" and not found.proven
    assert "one that a model gave on another try, and may be untrue" in found.words
    assert "Tell the colour of house 3." in asked and found.spent.live_calls == len(asked) <= 3
