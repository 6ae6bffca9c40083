"""Requests through the real LiteLLM, asked on an event loop of their own."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from rlm_core.litellm_handler import LiteLLMHandler
from rlm_core.lm_handler import Completion, Message, Request

KEY: Final = "sk-loopback-0123456789"
MESSAGES: Final = (Message("system", "Be short."), Message("user", "Hi, ¿qué tal? 🙂"))


def request(model: str = "openai/sub-test", **more: Any) -> Request:
    """A request; `more` are its fields."""
    return Request(**{"model": model, "messages": MESSAGES, "role": "sub", "timeout": 60.0, **more})


def ask(asked: Request, *more: Request) -> Completion:
    """Ask on a loop of its own, one after the other; the last completion."""

    async def scenario() -> Completion:
        handler = LiteLLMHandler(4)
        try:
            for each in (asked, *more):
                completion = await handler.complete(each)
            return completion
        finally:
            await handler.aclose()

    return asyncio.run(scenario())
