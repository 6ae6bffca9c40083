"""Is the code that was imported ours?

Other distributions use the import names `traces` and `rlm_core`. Installed beside this one they shadow or
overwrite our packages without a word from the installer, and the program would fail later in ways nobody
could read. This module therefore imports nothing of ours.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

PACKAGES: Final = ("rlm_core", "traces", "ui")
_HERE: Final = Path(__file__).resolve().parent.parent
_ADVICE: Final = "install rlmscope in an environment of its own"


def check_identity() -> None:
    """Exit with code 2 and one plain sentence on stderr when a package of another project was found."""
    for name in PACKAGES:
        problem = identity_problem(name)
        if problem:
            print(f"rlmscope: {problem}", file=sys.stderr)
            raise SystemExit(2)


def identity_problem(name: str, ours: Path = _HERE) -> str | None:
    """What is wrong with the package that `import name` gives, or None when it is ours (under `ours`)."""
    spec = find_spec(name)
    if spec is None:
        return f"the package '{name}' of rlmscope is missing; {_ADVICE}"
    if spec.origin is None:
        places = ", ".join(spec.submodule_search_locations or ())
        return f"'{name}' is a folder without code ({places}), not a package of rlmscope; {_ADVICE}"
    origin = Path(spec.origin).resolve()
    if origin != ours / name / "__init__.py":
        return (
            f"the package '{name}' at {origin.parent} belongs to another project, not to rlmscope; {_ADVICE}"
        )
    if not _as_installed(origin, name, ours):
        return f"the package '{name}' at {origin.parent} was overwritten by another distribution; {_ADVICE}"
    return None


def _as_installed(origin: Path, name: str, ours: Path) -> bool:
    """Whether the file is the one our installer wrote; a checkout has no list of files and passes."""
    for record in ours.glob("rlmscope-*.dist-info/RECORD"):
        for row in record.read_text("utf-8").splitlines():
            path, _, rest = row.partition(",sha256=")
            if path == f"{name}/__init__.py" and rest:
                digest = base64.urlsafe_b64encode(hashlib.sha256(origin.read_bytes()).digest()).rstrip(b"=")
                return rest.split(",", 1)[0].encode() == digest
    return True
