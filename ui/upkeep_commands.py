"""Commands that keep a home in order: delete, prune, backup."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rlm_core.errors import InputError
from ui.common import State, print_json, say, shared_options
from ui.figures import counted, size
from ui.visible import line

if TYPE_CHECKING:
    from traces.home import Home
    from traces.pruning import Plan
    from traces.rows import RunSummary

_SHOWN: Final = 20  # runs and files listed for people; JSON is never cut
_WHY: Final = {
    "running": "still going on",
    "example": "an example that came with the program",
    "verdict": "a person said something about it",
    "undated": "nothing says when it started",
}


class Age(click.ParamType[float]):
    """A time span such as `30d`, in seconds."""

    name = "age"
    _UNITS: Final = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Text to seconds."""
        found = re.fullmatch(r"(\d{1,6})([hdw])", str(value))
        if found is None:
            self.fail(f"{value!r} is no age; write hours, days or weeks as in 12h, 30d, 8w", param, ctx)
        return int(found[1]) * self._UNITS[found[2]]


@click.command()
@click.argument("run", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@shared_options
@click.pass_obj
def delete(state: State, run: tuple[str, ...], yes: bool) -> None:
    """Delete runs for good: their record goes, and no rebuild brings it back."""
    from traces.reading import list_runs, resolve_run
    from traces.upkeep import delete_runs, spool_bytes

    home = state.home
    wanted = list(dict.fromkeys(resolve_run(home, ref, warn=say) for ref in run))
    taken = sum(spool_bytes(home, run_id) for run_id in wanted)
    if not yes:
        known = {summary.run_id: summary for summary in list_runs(home, replays=True, warn=say)}
        _ask(_listed(home, [known[run_id] for run_id in wanted if run_id in known]))
    report = delete_runs(home, wanted)
    for notice in report.notices:
        say(notice)
    if state.as_json:
        print_json({"deleted": wanted, "bytes": taken, "notices": report.notices})
        return
    click.echo(f"deleted {counted(len(wanted), 'run')}, {size(taken)}")


@click.command()
@click.option("--older-than", type=Age(), metavar="AGE", help="Delete runs older than 12h, 30d, 8w.")
@click.option("--keep-verdicts", is_flag=True, help="Keep runs with a verdict, note, tag or place in a set.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@shared_options
@click.pass_obj
def prune(state: State, older_than: float | None, keep_verdicts: bool, dry_run: bool, yes: bool) -> None:
    """Remove old runs, recorded texts that nothing cites, and files that killed processes left behind.

    Without --older-than no run goes. Examples and running runs always stay.
    """
    from traces import pruning

    if keep_verdicts and older_than is None:
        raise InputError("--keep-verdicts says which old runs stay: it needs --older-than")
    home = state.home
    plan = pruning.plan(home, older_than, keep_verdicts=keep_verdicts, warn=say)
    words = list(_plan_words(home, plan, asked=older_than is not None))
    notices: Sequence[str] = ()
    if not (dry_run or plan.empty):
        if not yes:
            _ask(words)
        notices = pruning.prune(home, plan, say)
    for notice in notices:
        say(notice)
    if state.as_json:
        print_json({"dry_run": dry_run, **_plan_json(plan), "notices": notices})
        return
    if not plan.empty:
        words.append("nothing was removed: a dry run" if dry_run else f"removed; {size(_total(plan))} freed")
    click.echo("\n".join(words))


def _plan_json(plan: Plan) -> dict[str, Any]:
    return {
        "runs": [run.run_id for run in plan.runs],
        "run_bytes": plan.run_bytes,
        "kept": dict(plan.kept),
        "payloads": sum(map(len, plan.payloads.values())),
        "payload_bytes": plan.payload_bytes,
        "files": [str(path) for path in plan.files],
        "file_bytes": plan.file_bytes,
        "bytes": _total(plan),
    }


def _total(plan: Plan) -> int:
    return plan.run_bytes + plan.payload_bytes + plan.file_bytes


def _plan_words(home: Home, plan: Plan, *, asked: bool) -> Iterator[str]:
    if asked:
        yield f"{counted(len(plan.runs), 'old run')}: {size(plan.run_bytes)}"
        yield from _listed(home, plan.runs)
    for reason, count in sorted(plan.kept.items()):
        yield f"{counted(count, 'old run')} kept: {_WHY[reason]}"
    texts = sum(map(len, plan.payloads.values()))
    yield f"{counted(texts, 'text')} that nothing cites: {size(plan.payload_bytes)}"
    yield f"{counted(len(plan.files), 'left-over file')}: {size(plan.file_bytes)}"
    for path in plan.files[:_SHOWN]:
        yield f"  {line(str(path.relative_to(home.root)))}"
    if len(plan.files) > _SHOWN:
        yield f"  and {len(plan.files) - _SHOWN:,} more"


def _listed(home: Home, runs: Sequence[RunSummary]) -> list[str]:
    from traces.imported import asked_words
    from traces.upkeep import is_example, spool_bytes

    lines = []
    for run in runs[:_SHOWN]:
        day = f"{datetime.fromtimestamp(run.started_ns / 1e9, UTC):%Y-%m-%d}"
        note = "  (an example)" if is_example(home, run.run_id) else ""
        question = line(asked_words(run))[:60]
        lines.append(f"  {run.run_id}  {day}  {size(spool_bytes(home, run.run_id)):>9}  {question}{note}")
    if len(runs) > _SHOWN:
        lines.append(f"  and {len(runs) - _SHOWN:,} more")
    return lines


def _ask(words: Sequence[str]) -> None:
    if not sys.stdin.isatty():
        raise InputError("nothing was removed, as nobody can be asked here: say --yes to remove it")
    for text in words:
        say(text)
    click.confirm("remove it for good?", abort=True, err=True)


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@shared_options
@click.pass_obj
def backup(state: State, path: Path) -> None:
    """Copy the record into a new folder PATH, and compare the copy. Runs may go on meanwhile.

    The folder is a home of its own: give it as --home to look into it, or copy it to where it is to live.
    """
    from traces.backup import backup as copy

    made = copy(state.home, path, say)
    for notice in made.notices:
        say(notice)
    for run_id in made.running:
        say(f"The run {run_id} is still going on; the copy has it up to now.")
    if state.as_json:
        facts = {"path": str(made.path), "runs": made.rows["run"], "spans": made.rows["span"]}
        facts |= {"payloads": made.rows["payload"], "spools": made.spools, "bytes": made.bytes}
        print_json({**facts, "running": made.running, "notices": made.notices})
        return
    runs, spans = counted(made.rows["run"], "run"), counted(made.rows["span"], "span")
    click.echo(f"backup {line(str(made.path))}: {runs}, {spans}, {size(made.bytes)}; equal to the original")
    click.echo("corpora and settings are not in it")
