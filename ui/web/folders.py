"""Which folders of this machine the path fields may read: all, or those of `rlmscope app --folder`.

They stand in an environment variable of the app, so that every page knows them and no page can change them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlm_core.errors import InputError
from ui.corpora import UPLOADS

if TYPE_CHECKING:
    from traces.home import Home

_VARIABLE: Final = "RLMSCOPE_APP_FOLDERS"


def allow_only(folders: Iterable[Path], environ: MutableMapping[str, str]) -> None:
    """Let the path fields read what lies below these folders; anything when there are none."""
    real = [os.path.realpath(folder) for folder in folders]
    environ.pop(_VARIABLE, None)
    if real:
        environ[_VARIABLE] = json.dumps(real)


def check_allowed(home: Home, paths: Iterable[str | Path], environ: Mapping[str, str]) -> None:
    """Raise InputError for the first path that may not be read. Uploads of the home always may.

    A link counts as what it leads to; links inside of a folder are not followed out of it anyway (`walk`).
    """
    if _VARIABLE not in environ:
        return
    allowed = json.loads(environ[_VARIABLE])
    places = [*allowed, os.path.realpath(home.root / UPLOADS)]
    for path in paths:
        real = os.path.realpath(path)
        if not any(Path(real).is_relative_to(place) for place in places):
            below = ", ".join(allowed)
            raise InputError(
                f"{path} may not be read: this app was started to read only what lies below {below}"
            )
