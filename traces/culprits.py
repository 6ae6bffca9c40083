"""The search for a minimal set of candidates whose joint change does what all of them together do.

Pure: it knows neither runs nor replays. Let n be the candidates and k the members of the set. As long as more
changes never undo what fewer did (monotone), members are found from the back by a binary search over the
prefixes of the candidates, each in log2(n) tests and one more that asks whether the found ones suffice; then
every member is left out once (1-minimality; most of these sets were tested on the way). Answers that
contradict this send what is left through delta debugging (Zeller and Hildebrandt, "Simplifying and isolating
failure-inducing input", 2002), which assumes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

T = TypeVar("T")
Answer = Literal["yes", "no", "unknown"]
Ended = Literal["minimal", "unknown", "out of budget"]

#: Tests without an answer, one after another, after which a place counts as one that tests cannot split.
PATIENCE: Final = 32


class OutOfBudget(Exception):
    """Raised by a test that may not be made any more: the search ends with the best set it knows."""


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """The smallest set whose test said yes, in the order of the candidates.

    `ended` minimal: without any one member the test says no. Unknown: for some member that could not be told.
    `monotone` False: some set said yes of which a larger one said no. `tests` were made, `unknown` of them
    without an answer.
    """

    members: tuple[T, ...]
    ended: Ended
    monotone: bool
    tests: int
    unknown: int


def minimal(
    candidates: Sequence[T],
    test: Callable[[Sequence[T]], Answer],
    weights: Sequence[float] | None = None,
) -> Found[T]:
    """A minimal set of candidates of which `test` says yes, given that it says yes of all and no of none.

    `test` is called with candidates in their order, never twice with the same ones. Neighbours in that order
    should be those whose changes are decided together. `weights` (over 0) say how likely each is a member:
    tests divide the weight that is left in halves. An "unknown" is never taken for a no.
    """
    search = _Search(candidates, test, weights)
    ended: Ended = "out of budget"
    with suppress(OutOfBudget):
        ended = search.run()
    if all(search.known.get(search.best - {index}) == "no" for index in search.best):
        ended = "minimal"  # the budget ended with the last test that was needed
    members = tuple(candidates[index] for index in sorted(search.best))
    answers = list(search.known.values())
    return Found(members, ended, search.monotone, len(answers) - 2, answers.count("unknown"))


class _Search(Generic[T]):
    """The state of one search; candidates are known by their place."""

    def __init__(
        self,
        candidates: Sequence[T],
        test: Callable[[Sequence[T]], Answer],
        weights: Sequence[float] | None,
    ) -> None:
        self._candidates = candidates
        self._test = test
        self._weights = weights or [1.0] * len(candidates)
        self.best: frozenset[int] = frozenset(range(len(candidates)))
        self.known: dict[frozenset[int], Answer] = {frozenset(): "no", self.best: "yes"}

    @property
    def monotone(self) -> bool:
        """Whether no answer contradicts that more changes keep what fewer did."""
        denied = [one for one, answer in self.known.items() if answer == "no"]
        granted = [one for one, answer in self.known.items() if answer == "yes"]
        return not any(small < large for large in denied for small in granted)

    def run(self) -> Ended:
        """Search to the end. Raises OutOfBudget from a test."""
        if not self._by_prefixes():
            self._by_halves()
        return self._leave_out_each()

    def _ask(self, chosen: Collection[int]) -> Answer:
        asked = frozenset(chosen)
        if asked not in self.known:
            self.known[asked] = answer = self._test([self._candidates[index] for index in sorted(asked)])
            if answer == "yes" and len(asked) < len(self.best):
                self.best = asked
        return self.known[asked]

    def _by_prefixes(self) -> bool:
        """Whether the members that prefixes lead to suffice."""
        found: list[int] = []
        left = list(range(len(self._candidates)))
        while left and self._ask(found) != "yes":
            low, high = self._edge(found, left)
            found += left[low:high]
            left = left[:low]
        return self._ask(found) == "yes"

    def _edge(self, found: Sequence[int], left: Sequence[int]) -> tuple[int, int]:
        """Where prefixes of `left` begin to say yes, `found` being changed as well: up to the first number
        they do not, up to the second they do; apart by 1 unless what is between cannot be told."""
        low, high = 0, len(left)
        while high - low > 1:
            for _, point in zip(range(PATIENCE), self._points(left, low, high), strict=False):
                answer = self._ask([*found, *left[:point]])
                if answer == "yes":
                    high = point
                elif answer == "no":
                    low = point
                else:
                    continue
                break
            else:
                break
        return low, high

    def _points(self, left: Sequence[int], low: int, high: int) -> Iterator[int]:
        """The places between two, first the one that divides the weight in halves, then its neighbours: what
        cannot be told is mostly so inside a group of neighbours, and ends where the group does."""
        weights = [self._weights[index] for index in left[low:high]]
        half, passed, first = sum(weights) / 2, 0.0, low + 1
        for number, weight in enumerate(weights, low + 1):
            if passed + weight / 2 > half and number > low + 1:
                break
            passed, first = passed + weight, number
        first = min(first, high - 1)
        yield first
        for step in range(1, high - low):
            yield from (point for point in (first + step, first - step) if low < point < high)

    def _by_halves(self) -> None:
        """Delta debugging of the smallest set known: it becomes smaller as long as a part of it, or what is
        left without a part, says yes."""
        parts = 2
        while len(self.best) > 1:
            members = sorted(self.best)
            parts = min(parts, len(members))
            cuts = [len(members) * number // parts for number in range(parts + 1)]
            pieces = [members[start:end] for start, end in zip(cuts, cuts[1:], strict=False)]
            if any(self._ask(piece) == "yes" for piece in pieces):
                parts = 2
            elif any(self._ask(self.best.difference(piece)) == "yes" for piece in pieces):
                parts = max(parts - 1, 2)
            elif parts == len(members):
                return
            else:
                parts *= 2

    def _leave_out_each(self) -> Ended:
        """Whether no member can go; members that can are left out."""
        settled = False
        while not settled:
            settled, untold = True, 0
            for index in sorted(self.best):
                answer = self._ask(self.best - {index})
                untold += answer == "unknown"
                if answer == "yes" or untold > PATIENCE:
                    settled = answer != "yes"
                    break
        return "unknown" if untold else "minimal"
