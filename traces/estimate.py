"""What a run will probably take: what earlier runs of the same models over a comparable corpus took.

A prediction from the past, no promise: means mislead here (a few runs take many times as much as most), so
it says the 50th and the 95th percentile (nearest rank). Without a past there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from rlm_core import semconv as sc
from traces.home import Home
from traces.rows import money_json

Basis = Literal["same_corpus", "similar_size"]
MOST_RUNS: Final = 500  # earlier runs that count, the newest
SIMILAR: Final = 2  # a corpus is of similar size when neither is more than so many times the other
_PATIENCE: Final = 0.5  # seconds to wait for a store in use: a run need not wait for its estimate
_PAST: Final = f"""
    SELECT corpus_id = $corpus, cost_usd::VARCHAR, (tok_input + tok_output)::BIGINT, sub_calls, seconds
    FROM run
    WHERE status = 'ok' AND coalesce(stop_reason, 'final') = 'final' AND replay_of IS NULL
      AND resumed_from IS NULL AND coalesce(imported_from, '{sc.IMPORT_OWN}') = '{sc.IMPORT_OWN}'
      AND root_model = $root AND sub_model = $sub AND demo = $demo AND coalesce(strategy, 'rlm') = $strategy
      AND (corpus_id = $corpus
           OR TRY_CAST(json_extract_string(facts, '$."{sc.CORPUS_CHARS}"') AS BIGINT)
              BETWEEN $chars / {SIMILAR} AND $chars * {SIMILAR})
    ORDER BY started_ns DESC LIMIT {MOST_RUNS}"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known of a run before it starts; `corpus_chars` counts the characters of all its documents."""

    root_model: str
    sub_model: str
    corpus_id: str
    corpus_chars: int
    demo: bool
    strategy: str = "rlm"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What `runs` finished runs took: (p50, p95) of dollars, tokens, sub-calls and seconds.

    `usd` is None when the cost of any of these runs is unknown. `basis` says what made them comparable.
    """

    runs: int
    basis: Basis
    usd: tuple[Decimal, Decimal] | None
    tokens: tuple[int, int]
    sub_calls: tuple[int, int]
    seconds: tuple[float, float]

    def to_json(self) -> dict[str, Any]:
        """All figures as JSON values, each as {p50, p95}; dollars as decimal strings."""
        named = {"tokens": self.tokens, "sub_calls": self.sub_calls, "seconds": self.seconds}
        usd = None if self.usd is None else {"p50": money_json(self.usd[0]), "p95": money_json(self.usd[1])}
        figures = {name: {"p50": low, "p95": high} for name, (low, high) in named.items()}
        return {"runs": self.runs, "basis": self.basis, "cost_usd": usd, **figures}


def estimate(home: Home, plan: Plan) -> Estimate | None:
    """The estimate of a run; None when no finished run in the store is comparable. One that a limit stopped
    has not finished, whatever answer was forced from it.

    Runs over the same corpus are asked first; only without any, those over one of similar size. A demo run is
    compared with demo runs only. Raises RecordError when the store cannot be read now.
    """
    from traces import ingest, store

    values = {
        "corpus": plan.corpus_id,
        "chars": plan.corpus_chars,
        "root": plan.root_model,
        "sub": plan.sub_model,
        "demo": plan.demo,
        "strategy": plan.strategy,
    }
    with store.reader(home, store.deadline_in(_PATIENCE)) as con:
        if con is None or not ingest.is_current(con):
            return None
        past = con.execute(_PAST, values).fetchall()
    same = [row[1:] for row in past if row[0]]
    return _spread(same or [row[1:] for row in past], "same_corpus" if same else "similar_size")


def _spread(past: Sequence[tuple[Any, ...]], basis: Basis) -> Estimate | None:
    if not past:
        return None
    amounts, tokens, calls, seconds = zip(*past, strict=True)
    usd = None if None in amounts else _percentiles([Decimal(amount) for amount in amounts])
    return Estimate(len(past), basis, usd, _percentiles(tokens), _percentiles(calls), _percentiles(seconds))


def _percentiles(values: Sequence[Any]) -> tuple[Any, Any]:
    """p50 and p95 by nearest rank: the smallest value that so many percent of the runs do not exceed."""
    ordered = sorted(values)
    return ordered[-(-50 * len(ordered) // 100) - 1], ordered[-(-95 * len(ordered) // 100) - 1]
