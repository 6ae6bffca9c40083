"""Proving the edges of a lineage by replays, and the proofs that the logs of a run's diagnoses keep.

A proof asks no model: each trial changes one reply and gives every other prompt its old one
(`traces.lineage.perturbed`). Its trials are kept in a log as those of a diagnosis are, so the edges are read
back from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from traces.diagnosis_state import State
from traces.lineage import ANSWER, Edge, Lineage, Trials, edges_of, perturbed
from traces.trial import Replayability, Trial
from traces.view import RunView

_ASKED_ANEW: Final = ("live", "reask")  # modes in which a model, not what was replaced, may have moved things


class Prover(Trials, Protocol):
    """What of `traces.replay.Replayer` is needed."""

    def check(self) -> Replayability:
        """Whether the run comes out as recorded when nothing is replaced."""
        ...


@dataclass(frozen=True, slots=True)
class Proof:
    """The edges that were proven, the spans whose trial came to an end, whether replays prove anything here,
    and how many were made."""

    edges: tuple[Edge, ...]
    tried: tuple[str, ...]
    replayability: Replayability
    replays: int = 0


def prove(
    replayer: Prover,
    view: RunView,
    span_ids: Iterable[str],
    *,
    most: int,
    tell: Callable[[Trial], None] = lambda _: None,
    checked: Callable[[Replayability], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Proof:
    """Change the reply of each of these spans by itself, `most` of them, and see what comes out differently;
    where the run does not come out as recorded nothing is tried. `checked` and `tell` are told as it goes.

    Raises what a replay raises: RunCancelled during the check, a budget that is used up.
    """
    replayability = replayer.check()
    checked(replayability)
    if replayability.status != "replayable":
        return Proof((), (), replayability)
    made: list[Trial] = []

    def note(trial: Trial) -> None:
        made.append(trial)
        tell(trial)

    def enough() -> bool:
        return len(made) >= most or cancelled()

    edges = perturbed(replayer, view, span_ids, tell=note, cancelled=enough)
    tried = tuple(trial.patches[0].span_id for trial in made if trial.stopped is None)
    return Proof(edges, tried, replayability, len(made))


def unproven_calls(known: Lineage, view: RunView) -> list[str]:
    """The calls that have a way to the answer with a candidate on it, the most telling first: those that say
    the most of the answer, then those that are nearest to it, in the order in which they were made.
    """
    calls = [span.span_id for span in view.spans if span.kind in ("sub_call", "run")]
    told = {edge.source: len(edge.values) for edge in known.edges if edge.target == ANSWER and edge.values}
    open_ways = {
        span_id: len(path)
        for span_id, path in known.paths(calls).items()
        if not all(edge.proven for edge in path)
    }
    return sorted(open_ways, key=lambda one: (-told.get(one, 0), open_ways[one], view.by_id[one].seq))


def kept_edges(states: Iterable[State], view: RunView) -> tuple[Edge, ...]:
    """What the logs of a run prove together. Logs are untrusted: edges of spans that the run does not have
    are left out, as is all of a log that does not say that the run comes out as recorded."""
    found = [edge for state in states if _sound(state) for edge in _edges_of_state(state, view)]
    return tuple(dict.fromkeys(found))


def proven_edges(found: Mapping[str, Any], view: RunView) -> tuple[Edge, ...]:
    """What the trials of a diagnosis (as JSON) prove: what came out differently when only one span was
    replaced; and that the answer hangs on each member of a minimal set."""
    edges = list(_of_trials(found.get("trials")))
    if found.get("proven") is True:
        edges += [Edge(span_id, ANSWER, "changed", True) for span_id in _ids(found.get("culprits"))]
    known = [edge for edge in edges if edge.source in view.by_id and edge.target in {*view.by_id, ANSWER}]
    return tuple(dict.fromkeys(known))


def tried_spans(states: Iterable[State]) -> frozenset[str]:
    """The spans whose reply was changed by itself, with all others as before, in a trial that came to an
    end: what it did not prove, another one will not prove either."""
    return frozenset(
        span_id
        for state in states
        if _sound(state)
        for trial in state.trials
        if trial.get("mode") == "frozen" and trial.get("stopped") is None
        for span_id in (_alone(trial),)
        if span_id is not None
    )


def _sound(state: State) -> bool:
    return state.replayability is not None and state.replayability.get("status") == "replayable"


def _edges_of_state(state: State, view: RunView) -> tuple[Edge, ...]:
    return proven_edges({**(state.diagnosis or {}), "trials": list(state.trials)}, view)


def _of_trials(trials: object) -> Iterator[Edge]:
    for trial in trials if isinstance(trials, list) else []:
        source = _alone(trial) if isinstance(trial, Mapping) else None
        if source is not None and trial.get("mode") not in _ASKED_ANEW:
            yield from edges_of(
                source, _ids(trial.get("influenced")), trial.get("outcome"), trial.get("stopped")
            )


def _alone(trial: Mapping[str, Any]) -> str | None:
    """The one span that a trial replaced; None for several."""
    patches = trial.get("patches")
    if not isinstance(patches, list) or len(patches) != 1 or not isinstance(patches[0], Mapping):
        return None
    return str(patches[0].get("span_id"))


def _ids(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
