"""`rlmscope replay`: play a recorded run again, as it was, with other replies or code, or asking anew."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ui.common import State, print_json, say, shared_options
from ui.params import Dollars, ModelId

if TYPE_CHECKING:
    from traces.home import Home
    from traces.reading import RunView
    from traces.trial import Budget, Mode, Patch, Replayability, Target, Trial
    from ui.replaying import Present

_MODES: Final = ("strict", "recompute", "live", "frozen", "reask")
_ASK_AGAIN: Final = ("live", "reask")  # modes in which a second try may come out otherwise
_COUNT: Final = click.IntRange(min=0)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A replay as it was asked for, checked."""

    home: Home
    view: RunView
    patches: tuple[Patch, ...]
    mode: Mode
    target: Target | None
    budget: Budget
    repeat: int


@dataclass(frozen=True, slots=True)
class Played:
    """What came of it: whether the run can be replayed, and a trial for each time it was played; none where
    its record or corpus does not allow to play it at all.
    """

    view: RunView
    target: Target | None
    patches: tuple[Patch, ...]
    mode: Mode
    replayability: Replayability
    trials: tuple[Trial, ...]
    budget: Budget
    notices: tuple[str, ...]

    @property
    def fixed(self) -> int:
        """How often the answer came out as it should be."""
        return sum(trial.outcome == "fixed" for trial in self.trials)

    def document(self) -> dict[str, Any]:
        """The JSON document of `rlmscope replay`: that of the first trial, and what is true of all."""

        first = self.trials[0] if self.trials else self._nothing()
        sums = {name: sum(getattr(one, name) for one in self.trials) for name in ("misses", "live_calls")}
        return {
            "of": self.view.run_id,
            "replayable": self.replayability.status == "replayable",
            "replayability": self.replayability.to_json(),
            **first.to_json(),
            "flipped": bool(self.trials) and first.flipped,
            "expected": None if self.target is None else self.target.text,
            "repeat": len(self.trials),
            "fixed": self.fixed,
            "trials": [trial.to_json() for trial in self.trials],
            "spent": {**sums, "cost_usd": _total(self.trials)},
            "budget": {"live_calls": self.budget.live_calls, "usd": self.budget.usd},
            "notices": self.notices,
        }

    def _nothing(self) -> Trial:
        from traces.trial import Trial

        how = None if self.target is None else self.target.how
        stopped, answer = self.replayability.words, self.view.summary.answer
        return Trial(self.patches, self.mode, "undecided", None, answer, how, stopped=stopped)


def _total(trials: Sequence[Trial]) -> Decimal | None:
    amounts = [trial.cost_usd for trial in trials]
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if len(known) == len(amounts) else None


@click.command()
@click.argument("run")
@click.option(
    "--patch", "patches", multiple=True, metavar="SPAN=TEXT|SPAN=@FILE",
    help="Another reply of a sub-call or child run, or other code of a cell; may be repeated.",
)  # fmt: skip
@click.option("--mode", type=click.Choice(_MODES), default="strict", help="[default: strict]")
@click.option("--expected", metavar="TEXT", help="The answer it should give [default: see mark].")
@click.option("--match", "how", metavar="HOW", help="How answers are compared [default: normalised].")
@click.option("--repeat", type=click.IntRange(1, 100), default=1, metavar="N", help="Play it N times.")
@click.option("--max-calls", type=_COUNT, metavar="N", help="Calls to a model, at most, all times together.")
@click.option("--max-cost", type=Dollars(), metavar="USD", help="Dollars, at most, all times together.")
@click.option(
    "--root", type=ModelId(), metavar="MODEL", help="Who is asked as the root [default: the recorded one]."
)
@click.option(
    "--sub", type=ModelId(), metavar="MODEL", help="Who answers sub-calls [default: the recorded one]."
)
@shared_options
@click.pass_obj
def replay(state: State, /, run: str, **options: Any) -> int:
    """Play a recorded run again: its cells run anew, sub-calls and root turns come from the record.

    SPAN is an id or a unique prefix of one (see show). Modes: strict stops at the first prompt that the
    record does not hold; recompute asks the model for such prompts; live asks for every sub-call again (a
    twin of the run, to compare it with); frozen gives every sub-call its old reply; reask asks the root again
    from the first turn in which it would have seen other output. What is played is recorded as a run of its
    own, which lists leave out (runs --replays shows it).
    """
    from traces.reading import load_run, resolve_run

    home = state.home
    view = load_run(home, resolve_run(home, run, warn=say), warn=say)
    asked = _checked(home, view, options)
    played, cancelled = _play(asked, root=options["root"], sub=options["sub"])
    if cancelled:
        say("rlmscope: the replay was cancelled")
    if state.as_json:
        print_json(played.document())
    else:
        from ui.replay_text import replay_lines

        option = f" --home {state.home_option}" if state.home_option else ""
        click.echo("\n".join(replay_lines(played, option)))
    return int(cancelled)


