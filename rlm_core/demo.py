"""The demo model, `demo/root` and `demo/sub`, behind the `LMHandler` protocol, and its seeded faults.

Rule-based and deterministic. No language model is involved, and every place that shows such a run says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from rlm_core import demo_reading, demo_root, demo_sub, semconv
from rlm_core.errors import ConfigError, ModelError
from rlm_core.lm_handler import Completion, Request, estimate_usage

ROOT: Final = "demo/root"
SUB: Final = "demo/sub"


def is_demo(model: str) -> bool:
    """Whether a model id names the demo model."""
    return model in (ROOT, SUB)


@dataclass(frozen=True, slots=True)
class _Fault:
    """A change of one reply, None where this kind does not apply to it."""

    kind: str
    change: Callable[[str, str, int], str | None]  # (reply, prompt, number drawn) -> the changed reply
    finish_reason: str = "stop"
    weight: int = 1


class DemoLMHandler:
    """Answers for both demo models. `fault_rate` (0..1) of the sub-calls are struck, chosen by `fault_seed`.

    A strike is decided by (seed, request hash, occurrence) alone, so a seed repeats bit for bit and all other
    replies are those of the run without faults. Raises `ConfigError` for a rate outside 0..1.
    """

    def __init__(self, fault_rate: float = 0.0, fault_seed: int = 0) -> None:
        if not 0.0 <= fault_rate <= 1.0:
            raise ConfigError(f"the fault rate must be between 0 and 1, not {fault_rate}")
        self._rate = fault_rate
        self._seed = fault_seed

    async def complete(self, request: Request) -> Completion:
        """Reply by rule. Raises `ModelError`: server for a fault of kind error, bad_request for other ids and
        for images.
        """
        if not is_demo(request.model):
            raise ModelError("bad_request", f"the demo handler knows {ROOT} and {SUB}, not {request.model}")
        if request.role == "root":
            read = demo_reading.reply(request.messages)
            return _completion(request, demo_root.reply(request.messages) if read is None else read)
        if any(message.images for message in request.messages):
            raise ModelError(
                "bad_request", "the demo model cannot see images: choose a sub-model that can, with --sub"
            )
        answer = demo_sub.reply(request.prompt)
        facts = {semconv.DEMO_QUOTE: answer.quote} if answer.quote else {}
        drawn = self._drawn(request)
        if drawn is None:
            return _completion(request, answer.text, facts)
        return _struck(request, answer.text, facts, drawn)

    async def aclose(self) -> None:
        """Nothing to release."""

    def _drawn(self, request: Request) -> int | None:
        """A number for the fault of this call, or None if it is not struck."""
        name = request.request_hash or sha256(request.prompt.encode(errors="surrogatepass")).hexdigest()
        digest = sha256(f"{self._seed}/{name}/{request.occurrence}".encode()).digest()
        struck = int.from_bytes(digest[:8], "big") / 2**64 < self._rate
        return int.from_bytes(digest[8:16], "big") if struck else None


def _completion(
    request: Request, text: str, facts: dict[str, str] | None = None, finish_reason: str = "stop"
) -> Completion:
    return Completion(
        text,
        finish_reason=finish_reason,
        usage=estimate_usage(request.messages, text),
        model_returned=request.model,
        facts=facts or {},
    )


# -- faults


def _struck(request: Request, text: str, facts: dict[str, str], drawn: int) -> Completion:
    """The reply with one fault of a kind that applies to it; a strike always changes the reply."""
    which, how = drawn & 0xFFFF_FFFF, drawn >> 32
    able = [
        (fault, changed)
        for fault in _FAULTS
        if (changed := fault.change(text, request.prompt, how)) not in (None, text)
        for _ in range(fault.weight)
    ]
    place = which % (len(able) + 1)
    if place == len(able):
        raise ModelError("server", "the demo model failed on purpose: a seeded fault of kind error")
    fault, changed = able[place]
    return _completion(request, changed or "", {**facts, semconv.DEMO_FAULT: fault.kind}, fault.finish_reason)


def _wrong_label(text: str, prompt: str, drawn: int) -> str | None:
    labels = demo_sub.labels_of(prompt)
    others = [label for label in labels if label != text.removeprefix(demo_sub.UNSURE)]
    return others[drawn % len(others)] if others else None


def _digit(text: str, prompt: str, drawn: int) -> str | None:
    value = text.partition(" | ")[0]
    places = [i for i, c in enumerate(value) if c in "0123456789"]
    if not places:
        return None
    at = places[drawn % len(places)]
    return f"{text[:at]}{(int(text[at]) + 1 + drawn % 9) % 10}{text[at + 1 :]}"


def _missed(text: str, prompt: str, drawn: int) -> str | None:
    return demo_sub.NONE


def _truncated(text: str, prompt: str, drawn: int) -> str | None:
    return text[: len(text) // 2] or None


def _refused(text: str, prompt: str, drawn: int) -> str | None:
    return "I cannot help with this text."


_FAULTS: Final = (
    _Fault("wrong_label", _wrong_label, weight=3),  # those that nobody notices are the ones to practise on
    _Fault("digit", _digit, weight=3),
    _Fault("missed", _missed),
    _Fault("truncated", _truncated, "length"),
    _Fault("refused", _refused),
)
