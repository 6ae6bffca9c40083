"""Tools that sub-models may call: declared functions of the host, not of the sandbox, never for the root."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlm_core.corpus import Corpus
from rlm_core.lm_handler import ToolSpec


@dataclass(frozen=True, slots=True)
class Tool:
    """A declared function. `run` gets the corpus of the run that calls and the checked arguments; it returns
    text, or what JSON can hold, directly or awaited. What it raises is told to the model as an error.
    """

    spec: ToolSpec
    run: Callable[[Corpus, Mapping[str, Any]], Any | Awaitable[Any]]
