"""The limits and options that a run had, out of its record: what playing it again, or continuing it, begins
with.

The record is untrusted: what no run can have had is a `RecordError` with one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from rlm_core.errors import ConfigError, RecordError
from rlm_core.limits import Limits
from rlm_core.lm_handler import ToolSpec
from rlm_core.models import check_model_id
from rlm_core.options import DepthModels, Options
from rlm_core.tools import Tool, has_function, without_function
from traces.detail import decoded

_LEAST: Final = {"max_iterations": 1, "concurrency": 1, "max_workers": 1}
_MOST: Final = 1 << 62  # of any limit: what no part of the engine can count any more is no limit
_OF_THE_MACHINE: Final = ("concurrency", "max_workers", "memory_bytes", "scratch_bytes", "scratch_files")
_OF_THE_PURSE: Final = ("max_iterations", "max_depth", "max_calls", "max_tool_rounds", "max_tool_calls")
_STRETCHED: Final = (
    "cell_seconds", "cell_cpu_seconds", "tool_seconds", "request_timeout", "max_prompt_chars",
    "output_kept_chars", "output_shown_chars", "max_tokens_sub", "max_tokens_root",
)  # fmt: skip
_ROOMY: Final = 10
_SPENDING: Final = ("max_calls", "max_tokens", "max_cost_usd", "max_tool_calls")


def read_limits(raw: object, *, spending: bool = False) -> Limits:
    """The limits a run had; those on calls, tokens and dollars only with `spending`, since what a replay
    spends has a budget of its own.
    """
    said = decoded(raw)
    known = Limits(max_calls=None)
    if not isinstance(said, dict):
        return known if not spending else Limits()
    values = {one.name: said[one.name] for one in fields(Limits) if one.name in said}
    given = {name: values.pop(name) for name in _SPENDING if name in values}
    for name, value in values.items():
        if not _fits(value, getattr(known, name), _LEAST.get(name, 0)):
            raise _impossible(name, value)
    if spending:
        values |= {name: _amount(name, value) for name, value in given.items()}
    return replace(known, **values)


def bounded(limits: Limits, *, spending: bool = False) -> Limits:
    """The limits of a run that a file brought here: what it may take of this machine, and with `spending` of
    the purse, is no more than any run may take that does not ask for more; texts and times ten times that.
    """
    usual, most = Limits(), {}
    for name in (*_OF_THE_MACHINE, *(_OF_THE_PURSE if spending else ())):
        most[name] = getattr(usual, name)
    most |= {name: getattr(usual, name) * _ROOMY for name in _STRETCHED}
    said = {name: getattr(limits, name) for name in most}
    return replace(
        limits,
        **{name: most[name] for name, value in said.items() if value is None or value > most[name]},
    )


def lowered(was: Limits, now: Limits) -> str | None:
    """What `bounded` has lowered, as a sentence; None where it was nothing."""
    names = [one.name for one in fields(Limits) if getattr(was, one.name) != getattr(now, one.name)]
    if not names:
        return None
    said = ", ".join(f"{name} {_said(getattr(now, name))} for {_said(getattr(was, name))}" for name in names)
    return f"Its record was brought here, so that its limits hold up to the usual ones only: {said}."


def _said(limit: object) -> str:
    return "no limit" if limit is None else f"{limit:,}"


def _fits(value: object, example: object, least: int) -> bool:
    if value is None:
        return example is None
    kinds = (int, float) if example is None or isinstance(example, float) else (int,)
    return type(value) in kinds and least <= value <= _MOST  # type: ignore[operator]


def _amount(name: str, value: object) -> int | Decimal | None:
    """A limit on spending."""
    if value is None or (name != "max_cost_usd" and _fits(value, 1, 0)):
        return value  # type: ignore[return-value]
    try:
        usd = Decimal(value) if name == "max_cost_usd" and isinstance(value, str) else None
    except InvalidOperation:
        usd = None
    if usd is None or not usd.is_finite() or not 0 <= usd <= _MOST:
        raise _impossible(name, value)
    return usd


def _impossible(name: str, value: object) -> RecordError:
    return RecordError(
        f"The record says that the limit {name} was {repr(value)[:40]}, which it cannot have been: "
        "it is not replayable."
    )


def read_options(raw: object) -> Options:
    """The options a run had; those of a record that says nothing of them are the usual ones.

    Tools are as they were declared; built-in ones have their functions, of others see `lacking`.
    """
    said = decoded(raw)
    if not isinstance(said, dict):
        return Options()
    tools, models, schema = said.get("tools"), said.get("models"), said.get("schema")
    usual = Options()
    try:
        return Options(
            strategy=said.get("strategy", usual.strategy),
            cache=said.get("cache") is True,
            schema=schema if isinstance(schema, dict) else None,
            tools=tuple(_tool(one) for one in tools) if isinstance(tools, list) else (),
            models=_models(models) if isinstance(models, dict) else {},
            root_window=_whole(said.get("root_window")),
            passages=_whole(said.get("passages")) or usual.passages,
        )
    except (ConfigError, TypeError, ValueError) as error:
        raise RecordError(f"The options in the record are none that a run can have: {error}.") from None


def lacking(options: Options) -> tuple[str, ...]:
    """The names of the tools that a record only describes."""
    return tuple(tool.spec.name for tool in options.tools if not has_function(tool))


def with_models(options: Options, root: str | None, sub: str | None) -> Options:
    """The options for other models: one that is named takes the place of all of its role, at every depth."""
    kept = {
        depth: DepthModels(named.root if root is None else None, named.sub if sub is None else None)
        for depth, named in options.models.items()
    }
    return replace(options, models=kept)


def _tool(said: object) -> Tool:
    from rlm_core.builtin_tools import BUILTIN

    if not isinstance(said, dict):
        raise ValueError("a tool is no object")
    name, description, parameters = said.get("name"), said.get("description"), said.get("parameters")
    if not (isinstance(name, str) and isinstance(description, str) and isinstance(parameters, dict)):
        raise ValueError("a tool has no name, description or parameters")
    spec = ToolSpec(name, description, parameters)
    known = BUILTIN.get(name)
    return known if known is not None and known.spec == spec else without_function(spec)


def _models(said: Mapping[str, Any]) -> dict[int, DepthModels]:
    found = {}
    for depth, named in said.items():
        root, sub = (named.get(role) for role in ("root", "sub")) if isinstance(named, dict) else (None, None)
        found[int(depth)] = DepthModels(_model(root), _model(sub))
    return found


def _model(said: object) -> str | None:
    """The id of a model. Raises ConfigError for a text that is none, such as an address."""
    if not isinstance(said, str):
        return None
    check_model_id(said, "a model in the record")
    return said


def _whole(value: object) -> int | None:
    return value if type(value) is int and 0 < value <= _MOST else None
