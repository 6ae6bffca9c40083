"""What two runs can be compared by without looking at their spans one by one: answers, totals, settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rlm_core import semconv as sc
from traces.imported import is_foreign
from traces.rows import RunSummary
from traces.summing import Spend, spend_of
from traces.view import RunView

#: Attributes of a run's span that say how it was set up: single values, then JSON objects.
_SINGLE: Final = {
    sc.ROOT_MODEL: "root model",
    sc.SUB_MODEL: "sub-model",
    sc.CORPUS_ID: "corpus",
    f"{sc.CORPUS}.sha256": "table of documents",
    sc.SANDBOX: "sandbox",
    sc.PROMPTS_VERSION: "version of the prompts",
    sc.DEMO: "demo model",
}
_ROLES: Final = {"root": "root_call", "sub": "sub_call"}
_OBJECTS: Final = {sc.LIMITS: "limit", sc.SEEDS: "seed", sc.RETRIES: "retries", sc.VERSIONS: "version"}


@dataclass(frozen=True, slots=True)
class Side:
    """A run as one side of a comparison. `spend` is by role (root, sub); `settings` are texts by name.
    `children` is None where the record of another engine tells neither of child runs nor of sub-calls.
    """

    summary: RunSummary
    live: bool
    spend: Mapping[str, Spend]
    children: int | None
    settings: Mapping[str, str]


def side(view: RunView) -> Side:
    """One side, from all that is recorded of a run."""
    children = sum(span.is_child_run for span in view.spans)
    return Side(
        summary=view.summary,
        live=view.live,
        spend={role: _spend(view, kind) for role, kind in _ROLES.items()},
        children=None if view.summary.untold_sub_calls and not children else children,
        settings=dict(_settings(view)),
    )


def _spend(view: RunView, kind: str) -> Spend:
    """The spend of calls of a kind; unknown where the record of another engine does not tell of them."""
    spend, run = spend_of(span for span in view.spans if span.kind == kind), view.summary
    untold = run.untold_sub_calls if kind == "sub_call" else is_foreign(run)
    spend.add_gaps(int(untold and not spend.calls))
    return spend


def _settings(view: RunView) -> Iterator[tuple[str, str]]:
    top = next((span for span in view.spans if span.kind == "run"), None)
    facts: Mapping[str, Any] = {} if top is None else top.attributes
    for name, words in _SINGLE.items():
        if facts.get(name) is not None:
            yield words, _text(facts[name])
    for name, words in _OBJECTS.items():
        try:
            values = json.loads(str(facts.get(name)))
        except (ValueError, RecursionError):
            continue
        if isinstance(values, dict):
            yield from ((f"{words}: {key}", _text(value)) for key, value in values.items())


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def differing(a: Side, b: Side) -> tuple[list[tuple[str, str | None, str | None]], int]:
    """The settings that are not the same, each as (name, of a, of b), None where one is not recorded; and how
    many are the same."""
    names = list(dict.fromkeys([*a.settings, *b.settings]))
    pairs = [(name, a.settings.get(name), b.settings.get(name)) for name in names]
    found = [pair for pair in pairs if pair[1] != pair[2]]
    return found, len(pairs) - len(found)
