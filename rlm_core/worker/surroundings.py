"""What Python and its libraries read while they run: the least that a locked worker must see."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
NOTHING: Final = "/dev/null"  # may also be written
KERNEL_FACTS: Final = ("/proc/cpuinfo", "/proc/meminfo")
_SYSTEM: Final = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
    "/usr/share/zoneinfo",
    "/sys/devices/system/cpu",
)
_PACKAGES: Final = ("site-packages", "dist-packages")


def libraries() -> list[str]:
    """Files and folders that exist: the standard library, installed packages, shared libraries, time zones.

    Of the folders on `sys.path` only those that hold installed packages count: a working copy on it would
    lay open everything beside the code.
    """
    packages = (path for path in sys.path if os.path.basename(path) in _PACKAGES)
    own = Path(__file__).parent.parent  # this package, which is looked up again for late imports
    standard = os.path.dirname(os.__file__)
    base = (os.path.join(prefix, sys.platlibdir) for prefix in (sys.base_prefix, sys.base_exec_prefix))
    paths = [*_SYSTEM, *base, os.path.join(sys.base_prefix, "lib"), standard, *packages, str(own)]
    return _outermost(path for path in paths if os.path.exists(path))


def files_of(documents: Iterable[Mapping[str, Any]]) -> list[str]:
    """The files a worker reads for a document table (`Corpus.worker_documents`), each once, sorted."""
    found: set[str] = set()
    for document in documents:
        found.add(document["path"])
        if (checkpoints := document.get("checkpoints")) is not None:
            found.add(checkpoints[0])
    return sorted(found)


def _outermost(paths: Iterable[str]) -> list[str]:
    """The paths without those that lie in another one of them."""
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not kept or not path.startswith(kept[-1].rstrip("/") + "/"):
            kept.append(path)
    return kept
