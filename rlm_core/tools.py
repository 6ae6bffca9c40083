"""Tools that sub-models may call: declared functions of the host, not of the sandbox, never for the root."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rlm_core.corpus import Corpus
from rlm_core.errors import ConfigError
from rlm_core.lm_handler import ToolSpec
from rlm_core.schema_check import SchemaError, Shape

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")  # what every provider takes
_KINDS: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Tool:
    """A declared function. `run` gets the corpus of the run that calls and the checked arguments; it returns
    text, or what JSON can hold, directly or awaited. What it raises is told to the model as an error.

    A sync function runs in a thread of its own, an async one on the engine's event loop, which it must not
    block. Raises `ConfigError` for a name or schema that no provider would take.
    """

    spec: ToolSpec
    run: Callable[[Corpus, Mapping[str, Any]], Any | Awaitable[Any]]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.spec.name):
            raise ConfigError(
                f"a tool cannot be called {self.spec.name[:80]!r}: letters, digits, _ and - only, 64 at most"
            )
        if self.spec.parameters.get("type") != "object":
            raise ConfigError(f"the arguments of tool {self.spec.name} must be a schema of type object")


def tool(function: Callable[..., Any], *, name: str | None = None) -> Tool:
    """A tool from a function, sync or async: its name, its docstring, its annotated parameters (by pydantic).

    A parameter annotated `Corpus` gets the corpus of the run and is not shown to the model. Arguments arrive
    as the annotated types. Raises `ConfigError` for what a model could not be told: no docstring, a parameter
    without annotation, positional-only or of any number.
    """
    called = str(name or getattr(function, "__name__", "tool"))
    told = inspect.getdoc(function) if inspect.isroutine(function) else None
    if not told:
        raise ConfigError(f"tool {called} needs a docstring: it is all a model is told of it")
    fields, given = _fields(function, called)
    arguments, parameters = _model(called, fields)

    def run(corpus: Corpus, values: Mapping[str, Any]) -> Any:
        made = arguments.model_validate(dict(values))
        typed = {field: getattr(made, field) for field in fields}
        return function(**typed, **dict.fromkeys(given, corpus))

    async def run_async(corpus: Corpus, values: Mapping[str, Any]) -> Any:
        return await run(corpus, values)

    is_async = inspect.iscoroutinefunction(function)
    return Tool(ToolSpec(called, told, parameters), run_async if is_async else run)


def without_function(spec: ToolSpec) -> Tool:
    """A tool that is only known from a record: sub-calls that would need it live fail with a clear error."""
    return Tool(spec, _not_here)


def has_function(declared: Tool) -> bool:
    """Whether a tool can be called, or is only known from a record."""
    return declared.run is not _not_here


def checked(tools: typing.Iterable[Tool]) -> None:
    """Raise `ConfigError` for a tool whose argument schema cannot be used."""
    for one in tools:
        try:
            Shape(one.spec.parameters)
        except SchemaError as error:
            raise ConfigError(f"tool {one.spec.name}: {error}") from None


def _not_here(corpus: Corpus, values: Mapping[str, Any]) -> Any:
    raise ConfigError("the function of this tool is not known here")


def _fields(function: Callable[..., Any], name: str) -> tuple[dict[str, Any], list[str]]:
    """Parameters for a model, (annotation, default) by name, and those that get the corpus."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigError(f"the annotations of tool {name} cannot be read: {error}") from None
    fields: dict[str, Any] = {}
    given: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in _KINDS:
            raise ConfigError(f"tool {name}: parameter {parameter.name} cannot be given by name")
        if parameter.name not in hints:
            raise ConfigError(f"tool {name}: parameter {parameter.name} has no annotation")
        if hints[parameter.name] is Corpus:
            given.append(parameter.name)
            continue
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    return fields, given


def _model(name: str, fields: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A pydantic model of the arguments, and its JSON schema."""
    import pydantic

    try:
        made = pydantic.create_model(
            name, __config__=pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields
        )
        schema: dict[str, Any] = made.model_json_schema()
    except (pydantic.errors.PydanticUserError, NameError, TypeError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"tool {name}: its parameters cannot be told as a JSON schema: {first}") from None
    schema.pop("title", None)
    for described in schema.get("properties", {}).values():
        described.pop("title", None)
    return made, {"type": "object", "properties": {}, **schema}
