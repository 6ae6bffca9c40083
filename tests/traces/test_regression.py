"""Regression sets: which runs they are, what became of their answers and through which calls; the trend."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rlm_core.errors import InputError, RecordError
from tests.support.checked_sets import checked, make_set
from tests.support.replays import live, recorded, span_of
from tests.traces.records import record_run
from traces.backup import backup
from traces.check_log import CheckLog, checks, last_word, log_file, trend
from traces.home import Home
from traces.opinions import judge, tag
from traces.reading import load_run
from traces.regression import (
    Member,
    Played,
    Result,
    check_set,
    regression_set,
    set_sizes,
    typed_by_root,
)
from traces.replay import Replayer
from traces.replay_runs import record_replay
from traces.trial import Budget
from traces.view import RunView
from traces.visible import line

ONE, TWO = "20260101T000000-0000aaaa", "20260101T000001-0000aaaa"
COUNT = "n = [int(llm_query('digits of ' + str(k))) for k in range(4)]\nprint(n)"
TOTAL = "total = str(sum(n))\nFINAL_VAR('total')"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(tmp_path / "home")


def counts(wrong: int | None = None, noise: str = "") -> Callable[[object], str]:
    """A sub-model that answers with the number it was given; one of them wrongly."""

    def answer(request: object) -> str:
        number = int(str(getattr(request, "prompt")).split()[-1])  # noqa: B009 - a request of any handler
        return f"{number * 11 if number == wrong else number}{noise}"

    return answer


def playing(home: Home, sub: Callable[[object], str]) -> Callable[[RunView, Member], Played]:
    """Play a member again with another sub-model."""

    def play(view: RunView, member: Member) -> Played:
        with Replayer(home, view, handler=live(sub=sub), budget=Budget(live_calls=50)) as replayer:
            trial = record_replay(home, replayer, mode="live", target=member.target)
        return Played(trial.answer, trial.run_id, trial.live_calls, trial.cost_usd)

    return play


def checked_with(home: Home, sub: Callable[[object], str], expected: str = "6") -> Result:
    """What a check of one run with that sub-model finds."""
    make_set(home, "sums", [(ONE, expected)])
    (result,) = check_set(home, regression_set(home, "sums").members, playing(home, sub))
    return result


def test_a_set_is_the_runs_of_a_tag_whose_right_answer_is_known(home: Home) -> None:
    for second in range(4):
        record_run(home, f"20260102T03040{second}-0000abcd", answer=f"{second}")
        tag(home, f"20260102T03040{second}-0000abcd", ["billing"])
    judge(home, "20260102T030400-0000abcd", verdict="wrong", expected="7", how="number")
    judge(home, "20260102T030401-0000abcd", verdict="right")
    judge(home, "20260102T030402-0000abcd", verdict="wrong")
    found = regression_set(home, "billing")
    told = [(member.target.text, member.target.how, member.was_right) for member in found.members]
    assert told == [("7", "number", False), ("1", "normalised", True)]
    assert [run_id[-10:-9] for run_id, _ in found.left_out] == ["2", "3"]
    assert set_sizes(home) == {"billing": 2}


def test_a_set_without_members_is_refused_with_what_to_do(home: Home) -> None:
    record_run(home, ONE)
    with pytest.raises(InputError, match="no run has this tag"):
        regression_set(home, "billing")
    tag(home, ONE, ["billing"])
    with pytest.raises(InputError, match="mark RUN --expected"):
        regression_set(home, "billing")


def test_an_answer_that_stays_passes_and_nothing_moved_it(home: Home) -> None:
    recorded(home, COUNT, TOTAL, sub=counts(), run_id=ONE)
    result = checked_with(home, counts(noise="  \n"))
    assert (result.passed, result.was_passing, result.changed, result.moved_by) == (True, True, False, ())
    assert result.played.live_calls == 4 and result.to_json()["now"] == "6"


def test_an_answer_that_became_wrong_was_moved_by_one_call_which_is_proven(home: Home) -> None:
    view = recorded(home, COUNT, TOTAL, sub=counts(), run_id=ONE)
    result = checked_with(home, counts(wrong=2))
    assert (result.passed, result.was_passing, result.changed, result.proven) == (False, True, True, True)
    assert result.moved_by == (span_of(view, "sub_call", 2),)
    assert result.played.run_id is not None
    assert result.moved_by_now == (span_of(load_run(home, result.played.run_id), "sub_call", 2),)


def test_an_answer_that_became_right_was_moved_by_the_call_that_had_been_wrong(home: Home) -> None:
    view = recorded(home, COUNT, TOTAL, sub=counts(wrong=1), run_id=ONE)
    result = checked_with(home, counts())
    assert (result.passed, result.was_passing, result.proven) == (True, False, True)
    assert result.moved_by == (span_of(view, "sub_call", 1),)


def test_where_both_answers_are_wrong_all_calls_that_differ_are_named_and_nothing_is_proven(
    home: Home,
) -> None:
    recorded(home, COUNT, TOTAL, sub=counts(wrong=1), run_id=ONE)
    result = checked_with(home, counts(wrong=2))
    assert (result.passed, result.changed, result.proven) == (False, True, False)
    assert len(result.moved_by) == 2 and "2 calls were answered otherwise" in result.words


def test_what_cannot_be_played_is_undecided_and_the_others_are_checked_all_the_same(home: Home) -> None:
    recorded(home, COUNT, TOTAL, sub=counts(), run_id=ONE)
    recorded(home, COUNT, TOTAL, sub=counts(), run_id=TWO)
    make_set(home, "sums", [(ONE, "6"), (TWO, "6")])

    def play(view: RunView, member: Member) -> Played:
        if view.run_id == ONE:
            raise RecordError("its corpus is gone")
        return Played("6")

    gone, played = check_set(home, regression_set(home, "sums").members, play)
    assert (gone.passed, gone.changed, gone.words) == (None, False, "its corpus is gone")
    assert gone.why == "unplayable" and gone.to_json()["why"] == "unplayable"
    assert played.passed is True


def test_a_comparison_that_only_a_judge_could_make_decides_nothing(home: Home) -> None:
    recorded(home, COUNT, TOTAL, sub=counts(), run_id=ONE)
    judge(home, ONE, verdict=None, expected="about six", how="judge")
    tag(home, ONE, ["sums"])
    (result,) = check_set(home, regression_set(home, "sums").members, lambda *_: Played("6"))
    assert result.passed is None and "judge" in result.words


def test_a_check_that_is_stopped_ends_before_the_next_run(home: Home) -> None:
    for run_id in (ONE, TWO):
        record_run(home, run_id)
    make_set(home, "sums", [(ONE, "42"), (TWO, "42")])
    done: list[Result] = []
    results = check_set(
        home, regression_set(home, "sums").members, lambda *_: Played("42"), cancelled=lambda: bool(done)
    )
    done.extend(results)
    assert [result.member.run.run_id for result in done] == [ONE]


def test_an_answer_that_stands_in_the_code_was_typed_by_the_root(home: Home) -> None:
    assert not typed_by_root(recorded(home, COUNT, TOTAL, sub=counts(), run_id=ONE))
    assert typed_by_root(recorded(home, COUNT, "FINAL('6')", sub=counts(), run_id=TWO))


# -- what is kept of checks


@pytest.fixture
def sums(home: Home) -> Home:
    """A home with a set of two runs that nothing is played for."""
    for run_id in (ONE, TWO):
        record_run(home, run_id, answer="the secret answer")
    make_set(home, "sums", [(ONE, "the secret answer"), (TWO, "another secret")])
    return home


def test_the_trend_counts_the_checks_that_could_tell(sums: Home) -> None:
    for passed in ((True, False), (True, None), (False, True)):
        checked(sums, "sums", passed)
    past = checks(sums, "sums")
    assert trend(past, ONE) == (2, 3) and trend(past, TWO) == (1, 2) and trend(past, ONE, most=1) == (0, 1)
    assert last_word(past) == {ONE: False, TWO: True} and last_word(past[:2]) == {ONE: True, TWO: False}
    assert [check.count(None) for check in past] == [0, 1, 0]


def test_a_check_is_read_as_it_was_written_and_holds_no_text_of_a_run(sums: Home) -> None:
    check_id = checked(sums, "sums", (True, False))
    (past,) = checks(sums)
    assert (past.check_id, past.name, past.mode, past.status) == (check_id, "sums", "replay", "done")
    assert (past.members, past.models, past.live_calls, past.cost_usd) == (2, {"sub": "openai/x"}, 4, "0")
    found = past.of(TWO)
    assert found is not None and found.proven and len(found.moved_by) == 1
    assert "secret" not in log_file(sums, check_id).read_text()


def test_why_nothing_could_be_told_is_kept_as_a_word_of_ours_only(sums: Home) -> None:
    (member, _) = regression_set(sums, "sums").members
    secret = Played(None, undecided="the secret stands here", why="stopped")
    with CheckLog(sums, "sums", "replay", {}, 1) as log:
        log.result(Result(member, secret, None, True, False, words="the secret stands here", why="stopped"))
        log.end(cancelled=False)
    path = log_file(sums, log.check_id)
    assert "secret" not in path.read_text()
    told = path.read_text()
    for raw, why in (('"stopped"', "stopped"), ('"<b>"', None), ("[]", None), ("null", None)):
        path.write_text(told.replace('"why":"stopped"', f'"why":{raw}'))
        (past,) = checks(sums)
        assert past.findings[0].why == why and past.count(None) == 1
    path.write_text(told.replace(',"why":"stopped"', ""))  # as files were before
    assert checks(sums)[0].findings[0].why is None


def test_checks_are_in_a_backup(sums: Home, tmp_path: Path) -> None:
    checked(sums, "sums", (True, False))
    backup(sums, tmp_path / "copy")
    assert checks(Home(tmp_path / "copy")) == checks(sums)


def test_a_check_that_broke_off_or_whose_process_died_says_so(sums: Home) -> None:
    with pytest.raises(RecordError), CheckLog(sums, "sums", "replay", {}, 2):
        raise RecordError("the disk is full")
    (failed,) = checks(sums)
    assert (failed.status, failed.reason) == ("failed", "the disk is full")
    path = log_file(sums, failed.check_id)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0] + b'{"kind":"resu')
    assert [check.status for check in checks(sums)] == ["lost"]


def test_a_check_that_was_interrupted_from_the_keyboard_was_cancelled(sums: Home) -> None:
    with pytest.raises(KeyboardInterrupt), CheckLog(sums, "sums", "rerun", {}, 2):
        raise KeyboardInterrupt
    (check,) = checks(sums)
    assert (check.status, check.reason) == ("cancelled", None)


def test_a_check_at_work_is_running_and_can_be_asked_to_stop(sums: Home) -> None:
    from traces.check_log import ask_to_stop

    with CheckLog(sums, "sums", "replay", {}, 2) as log:
        assert [check.status for check in checks(sums)] == ["running"] and not log.cancelled()
        ask_to_stop(sums, log.check_id)
        assert log.cancelled()
        log.end(cancelled=True)
    assert [check.status for check in checks(sums)] == ["cancelled"]


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"kind":"start"}', b"\xff\xfe", b"[" * 5_000])
def test_a_file_that_is_no_check_is_passed_over(sums: Home, raw: bytes) -> None:
    checked(sums, "sums", (True, True))
    (path,) = (sums.root / "checks").glob("*.jsonl")
    path.with_name("c20260101T000000-0000aaaa.jsonl").write_bytes(raw)
    assert len(checks(sums)) == 1


def test_what_is_shown_of_a_result_is_json(sums: Home) -> None:
    (member, _) = regression_set(sums, "sums").members
    result = Result(member, replace(Played("x"), undecided="why"), None, True, False, words="why")
    assert json.loads(json.dumps(result.to_json()))["words"] == line("why")
