"""`rlmscope ask`: a question over files, folders or a corpus, recorded while it runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from ui.ask_options import limit_options, limits_from, model_options, options_from, way_options
from ui.common import State, print_json, say, shared_options
from ui.params import Number

if TYPE_CHECKING:
    from ui.ask_outcome import Outcome
    from ui.ask_run import Order
    from ui.repeating import Repeated


@click.command()
@click.argument("question")
@click.argument("sources", nargs=-1, required=True, metavar="PATH|CORPUS...")
@model_options
@limit_options
@way_options
@click.option(
    "--repeat", type=click.IntRange(1, 100), metavar="N", help="Ask N times; say how far they agree."
)
@click.option("--match", "how", metavar="HOW", help="How repeats are compared [default: normalised].")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, metavar="N", help="Seed of the cells.")
@click.option(
    "--sandbox",
    type=click.Choice(("none", "weak", "standard", "strict")),
    help="Lowest level to accept [default: standard, where there is a lock].",
)
@click.option("--fault-rate", type=Number(0, 1), default=0.0, metavar="R", help="Faults of the demo model.")
@click.option("--fault-seed", type=int, default=0, metavar="N", help="Which calls the faults strike.")
@shared_options
@click.pass_obj
def ask(state: State, /, question: str, sources: tuple[str, ...], **options: Any) -> int:
    """Ask a QUESTION over files, folders, or a corpus; every step is recorded.

    Models and limits that no option names are those of RLMSCOPE_ROOT_MODEL and RLMSCOPE_SUB_MODEL in the
    environment, else those of the app's Settings page; provider keys come from the environment, else from
    there. Without a model the demo model answers, by rules and without any language model.
    """
    from ui.ask_run import check_question

    repeat, how = options["repeat"], options["how"]
    if how is not None and repeat is None:
        raise click.UsageError("--match compares the answers of repeats: give --repeat too")
    order = _order(check_question(question), sources, options, state)
    outcome = _single(order, state) if repeat is None else _repeated(order, repeat, how, state)
    if state.as_json:
        print_json(outcome.document())
    else:
        home = f" --home {state.home_option}" if state.home_option else ""
        run = "last" if repeat is None else outcome.run_id
        click.echo("\n".join(outcome.lines(look=f"rlmscope show {run}{home}")))
    if outcome.exit_code:
        say(f"rlmscope: {outcome.failure}")
    return outcome.exit_code


def _order(question: str, sources: tuple[str, ...], options: dict[str, Any], state: State) -> Order:
    from ui.ask_run import Order

    return Order(
        question=question,
        sources=sources,
        root=options["root"],
        sub=options["sub"],
        limits=limits_from(options, state.home),
        seed=options["seed"],
        sandbox=options["sandbox"],
        fault_rate=options["fault_rate"],
        fault_seed=options["fault_seed"],
        options=options_from(options),
    )


def _single(order: Order, state: State) -> Outcome:
    from ui.ask_run import run_order

    return run_order(order, state.home, os.environ)


def _repeated(order: Order, times: int, how: str | None, state: State) -> Repeated:
    from traces.agreement import check_both_ways
    from traces.opinions import NORMALISED
    from ui.ask_run import run_repeats
    from ui.repeating import Repeated

    check_both_ways(how or NORMALISED)
    return Repeated(tuple(run_repeats(order, times, state.home, os.environ)), times, how or NORMALISED)
