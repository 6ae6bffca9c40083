"""The RLM engine: a question over a corpus goes in, an `Answer` and a recorded tree of spans come out.

Everything public is imported on first use, so that the sandboxed worker (which is a module of this package)
starts without paying for the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "RLM": "rlm_core.rlm",
    "Answer": "rlm_core.answer",
    "Completion": "rlm_core.lm_handler",
    "Corpus": "rlm_core.corpus",
    "EventStream": "rlm_core.event_stream",
    "FunctionLMHandler": "rlm_core.lm_handler",
    "LMHandler": "rlm_core.lm_handler",
    "Limits": "rlm_core.limits",
    "ModelError": "rlm_core.errors",
    "Options": "rlm_core.options",
    "RLMScopeError": "rlm_core.errors",
    "RecordedLMHandler": "rlm_core.lm_handler",
    "Recorder": "rlm_core.telemetry",
    "Request": "rlm_core.lm_handler",
    "Usage": "rlm_core.lm_handler",
}

__all__ = ["__version__", *sorted(_EXPORTS)]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
