"""`rlmscope ask`: a question over files, folders or a corpus, recorded while it runs."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from ui.common import State, print_json, say, shared_options
from ui.params import Dollars, ModelId, Number

if TYPE_CHECKING:
    from rlm_core.limits import Limits
    from traces.home import Home

_COUNT = click.IntRange(min=1)


@click.command()
@click.argument("question")
@click.argument("sources", nargs=-1, required=True, metavar="PATH|CORPUS...")
@click.option("--root", type=ModelId(), metavar="MODEL", help="Root model (a LiteLLM id, or demo/root).")
@click.option("--sub", type=ModelId(), metavar="MODEL", help="Sub-model (a LiteLLM id, or demo/sub).")
@click.option("--max-iterations", type=_COUNT, metavar="N", help="Root turns, at most [default: 30].")
@click.option("--max-depth", type=click.IntRange(min=0), metavar="N", help="Depth of child runs; 0: none.")
@click.option("--max-calls", type=_COUNT, metavar="N", help="Sub-calls, at most.")
@click.option("--max-tokens", type=_COUNT, metavar="N", help="Tokens of all calls together, at most.")
@click.option("--max-cost", type=Dollars(), metavar="USD", help="Dollars, at most.")
@click.option("--max-seconds", type=Number(0, closed=False), metavar="S", help="Wall time, at most.")
@click.option("--concurrency", type=_COUNT, metavar="N", help="Calls in flight, at most [default: 32].")
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
        limits=_limits(options, state.home),
        seed=options["seed"],
        sandbox=options["sandbox"],
        fault_rate=options["fault_rate"],
        fault_seed=options["fault_seed"],
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


def _limits(options: dict[str, Any], home: Home) -> Limits:
    """The limits of the options, where there is none those of the settings, else the engine's."""
    from dataclasses import replace

    from ui.web.settings import load_settings

    names = ("max_iterations", "max_depth", "max_calls", "max_tokens", "max_seconds", "concurrency")
    given: dict[str, Any] = {name: options[name] for name in names if options[name] is not None}
    cost: Decimal | None = options["max_cost"]
    given |= {} if cost is None else {"max_cost_usd": cost}
    return replace(load_settings(home).checked_limits(), **given)
