"""Modules of `traces` found by their place: what is needed to say that another project's `traces` was
imported, without that package being run for it.
"""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

_TRACES: Final = Path(__file__).resolve().parents[1] / "traces"


def by_place(name: str) -> ModuleType:
    """Our module `traces.NAME`, whichever `traces` Python would import; it imports nothing of ours itself."""
    spec = spec_from_file_location(f"ui._{name}", _TRACES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
