"""Hostile cells at every level of the sandbox: what a level claims to stop is stopped, the run goes on.

What is stopped is seen to get through at level none first, so that its being stopped says something.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import ELSEWHERE
from tests.escapes.attempts import ATTEMPTS, BY_ID, LEVELS, WEAKEST, Attempt
from tests.escapes.players import NO_SHELTER, USERS, Player, Result

pytestmark = pytest.mark.needs("linux")
Play = Callable[..., Result]
HERE = USERS if os.name == "posix" and os.getuid() == 0 else USERS[1:]  # the first one is who runs this


@pytest.fixture(scope="session")
def play() -> Iterator[Play]:
    """Runs an attempt at a level as a user; stages stay open for the next one."""
    players: dict[tuple[str, str], Player] = {}

    def one(attempt: Attempt, level: str, user: str, **options: Any) -> Result:
        player = players.setdefault((level, user), Player(level, user))
        result = player.play(attempt, **options)
        if result.not_run.startswith("written for"):
            pytest.skip(f"{ELSEWHERE}{result.not_run}")
        if NO_SHELTER in result.not_run:
            pytest.skip(result.not_run)
        assert not result.not_run, result.not_run
        return result

    yield one
    for player in players.values():
        player.close()


def core(attempt: Attempt, level: str, user: str) -> bool:
    """Whether it belongs to the tests that always run."""
    if attempt.heavy or user != HERE[0] or level == "weak":
        return False
    return level == "standard" or (attempt.expected == "blocked" and not attempt.fresh)


def cases(levels: tuple[str, ...]) -> list[Any]:
    found = []
    for level in levels:
        for user in HERE:
            for attempt in ATTEMPTS:
                marks = [] if core(attempt, level, user) else [pytest.mark.full]
                if level != "none":
                    marks.append(pytest.mark.needs("lock"))
                if level == "strict":
                    marks.append(pytest.mark.needs("bwrap"))
                found.append(
                    pytest.param(attempt, level, user, marks=marks, id=f"{attempt.id}-{level}-{user}")
                )
    return found


@pytest.mark.parametrize(("attempt", "level", "user"), cases(("none",)))
def test_what_is_to_be_stopped_gets_through_where_nothing_stops_it(
    play: Play, attempt: Attempt, level: str, user: str
) -> None:
    if attempt.shown == "naked":
        assert play(attempt, level, user, naked=True).found
    result = play(attempt, level, user)
    if result.word == "not reached" and not play(attempt, level, user, naked=True).found:
        pytest.skip(f"{ELSEWHERE}this one stops it by itself, without any sandbox")
    assert result.ok, f"{result.word}: {result.why}"
    if attempt.expected == "blocked" and not attempt.stopped_at(level) and result.shown_here:
        assert result.word == "open"


@pytest.mark.parametrize(("attempt", "level", "user"), cases(("standard", "strict", "weak")))
def test_what_a_level_claims_to_stop_is_stopped_and_the_run_goes_on(
    play: Play, attempt: Attempt, level: str, user: str
) -> None:
    result = play(attempt, level, user)
    assert result.ok, f"{result.word}: {result.why}"


def test_the_attempts_of_the_survey_are_there_and_ours_and_each_compiles() -> None:
    assert [attempt.id for attempt in ATTEMPTS] == [f"E{number:02d}" for number in range(1, 120)]
    assert [attempt.id for attempt in ATTEMPTS if attempt.group == "ours"] == [
        f"E{n}" for n in range(112, 120)
    ]
    for attempt in ATTEMPTS:
        compile(attempt.code, attempt.id, "exec")


def test_strict_claims_to_stop_everything_and_standard_all_but_metadata() -> None:
    wanted = [attempt for attempt in ATTEMPTS if attempt.expected == "blocked"]
    assert all(attempt.stopped_at("strict") for attempt in wanted)
    assert [a.id for a in wanted if not a.stopped_at("standard")] == ["E102", "E103"]
    assert set(WEAKEST.values()) == set(LEVELS)


def test_one_that_is_not_seen_to_get_through_says_why() -> None:
    assert [a.id for a in ATTEMPTS if a.shown != "any" and not a.why] == []
    assert [a.id for a in ATTEMPTS if a.shown == "no"] == ["E30", "E48", "E95"]


def test_a_killed_parent_is_noticed_and_the_next_attempt_has_a_new_one(play: Play) -> None:
    result = play(BY_ID["E34"], "none", HERE[0])
    assert result.found == ("the parent was killed (exit code 137)",)
    assert play(BY_ID["E05"], "none", HERE[0]).found == ("it said so",)
