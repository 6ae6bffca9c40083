"""`rlmscope diagnose`: which sub-calls, child runs or cells broke the answer of a run, proven by replays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ui.common import State, print_json, say, shared_options
from ui.params import Dollars, ModelId

if TYPE_CHECKING:
    from traces.diagnosis import Diagnosis
    from traces.diagnosis_log import DiagnosisLog
    from traces.home import Home
    from traces.reading import RunView
    from traces.trial import Mode, Target

_COUNT: Final = click.IntRange(min=0)
_MODES: Final = ("strict", "recompute")


@click.command()
@click.argument("run")
@click.option("--good", metavar="RUN", help="A run of the same question whose answer is right.")
@click.option("--expected", metavar="TEXT", help="The answer it should have given [default: see mark].")
@click.option("--match", "how", metavar="HOW", help="How answers are compared [default: normalised].")
@click.option("--max-replays", type=_COUNT, default=200, metavar="N", help="Replays, at most [default: 200].")
@click.option("--max-calls", type=_COUNT, default=0, metavar="N", help="Calls to a model [default: 0].")
@click.option("--max-cost", type=Dollars(), metavar="USD", help="Dollars, at most, for these calls.")
@click.option("--mode", type=click.Choice(_MODES), help="[default: recompute with --max-calls, else strict]")
@click.option("--repeat", type=click.IntRange(1, 100), default=1, metavar="N", help="Ask the root N times.")
@click.option(
    "--root", type=ModelId(), metavar="MODEL", help="Who is asked as the root [default: the recorded one]."
)
@click.option(
    "--sub", type=ModelId(), metavar="MODEL", help="Who answers sub-calls [default: the recorded one]."
)
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE", help="Write a report: .html, .md")
@shared_options
@click.pass_obj
def diagnose(state: State, /, run: str, **options: Any) -> int:
    """Find what broke the answer of a run: the fewest sub-calls, child runs or cells that make it right.

    With --good, the candidates are the places where both runs were asked the same and answered differently
    (a good run is mostly a twin: rlmscope replay RUN --mode live --sub MODEL). Without it, sub-calls that
    look wrong by themselves are tried. No model is asked unless --max-calls allows it; then it is asked what
    the records do not hold, and the root is asked again where it typed the answer itself.
    """
    from traces.reading import load_run, resolve_run

    home = state.home
    view = load_run(home, resolve_run(home, run, warn=say), warn=say)
    good = None
    if options["good"] is not None:
        good = load_run(home, resolve_run(home, options["good"], warn=say), warn=say)
    _check(view, good, options)
    found = _diagnosed(home, view, good, options)
    written = options["report"] is None or _reported(home, found, options["report"])
    from ui.good_offers import good_offers

    option = f" --home {state.home_option}" if state.home_option else ""
    offers = good_offers(home, view, found, option)
    if state.as_json:
        report = str(options["report"]) if written and options["report"] is not None else None
        print_json({**found.to_json(), "report": report, "good_runs": [one.to_json() for one in offers]})
    else:
        from ui.diagnose_text import diagnosis_lines

        click.echo("\n".join(diagnosis_lines(view, good, found, option, offers)))
    return int(not written or (found.stopped is not None and "cancelled" in found.stopped))


def _reported(home: Home, found: Diagnosis, path: Path) -> bool:
    """Write the report; where that fails it is said, and what was found is printed all the same."""
    from rlm_core.errors import RLMScopeError
    from ui.reporting import report_of, write_report

    try:
        write_report(report_of(home, found.to_json()), path)
    except RLMScopeError as error:
        say(f"rlmscope: {error}")
        return False
    say(f"report written to {path}")
    return True


def _check(view: RunView, good: RunView | None, options: dict[str, Any]) -> None:
    """Refuse, before anything is spent, what cannot work."""
    if good is not None and good.run_id == view.run_id:
        raise click.UsageError("--good names the run itself: it must be another run, with the right answer")
    if good is not None and good.summary.answer is None:
        raise click.UsageError(f"run {good.run_id} gave no answer: it cannot be the good run")
    for name in ("max_cost", "root", "sub"):
        if options[name] is not None and not options["max_calls"]:
            raise click.UsageError(
                f"--{name.replace('_', '-')} is for calls to a model: give --max-calls too"
            )
    if options["report"] is not None:
        from ui.reporting import check_report_file

        check_report_file(options["report"])


def _diagnosed(home: Home, view: RunView, good: RunView | None, options: dict[str, Any]) -> Diagnosis:
    from traces.diagnose import diagnose as find
    from traces.diagnosis_log import ask_to_stop, open_diagnosis
    from traces.trial import Budget
    from ui.interrupts import Interrupts
    from ui.replaying import present

    budget = Budget(options["max_replays"], options["max_calls"], options["max_cost"])
    target = _target(home, view, good, options)
    mode: Mode = options["mode"] or ("recompute" if budget.live_calls else "strict")
    roles = ("root", "sub") if budget.live_calls else ()
    given = {name: options[name] for name in ("root", "sub")}
    log = open_diagnosis(
        home, view.run_id, good=None if good is None else good.run_id, target=target, budget=budget, mode=mode
    )
    with log, present(home, view, os.environ, roles=roles, budget=budget, **given) as now:
        for notice in now.notices:
            say(notice)
        with Interrupts(lambda: ask_to_stop(home, log.diagnosis_id), lambda: None):
            found = find(
                home, view, good=good, target=target, budget=budget, mode=mode, repeat=options["repeat"],
                replayer=now.replayer, tell=log.trial, stage=_staged(log), cancelled=log.cancelled,
                diagnosis_id=log.diagnosis_id, record=True,
            )  # fmt: skip
        log.end(found)
    return found


def _staged(log: DiagnosisLog) -> Any:
    def stage(words: str) -> None:
        log.stage(words)
        say(words)

    return stage


def _target(home: Home, view: RunView, good: RunView | None, options: dict[str, Any]) -> Target | None:
    """The answer that was asked for: a given one, else what a person expects, else that of the good run."""
    from traces.opinions import LOOKED_FOR, NORMALISED, check_how, opinions
    from traces.trial import Target
    from ui.replaying import target_of

    target = target_of(opinions(home), view.run_id, expected=options["expected"], how=options["how"])
    if target is not None or good is None:
        return target
    how = options["how"] or NORMALISED
    check_how(how, None)
    if how in LOOKED_FOR:
        raise click.UsageError(f"--match {how} looks for an expected text: give --expected too")
    return Target(good.summary.answer or "", how, "good run")
