"""`rlmscope ask`: a question over files, folders or a corpus, recorded while it runs."""

from __future__ import annotations

import os
from typing import Any

import click

from ui.ask_options import limit_options, limits_from, model_options, options_from, way_options
from ui.common import State, print_json, say, shared_options
from ui.params import Number


@click.command()
@click.argument("question")
@click.argument("sources", nargs=-1, required=True, metavar="PATH|CORPUS...")
@model_options
@limit_options
@way_options
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
    from ui.ask_run import Order, check_question, run_order

    order = Order(
        question=check_question(question),
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
    outcome = run_order(order, state.home, os.environ)
    if state.as_json:
        print_json(outcome.document())
    else:
        home = f" --home {state.home_option}" if state.home_option else ""
        click.echo("\n".join(outcome.lines(look=f"rlmscope show last{home}")))
    if outcome.exit_code:
        say(f"rlmscope: {outcome.failure}")
    return outcome.exit_code
