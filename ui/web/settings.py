"""What a person has set for this home: `home/settings.toml`. No Streamlit: the command line reads it too.

Who decides, first to last: an option of the command line or a field of the form, the environment,
settings.toml, the demo model. Keys are not in here, see `ui.web.settings_keys`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from rlm_core.errors import InputError
from rlm_core.models import ROOT_VARIABLE, SUB_VARIABLE, check_usable
from rlm_core.sandbox import Level, checked_level
from ui.web.order import LimitValue, checked_limits
from ui.web.settings_keys import environment_with_keys, write_private

if TYPE_CHECKING:
    from rlm_core.limits import Limits
    from traces.home import Home

__all__ = ["Origin", "Settings", "environment_with_keys", "load_settings", "save_settings"]

Origin = Literal["environment", "settings", "demo"]

_LIMITS: Final = (
    "max_iterations", "max_depth", "max_calls", "max_tokens", "max_seconds", "max_cost_usd", "concurrency",
    "max_tool_calls", "max_tool_rounds",
)  # fmt: skip
_HEAD: Final = "# Settings of rlmscope. The app writes this file anew; keys of providers are in keys.json.\n"


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults of runs; None or a limit that is not there: nothing was set.

    `limits` are as in `ui.web.order.Order`: whole numbers, `max_seconds` a number, `max_cost_usd` dollars
    as text. `sandbox` is the lowest level to accept.
    """

    root: str | None = None
    sub: str | None = None
    limits: Mapping[str, LimitValue] = field(default_factory=dict)
    sandbox: Level | None = None

    def over(self, environ: Mapping[str, str]) -> dict[str, str]:
        """An environment in which the model variables that it does not have are these settings.

        So `rlm_core.models.default_models(settings.over(os.environ))` are the models of a run for which
        nothing else was said.
        """
        said = {ROOT_VARIABLE: self.root, SUB_VARIABLE: self.sub}
        return {**{name: model for name, model in said.items() if model is not None}, **environ}

    def origin(self, environ: Mapping[str, str]) -> tuple[Origin, Origin]:
        """Where the default root model and sub-model come from; one that stands for both, stands for both."""
        root = _origin(ROOT_VARIABLE, self.root, environ)
        sub = _origin(SUB_VARIABLE, self.sub, environ)
        return root or sub or "demo", sub or root or "demo"

    def checked_limits(self) -> Limits:
        """The limits of a run for which nothing else was said."""
        return checked_limits(self.limits)


def _origin(variable: str, model: str | None, environ: Mapping[str, str]) -> Origin | None:
    return "environment" if variable in environ else "settings" if model is not None else None


def load_settings(home: Home) -> Settings:
    """The settings of a home; those of a home without any are empty.

    Raises InputError, in one sentence that names the file and the setting, for anything in it that is none.
    """
    try:
        kept = tomllib.loads(home.settings.read_text("utf-8"))
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise InputError(f"{home.settings} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"{home.settings} is not TOML: {error}; correct or remove it") from error
    try:
        return _checked(kept)
    except InputError as error:
        raise InputError(f"{error} (in {home.settings}; correct or remove it there)") from error


def save_settings(home: Home, settings: Settings) -> None:
    """Keep settings for later runs, all of them or none.

    Raises InputError for what cannot be a setting, RecordError when it cannot be written.
    """
    limits = {name: value for name, value in settings.limits.items() if value is not None}
    named = {"root": settings.root, "sub": settings.sub, "sandbox": settings.sandbox}
    kept: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    _checked({**kept, "limits": limits})
    lines = [_line(name, value) for name, value in kept.items()]
    if limits:
        lines += ["", "[limits]", *(_line(name, value) for name, value in limits.items())]
    write_private(home.settings, _HEAD + "\n".join(lines) + "\n")


def _line(name: str, value: object) -> str:
    # checked values: printable text without control characters, numbers; JSON writes those as TOML does
    return f"{name} = {json.dumps(value, ensure_ascii=False)}"


def _checked(kept: Mapping[str, Any]) -> Settings:
    """Settings from what a file holds. Raises InputError that names what cannot be one."""
    for name in kept:
        if name not in ("root", "sub", "sandbox", "limits"):
            raise InputError(f"there is no setting {name[:80]!r}; there are root, sub, sandbox and [limits]")
    for name in ("root", "sub", "sandbox"):
        if not isinstance(kept.get(name), str | None):
            raise InputError(f"the setting {name} must be a text in quotes")
    for name in ("root", "sub"):
        if name in kept:
            check_usable(kept[name], f"the setting {name}")
    limits = kept.get("limits", {})
    if not isinstance(limits, dict):
        raise InputError("the settings of limits are a table, [limits]")
    for name in limits:
        if name not in _LIMITS:
            raise InputError(f"there is no limit {name[:80]!r}; there are {', '.join(_LIMITS)}")
    checked_limits(limits)
    level = None if kept.get("sandbox") is None else checked_level(kept["sandbox"])
    return Settings(kept.get("root"), kept.get("sub"), limits, level)
