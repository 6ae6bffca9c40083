"""The options that commands which start runs share: models, limits, and how a run goes about its question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ui.params import Dollars, ModelId, Number

if TYPE_CHECKING:
    from rlm_core.limits import Limits
    from rlm_core.options import Options
    from traces.home import Home

F = TypeVar("F", bound=Callable[..., Any])
_COUNT: Final = click.IntRange(min=1)
_MODELS: Final = (
    click.option("--root", type=ModelId(), metavar="MODEL", help="Root model (a LiteLLM id, or demo/root)."),
    click.option("--sub", type=ModelId(), metavar="MODEL", help="Sub-model (a LiteLLM id, or demo/sub)."),
)
_LIMITS: Final = (
    click.option("--max-iterations", type=_COUNT, metavar="N", help="Root turns, at most [default: 30]."),
    click.option(
        "--max-depth", type=click.IntRange(min=0), metavar="N", help="Depth of child runs; 0: none."
    ),
    click.option("--max-calls", type=_COUNT, metavar="N", help="Sub-calls, at most."),
    click.option("--max-tokens", type=_COUNT, metavar="N", help="Tokens of all calls together, at most."),
    click.option("--max-cost", type=Dollars(), metavar="USD", help="Dollars, at most."),
    click.option("--max-seconds", type=Number(0, closed=False), metavar="S", help="Wall time, at most."),
    click.option("--concurrency", type=_COUNT, metavar="N", help="Calls in flight, at most [default: 32]."),
    click.option("--max-tool-calls", type=_COUNT, metavar="N", help="Calls of tools, at most."),
    click.option(
        "--max-tool-rounds", type=_COUNT, metavar="N",
        help="How often one sub-call may go on to call tools [default: 8].",
    ),
)  # fmt: skip
#: Adds `--root-window`, one of `way_options`, by itself.
root_window_option: Final = click.option(
    "--root-window", type=_COUNT, metavar="TOKENS",
    help="Tokens of the root's messages before older turns are summed up [default: what the model has].",
)  # fmt: skip
_WAYS: Final = (
    click.option(
        "--strategy",
        default="rlm",
        metavar="NAME",
        help="How to answer: rlm, rlm-no-subcalls, direct, compaction, codeact, retrieve or retrieve+rlm "
        "[default: rlm].",
    ),
    click.option("--cache", is_flag=True, help="Ask the sub-model equal questions once."),
    click.option(
        "--schema", metavar="FILE|JSON", help="JSON schema of the answer: a file, or the object itself."
    ),
    click.option(
        "--tool", "tools", multiple=True, metavar="NAME",
        help="A tool for the sub-model: a built-in one or FILE.py:NAME; may be repeated.",
    ),
    click.option(
        "--at", multiple=True, metavar="DEPTH:root=MODEL,sub=MODEL",
        help="Other models from a depth of child runs on; may be repeated.",
    ),
    root_window_option,
    click.option(
        "--passages", type=_COUNT, default=8, metavar="K",
        help="Passages the retrieving strategies give to the root [default: 8].",
    ),
)  # fmt: skip


def model_options(command: F) -> F:
    """Add `--root` and `--sub`."""
    return _added(command, _MODELS)


def limit_options(command: F) -> F:
    """Add the limits of a run; `limits_from` reads them."""
    return _added(command, _LIMITS)


def way_options(command: F) -> F:
    """Add how a run goes about its question; `options_from` reads them."""
    return _added(command, _WAYS)


def _added(command: F, options: tuple[Callable[[F], F], ...]) -> F:
    for option in reversed(options):
        command = option(command)
    return command


def limits_from(options: Mapping[str, Any], home: Home) -> Limits:
    """The limits of the options, where there is none those of the settings, else the engine's."""
    from dataclasses import replace

    from ui.web.settings import load_settings

    return replace(load_settings(home).checked_limits(), **given_limits(options))


def given_limits(options: Mapping[str, Any]) -> dict[str, Any]:
    """The limits that `limit_options` name, by the names of `Limits`."""
    names = (
        "max_iterations", "max_depth", "max_calls", "max_tokens", "max_seconds", "concurrency",
        "max_tool_calls", "max_tool_rounds",
    )  # fmt: skip
    given: dict[str, Any] = {name: options[name] for name in names if options[name] is not None}
    cost: Decimal | None = options["max_cost"]
    return given | ({} if cost is None else {"max_cost_usd": cost})


def options_from(options: Mapping[str, Any]) -> Options:
    """What `way_options` say. Raises InputError, in one sentence, for what cannot be."""
    from ui.ways import Way

    names = ("strategy", "cache", "schema", "tools", "at", "root_window", "passages")
    return Way(**{name: options[name] for name in names}).checked()
