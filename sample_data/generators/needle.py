"""Needles: one sentence with a value, hidden in a long text or in a file of an existing folder."""

from __future__ import annotations

import random
import uuid
from pathlib import Path

from .common import Corpus, Question, rng_for

ADJECTIVES = [
    "amber",
    "quiet",
    "northern",
    "hollow",
    "velvet",
    "copper",
    "drowsy",
    "brisk",
    "salted",
    "crooked",
    "pale",
    "humming",
    "tidal",
    "rugged",
    "gilded",
]
NOUNS = [
    "otter",
    "harbour",
    "lantern",
    "archive",
    "orchard",
    "quarry",
    "beacon",
    "ferry",
    "granary",
    "kiln",
    "aqueduct",
    "turnstile",
    "cabinet",
    "meadow",
]
WORDS = [
    "juniper",
    "marzipan",
    "obsidian",
    "pelican",
    "saffron",
    "tundra",
    "walnut",
    "zephyr",
    "bramble",
    "lagoon",
    "nutmeg",
    "thimble",
]
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
# what is asked -> kinds of value, question, sentences; {k} is the key, {v} the value
WORDINGS: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = (
    (
        ("number", "code", "word", "uuid"),
        "What is the access code for the {k}?",
        (
            "The access code for the {k} is {v}.",
            "Access code of the {k}: {v}",
            "To open the {k}, use access code {v}.",
        ),
    ),
    (
        ("number", "code", "word", "amount"),
        "Which value was assigned to the {c} setting?",
        (
            "The {c} setting was assigned the value {v}.",
            "{c} = {v}",
            "The value {v} was assigned to the {c} setting.",
        ),
    ),
    (
        ("number",),
        "What is the special magic number for {c}?",
        ("One of the special magic numbers for {c} is: {v}.", "The special magic number for {c} is {v}."),
    ),
    (
        ("date",),
        "On what date was the {k} opened?",
        ("The {k} was opened on {v}.", "Opening date of the {k}: {v}", "On {v} the {k} was opened."),
    ),
    (
        ("amount",),
        "How much does the {k} cost?",
        ("The {k} costs {v}.", "The cost of the {k} is {v}."),
    ),
    (
        ("code", "uuid", "word"),
        "Under which reference is the {k} filed?",
        ("The {k} is filed under reference {v}.", "Reference of the {k}: {v}"),
    ),
    (
        ("word", "code"),
        "What is the codename of operation {c}?",
        ("The codename of operation {c} is {v}.", "Operation {c} goes by the codename {v}."),
    ),
)  # fmt: skip


def _value(rng: random.Random, kind: str) -> str:
    if kind == "number":
        return str(rng.randint(1_000, 9_999_999))
    if kind == "word":
        return rng.choice(WORDS)
    if kind == "uuid":
        return str(uuid.UUID(int=rng.getrandbits(128), version=4))
    if kind == "date":
        day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1950, 2049)
        return rng.choice((f"{year}-{month:02}-{day:02}", f"{day} {MONTHS[month - 1]} {year}"))
    if kind == "amount":
        return rng.choice(
            (f"EUR {rng.randint(1_000, 99_999):,}", f"${rng.randint(100, 9_999)}.{rng.randint(0, 99):02}")
        )
    letters = "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(3))
    return f"{letters}-{rng.randint(10, 9_999)}"


def draw(rng: random.Random) -> tuple[str, str, str]:
    """(question, answer, sentence), all drawn."""
    kinds, question, sentences = rng.choice(WORDINGS)
    value = _value(rng, rng.choice(kinds))
    adjective, noun = rng.choice(ADJECTIVES), rng.choice(NOUNS)
    names = {"k": f"{adjective} {noun}", "c": f"{adjective}-{noun}", "v": value}
    return question.format(**names), value, rng.choice(sentences).format(**names)


def needle(seed: int, paragraphs: int = 900) -> Corpus:
    """One long text of made-up walks, with one needle."""
    rng = rng_for(seed, "needle")
    text = [_paragraph(rng) for _ in range(paragraphs)]
    question, answer, sentence = draw(rng)
    text.insert(rng.randrange(len(text) // 10, len(text)), sentence)
    corpus = Corpus("needle", {"long_text.txt": "\n\n".join(text) + "\n"})
    corpus.ask("lookup", question, answer, "text")
    return corpus


def _paragraph(rng: random.Random) -> str:
    places = (
        "the mill",
        "a low wall",
        "the second bridge",
        "the market",
        "an empty school",
        "the river bend",
    )
    sights = (
        "two boats lay upside down",
        "somebody was mending a net",
        "the paint had come off the doors",
        "a dog watched us pass",
        "bread was cooling in a window",
        "the clock had stopped",
    )
    moods = (
        "It rained a little.",
        "We rested for an hour.",
        "Nobody spoke for a while.",
        "The road went on uphill.",
        "Later the wind turned.",
        "We asked for the way and were sent back.",
    )
    sentences = [f"Beyond {rng.choice(places)} {rng.choice(sights)}." for _ in range(rng.randint(2, 4))]
    return " ".join([*sentences, *rng.sample(moods, 2)])


def hide(folder: Path, seed: int) -> Question:
    """Write one needle into a file of `folder` (a copy you made); the question's `note` is the file's path in
    it.

    In Python files it becomes a comment, so that they still parse. Raises `SystemExit` with one sentence if
    the folder holds no UTF-8 text file.
    """
    rng = rng_for(seed, "hide")
    files = sorted(p for p in folder.rglob("*") if p.is_file() and _text(p))
    if not files:
        raise SystemExit(f"{folder} holds no text file to hide a needle in")
    chosen = rng.choice(files)
    question, answer, sentence = draw(rng)
    lines = _text(chosen).split("\n")
    at = rng.choice([n for n in range(len(lines)) if n == 0 or not lines[n - 1].rstrip().endswith("\\")])
    if chosen.suffix == ".py":
        sentence = lines[at][: len(lines[at]) - len(lines[at].lstrip())].rstrip("\r") + "# " + sentence
    lines.insert(at, sentence)
    chosen.write_bytes("\n".join(lines).encode())
    place = chosen.relative_to(folder).as_posix()
    return Question(folder.name, question, "en", "lookup", answer, "text", None, place)


def _text(path: Path) -> str:
    """The text of a UTF-8 file, "" for any other."""
    try:
        return path.read_bytes().decode()
    except (UnicodeDecodeError, OSError):
        return ""
