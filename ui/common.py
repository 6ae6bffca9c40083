"""What every command shares: `--home`, `--json`, one JSON document on stdout, words on stderr."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ui.visible import line

if TYPE_CHECKING:
    from traces.home import Home

F = TypeVar("F", bound=Callable[..., Any])

_SAID = "rlmscope.said"


@dataclass(slots=True)
class State:
    """What the command line knows about this invocation: filled by the options, read by the commands."""

    home_option: Path | None = None
    as_json: bool = False

    @property
    def home(self) -> Home:
        """The home folder that was asked for, or the default one."""
        from traces.home import Home

        return Home.resolve(self.home_option)


def _set(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, _parameter: click.Parameter, value: Any) -> None:
        setattr(ctx.ensure_object(State), name, value)

    return callback


def _set_home(ctx: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value == "":  # `--home "$UNSET"` must not make the working folder a home
        raise click.BadParameter("the name of the folder is empty")
    ctx.ensure_object(State).home_option = None if value is None else Path(value)


def shared_options(command: F) -> F:
    """Add `--home` and `--json`; the command finds them on its `State` (`click.pass_obj`)."""
    home = click.option(
        "--home",
        type=click.Path(),
        expose_value=False,
        callback=_set_home,
        help="Folder of records and corpora (default: $RLMSCOPE_HOME, else the user's data folder).",
    )
    as_json = click.option(
        "--json", is_flag=True, expose_value=False, callback=_set("as_json"), help="Print one JSON document."
    )
    return home(as_json(command))


def print_json(value: Any) -> None:
    """Print one JSON document. ASCII only: it passes any terminal and any encoding, escapes included."""
    click.echo(json.dumps(jsonable(value), indent=2))


def jsonable(value: Any) -> Any:
    """A value as JSON knows it: money as a decimal string, infinities and NaN as words."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Decimal):
        from rlm_core.price_rows import decimal_text

        return decimal_text(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    return str(value)


def say(text: str) -> None:
    """One line for the person, on stderr; not twice in a row. A closed stderr never stops the work."""
    context = click.get_current_context(silent=True)
    if context is not None:
        if context.meta.get(_SAID) == text:
            return
        context.meta[_SAID] = text
    try:
        click.echo(line(text), err=True)
    except OSError:
        return
