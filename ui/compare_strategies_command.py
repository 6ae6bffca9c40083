"""`rlmscope compare-strategies`: one question, answered in several ways, side by side."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from ui.ask_options import limit_options, limits_from, model_options
from ui.common import State, print_json, say, shared_options

if TYPE_CHECKING:
    from rlm_core.options import Strategy
    from ui.ask_run import Order
    from ui.comparing import Comparison

_COUNT = click.IntRange(min=1)


@click.command("compare-strategies")
@click.argument("question")
@click.argument("sources", nargs=-1, required=True, metavar="PATH|CORPUS...")
@click.option("--strategies", metavar="A,B,...", help="Which, in this order [default: all].")
@click.option("--expected", metavar="TEXT", help="The right answer: each row says whether it gave that.")
@click.option("--match", "how", metavar="HOW", help="How answers are compared [default: normalised].")
@model_options
@limit_options
@click.option("--root-window", type=_COUNT, metavar="TOKENS", help="What the root takes, if it is not known.")
@click.option("--passages", type=_COUNT, default=8, metavar="K", help="Passages to retrieve [default: 8].")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, metavar="N", help="Seed of the cells.")
@click.option(
    "--sandbox",
    type=click.Choice(("none", "weak", "standard", "strict")),
    help="Lowest level to accept [default: standard, where there is a lock].",
)
@shared_options
@click.pass_obj
def compare_strategies(state: State, /, question: str, sources: tuple[str, ...], **options: Any) -> int:
    """Answer a QUESTION over files, folders, or a corpus by several strategies, one after another.

    Every run is recorded, with the limits for itself. Strategies: rlm, rlm-no-subcalls, direct, compaction,
    codeact, retrieve, retrieve+rlm. Answers of the demo model are marked and never counted as right or wrong.
    """
    from ui.comparing import checked_match, checked_strategies, compare

    how = checked_match(options["how"], options["expected"])
    chosen = checked_strategies(options["strategies"])
    orders = [_order(question, sources, strategy, options, state) for strategy in chosen]
    done = compare(orders, options["expected"], how, state.home, os.environ)
    _show(done, state)
    return done.exit_code


def _show(done: Comparison, state: State) -> None:
    if state.as_json:
        print_json(done.document())
    else:
        home = f" --home {state.home_option}" if state.home_option else ""
        click.echo("\n".join(done.lines(home)))
    if done.exit_code:
        say(f"rlmscope: {done.failure}")


def _order(
    question: str, sources: tuple[str, ...], strategy: Strategy, options: dict[str, Any], state: State
) -> Order:
    from rlm_core.options import Options
    from ui.ask_run import Order, check_question

    return Order(
        question=check_question(question),
        sources=sources,
        root=options["root"],
        sub=options["sub"],
        limits=limits_from(options, state.home),
        seed=options["seed"],
        sandbox=options["sandbox"],
        fault_rate=0.0,
        fault_seed=0,
        options=Options(strategy=strategy, root_window=options["root_window"], passages=options["passages"]),
    )
