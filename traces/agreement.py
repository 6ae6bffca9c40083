"""How far several answers to one question agree: groups of equal answers, the largest first.

Self-consistency (Wang et al., arXiv:2203.11171) without its sampling: the answer of the largest group is the
one that most runs reached, which is no proof that it is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rlm_core.errors import InputError
from traces.opinions import NORMALISED, check_how
from traces.same_answer import same_answer

_BOTH_WAYS: Final = (NORMALISED, "exact", "number", "set")


@dataclass(slots=True)
class AnswerGroup:
    """Runs that gave the same answer, in the order they were asked; `answer` is that of the first."""

    answer: str
    run_ids: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many runs gave it."""
        return len(self.run_ids)


@dataclass(frozen=True, slots=True)
class Agreement:
    """`runs` is how many were asked, those without an answer included; they are in no group."""

    runs: int
    groups: tuple[AnswerGroup, ...]

    @property
    def share(self) -> float:
        """The part of all runs that is in the largest group, from 0 to 1."""
        return self.groups[0].count / self.runs if self.groups else 0.0

    @property
    def unanswered(self) -> int:
        """How many runs gave no answer."""
        return self.runs - sum(group.count for group in self.groups)

    def to_json(self) -> dict[str, Any]:
        """The key `agreement` of `rlmscope ask --repeat`."""
        groups = [
            {"answer": group.answer, "count": group.count, "run_ids": group.run_ids} for group in self.groups
        ]
        return {"share": self.share, "unanswered": self.unanswered, "groups": groups}


def check_both_ways(how: str) -> None:
    """Raise InputError unless answers can be compared in this way with neither of them the expected one."""
    check_how(how, None)
    if how.partition("±")[0] not in _BOTH_WAYS:
        raise InputError(f"answers of runs are compared by {', '.join(_BOTH_WAYS)}, not by {how}")


def agreement(answers: Sequence[tuple[str, str | None]], how: str = NORMALISED) -> Agreement:
    """Group (run id, answer) pairs by equal answers. Groups of one size stand in the order they began.

    An answer belongs to the first group whose first answer equals it in both directions, so `number` needs
    the same numbers in both. Raises InputError for a `how` that `check_both_ways` refuses.
    """
    check_both_ways(how)
    groups: list[AnswerGroup] = []
    for run_id, answer in answers:
        if answer is None:
            continue
        group = next((one for one in groups if _equal(one.answer, answer, how)), None)
        if group is None:
            groups.append(group := AnswerGroup(answer))
        group.run_ids.append(run_id)
    return Agreement(len(answers), tuple(sorted(groups, key=lambda group: -group.count)))


def _equal(a: str, b: str, how: str) -> bool:
    """Texts without any number are compared as normalised where numbers were to be."""
    there, back = same_answer(a, b, how), same_answer(b, a, how)
    return bool(there and back) if (there, back) != (None, None) else bool(same_answer(a, b))
