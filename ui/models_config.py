"""Which models a run uses: the options, else the environment, else (said in words) the demo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rlm_core.limits import Limits
    from rlm_core.options import DepthModels
    from rlm_core.pricing import PriceTable

DEMO_WORDS: Final = "demo model, no language model involved"


@dataclass(frozen=True, slots=True)
class Models:
    """The two models of a run; `notices` are sentences that must reach the person who asked.

    `deeper` are models that only child runs have.
    """

    root: str
    sub: str
    notices: tuple[str, ...]
    demo: bool  # no language model is involved at all
    deeper: tuple[str, ...] = ()


def choose_models(root: str | None, sub: str | None, environ: Mapping[str, str]) -> Models:
    """The models of a run from `--root`, `--sub` and an environment; one of the two alone stands for both.

    Settings of a home count when `environ` is `ui.web.settings.Settings.over` of the environment. Raises
    ConfigError for an id that cannot be used.
    """
    from rlm_core import models

    given_root, given_sub = root is not None, sub is not None
    default_root, default_sub, notice = models.default_models(environ)
    if root is None and sub is None:
        models.check_usable(default_root, "the root model")
        models.check_usable(default_sub, "the sub-model")
        return _told(default_root, default_sub, unset=notice is not None)
    if root is None:
        root = _partner(sub, models.DEMO_ROOT) if notice else default_root
    elif sub is None:
        sub = environ.get(models.SUB_VARIABLE) or _partner(root, models.DEMO_SUB)
    assert root is not None and sub is not None
    models.check_usable(root, "--root" if given_root else "the root model")
    models.check_usable(sub, "--sub" if given_sub else "the sub-model")
    return _told(root, sub)


def _partner(model: str | None, demo: str) -> str | None:
    from rlm_core.models import is_demo

    return demo if model is not None and is_demo(model) else model


def _told(root: str, sub: str, *, unset: bool = False) -> Models:
    from rlm_core.models import ROOT_VARIABLE, SUB_VARIABLE, is_demo

    notices: tuple[str, ...] = ()
    if is_demo(root) and is_demo(sub):
        why = f" (no model is configured: --root, --sub, {ROOT_VARIABLE} and {SUB_VARIABLE} are not set)"
        notices = (DEMO_WORDS + (why if unset else ""),)
    elif is_demo(root):
        notices = (f"the root is a demo model (no language model); sub-calls are answered by {sub}",)
    elif is_demo(sub):
        notices = (f"sub-calls are answered by a demo model (no language model); the root is {root}",)
    return Models(root, sub, notices, is_demo(root) and is_demo(sub))


def with_depths(models: Models, depths: Mapping[int, DepthModels], limits: Limits) -> Models:
    """The models of a run whose child runs have others.

    Raises ConfigError for a depth that no run reaches.
    """
    from rlm_core.errors import ConfigError
    from rlm_core.models import is_demo

    if depths and max(depths) > limits.max_depth:
        raise ConfigError(
            f"--at names models for depth {max(depths)}, but no run gets there: --max-depth is "
            f"{limits.max_depth}"
        )
    named = (model for one in depths.values() for model in (one.root, one.sub))
    deeper = tuple(dict.fromkeys(model for model in named if model is not None))
    asked = ", ".join(model for model in deeper if not is_demo(model))
    if not (models.demo and asked):
        return replace(models, deeper=deeper)
    notice = f"the run has demo models (no language model) where --at names no other; it names {asked}"
    return replace(models, notices=(notice,), demo=False, deeper=deeper)


def check_money_limit(models: Models, limits: Limits, prices: PriceTable) -> None:
    """Raise ConfigError when a cost limit could not hold because a model has no known price.

    Another limit on tokens or calls bounds such a run, so with one the cost limit is allowed.
    """
    from rlm_core.errors import ConfigError
    from rlm_core.limits import unpriced

    unknown = unpriced(limits, (models.root, models.sub, *models.deeper), prices)
    if unknown:
        names = " and ".join(unknown)
        raise ConfigError(
            f"the cost limit cannot hold: the price of {names} is unknown; limit the tokens (--max-tokens) "
            "or the sub-calls (--max-calls) as well, or set its price with `rlmscope prices set`"
        )
