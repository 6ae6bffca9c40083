"""`rlmscope lineage`: the ways from calls to the answer, candidates told from what replays have proven."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import click

from ui.common import State, print_json, say, shared_options

if TYPE_CHECKING:
    from traces.home import Home
    from traces.lineage import Lineage
    from traces.proving import Proof
    from traces.view import RunView

_REPLAYS: Final = 20  # that are made when nobody said how many


@click.command()
@click.argument("run")
@click.argument("spans", nargs=-1, metavar="[SPAN...]")
@click.option("--prove", is_flag=True, help="Change one reply after the other, and see what depends on it.")
@click.option(
    "--max-replays", type=click.IntRange(1, 10_000), metavar="N",
    help=f"Replays, at most, for --prove [default: {_REPLAYS}].",
)  # fmt: skip
@shared_options
@click.pass_obj
def lineage(state: State, run: str, spans: tuple[str, ...], prove: bool, max_replays: int | None) -> int:
    """Say how replies may have come into the answer: over prompts and cells, call by call.

    Names of variables and shared words make candidates. --prove plays the run again with one reply changed,
    all others as recorded: what then comes out differently depends on it. SPANs (ids or unique prefixes, see
    show) are the calls that are told and tried; without any, all that have a way, the most telling first. No
    model is asked. What was proven before, here or by diagnose, is told as proven.
    """
    from traces.diagnosis_log import diagnoses
    from traces.lineage import lineage as candidates
    from traces.proving import kept_edges, unproven_calls
    from traces.reading import load_run, resolve_run, resolve_span

    if max_replays is not None and not prove:
        raise click.UsageError("--max-replays limits the replays of --prove: give both, or neither")
    home = state.home
    view = load_run(home, resolve_run(home, run, warn=say), warn=say)
    named = tuple(dict.fromkeys(resolve_span(view, ref.strip()).span_id for ref in spans))
    _check(view, named, prove)
    known = candidates(view)
    known = known.with_edges(kept_edges(diagnoses(home, view.run_id), view))
    wanted = named or tuple(unproven_calls(known, view))
    proof, cancelled = None, False
    if prove and wanted:
        proof, cancelled = _proven(home, view, wanted, max_replays or _REPLAYS)
        known = known.with_edges(proof.edges)
    _print(state, view, known, named, proof, wanted)
    return int(cancelled)


def _check(view: RunView, named: tuple[str, ...], prove: bool) -> None:
    from rlm_core.errors import InputError

    if prove and view.live:
        raise InputError(f"run {view.run_id} is still going on: edges can be proven when it has ended")
    for span_id in named:
        span = view.by_id[span_id]
        if span.kind != "sub_call" and (span.kind != "run" or span.parent_id is None):
            raise InputError(f"span {span_id} is no sub-call or child run: only their replies have a lineage")


def _proven(home: Home, view: RunView, wanted: tuple[str, ...], replays: int) -> tuple[Proof, bool]:
    """The proof, and whether it was cancelled from outside."""
    from traces.diagnosis_log import ask_to_stop, open_diagnosis
    from traces.trial import Budget
    from ui.interrupts import Interrupts
    from ui.proofs import proof_of
    from ui.replaying import present

    budget = Budget(replays)
    log = open_diagnosis(home, view.run_id, task="prove", budget=budget, mode="frozen")
    with log, present(home, view, os.environ) as now:
        interrupts = Interrupts(lambda: ask_to_stop(home, log.diagnosis_id), lambda: None)
        with interrupts:
            proof = proof_of(now, log, wanted, budget)
    return proof, interrupts.cancelled


def _print(
    state: State,
    view: RunView,
    known: Lineage,
    named: tuple[str, ...],
    proof: Proof | None,
    wanted: tuple[str, ...],
) -> None:
    from ui.lineage_text import lineage_lines, told_calls

    told = named or told_calls(known, view)
    if state.as_json:
        print_json(_document(view, known, told, proof, wanted))
    else:
        click.echo("\n".join(lineage_lines(view, known, told, proof, wanted, every=bool(named))))


def _document(
    view: RunView, known: Lineage, told: tuple[str, ...], proof: Proof | None, wanted: tuple[str, ...]
) -> dict[str, Any]:
    tried = () if proof is None else proof.tried
    return {
        "run_id": view.run_id,
        **known.to_json(),
        "paths": {one: [edge.to_json() for edge in path] for one, path in known.paths(told).items()},
        "tried": list(tried),
        "not_tried": [one for one in wanted if proof is not None and one not in tried],
        "replayability": None if proof is None else proof.replayability.to_json(),
        "replays": 0 if proof is None else proof.replays,
        "live_calls": 0,
        "cost_usd": "0",
    }
