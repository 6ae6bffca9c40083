"""What every generator hands over, and how random numbers are drawn."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Question:
    """A question over one corpus with its gold answer.

    `kind` is the question form (lookup, count_label, most_common, pairs, count_text, count, list, extreme,
    filter, summarise, open); `answer_type` is number, label, text, list or none (no exact gold). `sub_calls`
    is the number of sub-calls the demo model makes, None where it is not fixed.
    """

    corpus: str
    question: str
    language: str
    kind: str
    answer: Any
    answer_type: str
    sub_calls: int | None = None
    note: str = ""


@dataclass(slots=True)
class Corpus:
    """A named set of files (relative path -> text), files beside its folder, and its questions."""

    name: str
    files: dict[str, str]
    questions: list[Question] = field(default_factory=list)
    beside: dict[str, str] = field(default_factory=dict)

    def ask(self, kind: str, question: str, answer: Any, answer_type: str, **more: Any) -> None:
        """Add a question of this corpus; `language` is "en" unless given."""
        language = more.pop("language", "en")
        self.questions.append(Question(self.name, question, language, kind, answer, answer_type, **more))


def rng_for(seed: int, corpus: str) -> random.Random:
    """An own generator per corpus, so that making one corpus alone gives the same files as making all."""
    return random.Random(f"{corpus}/{seed}")


def day(rng: random.Random, year: int) -> str:
    """A date of a year as YYYY-MM-DD."""
    return f"{year}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def labels_with_one_winner(rng: random.Random, labels: Sequence[str], count: int) -> list[str]:
    """`count` labels drawn with uneven weights; drawn again until one label is the most common."""
    while True:
        weights = [rng.uniform(0.5, 1.5) for _ in labels]
        drawn = rng.choices(labels, weights, k=count)
        totals = sorted((drawn.count(label) for label in labels), reverse=True)
        if count < 2 or len(labels) < 2 or totals[0] > totals[1]:
            return drawn
