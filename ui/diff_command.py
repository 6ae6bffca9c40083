"""`rlmscope diff`: two runs compared span by span, as text or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from ui.common import State, print_json, say, shared_options

if TYPE_CHECKING:
    from traces.diff import Diff

HOW: Final = "normalised"


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--match", "how", metavar="HOW", default=HOW, help=f"How the answers are compared [{HOW}].")
@click.option("--all", "everything", is_flag=True, help="List every difference; cut no code.")
@shared_options
@click.pass_obj
def diff(state: State, a: str, b: str, how: str, everything: bool) -> None:
    """Compare two runs; A is mostly the one whose answer is wrong, B a good one or a twin.

    Says which sub-calls were asked the same and answered differently (the frontier: there the difference
    begins), what differs after them, and where the roots wrote other code. No model is asked. HOW is
    normalised, exact (responses too), number (number±0.5 with a tolerance), set or judge.
    """
    from traces.diff import diff as compare
    from traces.reading import load_run, resolve_run

    home = state.home
    views = [load_run(home, resolve_run(home, run, warn=say), warn=say) for run in (a, b)]
    found: Diff = compare(views[0], views[1], how)
    if state.as_json:
        print_json(found.to_json())
        return
    from ui.diff_text import diff_text

    click.echo("\n".join(diff_text(found, views[0], views[1], everything=everything)))
