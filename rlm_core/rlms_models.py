"""Backends of the `rlms` package as model ids of this engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from rlm_core.errors import ConfigError
from rlm_core.models import DEMO_ROOT, DEMO_SUB

# backend -> (prefix of its model ids, variable of its key, variables of its address); LiteLLM's names
_BACKENDS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "openai": ("openai/", "OPENAI_API_KEY", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "anthropic": ("anthropic/", "ANTHROPIC_API_KEY", ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE")),
    "gemini": ("gemini/", "GEMINI_API_KEY", ("GEMINI_API_BASE",)),
    "openrouter": ("openrouter/", "OPENROUTER_API_KEY", ("OPENROUTER_API_BASE",)),
    "azure_openai": ("azure/", "AZURE_API_KEY", ("AZURE_API_BASE",)),
    "vllm": ("hosted_vllm/", "HOSTED_VLLM_API_KEY", ("HOSTED_VLLM_API_BASE",)),
    "vercel": ("vercel_ai_gateway/", "VERCEL_AI_GATEWAY_API_KEY", ("VERCEL_AI_GATEWAY_API_BASE",)),
    "demo": ("demo/", "", ()),
}
_ADDRESSES: Final = ("base_url", "azure_endpoint")
_TAKEN: Final = frozenset({"model_name", "api_key", "sampling_args", "max_tokens", *_ADDRESSES})


def model_id(backend: str, kwargs: Mapping[str, Any]) -> str:
    """The model id for a backend and its `model_name`.

    Keys and addresses come from the environment alone: those in `kwargs` have to be the same, and are not
    used. Raises `ConfigError` for what cannot be had; its sentence holds no key.
    """
    if backend not in _BACKENDS:
        raise ConfigError(f"backend {backend!r} is not supported; there are {', '.join(_BACKENDS)}")
    prefix, key, addresses = _BACKENDS[backend]
    if unknown := sorted(kwargs.keys() - _TAKEN):
        raise ConfigError(f"{unknown[0]} of backend_kwargs is not supported; leave it out")
    if kwargs.get("api_key") not in (None, os.environ.get(key)):
        raise ConfigError(f"keys come from the environment: set {key or 'none'} instead of api_key")
    for argument in _ADDRESSES:
        given = kwargs.get(argument)
        if given is not None and given not in [os.environ.get(variable) for variable in addresses]:
            where = addresses[0] if addresses else "none"
            raise ConfigError(f"addresses come from the environment: set {where} instead of {argument}")
    name = kwargs.get("model_name")
    if not name and backend != "demo":
        raise ConfigError('which model? Say it in backend_kwargs={"model_name": "..."}')
    return f"{prefix}{name or 'root'}"


def counterpart(root: str) -> str:
    """The sub-model where none is named: the same model, of the demo its sub-model."""
    return DEMO_SUB if root == DEMO_ROOT else root


def reply_tokens(kwargs: Mapping[str, Any], sampling: Mapping[str, Any] | None) -> int | None:
    """The most tokens of one reply, if that is said. Raises `ConfigError` for other sampling arguments."""
    given = {**(kwargs.get("sampling_args") or {}), **(sampling or {})}
    if unknown := sorted(given.keys() - {"max_tokens"}):
        raise ConfigError(f"{unknown[0]} in sampling_args is not supported: only max_tokens is")
    tokens = given.get("max_tokens", kwargs.get("max_tokens"))
    if tokens is not None and (not isinstance(tokens, int) or tokens < 1):
        raise ConfigError(f"max_tokens of a reply must be a whole number of at least 1, not {tokens!r}")
    return tokens
