"""`rlmscope corpus`: add documents once and ask about them often; list, show, remove."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlm_core.errors import CorpusError, InputError
from ui.common import State, print_json, say, shared_options

if TYPE_CHECKING:
    from rlm_core.corpus import CorpusInfo
    from traces.home import Home


@click.group()
def corpus() -> None:
    """Documents to ask about, added once and kept under an id.

    ID is a full corpus id, a unique prefix of one, or a unique name. Each of these commands takes --home and
    --json, as all commands do.
    """


@corpus.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--name", metavar="N", help="What to call it [default: after the first path].")
@click.option("--encoding", metavar="E", help="Of texts that are not UTF-8 [default: found out].")
@shared_options
@click.pass_obj
def add(state: State, paths: tuple[str, ...], name: str | None, encoding: str | None) -> None:
    """Read files and folders into a corpus. The same documents give the same corpus again."""
    from ui.adding import add_corpus
    from ui.corpora import facts

    if not all(paths):  # as of a variable that is not set; Path makes it the current folder
        raise InputError("an empty text names no file or folder")
    home = state.home
    found = add_corpus(home, [Path(path) for path in paths], name=name, encoding=encoding)
    document = facts(found)
    for problem in document["problems"]:
        say(f"{problem['path']}: {problem['message']}")
    if state.as_json:
        print_json(document)
        return
    from ui.corpus_text import added

    option = f" --home {state.home_option}" if state.home_option else ""
    click.echo("\n".join(added(found, document, f"rlmscope ask QUESTION {found.corpus_id}{option}")))


@corpus.command(name="list")
@shared_options
@click.pass_obj
def list_(state: State) -> None:
    """List the corpora, newest first."""
    from rlm_core.corpus import Corpus

    home = state.home
    found = Corpus.list(home.corpora)
    if state.as_json:
        print_json([_listed(home, info) for info in found])
        return
    from ui.corpus_text import corpora_table

    if not found:
        click.echo("no corpora yet; add one with: rlmscope corpus add PATH")
        return
    click.echo("\n".join(corpora_table(found)))


def _listed(home: Home, info: CorpusInfo) -> dict[str, Any]:
    """One entry of the JSON list; of a corpus that cannot be used the counts are unknown."""
    from rlm_core.corpus import Corpus
    from ui.corpora import facts

    known = {"added": info.added.isoformat(), "broken": info.broken}
    try:
        return {**facts(Corpus.load(home.corpora, info.corpus_id)), **known}
    except CorpusError as error:
        unknown = dict.fromkeys(("name", "documents", "chars", "bytes"))
        why = info.broken or str(error)
        problems = [{"path": info.corpus_id, "message": why}]
        return {"corpus_id": info.corpus_id, **unknown, "problems": problems, **known, "broken": why}


@corpus.command()
@click.argument("corpus_id", metavar="ID")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help="How many documents to list [default: 50; 0: all]. JSON has all.",
)
@shared_options
@click.pass_obj
def show(state: State, corpus_id: str, limit: int | None) -> None:
    """Show every document of a corpus, and what was left out."""
    from rlm_core.corpus import Corpus
    from ui import corpora

    home = state.home
    found = Corpus.load(home.corpora, Corpus.find(home.corpora, corpus_id))
    document = corpora.details(found)
    runs = corpora.runs_over(home, found.corpus_id, say)
    if state.as_json:
        print_json({**document, "runs": [run.run_id for run in runs]})
        return
    from ui.corpus_text import DOCUMENTS_SHOWN, details

    most = DOCUMENTS_SHOWN if limit is None else limit or None
    click.echo("\n".join(details(found, document, runs, most)))


@corpus.command()
@click.argument("corpus_id", metavar="ID")
@click.argument("name")
@shared_options
@click.pass_obj
def rename(state: State, corpus_id: str, name: str) -> None:
    """Give a corpus another name; its id stays."""
    from rlm_core.corpus import Corpus

    found_id = Corpus.find(state.home.corpora, corpus_id)
    Corpus.rename(state.home.corpora, found_id, name)
    document = _facts_of(state.home, found_id)
    if state.as_json:
        print_json(document)
        return
    click.echo(f"corpus {found_id} is called {document['name']} now")


@corpus.command()
@click.argument("corpus_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask. Off a terminal nobody is asked.")
@shared_options
@click.pass_obj
def remove(state: State, corpus_id: str, yes: bool) -> None:
    """Remove a corpus. Runs over it keep their record, but its passages can no longer be opened."""
    from rlm_core.corpus import Corpus
    from ui import corpora
    from ui.corpus_text import runs_line

    home = state.home
    found_id = Corpus.find(home.corpora, corpus_id)
    document = _facts_of(home, found_id)
    runs = corpora.runs_over(home, found_id, say, replays=True)
    consequence = "; the record stays, the passages in it can no longer be opened" if runs else ""
    # scripts call this without --yes; runs over it keep their record, and files in place are not touched
    if sys.stdin.isatty() and not (yes or state.as_json):
        _ask(document, f"{runs_line(runs)}{consequence}")
    corpora.remove(home, found_id, runs)
    if state.as_json:
        print_json({**document, "removed": True, "runs": [run.run_id for run in runs]})
        return
    click.echo(f"removed corpus {found_id}; {runs_line(runs)}{consequence}")


def _facts_of(home: Home, corpus_id: str) -> dict[str, Any]:
    """What is known of a corpus; one whose manifest is broken can still be removed."""
    from rlm_core.corpus import Corpus

    (info,) = (info for info in Corpus.list(home.corpora) if info.corpus_id == corpus_id)
    return _listed(home, info)


def _ask(document: dict[str, Any], consequence: str) -> None:
    say(f"corpus {document['corpus_id']} ({document['name'] or 'name unknown'}): {consequence}")
    click.confirm("remove it for good?", abort=True, err=True)
