"""`rlmscope prices`: what a million tokens cost, model by model; prices of one's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from ui.common import State, print_json, say, shared_options
from ui.params import Rate

if TYPE_CHECKING:
    from traces.home import Home


class _Prices(click.Group):
    """A group whose first word may also be a model: `prices MODEL` is `prices list MODEL`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `list` in front of what begins with no command."""
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Prices)
def prices() -> None:
    """What models cost, in dollars per million tokens.

    `rlmscope prices [MODEL...]` lists the price rows in force: of the models named, else of all models that
    were used here, are configured, or have a price of your own. Your own prices stand above the table that
    comes with the program; later runs use them, recorded runs keep the prices they were made with. Each of
    these commands takes --home and --json, as all commands do.
    """


@prices.command(name="list")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@shared_options
@click.pass_obj
def list_(state: State, models: tuple[str, ...]) -> None:
    """List the price rows in force (this is what `rlmscope prices` does)."""
    from traces.prices import price_list

    home = state.home
    listed = price_list(home, models or known_models(home, os.environ))
    if state.as_json:
        print_json(listed)
        return
    from ui.prices_text import prices_table

    click.echo("\n".join(prices_table(listed)))


def known_models(home: Home, environ: Mapping[str, str]) -> list[str]:
    """Models of calls on record, of the configuration, and with a price of a person's."""
    from rlm_core.models import default_models
    from traces.prices import overrides
    from traces.reading import cost_report
    from ui.web.settings import load_settings

    used = (row["model"] for row in cost_report(home, (), ("model",), warn=say)["rows"])
    root, sub, _ = default_models(load_settings(home).over(environ))
    own = (override.model for override in overrides(home))
    return sorted({*(model for model in used if model), root, sub, *own})


@prices.command(name="set")
@click.argument("model")
@click.option("--input", "input_", type=Rate(), metavar="USD", help="For a million input tokens.")
@click.option("--output", type=Rate(), metavar="USD", help="For a million output tokens.")
@click.option("--cached-read", type=Rate(), metavar="USD", help="Read from a cache [default: as input].")
@click.option("--cache-write", type=Rate(), metavar="USD", help="Written to a cache [default: as input].")
@click.option("--free", is_flag=True, help="The model costs nothing.")
@click.option("--from", "start", metavar="DATE", help="First day (UTC) it counts for [default: all].")
@click.option("--note", metavar="TEXT", help="Why, or where it is written.")
@shared_options
@click.pass_obj
def set_(
    state: State, /, model: str, free: bool, start: str | None, note: str | None, **given: Decimal | None
) -> None:
    """Set the price of a model id, exactly as runs name it, for later runs."""
    from traces.prices import price_list, set_price

    rates = {name.rstrip("_"): rate for name, rate in given.items() if rate is not None}
    if free:
        if rates:
            raise click.UsageError("--free says it all: leave out the other prices")
        rates = {"input": Decimal(0), "output": Decimal(0)}
    elif not {"input", "output"} <= rates.keys():
        raise click.UsageError("a price needs --input and --output, or --free")
    home = state.home
    set_price(home, model, rates, valid_from=None if start is None else _date(start), note=note)
    _show(state, price_list(home, [model]))


@prices.command()
@click.argument("model")
@shared_options
@click.pass_obj
def unset(state: State, model: str) -> None:
    """Withdraw every price that was set for a model: the table counts again, for later runs."""
    from traces.prices import price_list, unset_price

    home = state.home
    unset_price(home, model)
    _show(state, price_list(home, [model]))


def _show(state: State, listed: list[dict[str, Any]]) -> None:
    """What holds now."""
    if state.as_json:
        print_json(listed)
        return
    from ui.prices_text import prices_table

    click.echo("\n".join(prices_table(listed)))


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text[:40]!r} is not a date like 2027-01-31", param_hint="--from"
        ) from None
