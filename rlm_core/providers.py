"""Which providers LiteLLM knows, read from its files: importing it takes seconds, a mistyped id none.

What it does with an id: `litellm.litellm_core_utils.get_llm_provider_logic`. Its providers are the values of
the enumeration `LlmProviders` in `types/utils.py` and the names in `llms/openai_like/providers.json`; an id
without a provider must stand in its table of models.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from rlm_core.errors import ConfigError
from rlm_core.pricing import DEMO_PREFIX

_ENUM: Final = re.compile(r"^class LlmProviders\(.*?(?=^\S)", re.MULTILINE | re.DOTALL)
_VALUE: Final = re.compile(r"""^    [A-Z0-9_]+ = ["']([^"']+)["']""", re.MULTILINE)
_LIST: Final = Path("types", "utils.py")
_MORE: Final = Path("llms", "openai_like", "providers.json")
_MODELS: Final = Path("model_prices_and_context_window_backup.json")
_LEAST: Final = 20  # fewer providers than this: the files are not what this module knows
_EVERYTHING: Final = "USE_LITELLM_PROXY"  # with it LiteLLM sends every id to a server of its own
#: How the variables begin in which the credentials of a provider stand, and what else is in their names.
_KEYED: Final = {"openai": ("OPENAI_",), "anthropic": ("ANTHROPIC_",), "gemini": ("GEMINI_", "GOOGLE_")}
_CREDENTIAL: Final = re.compile("KEY|TOKEN|IDENTITY|FEDERATION|CREDENTIALS")
# ids that LiteLLM places by a rule: fine-tuned models of OpenAI, versions at Replicate (64 digits), Nova
_BY_RULE: Final = re.compile(r"ft:gpt-(?:3\.5-turbo|4).*|.+:[0-9a-f]{64}|amazon_nova.*")


def check_provider(model: str, what: str = "the model id") -> None:
    """Raise `ConfigError`, in one sentence that begins with `what`, for an id that LiteLLM can place nowhere.

    To be called for ids that `rlm_core.models.check_model_id` lets pass. An id whose provider is known may
    still name a model that its provider does not have. Where LiteLLM's files cannot be read nothing is
    refused.
    """
    if model.startswith(DEMO_PREFIX) or os.environ.get(_EVERYTHING):
        return
    known = providers()
    prefix, slash, _ = model.partition("/")
    if not known or (slash and prefix in known) or _BY_RULE.fullmatch(model) or model in _table():
        return
    shown = repr(model if len(model) <= 80 else model[:77] + "...")
    raise ConfigError(
        f"{what} {shown} names no provider that LiteLLM knows; {_advice(prefix if slash else '')}"
    )


def check_key(model: str, environ: Mapping[str, str]) -> None:
    """Raise `ConfigError` where it is certain that there is no key for a model: its provider takes one from
    the environment alone, and nothing there is or names one. Importing LiteLLM, which would say so too, takes
    seconds.
    """
    provider = model.partition("/")[0]
    names = _KEYED.get(provider)
    if names is None or environ.get(_EVERYTHING):
        return
    given = (name for name, value in environ.items() if value and name.startswith(names))
    if not any(map(_CREDENTIAL.search, given)):
        hint = " (a server that needs no key takes any value)" if provider == "openai" else ""
        raise ConfigError(
            f"{model}: the environment variable {names[0]}API_KEY is missing{hint}; set it, or keep a key in "
            "the app's Settings"
        )


def _advice(prefix: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(prefix.lower(), providers(), 1, 0.75)
    return f"did you mean {near[0]}/NAME?" if near else "write PROVIDER/NAME, for example openai/NAME"


@lru_cache(maxsize=1)
def providers() -> frozenset[str]:
    """Names of LiteLLM's providers, the first part of its model ids; empty where they cannot be found out."""
    listed = _ENUM.search(_read(_LIST))
    found = set(_VALUE.findall(listed[0])) if listed else set()
    if len(found) < _LEAST:
        return frozenset()
    return frozenset(found) | _names(_MORE)


@lru_cache(maxsize=1)
def _table() -> frozenset[str]:
    return _names(_MODELS)


def model_table() -> dict[str, Any]:
    """LiteLLM's table of models by id, read anew (some 20 ms); empty where it cannot be read."""
    return _entries(_MODELS)


def _names(path: Path) -> frozenset[str]:
    return frozenset(_entries(path))


def _entries(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(_read(path) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _read(path: Path) -> str:
    """The text of one of LiteLLM's files; empty when there is none. Nothing of LiteLLM is imported."""
    spec = find_spec("litellm")
    try:
        return Path((spec and spec.submodule_search_locations or [""])[0], path).read_text("utf-8")
    except OSError:
        return ""
