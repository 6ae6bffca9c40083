"""How a run is to go about its question, as it was typed: JSON can hold it, `Options` come of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from rlm_core.errors import InputError

if TYPE_CHECKING:
    from rlm_core.options import DepthModels, Options, Strategy
    from rlm_core.tools import Tool

SCHEMA_BYTES: Final = 1 << 20  # of a file; models refuse far smaller ones
_ROLES: Final = ("root", "sub")


@dataclass(frozen=True, slots=True)
class Way:
    """The options of a run in words. `schema` is a JSON object or the path of a file that holds one; `tools`
    are names of built-in tools or FILE.py:NAME; each of `at` is DEPTH:root=MODEL,sub=MODEL.
    """

    strategy: str = "rlm"
    cache: bool = False
    schema: str | None = None
    tools: Sequence[str] = ()
    at: Sequence[str] = ()
    root_window: int | None = None
    passages: int = 8

    def checked(self) -> Options:
        """What the engine takes. Runs the files that tools come from. Raises InputError for what cannot be,
        in one sentence.
        """
        from rlm_core.options import Options

        return Options(
            strategy=cast("Strategy", self.strategy),
            cache=self.cache,
            schema=None if self.schema is None else read_schema(self.schema),
            tools=_tools(self.tools),
            models=_depths(self.at),
            root_window=self.root_window,
            passages=self.passages,
        )


def read_schema(text: str) -> dict[str, Any]:
    """A JSON schema, given as the object itself or as the path of a file that holds it.

    Raises InputError, in one sentence, when there is none.
    """
    from rlm_core.schema_check import SchemaError, Shape

    where, source = "the schema", text
    if not text.lstrip().startswith("{"):
        where, source = f"the schema in {text}", _file_text(text)
    try:
        found = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{where} is not a JSON object but {type(found).__name__}")
    try:
        Shape(found)
    except SchemaError as error:
        raise InputError(f"{where} cannot be used: {error}") from None
    return found


def _file_text(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            raw = file.read(SCHEMA_BYTES + 1)
        if len(raw) > SCHEMA_BYTES:
            raise InputError(f"the schema in {path} is larger than {SCHEMA_BYTES:,} bytes")
        return raw.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"--schema {path[:200]!r} is neither a JSON object nor a file: {reason}") from None


def _tools(names: Sequence[str]) -> tuple[Tool, ...]:
    if not names:
        return ()
    from ui.tool_files import find_tool

    return tuple(find_tool(name) for name in names)


def _depths(given: Sequence[str]) -> Mapping[int, DepthModels]:
    found: dict[int, DepthModels] = {}
    for text in given:
        depth, models = _depth(text)
        if depth in found:
            raise InputError(f"--at names the models of depth {depth} twice; write them in one: {text}")
        found[depth] = models
    return found


def _depth(text: str) -> tuple[int, DepthModels]:
    """One `DEPTH:root=MODEL,sub=MODEL`, either model alone or both."""
    from rlm_core.models import check_usable
    from rlm_core.options import DepthModels

    form = "it must be DEPTH:root=MODEL,sub=MODEL, for example 1:root=openai/NAME"
    depth, colon, named = text.partition(":")
    pairs = [pair.partition("=") for pair in named.split(",")]
    roles = [role.strip() for role, _, _ in pairs]
    if not colon or not (depth.isascii() and depth.isdigit() and len(depth) < 4):
        raise InputError(f"--at {text[:200]!r} names no depth; {form}")
    if len(set(roles)) < len(roles) or not set(roles) <= set(_ROLES):
        raise InputError(f"--at {text[:200]!r} names no models; {form}")
    models = {role: model.strip() for role, (_, _, model) in zip(roles, pairs, strict=True)}
    for role, model in models.items():
        check_usable(model, f"--at {depth}: {role} model")
    return int(depth), DepthModels(**models)
