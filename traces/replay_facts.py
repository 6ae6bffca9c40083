"""What a replay says of itself: which run it plays again, how, with what patches, and what came of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rlm_core import semconv as sc
from traces.facts import Facts
from traces.trial import Patch, Target
from traces.view import RunView


@dataclass(frozen=True, slots=True)
class Replay:
    """What the record of a replay says of itself; None and empty where it says nothing.

    `patches` are in the order in which they were given, `target` is the answer it should give.
    """

    of: str
    mode: str | None
    patches: tuple[Patch, ...]
    target: Target | None
    outcome: str | None
    hits: int | None
    misses: int | None
    live_calls: int | None
    stopped: str | None
    assumed: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """What it says, under the keys that `rlmscope replay` has for it."""
        target = self.target
        return {
            "of": self.of,
            "mode": self.mode,
            "patches": [{"span_id": patch.span_id, "text": patch.text} for patch in self.patches],
            "expected": None if target is None else target.text,
            "match": None if target is None else target.how,
            "outcome": self.outcome,
            "hits": self.hits,
            "misses": self.misses,
            "live_calls": self.live_calls,
            "stopped": self.stopped,
            "assumed": list(self.assumed),
        }


def replay_facts(view: RunView) -> Replay | None:
    """What a run says of itself as a replay; None when it is none. Its record may hold anything."""
    of = view.summary.replay_of
    if of is None:
        return None
    facts = top_facts(view)
    told = {name: facts.text(name + ".sha256") for name in (sc.REPLAY_PATCHES, sc.REPLAY_TARGET)}
    texts = view.payloads([sha256 for sha256 in told.values() if sha256])
    patches, target = (texts.get(sha256 or "") for sha256 in told.values())
    assumed = _parsed(facts.text(sc.REPLAY_ASSUMED))
    return Replay(
        of=of,
        mode=facts.text(sc.REPLAY_MODE),
        patches=_patches(patches),
        target=None if target is None else _target(target, facts),
        outcome=facts.text(sc.REPLAY_OUTCOME),
        hits=facts.count(sc.REPLAY_HITS),
        misses=facts.count(sc.REPLAY_MISSES),
        live_calls=facts.count(sc.REPLAY_LIVE_CALLS),
        stopped=facts.text(sc.REPLAY_STOPPED),
        assumed=tuple(one for one in assumed if isinstance(one, str)),
    )


def _target(text: str, facts: Facts) -> Target:
    from_run = facts.text(sc.REPLAY_TARGET_FROM) == "good run"
    how = facts.text(sc.REPLAY_MATCH) or "normalised"
    return Target(text, how, "good run" if from_run else "expected")


def _patches(raw: str | None) -> tuple[Patch, ...]:
    found = [one for one in _parsed(raw) if isinstance(one, dict)]
    pairs = [(one.get("span_id"), one.get("text")) for one in found]
    return tuple(Patch(span, text) for span, text in pairs if isinstance(span, str) and isinstance(text, str))


def _parsed(raw: str | None) -> list[Any]:
    try:
        made = json.loads(raw) if raw is not None else []
    except (ValueError, RecursionError):
        return []
    return made if isinstance(made, list) else []


def top_facts(view: RunView) -> Facts:
    """The facts of the span of the run itself; none where it is not on record."""
    return Facts(next((span.attributes for span in view.spans if span.kind == "run"), {}))
