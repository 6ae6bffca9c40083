"""How many tokens a model takes as input, and what else LiteLLM's table says of it.

The table is read as a file: importing LiteLLM takes seconds. It is keyed by the model that is asked for, as
prices are; what answers under that name behind a server of one's own is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from rlm_core.providers import model_table


def context_window(model: str) -> int | None:
    """Tokens that a model takes as input, by LiteLLM's table; None when that is not known."""
    facts = known_facts(model)
    most = facts.get("max_input_tokens") or facts.get("max_tokens")
    return most if type(most) is int and most > 0 else None


@lru_cache(maxsize=64)
def known_facts(model: str) -> Mapping[str, Any]:
    """The entry of LiteLLM's table for a model id, with or without its provider; empty when there is none."""
    table = model_table()
    facts = table.get(model) or table.get(model.partition("/")[2]) or {}
    return facts if isinstance(facts, Mapping) else {}
