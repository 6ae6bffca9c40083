"""All attempts at all levels as all users, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.escapes.attempts import LEVELS, WEAKEST, Attempt
from tests.escapes.players import Player, Result

Results = dict[tuple[str, str, str], Result]  # by id, level, user
_NAKED = "naked"


def run(
    attempts: Sequence[Attempt],
    levels: Sequence[str],
    users: Sequence[str],
    tell: Callable[[str], None],
    jobs: int = 2,
) -> Results:
    """Run everything, one stage per level and user; what level none stops too also runs naked."""

    def column(level: str, user: str) -> Results:
        player = Player(level, user)
        results: Results = {}
        for attempt in attempts:
            if level == LEVELS[0] and attempt.shown == "naked":
                results[attempt.id, _NAKED, user] = player.play(attempt, naked=True)
            result = results[attempt.id, level, user] = player.play(attempt)
            if result.word == "not reached" and not result.ok:  # does this system stop it by itself?
                results[attempt.id, _NAKED, user] = player.play(attempt, naked=True)
        player.close()
        done = [result for key, result in results.items() if key[1] == level]
        tell(f"{level:<9} {user:<13} {summary(done)}")
        return results

    with ThreadPoolExecutor(jobs) as pool:
        columns = [pool.submit(column, level, user) for level in levels for user in users]
        return {key: result for one in columns for key, result in one.result().items()}


def failures(results: Results) -> list[Result]:
    """The results that are not what the table of levels says.

    At level none that is also an attempt which gets through in a plain interpreter only; one that does not
    get through there either is stopped by this system, whatever the level.
    """
    wrong = []
    for (name, level, user), result in results.items():
        if level == _NAKED:
            right = bool(result.found) or result.attempt.shown != "naked"
        else:
            naked = results.get((name, _NAKED, user))
            right = result.ok or (level == LEVELS[0] and naked is not None and not naked.found)
        if not (right or result.not_run):
            wrong.append(result)
    return wrong


def summary(results: Iterable[Result]) -> str:
    """How many came out how."""
    counts: dict[str, int] = {}
    for result in results:
        counts[result.word] = counts.get(result.word, 0) + 1
    return ", ".join(f"{count} {word}" for word, count in sorted(counts.items(), key=lambda one: -one[1]))


def shown(attempt: Attempt, results: Results, users: Sequence[str]) -> str:
    """Where a blocked attempt was seen to get through, or why it was not."""
    if attempt.expected == "contained":
        return ""
    if attempt.shown == "naked":
        seen = [user for user in users if (r := results.get((attempt.id, _NAKED, user))) and r.found]
        return f"plain interpreter ({attempt.why})" if seen else "not shown"
    seen = [user for user in users if (r := results.get((attempt.id, LEVELS[0], user))) and r.found]
    if len(seen) == len(users):
        return "level none"
    reason = f": {attempt.why}" if attempt.why else ""
    return f"level none, {seen[0]} only{reason}" if seen else f"not shown{reason}"


def text(results: Results, attempts: Sequence[Attempt], levels: Sequence[str], users: Sequence[str]) -> str:
    """The table for a terminal."""
    heads = [f"{level}/{user[:5]}" for level in levels for user in users]
    lines = [f"{'':<5} {'attempt':<74} " + " ".join(f"{head:<16}" for head in heads)]
    for attempt in attempts:
        words = [results[attempt.id, level, user].word for level in levels for user in users]
        lines.append(f"{attempt.id:<5} {attempt.title[:74]:<74} " + " ".join(f"{w[:16]:<16}" for w in words))
    return "\n".join(line.rstrip() for line in lines)


def markdown(
    results: Results, attempts: Sequence[Attempt], levels: Sequence[str], users: Sequence[str]
) -> str:
    """The table for the docs; level none is told by the column that says where an attempt got through."""
    locked = [level for level in reversed(levels) if level != LEVELS[0]]
    heads = [f"{level}, {user}" for level in locked for user in users]
    lines = [
        "| | attempt | claimed from | got through at | " + " | ".join(heads) + " |",
        "|---|---|---|---|" + "---|" * len(heads),
    ]
    for attempt in attempts:
        claim = "every level" if WEAKEST[attempt.aim] == LEVELS[0] else WEAKEST[attempt.aim]
        words = [results[attempt.id, level, user].word for level in locked for user in users]
        cells = [attempt.id, attempt.title, claim, shown(attempt, results, users), *words]
        lines.append("| " + " | ".join(cells) + " |")
    counts = [summary(results[one.id, level, user] for one in attempts) for level in locked for user in users]
    lines.append("| | **together** | | | " + " | ".join(counts) + " |")
    return "\n".join(lines)
