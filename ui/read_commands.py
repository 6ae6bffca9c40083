"""Commands that read the record: runs, show, span, ingest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from ui.common import State, print_json, say, shared_options
from ui.figures import counted

if TYPE_CHECKING:
    from traces.opinions import Opinions
    from traces.reading import RunView

RUNS_SHOWN: Final = 30  # by default, of a list for people; JSON is never cut


@click.command()
@click.option("--limit", type=click.IntRange(min=0), help=f"How many runs (default {RUNS_SHOWN}; 0: all).")
@click.option("--replays", is_flag=True, help="Also the runs that play another one again.")
@shared_options
@click.pass_obj
def runs(state: State, limit: int | None, replays: bool) -> None:
    """List the runs, newest first."""
    from traces.reading import list_runs

    if state.as_json:
        from traces.opinions import opinions

        listed = list_runs(state.home, limit or None, replays=replays, warn=say)
        said = opinions(state.home)
        print_json([{**run.to_json(), **_said(said, run.run_id)} for run in listed])
        return
    from ui.render import runs_table

    found = list_runs(state.home, replays=replays, warn=say)
    if not found:
        click.echo("no runs yet; start one with: rlmscope ask QUESTION PATH")
        return
    shown = found[: RUNS_SHOWN if limit is None else limit or None]
    again = [run.run_id for run in shown if run.plays_a_record]
    click.echo("\n".join(runs_table(shown, _asked(state, again))))
    if len(shown) < len(found):
        click.echo(f"{len(shown):,} of {len(found):,} runs; --limit 0 lists all")


def _asked(state: State, replays: list[str]) -> dict[str, int]:
    """How many sub-calls of each replay a model was asked for."""
    if not replays:
        return {}
    from traces.calls import calls_of_replays

    return calls_of_replays(state.home, replays, say)


@click.command()
@click.argument("run")
@click.option("--all", "everything", is_flag=True, help="Fold nothing, cut nothing, show attempts.")
@click.option("--find", "text", metavar="TEXT", help="Only spans in whose texts, names or facts TEXT stands.")
@shared_options
@click.pass_obj
def show(state: State, run: str, everything: bool, text: str | None) -> None:
    """Show the recursion tree of a run, also of one that is still running."""
    from traces.opinions import opinions
    from traces.reading import continued_by, load_run, resolve_run

    if text is not None and not text:
        raise click.BadParameter("an empty text stands everywhere", param_hint="'--find'")

    home = state.home
    view = load_run(home, resolve_run(home, run, warn=say), warn=say)
    if text is not None:
        _show_found(state, view, text)
        return
    said, later = opinions(home), continued_by(home, view.run_id, warn=say)
    if state.as_json:
        from traces.coverage import coverage
        from traces.findings import findings
        from traces.imported import import_facts
        from traces.replay_facts import replay_facts

        spans = [span.to_json() for span in view.spans]
        source = import_facts(view)
        summary = {**view.summary.to_json(), **_said(said, view.run_id)}
        summary["import"] = None if source is None else source.to_json()
        told = {"run": summary, "live": view.live, "spans": spans, "verdicts": _of_spans(said, view.run_id)}
        told["continued_by"] = list(later)
        if (replay := replay_facts(view)) is not None:
            told["replay"] = replay.to_json()
        found = [finding.to_json() for finding in findings(view)]
        print_json({**told, "findings": found, "coverage": coverage(view).to_json()})
        return
    from ui.render import show_run

    click.echo("\n".join(show_run(view, everything=everything, continued_by=later)))
    from ui.mark_command import opinion_lines

    for line in opinion_lines(said, view.run_id):
        click.echo(line)


def _said(said: Opinions, run_id: str) -> dict[str, Any]:
    """What a person said about a run, as the keys that lists and `show` have for it."""
    opinion = said.of(run_id)
    verdict, expected = (opinion.verdict, opinion.expected) if opinion is not None else (None, None)
    return {"verdict": verdict, "expected": expected, "tags": said.tags(run_id)}


def _of_spans(said: Opinions, run_id: str) -> dict[str, Any]:
    """What a person said about spans of a run, by span id."""
    return {
        span_id: {"verdict": opinion.verdict, "note": opinion.note}
        for span_id, opinion in said.spans(run_id).items()
    }


def _show_found(state: State, view: RunView, text: str) -> None:
    from traces.find import find_text

    found = find_text(view, text)
    if state.as_json:
        spans = [{**span.to_json(), "found_in": places} for span, places in found]
        print_json({"run": view.summary.to_json(), "live": view.live, "spans": spans})
        return
    from ui.render import show_found

    click.echo("\n".join(show_found(view, found)))


@click.command()
@click.argument("run")
@click.argument("span_id", metavar="SPAN")
@click.option("--all", "everything", is_flag=True, help="Show the raw attributes too.")
@shared_options
@click.pass_obj
def span(state: State, run: str, span_id: str, everything: bool) -> None:
    """Show everything recorded about one span; SPAN is an id or a unique prefix of one (see show)."""
    from traces.reading import load_run, resolve_run, resolve_span, span_detail

    home = state.home
    view = load_run(home, resolve_run(home, run, warn=say), warn=say)
    row = resolve_span(view, span_id)
    detail = span_detail(view, row)
    if state.as_json:
        print_json(detail)
        return
    from ui.passages import sources_of
    from ui.span_text import span_text

    sources = sources_of(view, row, detail["source_ranges"], home.corpora)
    click.echo("\n".join(span_text(detail, everything=everything, sources=sources)))


@click.command()
@click.option("--rebuild", is_flag=True, help="Write a new store from all spools and swap it in.")
@shared_options
@click.pass_obj
def ingest(state: State, rebuild: bool) -> None:
    """Take closed runs into the store (every reading command does it first)."""
    from traces.ingest import ingest as take_in
    from traces.upkeep import rebuild as build_anew

    report = build_anew(state.home) if rebuild else take_in(state.home)
    for notice in report.notices:
        say(notice)
    if state.as_json:
        print_json({"runs": len(report.runs), "run_ids": report.runs, "notices": report.notices})
        return
    click.echo(f"{counted(len(report.runs), 'run')} taken into the store")
