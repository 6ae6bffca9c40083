"""`rlmscope export`: files for other programs, made out of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from traces.exporters import FORMATS
from ui.common import State, print_json, say, shared_options
from ui.figures import counted

_SFT: Final = "training data: what models said in right runs"
_OF_SFT: Final = {"kinds": "--examples", "any_verdict": "--any-verdict", "include_demo": "--include-demo"}
_HELP: Final = f"sft: {_SFT}; " + "; ".join(f"{name}: {one.words}" for name, one in FORMATS.items()) + "."


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@click.option("--format", "form", type=click.Choice(("sft", *FORMATS)), required=True, help=_HELP)
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="PATH", help="The new file.")
@click.option("--tag", metavar="T", help="The runs with this tag, beside those named.")
@click.option("--all", "everything", is_flag=True, help="All runs.")
@click.option(
    "--examples",
    "kinds",
    multiple=True,
    type=click.Choice(("trajectories", "turns", "sub-calls")),
    help="sft: what an example is; may be repeated [default: trajectories and sub-calls].",
)
@click.option("--any-verdict", is_flag=True, help="sft: also runs that nobody called right, and wrong ones.")
@click.option("--include-demo", is_flag=True, help="sft: also what demo models said.")
@shared_options
@click.pass_obj
def export(state: State, /, runs: tuple[str, ...], **options: Any) -> int:
    """Write runs as a new file for other programs. What looks like a key is left out of every format.

    The format sft takes right runs only: those whose verdict is right, or whose answer is the one that is
    expected (see mark). It leaves out forced answers, failed cells and replies, and duplicates.
    """
    form = options["form"]
    given = [name for key, name in _OF_SFT.items() if options[key]]
    if form != "sft" and given:
        raise click.UsageError(f"{given[0]} is for --format sft only, not for {form}")
    if str(options["out"]) == "-":
        raise click.UsageError("--out is the path of a new file; nothing is written to standard output")
    run_ids = _run_ids(state, runs, options["tag"], everything=options["everything"])
    if form == "sft":
        return _training_data(state, run_ids, options)
    from traces.exporters import export_runs
    from ui.export_text import done_lines

    done = export_runs(form, state.home, run_ids, options["out"], warn=say)
    if state.as_json:
        print_json(done.to_json())
    else:
        click.echo("\n".join(done_lines(done, options["out"])))
    return 0


def _training_data(state: State, run_ids: list[str], options: dict[str, Any]) -> int:
    from traces.exporters.sft import export_sft
    from traces.exporters.sft_runs import Choice
    from ui.export_text import left_out_lines, sft_lines

    choice = Choice(
        kinds=options["kinds"] or Choice().kinds,
        any_verdict=options["any_verdict"],
        include_demo=options["include_demo"],
    )
    done = export_sft(state.home, run_ids, options["out"], choice, warn=say)
    if state.as_json:
        print_json(done.to_json())
    elif done.path is not None:
        click.echo("\n".join(sft_lines(done)))
    for words in left_out_lines(done):
        say(words)
    if done.path is None:
        say(f"rlmscope: nothing was written: none of {counted(len(run_ids), 'run')} holds an example")
    return int(done.path is None)


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
