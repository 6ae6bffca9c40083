"""Recording, storing, reading and diagnosing runs.

Importing this package loads neither DuckDB nor the OpenTelemetry SDK: `traces.recording` needs the SDK,
`traces.store` needs DuckDB, and the functions of `traces.reading` import the store when they are called.
`open_store` (for notebooks) and `instrument` (to record the runs of another engine) are loaded when they are
first named.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traces.frames import open_store
    from traces.instrumenting import instrument

__all__ = ["instrument", "open_store"]

_LATE = {"instrument": "traces.instrumenting", "open_store": "traces.frames"}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)
