"""Forty short papers with themes; every paper names the words of one theme only."""

from __future__ import annotations

import random

from .common import Corpus, labels_with_one_winner, rng_for

THEMES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sleep": (
        ("Short naps and attention", "Circadian timing at the night desk", "Sleep after long journeys"),
        (
            "We measured sleep in two shifts.",
            "Insomnia was scored every week.",
            "A nap of twenty minutes came before the test.",
        ),
    ),
    "soil": (
        ("Compost in dry years", "Soil and cover crops", "Tillage depth on slopes"),
        (
            "Soil samples were taken in spring.",
            "Humus content rose under compost.",
            "Tillage was kept shallow on half of the plots.",
        ),
    ),
    "traffic": (
        ("Congestion at small intersections", "Traffic near schools", "Commuting by bicycle"),
        (
            "Traffic was counted by hand.",
            "Congestion fell after nine.",
            "Commuters were asked at four intersections.",
        ),
    ),
    "batteries": (
        ("Electrolytes in the cold", "Battery ageing on the shelf", "Cathode coatings compared"),
        (
            "The batteries were cycled at ten degrees.",
            "The cathode lost capacity first.",
            "Lithium deposits were weighed.",
        ),
    ),
    "glaciers": (
        ("Meltwater in late summer", "Glacier tongues by drone", "Moraines as archives"),
        (
            "The glacier was mapped twice.",
            "Meltwater was gauged at the tongue.",
            "The moraine holds older layers.",
        ),
    ),
    "pollination": (
        ("Bees on city roofs", "Pollination of early plums", "Nectar and wind"),
        (
            "Bees were counted for ten minutes per tree.",
            "Each hive was weighed weekly.",
            "Nectar was richer on calm days.",
        ),
    ),
}
METHODS = (
    "All values were read twice by different people.",
    "The protocol was fixed before the first day.",
    "Missing values were left out and are listed in the appendix.",
    "Two sites were dropped because of storms.",
)
RESULTS = (
    "The effect was {n} percent, larger than expected.",
    "No difference remained after the {n}th day.",
    "The two groups differed by {n} percent.",
)
LIMITS = (
    "The study covers one region only.",
    "A longer series is needed.",
    "The instruments were replaced half-way.",
)


def papers(seed: int, count: int = 40) -> Corpus:
    """`count` papers (.md) with a title, year, sample size and an abstract of a few sentences."""
    rng = rng_for(seed, "papers")
    corpus = Corpus("papers", {})
    labels = labels_with_one_winner(rng, list(THEMES), count)
    sizes = rng.sample(range(24, 2400), count)
    for number, label in enumerate(labels):
        corpus.files[f"paper_{number + 1:02}.md"] = _paper(rng, number + 1, label, sizes[number])
    for label in THEMES:
        question = f"How many papers are about {label}?"
        corpus.ask("count_label", question, labels.count(label), "number", sub_calls=count)
    winner = max(THEMES, key=labels.count)
    question = "What is the most common theme of the papers?"
    corpus.ask("most_common", question, winner, "label", sub_calls=count)
    largest = sizes.index(max(sizes)) + 1
    question = "Which paper has the largest sample size?"
    corpus.ask("extreme", question, f"paper_{largest:02}.md", "text", sub_calls=count)
    corpus.ask("summarise", "Summarise the papers.", None, "none", sub_calls=count)
    return corpus


def _paper(rng: random.Random, number: int, label: str, size: int) -> str:
    titles, sentences = THEMES[label]
    body = [*rng.sample(sentences, 2), rng.choice(METHODS), rng.choice(RESULTS).format(n=rng.randint(3, 60))]
    return (
        f"# {rng.choice(titles)}\n\npaper: P-{number:02}\nyear: {rng.randint(2015, 2026)}\n\n## Abstract\n"
        f"{' '.join(body)}\n\n## Data\nThe sample size is {size}.\n\n## Limits\n{rng.choice(LIMITS)}\n"
    )
