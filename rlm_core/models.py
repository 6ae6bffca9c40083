"""Which handler answers for which model id, and which models are used when nothing is said."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from rlm_core.errors import ConfigError
from rlm_core.litellm_handler import LiteLLMHandler
from rlm_core.lm_handler import Completion, LMHandler, Request
from rlm_core.pricing import DEMO_PREFIX
from rlm_core.providers import check_provider

ROOT_VARIABLE: Final = "RLMSCOPE_ROOT_MODEL"
SUB_VARIABLE: Final = "RLMSCOPE_SUB_MODEL"
DEMO_ROOT: Final = "demo/root"
DEMO_SUB: Final = "demo/sub"
DEMO_NOTICE: Final = (
    f"No model is configured ({ROOT_VARIABLE}, {SUB_VARIABLE}), so the demo model answers by fixed rules: "
    "no language model was involved."
)
_LONGEST_ID: Final = 200


def default_models(environ: Mapping[str, str]) -> tuple[str, str, str | None]:
    """(root model, sub model, notice) from the environment.

    One variable alone stands for both models (a demo model brings its counterpart). With neither, the demo
    models and a notice that says so. Raises `ConfigError` for an id that cannot be one.
    """
    root, sub = environ.get(ROOT_VARIABLE), environ.get(SUB_VARIABLE)
    if root is None and sub is None:
        return DEMO_ROOT, DEMO_SUB, DEMO_NOTICE
    for name, value in ((ROOT_VARIABLE, root), (SUB_VARIABLE, sub)):
        if value is not None:
            check_model_id(value, name)
    if is_demo(root or sub or ""):
        return root or DEMO_ROOT, sub or DEMO_SUB, None
    return root or sub or "", sub or root or "", None


def check_model_id(model: str, what: str = "the model id") -> None:
    """Raise `ConfigError`, in one sentence that begins with `what`, unless this can be a model id."""
    if not model:
        raise ConfigError(f"{what} is empty; write PROVIDER/NAME, for example openai/NAME or {DEMO_ROOT}")
    shown = repr(model if len(model) <= 80 else model[:77] + "...")
    if any(c.isspace() or not c.isprintable() for c in model):
        raise ConfigError(f"{what} {shown} has a space or control character in it")
    if len(model) > _LONGEST_ID:
        raise ConfigError(f"{what} {shown} is longer than {_LONGEST_ID} characters")
    if not all(model.split("/")) or "://" in model:
        raise ConfigError(f"{what} {shown} is not of the form PROVIDER/NAME, for example openai/NAME")
    if model.startswith(DEMO_PREFIX) and model not in (DEMO_ROOT, DEMO_SUB):
        raise ConfigError(f"{what} {shown} is no demo model; there are {DEMO_ROOT} and {DEMO_SUB}")


def check_usable(model: str, what: str = "the model id") -> None:
    """Raise `ConfigError`, in one sentence that begins with `what`, unless a handler can be had for this id.

    Beside the form of the id this is its provider; whether that has the model only a call can tell.
    """
    check_model_id(model, what)
    check_provider(model, what)


def is_demo(model: str) -> bool:
    """Whether this id names a demo model: no language model answers for it."""
    return model.startswith(DEMO_PREFIX)


def make_handler(
    root: str, sub: str, *, concurrency: int = 32, fault_rate: float = 0.0, fault_seed: int = 0
) -> ModelRouter:
    """A handler that routes by model id: `demo/...` to the demo model, everything else to LiteLLM.

    Raises `ConfigError`, before anything is asked, for an id that cannot be used, a fault rate outside 0..1,
    or a fault rate without a demo model: only that one makes faults.
    """
    check_usable(root, "the root model id")
    check_usable(sub, "the sub model id")
    router = ModelRouter(
        concurrency, fault_rate, fault_seed, uses_litellm=not (is_demo(root) and is_demo(sub))
    )
    if is_demo(root) or is_demo(sub):
        router.handler(DEMO_SUB)
    elif fault_rate:
        raise ConfigError(f"faults are made by the demo model only, and neither {root} nor {sub} is one")
    return router


class ModelRouter:
    """One `LMHandler` over two, each made at its first use. See `make_handler`."""

    def __init__(self, concurrency: int, fault_rate: float, fault_seed: int, *, uses_litellm: bool) -> None:
        self._concurrency = concurrency
        self._fault_rate = fault_rate
        self._fault_seed = fault_seed
        self._uses_litellm = uses_litellm
        self._lock = threading.Lock()
        self._demo: LMHandler | None = None
        self._litellm: LiteLLMHandler | None = None

    async def prepare(self) -> None:
        """Import what the configured models need, without blocking the event loop; `complete` does it too."""
        if self._uses_litellm:
            await self._other().prepare()

    async def complete(self, request: Request) -> Completion:
        """Ask the handler of the request's model once."""
        return await self.handler(request.model).complete(request)

    async def aclose(self) -> None:
        """Release what was made."""
        for handler in (self._demo, self._litellm):
            if handler is not None:
                await handler.aclose()

    def handler(self, model: str) -> LMHandler:
        """The handler that answers for a model id."""
        if not is_demo(model):
            return self._other()
        from rlm_core.demo import DemoLMHandler

        with self._lock:
            self._demo = self._demo or DemoLMHandler(fault_rate=self._fault_rate, fault_seed=self._fault_seed)
            return self._demo

    def _other(self) -> LiteLLMHandler:
        with self._lock:
            self._litellm = self._litellm or LiteLLMHandler(self._concurrency)
            return self._litellm