def _checked(home: Home, view: RunView, options: dict[str, Any]) -> _Asked:
    from rlm_core.errors import InputError
    from traces.opinions import opinions
    from traces.trial import Budget
    from ui.replaying import ASKED, calls_allowed, target_of

    if view.live:
        raise InputError(f"run {view.run_id} is still going on: it can be replayed when it has ended")
    mode, repeat, calls = options["mode"], options["repeat"], options["max_calls"]
    if repeat > 1 and mode not in _ASK_AGAIN:
        raise click.UsageError(f"--repeat is for modes that ask anew ({', '.join(_ASK_AGAIN)}), not {mode}")
    if not ASKED[mode]:
        _refuse(options, mode)
    if calls is None:
        calls = calls_allowed(view.summary, mode, repeat)
    return _Asked(
        home=home,
        view=view,
        patches=_patches(view, options["patches"]),
        mode=mode,
        target=target_of(opinions(home), view.run_id, expected=options["expected"], how=options["how"]),
        budget=Budget(replays=repeat, live_calls=calls, usd=options["max_cost"]),
        repeat=repeat,
    )


def _refuse(options: dict[str, Any], mode: str) -> None:
    """Refuse options that mean nothing in a mode that asks no model."""
    for name in ("root", "sub", "max_calls", "max_cost"):
        if options[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} is for modes that ask a model, not {mode}")


def _patches(view: RunView, given: Sequence[str]) -> tuple[Patch, ...]:
    """The patches of the options. Raises UsageError for what has not the form, names no span or the same
    twice, InputError for a file that cannot be read.
    """
    from traces.reading import resolve_span
    from traces.trial import Patch

    made: dict[str, Patch] = {}
    for one in given:
        ref, equals, text = one.partition("=")
        if not equals:
            raise click.BadParameter(f"{one[:80]!r} is not SPAN=TEXT or SPAN=@FILE", param_hint="'--patch'")
        span_id = resolve_span(view, ref.strip()).span_id
        if span_id in made:
            raise click.BadParameter(f"span {span_id} is patched twice", param_hint="'--patch'")
        made[span_id] = Patch(span_id, _file_text(Path(text[1:])) if text.startswith("@") else text)
    return tuple(made.values())


def _file_text(path: Path) -> str:
    from rlm_core.errors import InputError

    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text") from None


def _play(asked: _Asked, *, root: str | None, sub: str | None) -> tuple[Played, bool]:
    """What came of it, and whether it was cancelled from outside."""
    from traces.home import new_run_id
    from ui.control import StopWatch, cancel_file
    from ui.interrupts import Interrupts
    from ui.replaying import ASKED, present

    stop = threading.Event()
    run_ids = [new_run_id() for _ in range(asked.repeat)]
    roles = ASKED[asked.mode]
    with present(
        asked.home, asked.view, os.environ, roles=roles, root=root, sub=sub, budget=asked.budget
    ) as now:
        for notice in now.notices:
            say(f"{notice}; {_limits(asked.budget)}")
        interrupts = Interrupts(stop.set, lambda: None)
        wish = StopWatch(cancel_file(asked.home, run_ids[0]), interrupts.request)
        with interrupts, wish:
            played = _trials(asked, now, run_ids, stop.is_set)
    return played, interrupts.cancelled


def _limits(budget: Budget) -> str:
    from ui.figures import counted, money

    dollars = "" if budget.usd is None else f" and {money(budget.usd, None)}"
    return f"at most {counted(budget.live_calls, 'call')}{dollars}"


def _trials(asked: _Asked, now: Present, run_ids: Sequence[str], stopped: Callable[[], bool]) -> Played:
    from rlm_core.errors import RecordError
    from traces.replay_runs import record_replay
    from traces.trial import Replayability
    from ui.progress import ProgressLine
    from ui.replaying import ASKED

    try:
        made = now.replayer(asked.home, asked.view, budget=asked.budget, cancelled=stopped)
    except RecordError as error:
        return _played(asked, now, Replayability("not_replayable", str(error)), ())
    with made as replayer:
        found = replayer.check()
        for warning in found.warnings:
            say(warning)
        trials: list[Trial] = []
        for run_id in run_ids:
            # without a model it is over before anybody has read how far it is
            with ProgressLine() if ASKED[asked.mode] else nullcontext() as shown:
                trial = record_replay(
                    asked.home, replayer, asked.patches, mode=asked.mode, target=asked.target, run_id=run_id,
                    cancelled=stopped, on_event=None if shown is None else shown.update, warn=say,
                )  # fmt: skip
            trials.append(trial)
            if stopped():
                break
    return _played(asked, now, found, trials)


def _played(asked: _Asked, now: Present, found: Replayability, trials: Sequence[Trial]) -> Played:
    return Played(
        asked.view, asked.target, asked.patches, asked.mode, found, tuple(trials), asked.budget, now.notices
    )
