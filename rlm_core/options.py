"""How a run goes about its question, beside its models and limits: all of it is on record with the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from rlm_core.errors import ConfigError
from rlm_core.lm_handler import ToolSpec
from rlm_core.schema_check import SchemaError, shape_of
from rlm_core.tools import Tool, checked

Strategy = Literal[
    "rlm", "rlm-no-subcalls", "direct", "compaction", "codeact", "retrieve", "retrieve+rlm"
]  # fmt: skip
STRATEGIES: Final[tuple[Strategy, ...]] = get_args(Strategy)
WITH_SUB_CALLS: Final[frozenset[Strategy]] = frozenset({"rlm", "retrieve+rlm"})


@dataclass(frozen=True, slots=True)
class DepthModels:
    """Models from one depth on down; None = those of the depth above."""

    root: str | None = None
    sub: str | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What a run may be told beside its models and limits.

    `strategy` is how it answers. `cache`: sub-calls with equal requests are answered once and recorded as
    hits. `schema` is the JSON schema the final answer has to fit. `tools` may be called by sub-models, never
    by the root. `models` names other models from a depth on. `root_window` is how many tokens the root's
    messages may have before they are compacted (None: what is known of the model). `passages` is how many
    passages the strategies that retrieve give to the root. Raises `ConfigError` for what cannot be.
    """

    strategy: Strategy = "rlm"
    cache: bool = False
    schema: Mapping[str, Any] | None = None
    tools: tuple[Tool, ...] = ()
    models: Mapping[int, DepthModels] = field(default_factory=dict)
    root_window: int | None = None
    passages: int = 8

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ConfigError(f"there is no strategy {self.strategy!r}; there are {', '.join(STRATEGIES)}")
        names = [tool.spec.name for tool in self.tools]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(f"two tools are called {doubled[0]}")
        checked(self.tools)
        if self.tools and self.strategy not in WITH_SUB_CALLS:
            raise ConfigError(f"tools are for sub-models, and the strategy {self.strategy} asks none")
        if self.schema is not None:
            try:
                shape_of(self.schema)
            except SchemaError as error:
                raise ConfigError(f"the schema of the answer: {error}") from None
        if any(depth < 0 for depth in self.models):
            raise ConfigError("models can be named for a depth from 0 on")
        if self.passages < 1:
            raise ConfigError(f"passages must be at least 1, not {self.passages}")
        if self.root_window is not None and self.root_window < 1:
            raise ConfigError(f"root_window must be at least 1 token, not {self.root_window}")

    @property
    def tool_specs(self) -> tuple[ToolSpec, ...]:
        """The tools as a model is told of them."""
        return tuple(tool.spec for tool in self.tools)

    def models_at(self, depth: int, root: str, sub: str) -> tuple[str, str]:
        """Root and sub model at a depth, from those of the run."""
        for level in sorted(self.models):
            if level <= depth:
                named = self.models[level]
                root, sub = named.root or root, named.sub or sub
        return root, sub

    def to_json(self) -> dict[str, Any]:
        """For the record; see `rlm_core.semconv.OPTIONS`."""
        return {
            "strategy": self.strategy,
            "cache": self.cache,
            "schema": self.schema,
            "tools": [
                {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
                for spec in self.tool_specs
            ],
            "models": {str(depth): {"root": m.root, "sub": m.sub} for depth, m in self.models.items()},
            "root_window": self.root_window,
            "passages": self.passages,
        }
