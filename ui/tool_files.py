"""Tools for sub-models by name: those that are built in, and functions of a person's own files.

A file is run as Python with all rights of whoever started the command: it is theirs, like the command itself.
"""

from __future__ import annotations

import importlib.util
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_core.errors import InputError

if TYPE_CHECKING:
    from rlm_core.tools import Tool


def find_tool(name: str) -> Tool:
    """The tool of a name: a built-in one, or `FILE.py:NAME`, a `Tool` or a function with annotations there.

    Raises InputError, in one sentence, when there is none.
    """
    path, colon, attribute = name.rpartition(":")
    return _from_file(Path(path), attribute) if colon else _built_in(name)


def _built_in(name: str) -> Tool:
    from rlm_core.builtin_tools import BUILTIN

    try:
        return BUILTIN[name]
    except KeyError:
        known = ", ".join(sorted(BUILTIN))
        raise InputError(
            f"there is no built-in tool {name[:80]!r}; there are {known}, or write FILE.py:NAME"
        ) from None


def _from_file(path: Path, name: str) -> Tool:
    from rlm_core.tools import Tool, tool

    found = getattr(_module(path), name, None)
    if isinstance(found, Tool):
        return found
    if found is None or not callable(found):
        what = "holds no" if found is None else "holds no function but a value called"
        raise InputError(f"{path} {what} {name!r}; --tool takes FILE.py:NAME of a function")
    try:
        return tool(found)
    except (InputError, TypeError, ValueError, NameError) as error:
        raise InputError(f"{name} in {path} cannot be a tool: {error}") from None


def _module(path: Path) -> Any:
    """The file, run as a module of its own that stays known, so that its dataclasses and pickles work."""
    if path.suffix != ".py" or not path.is_file():
        raise InputError(f"--tool: {str(path)!r} is no Python file here; it takes a name or FILE.py:NAME")
    name = f"rlmscope_tools_{path.resolve().as_posix().encode().hex()}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with redirect_stdout(sys.stderr):  # what it prints is no part of what the command says
            spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise InputError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    return module
