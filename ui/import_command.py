"""`rlmscope import`: runs out of the records of other engines, and out of other homes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from traces.figures import counted
from traces.imported import unasked_words
from traces.importers import IMPORTERS
from ui.common import State, print_json, say, shared_options
from ui.visible import line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traces.importers.importing import Imported


@click.command()
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE_OR_FOLDER..."
)
@click.option(
    "--format", "form", type=click.Choice(tuple(IMPORTERS)),
    help="What every file is read as [default: found by its content].",
)  # fmt: skip
@shared_options
@click.pass_obj
def import_(state: State, /, paths: tuple[Path, ...], form: str | None) -> int:
    """Take in runs that other engines recorded, or that come from another home.

    Files, folders, and zip or gz files of them. The same run is not taken in twice. What a record does not
    say, and what of it is unreadable, is said beside the run; a file of which nothing could be had makes the
    exit code 1, and 2 where that is so of all.
    """
    from traces.importers.importing import Imported, Refused, each_once, import_paths

    done = import_paths(state.home, paths, form)
    runs = [one for one in done if isinstance(one, Imported)]
    refused = [one for one in done if isinstance(one, Refused)]
    if state.as_json:
        print_json([one.to_json() for one in runs])
    else:
        said: dict[tuple[str, ...], str] = {}  # what is missing -> the first run that says so
        for one, times in each_once(runs):
            click.echo("\n".join(_lines(one, times, said.setdefault(one.missing, one.run_id))))
    if unread := [len(one.problems) for one in runs if one.problems]:
        of = f"{counted(sum(unread), 'problem')} of {counted(len(unread), 'run')}"
        say(f"{of} on record: what could not be read of a file is not in its runs")
    for each in refused:
        say(f"{'' if each.harmless else 'rlmscope: '}{each.file}: {each.why}")
    failed = any(not each.harmless for each in refused)
    return 0 if not failed else 1 if runs else 2


def _lines(one: Imported, times: int, first: str) -> Iterator[str]:
    """For people; it was met so many `times`, `first` is the first run of this import that lacks the same."""
    parts = [] if one.new else ["it was here already"]
    parts += [f"met {times:,} times"] if times > 1 else []
    there = f" ({', '.join(parts)})" if parts else ""
    asked = f"{one.engine}: {one.question}" if one.question else unasked_words(one.file, one.engine)
    yield f"{one.run_id}  {line(asked)}{there}"
    if one.missing and first != one.run_id:
        yield f"  not in the record: the same as of {first}"
    else:
        yield from (f"  not in the record: {line(words)}" for words in one.missing)
    yield from (f"  problem: {line(words)}" for words in one.problems)
