"""`rlmscope export`: files for other programs, made out of runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ui.common import State, print_json, say, shared_options
from ui.figures import counted
from ui.visible import line

_NAMED: Final = 10  # runs that are named with the reason why they are left out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traces.exporters.sft import Exported


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@click.option("--format", "form", type=click.Choice(("sft",)), required=True, help="sft: training data.")
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="PATH", help="The new file.")
@click.option("--tag", metavar="T", help="The runs with this tag, beside those named.")
@click.option("--all", "everything", is_flag=True, help="All runs.")
@click.option(
    "--examples",
    "kinds",
    multiple=True,
    type=click.Choice(("trajectories", "turns", "sub-calls")),
    help="What an example is; may be repeated [default: trajectories and sub-calls].",
)
@click.option("--any-verdict", is_flag=True, help="Also runs that nobody called right, and wrong ones.")
@click.option("--include-demo", is_flag=True, help="Also what demo models said.")
@shared_options
@click.pass_obj
def export(state: State, /, runs: tuple[str, ...], **options: Any) -> int:
    """Write what models said in right runs as training data: JSON lines of chats, and a card beside them.

    Right is a run whose verdict is right, or whose answer is the one that is expected (see mark). Forced
    answers, failed cells and replies, duplicates and whatever looks like a key are left out.
    """
    from traces.exporters.sft import export_sft
    from traces.exporters.sft_runs import Choice

    run_ids = _run_ids(state, runs, options["tag"], everything=options["everything"])
    choice = Choice(
        kinds=options["kinds"] or Choice().kinds,
        any_verdict=options["any_verdict"],
        include_demo=options["include_demo"],
    )
    done = export_sft(state.home, run_ids, options["out"], choice, warn=say)
    if state.as_json:
        print_json(done.to_json())
    elif done.path is not None:
        click.echo("\n".join(_lines(done)))
    for words in _runs_left_out(done):
        say(words)
    if done.path is None:
        say(f"rlmscope: nothing was written: none of {counted(len(run_ids), 'run')} holds an example")
    return int(done.path is None)


def _runs_left_out(done: Exported) -> Iterator[str]:
    """A line for each run; of many with the same reason one line."""
    by_reason: dict[str, list[str]] = {}
    for run_id, reason in done.runs_left_out:
        by_reason.setdefault(reason, []).append(run_id)
    for reason, run_ids in by_reason.items():
        if len(run_ids) > _NAMED:
            yield line(f"{len(run_ids):,} runs are left out: {reason} (--json names them)")
        else:
            yield from (line(f"{run_id} is left out: {reason}") for run_id in run_ids)


def _run_ids(state: State, refs: tuple[str, ...], tag: str | None, *, everything: bool) -> list[str]:
    from rlm_core.errors import InputError
    from traces.exporters.sft import tagged_runs
    from traces.reading import resolve_run

    if not refs and tag is None and not everything:
        raise click.UsageError("name the runs to export, or --tag T, or --all")
    found = [resolve_run(state.home, ref, warn=say) for ref in refs]
    if tag is not None or everything:
        tagged = tagged_runs(state.home, None if everything else tag, say)
        if not tagged:
            raise InputError(
                "there are no runs yet" if everything else f"no run has the tag {str(tag)[:80]!r}"
            )
        found += tagged
    return list(dict.fromkeys(found))


def _lines(done: Exported) -> Iterator[str]:
    """For people."""
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(done.kinds.items()))
    part = "all" if done.estimated == done.tokens else f"{done.estimated:,}"
    guess = f", {part} of them estimated" if done.estimated else ""
    yield line(f"{counted(done.examples, 'example')} of {counted(len(done.runs), 'run')}: {kinds}")
    yield f"{done.tokens:,} tokens{guess}"
    if done.duplicates:
        yield f"{counted(done.duplicates, 'duplicate')} left out"
    if done.redacted:
        yield f"{counted(done.redacted, 'string')} that look like keys replaced"
    for reason, count in sorted(done.left_out.items()):
        yield line(f"left out: {counted(count, 'example')}: {reason}")
    yield line(f"written: {done.path}")
    yield line(f"card: {done.card}")
