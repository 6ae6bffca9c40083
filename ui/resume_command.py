"""`rlmscope resume`: a run that died goes on from its record, as a new run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ui.ask_options import given_limits, limit_options, root_window_option
from ui.common import State, print_json, say, shared_options
from ui.figures import counted, money

if TYPE_CHECKING:
    from traces.home import Home
    from traces.resume import Continuation
    from traces.view import RunView
    from ui.ask_outcome import Outcome
    from ui.ask_run import Order


@dataclass(frozen=True, slots=True)
class Resumed:
    """What came out of a run that continued another one."""

    outcome: Outcome
    continued: Continuation

    def document(self) -> dict[str, Any]:
        """The JSON document of `rlmscope resume`: that of `ask`, and what came from the record."""
        before, played = self.continued.before, self.continued.playing
        return {
            **self.outcome.document(),
            "resumed_from": self.continued.of,
            "served_calls": played.served_calls,
            "served_turns": played.served_turns,
            "spent_before_usd": before.usd if before.usd_known else None,
            "known_spent_before_usd": before.usd,
            "spent_before": {
                "calls": before.calls, "tool_calls": before.tool_calls, "tokens": before.tokens,
                "seconds": before.seconds,
            },
            "diverged": played.diverged,
        }  # fmt: skip

    def line(self) -> str:
        """For people: what was not paid again."""
        before, played = self.continued.before, self.continued.playing
        served = f"{counted(played.served_turns, 'root turn')} and {counted(played.served_calls, 'call')}"
        usd = money(before.usd, None) if before.usd_known else f"at least {money(before.usd, None)}"
        return f"continues {self.continued.of}: {served} from its record; spent before: {usd}"


@click.command()
@click.argument("run")
@limit_options
@root_window_option
@click.option(
    "--tool", "tools", multiple=True, metavar="FILE.py:NAME",
    help="The function of a tool the run had; built-in ones are known. May be repeated.",
)  # fmt: skip
@click.option(
    "--anyway", is_flag=True, help="Where a cell comes out otherwise, ask the root anew from there."
)
@shared_options
@click.pass_obj
def resume(state: State, /, run: str, **options: Any) -> int:
    """Continue a run that died, was stopped or met a limit, as a new run.

    Root turns and sub-calls are served from its record at no cost, its cells run again, and from where the
    record ends its models go on. Models, options, seed and limits are those of the run; options here replace
    limits and the root's window. What was spent before counts against them.
    """
    from traces.reading import load_run, resolve_run

    home = state.home
    view = load_run(home, resolve_run(home, run, warn=say), warn=say)
    order = resumed_order(
        home, view, given_limits(options), options["tools"], options["anyway"], options["root_window"]
    )
    made = run_resumed(home, order)
    if state.as_json:
        print_json(made.document())
    else:
        option = f" --home {state.home_option}" if state.home_option else ""
        click.echo("\n".join(made.outcome.lines(look=f"rlmscope show {made.outcome.run_id}{option}")))
        click.echo(made.line())
    if made.outcome.exit_code:
        say(f"rlmscope: {made.outcome.failure}")
    return made.outcome.exit_code


def resumed_order(
    home: Home,
    view: RunView,
    limits: Mapping[str, Any],
    tools: Sequence[str] = (),
    anyway: bool = False,
    root_window: int | None = None,
    run_id: str | None = None,
) -> Order:
    """What `run_resumed` carries out: a run continued, with some other `limits` (by their names in `Limits`)
    or another `root_window` (in tokens).

    Raises InputError or RecordError, in one sentence, where it cannot be continued.
    """
    from traces.prices import price_table
    from traces.resume import continuation
    from ui.ask_run import Order
    from ui.replaying import ensure_corpus
    from ui.tool_files import find_tool

    given = {tool.spec.name: tool for tool in map(find_tool, tools)}
    ensure_corpus(home, view)
    more = continuation(
        home, view, limits, tools=given, root_window=root_window, anyway=anyway, prices=price_table(home)
    )
    rate, fault_seed = more.faults
    return Order(
        question=more.question,
        sources=(),
        root=more.root,
        sub=more.sub,
        limits=more.limits,
        seed=more.seed,
        sandbox=None,
        fault_rate=rate,
        fault_seed=fault_seed,
        corpus_id=more.corpus.corpus_id,
        run_id=run_id,
        options=more.options,
        resume=more,
    )


def run_resumed(home: Home, order: Order) -> Resumed:
    """Continue a run to its end and record it as a new one. Raises InputError for what cannot work."""
    from ui.ask_run import run_order

    assert order.resume is not None
    for warning in order.resume.warnings:
        say(warning)
    return Resumed(run_order(order, home, os.environ), order.resume)
