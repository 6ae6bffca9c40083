"""A server log with the deployments of the same week; after one deployment the errors of a service rise."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from .common import Corpus, rng_for

SERVICES = ("checkout", "search", "accounts", "media")
INFO = (
    "GET /{service}/{n} 200 {ms}ms",
    "POST /{service}/{n} 201 {ms}ms",
    "cache refreshed, {n} entries",
    "worker {n} idle",
)
WARN = ("slow answer, {ms}ms for /{service}/{n}", "queue length {n}", "retry 1 of 3 for job {n}")
ERROR = (
    "upstream timeout after {ms}ms for job {n}",
    "database refused connection {n}",
    "unexpected reply for job {n}",
)


def server_log(seed: int, lines: int = 3600) -> Corpus:
    """`server.log` with about `lines` lines of one week, and `deployments.csv`."""
    rng = rng_for(seed, "server_log")
    start = datetime(2026, 5, 4)
    moments = sorted(start + timedelta(seconds=rng.randrange(7 * 86_400)) for _ in range(lines))
    deployments = sorted(start + timedelta(hours=rng.randrange(10, 160)) for _ in range(9))
    bad = rng.randrange(3, 7)
    service = rng.choice(SERVICES)
    log = [
        _line(rng, at, service if deployments[bad] <= at < deployments[bad + 1] else None) for at in moments
    ]
    rows = ["deployment,time,service,version,result"]
    for number, at in enumerate(deployments):
        where = service if number == bad else rng.choice(SERVICES)
        version = f"{rng.randint(1, 4)}.{rng.randint(0, 20)}.{rng.randint(0, 9)}"
        rows.append(f"D-{number + 1:03},{at:%Y-%m-%d %H:%M:%S},{where},{version},ok")
    corpus = Corpus(
        "server_log", {"server.log": "\n".join(log) + "\n", "deployments.csv": "\n".join(rows) + "\n"}
    )
    _ask(corpus, log, f"D-{bad + 1:03}", service)
    return corpus


def _line(rng: random.Random, at: datetime, failing: str | None) -> str:
    service = failing if failing and rng.random() < 0.5 else rng.choice(SERVICES)
    draw = rng.random() * (0.25 if service == failing else 1.0)
    level, texts = ("ERROR", ERROR) if draw < 0.02 else ("WARN", WARN) if draw < 0.1 else ("INFO", INFO)
    text = rng.choice(texts).format(service=service, n=rng.randint(1, 999), ms=rng.randint(3, 4000))
    return f"{at:%Y-%m-%d %H:%M:%S} {level:<5} {service}: {text}"


def _ask(corpus: Corpus, log: list[str], culprit: str, service: str) -> None:
    def held(text: str) -> int:
        return sum(text in line for line in log)

    for text in ("ERROR", "WARN"):
        corpus.ask("count_text", f"How many lines contain {text}?", held(text), "number", sub_calls=0)
    wanted = "upstream timeout"
    corpus.ask("count_text", f'How many lines contain "{wanted}"?', held(wanted), "number", sub_calls=0)
    corpus.ask(
        "open",
        "After which deployment did errors rise, and in which service?",
        f"{culprit} ({service})",
        "text",
        note="beyond the demo model: needs counts per service between deployments",
    )
