"""`rlmscope cost`: what runs cost and on what; the arithmetic of one call; what other models would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from ui.common import State, print_json, say, shared_options

if TYPE_CHECKING:
    from traces.home import Home

_COST_KEYS: Final = ("role", "model", "depth", "iteration", "cell", "class", "corpus", "day")
_ROLES: Final = ("root", "sub")


def _keys(_ctx: click.Context, _parameter: click.Parameter, value: str) -> tuple[str, ...]:
    keys = tuple(dict.fromkeys(key.strip() for key in value.split(",") if key.strip()))
    wrong = [key for key in keys if key not in _COST_KEYS]
    if wrong or not keys:
        raise click.BadParameter(f"{', '.join(wrong) or 'nothing'} is not among {', '.join(_COST_KEYS)}")
    return keys


def _models(_ctx: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    models: dict[str, str] = {}
    for value in values:
        role, equals, model = value.partition("=")
        if role not in _ROLES or not equals:
            raise click.BadParameter(f"{value[:80]!r} is not of the form sub=MODEL or root=MODEL")
        if role in models:
            raise click.BadParameter(f"{role} is given twice")
        models[role] = model
    return models


@click.command()
@click.argument("run", nargs=-1)
@click.option(
    "--by",
    default="role,model",
    show_default=True,
    callback=_keys,
    help=f"Any of {','.join(_COST_KEYS)} (a day is a UTC date).",
)
@click.option("--explain", metavar="SPAN", help="Show the arithmetic of one call of the run.")
@click.option(
    "--as",
    "models",
    multiple=True,
    callback=_models,
    metavar="ROLE=MODEL",
    help="What it would have cost with another model: sub=MODEL, root=MODEL, or both. Nothing is asked.",
)
@shared_options
@click.pass_obj
def cost(
    state: State, run: tuple[str, ...], by: tuple[str, ...], explain: str | None, models: dict[str, str]
) -> None:
    """Say what runs cost (all runs when none is named), and on what."""
    if explain is not None:
        if len(run) != 1 or models:
            raise click.UsageError("--explain wants one RUN and no --as")
        _explain(state, run[0], explain)
        return
    from ui import cost_text

    if models:
        from traces.what_if import what_if

        report = what_if(state.home, run, by, models, warn=say)
    else:
        from traces.reading import cost_report

        report = {**cost_report(state.home, run, by, warn=say), "diagnoses": _diagnoses(state.home, run)}
    if state.as_json:
        print_json(report)
        return
    lines = cost_text.what_if_table(report, by) if models else cost_text.cost_table(report, by)
    click.echo("\n".join(lines))


def _diagnoses(home: Home, run: tuple[str, ...]) -> dict[str, Any]:
    """What diagnoses of these runs (of all runs) spent in replays that are no runs."""
    from traces.diagnosis_spending import spent_beside
    from traces.reading import resolve_run
    from traces.rows import money_json

    spent = spent_beside(home, {resolve_run(home, ref) for ref in run} if run else None)
    return {"live_calls": spent.live_calls, "cost_usd": money_json(spent.usd)}


def _explain(state: State, run: str, span_id: str) -> None:
    from traces.explain import explain
    from traces.reading import load_run, resolve_run, resolve_span
    from ui import cost_text

    home = state.home
    view = load_run(home, resolve_run(home, run, warn=say), warn=say)
    document = explain(view, resolve_span(view, span_id))
    if state.as_json:
        print_json(document)
        return
    click.echo("\n".join(cost_text.explanation(document)))
