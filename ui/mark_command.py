"""`rlmscope mark`: say whether a run, or one of its spans, is right; the expected answer, a note, tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ui.common import State, print_json, say, shared_options
from ui.visible import line

if TYPE_CHECKING:
    from traces.home import Home
    from traces.opinions import Opinion, Opinions

_NOTHING = "nothing"


@click.command()
@click.argument("run")
@click.argument("span_id", metavar="[SPAN]", required=False)
@click.option("--verdict", metavar="V", help="right, wrong or unsure; nothing takes a verdict back.")
@click.option("--expected", metavar="TEXT", help="The answer the run should have given.")
@click.option("--how", metavar="H", help="How answers are compared with it [default: normalised].")
@click.option("--note", metavar="TEXT", help="Anything to remember.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Add a tag to the run; may be repeated.")
@click.option("--untag", "untags", multiple=True, metavar="T", help="Take a tag from the run.")
@shared_options
@click.pass_obj
def mark(state: State, /, run: str, span_id: str | None, **given: Any) -> None:
    """Say what you think of a run, or of one of its spans (SPAN is an id or a unique prefix, see show).

    What is not given stays as it was; an empty TEXT takes it back. Without options: show what stands. H is
    normalised, exact, number (number±0.5 with a tolerance), set, contains, regex or judge.
    """
    from traces.opinions import opinions, tag
    from traces.reading import load_run, resolve_run, resolve_span

    home = state.home
    run_id = resolve_run(home, run, warn=say)
    if span_id is not None:
        span_id = resolve_span(load_run(home, run_id, warn=say), span_id).span_id
        if refused := [name for name in ("tags", "untags", "expected", "how") if given[name]]:
            option = refused[0].removesuffix("s")
            raise click.UsageError(f"--{option} is for runs: a span has a verdict and a note")
    tags = _tags(home, run_id, given["tags"], given["untags"])  # checked before anything is kept
    _keep_opinion(home, run_id, span_id, given)
    if tags is not None:
        tag(home, run_id, tags)
    _show(state, opinions(home), run_id, span_id)


def _keep_opinion(home: Home, run_id: str, span_id: str | None, given: dict[str, Any]) -> None:
    from traces.opinions import NORMALISED, check_how, judge, opinions

    names = ("verdict", "expected", "how", "note")
    if all(given[name] is None for name in names):
        return
    stands = opinions(home).of(run_id, span_id)
    verdict, expected, how, note = (
        getattr(stands, name, None) if given[name] is None else given[name] for name in names
    )
    how = how or NORMALISED
    check_how(how, expected or None)
    if given["how"] is not None and not expected:
        raise click.UsageError("--how compares answers with the expected one: give --expected too")
    judge(
        home, run_id, span_id=span_id, verdict=None if verdict == _NOTHING else verdict, expected=expected,
        how=how, note=note,
    )  # fmt: skip


def _tags(home: Home, run_id: str, more: tuple[str, ...], less: tuple[str, ...]) -> tuple[str, ...] | None:
    """The tags that the run is to have; None: no other than it has."""
    from traces.opinions import checked_tags, opinions

    if not (more or less):
        return None
    asked, gone = ({" ".join(one.split()) for one in tags} for tags in (more, less))
    return checked_tags({*opinions(home).tags(run_id), *asked} - gone)


def _show(state: State, said: Opinions, run_id: str, span_id: str | None) -> None:
    opinion, tags = said.of(run_id, span_id), said.tags(run_id)
    if state.as_json:
        facts = {"run_id": run_id, "span_id": span_id, **opinion_json(opinion)}
        print_json({**facts, "time": opinion.time if opinion else None, "tags": tags})
        return
    lines = opinion_lines(said, run_id, span_id)
    click.echo("\n".join(lines) or "nothing was said about it")


def opinion_lines(said: Opinions, run_id: str, span_id: str | None = None) -> list[str]:
    """What stands about a run or span, a line for each thing; none when nothing does."""
    opinion = said.of(run_id, span_id)
    texts: dict[str, str | None] = {}
    if opinion is not None:
        texts = {"verdict": opinion.verdict, "expected": opinion.expected, "note": opinion.note}
        texts["compared by"] = opinion.how if opinion.expected and opinion.how != "normalised" else None
    texts["tags"] = ", ".join(said.tags(run_id)) if span_id is None else None
    return [f"{words}: {line(text)}" for words, text in texts.items() if text]


def opinion_json(opinion: Opinion | None) -> dict[str, str | None]:
    """What stands as JSON values: `verdict, expected, how, note`, null where nothing was said."""
    return {name: getattr(opinion, name, None) for name in ("verdict", "expected", "how", "note")}
