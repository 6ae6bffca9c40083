"""`rlmscope check`: play the runs of a regression set again, and say which answers are still right."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import click

from ui.common import State, print_json, say, shared_options
from ui.params import Dollars, ModelId

if TYPE_CHECKING:
    from traces.check_log import CheckLog
    from traces.regression import Check, RegressionSet, Result
    from ui.checking import Checker


@click.command()
@click.argument("name", metavar="SET")
@click.option(
    "--mode",
    type=click.Choice(("replay", "rerun")),
    default="replay",
    help="replay: the recorded cells run again, all sub-calls are asked again; rerun: the question is asked "
    "anew [default: replay].",
)
@click.option("--root", type=ModelId(), metavar="MODEL", help="Who is asked as the root (--mode rerun).")
@click.option(
    "--sub", type=ModelId(), metavar="MODEL", help="Who answers sub-calls [default: the configured model]."
)
@click.option(
    "--max-calls", type=click.IntRange(min=1), metavar="N", help="Calls, at most, all runs together."
)
@click.option("--max-cost", type=Dollars(), metavar="USD", help="Dollars, at most, all runs together.")
@shared_options
@click.pass_obj
def check(state: State, /, name: str, **options: Any) -> int:
    """Check the regression set SET: the runs with this tag and an expected answer (see mark).

    Models that no option names are the configured ones, and where none is configured those of each run.
    Exit code 0 only when every run passed.
    """
    from traces.check_log import CheckLog
    from traces.regression import regression_set
    from ui.checking import Checker, Order

    home, stop = state.home, threading.Event()
    chosen = regression_set(home, name)
    order = Order(**options)
    checker = Checker(home, order, os.environ, stop.is_set)
    if not state.as_json:
        from ui.check_text import opening

        click.echo("\n".join(opening(chosen, checker)))
    with CheckLog(home, name, order.mode, checker.models, len(chosen.members)) as log:
        _carry_out(state, checker, chosen, log, stop)
    return _end(state, checker, chosen, log)


def _carry_out(
    state: State, checker: Checker, chosen: RegressionSet, log: CheckLog, stop: threading.Event
) -> None:
    from traces.check_log import checks
    from ui.check_text import result_lines
    from ui.checking import run_check
    from ui.interrupts import Interrupts

    past = checks(checker.home, chosen.name)

    def tell(result: Result) -> None:
        if state.as_json:
            say(f"{result.member.run.run_id}: {'passed' if result.passed else 'not passed'}")
        else:
            click.echo("\n".join(result_lines(checker.home, result, past)))

    if checker.order.mode == "rerun":  # each run takes the signals for itself
        run_check(checker, chosen, log, tell)
        return
    with Interrupts(stop.set, lambda: None):
        run_check(checker, chosen, log, tell)


def _end(state: State, checker: Checker, chosen: RegressionSet, log: CheckLog) -> int:
    done = checker.check
    if state.as_json:
        print_json(document(checker, chosen, log.check_id))
    else:
        from ui.check_text import closing

        click.echo("\n".join(closing(done, chosen)))
    if len(done.results) < len(chosen.members):
        say("rlmscope: the check was stopped")
    return int(done.count(True) < len(chosen.members))


def document(checker: Checker, chosen: RegressionSet, check_id: str) -> dict[str, Any]:
    """The JSON document of `rlmscope check`."""
    done: Check = checker.check
    return {
        "check_id": check_id,
        "set": chosen.name,
        "mode": checker.order.mode,
        "models": checker.models,
        "results": [result.to_json() for result in done.results],
        "passed": done.count(True),
        "failed": done.count(False),
        "undecided": done.count(None),
        "not_checked": len(chosen.members) - len(done.results),
        "left_out": [{"run_id": run_id, "words": words} for run_id, words in chosen.left_out],
        "live_calls": done.live_calls,
        "cost_usd": done.cost_usd,
    }
