"""The scripted sub-model of seeded trees: it reads shop reports and notes, right or with planted faults.

The text of a reply depends only on the prompt and on the side that is asked, so that a run can be recorded
again. Sides are those of a diagnosis: a `good` and a `bad` run, and whoever is asked `live` later.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from rlm_core import Completion
from rlm_core.normalise import normalise

Side = Literal["good", "bad", "live"]
Task = Literal["sum", "over", "largest"]
Kind = Literal["digit", "empty", "truncated", "refused", "format", "present"]
Noise = Literal["none", "format", "paraphrase"]

LIMIT: Final = 60  # the task "over" lists the shops with more refunds than this
VALUES: Final = (10, 79)  # a shop has this many refunds
#: Faults that leave the cell nothing to parse, so that it falls back to 0.
PARSED_AS_ZERO: Final = ("empty", "truncated", "refused", "format")
LEAF_PROMPT: Final = "How many refunds does this report count? Begin with the number, then name the shop."
COMBINE: Final[dict[Task, str]] = {
    "sum": "Add up the refunds of these notes. Begin with the total.",
    "over": f"Which shops in these notes have more than {LIMIT} refunds? Give the notes of these shops only.",
    "largest": "Which shop in these notes has the most refunds? Repeat its note only.",
}
_TREES: Final = (
    "Elm", "Oak", "Ash", "Birch", "Cedar", "Alder", "Maple", "Rowan", "Hazel", "Willow", "Poplar", "Linden",
    "Juniper", "Cherry", "Walnut", "Chestnut", "Hawthorn", "Sycamore", "Magnolia", "Acacia",
)  # fmt: skip
_WAYS: Final = ("Street", "Lane", "Road", "Square", "Court", "Hill", "Market", "Bridge", "Gate", "Yard")
NAMES: Final = tuple(f"{tree} {way}" for way in _WAYS for tree in _TREES)  # 200, none with a digit
_TENS: Final = ("", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_UNITS: Final = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_NOTE: Final = re.compile(r"(\d+) refunds at ([a-z]+ [a-z]+)")
#: Texts that no normal form makes equal. The value is the first number of each; some bring another number.
_PARAPHRASES: Final = (
    "{value} of them were counted by {name} in that week",
    "{value} refunds, and {other} letters about them, were handled at {name}",
    "I find {value} refunds in report {other}, which {name} sent",
    "The shop {name} had to pay back {value} times, {other} of them in cash",
    "There is talk of {value} refunds; the report is by {name}",
    "{value}, says the report of {name}; certainty {other} %",
)


@dataclass(frozen=True, slots=True)
class Report:
    """One document: the report of a shop."""

    name: str
    orders: int
    refunds: int
    staff: int

    @property
    def text(self) -> str:
        """The document. Its first line is the name of the shop."""
        return (
            f"{self.name}\nReport of {self.name}: the week brought {self.orders} orders and "
            f"{self.refunds} refunds. A staff of {self.staff} was on duty.\n"
        )


@dataclass(frozen=True, slots=True)
class SubModel:
    """Reads reports and combines notes. Faults are of the bad side only. `faults`: shop -> what is wrongly
    said of it; `miscounted`: shops whose note stands first in notes that are added up wrongly (task "sum").
    """

    task: Task
    kind: Kind
    noise: Noise
    faults: Mapping[str, int]
    miscounted: frozenset[str] = frozenset()

    def reply(self, side: Side, prompt: str) -> Completion:
        """The reply to one prompt."""
        if prompt.startswith(LEAF_PROMPT):
            return self._read(side, prompt)
        return Completion(self._noisy(side, prompt, self._combine(side, prompt)))

    def _read(self, side: Side, prompt: str) -> Completion:
        found = re.search(r"Report of ([^:]+): the week brought (\d+) orders and (\d+) refunds", prompt)
        assert found, f"a prompt without a report: {prompt[:200]!r}"
        name, value = found[1], int(found[3])
        if side != "bad" or name not in self.faults:
            return Completion(self._said(side, prompt, str(value), name))
        if self.kind == "empty":
            return Completion("")
        if self.kind == "truncated":
            return Completion(f"The report of {name} says that the number of ref", finish_reason="length")
        if self.kind == "refused":
            return Completion("I cannot tell that from the text.")
        said = str(self.faults[name])
        if self.kind == "format":
            said = "-".join(word for word in (_TENS[value // 10], _UNITS[value % 10]) if word)
        return Completion(self._said(side, prompt, said, name))

    def _said(self, side: Side, prompt: str, value: str, name: str) -> str:
        text = f"{value} refunds at {name}"
        if self.noise == "paraphrase" and side != "good":
            rng = random.Random(f"{side} {prompt}")
            text = rng.choice(_PARAPHRASES).format(value=value, name=name, other=rng.randint(1, 99))
        return self._noisy(side, prompt, text)

    def _combine(self, side: Side, prompt: str) -> str:
        notes = [(int(value), name) for value, name in _NOTE.findall(" ".join(prompt.casefold().split()))]
        if self.task == "sum":
            slip = 10 if side == "bad" and notes[0][1].title() in self.miscounted else 0
            return f"{sum(value for value, _ in notes) + slip} refunds at these shops"
        kept = [note for note in notes if note[0] > LIMIT] if self.task == "over" else [max(notes)]
        return "\n".join(f"{value} refunds at {name.title()}" for value, name in kept) or "none"

    def _noisy(self, side: Side, prompt: str, text: str) -> str:
        """White space, case and punctuation that the normal form drops; none on the good side."""
        if self.noise == "none" or side == "good":
            return text
        rng = random.Random(f"{side} noise {prompt}")
        noisy = text.upper() if rng.random() < 0.3 else text
        if rng.random() < 0.5:
            noisy = noisy.replace(" ", "  ", rng.randint(1, 3))
        noisy = " " * rng.randint(0, 2) + noisy + rng.choice(("", ".", "!", " ", "\n"))
        assert normalise(noisy) == normalise(text)
        return noisy


def wrong_value(kind: Kind, task: Task, report: Report, rng: random.Random) -> int | None:
    """What a faulty reply says instead of the number of refunds, so that it moves the answer by itself; None
    where this kind of fault cannot. Of the kinds that leave nothing to parse it is 0, as the cells read it.
    """
    right = report.refunds
    if kind in PARSED_AS_ZERO:
        fits = task == "sum" or (task == "over" and right > LIMIT)
        return 0 if fits else None
    if kind == "present":
        return report.orders if task != "over" or right <= LIMIT else None
    if task == "largest":
        return 90 + right % 10
    tens = [ten for ten in range(1, 10) if ten != right // 10]
    if task == "over":
        tens = [ten for ten in tens if (10 * ten + right % 10 > LIMIT) != (right > LIMIT)]
    return 10 * rng.choice(tens) + right % 10
