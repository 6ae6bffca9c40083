"""The shape of the `rlms` package: `from rlm_core.rlms import RLM` takes the place of `from rlm import RLM`.

Names and meanings are those of its version 0.1.3. What this engine does in another way, or not at all, is
refused in one sentence when the object is made, never ignored. Two things differ where a run meets a limit:
the root is asked once more for its best answer, which `metadata["forced"]` marks, and calls are checked
against the limits before they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, Final, Protocol, Self

from rlm_core import rlm as engine
from rlm_core.answer import Answer
from rlm_core.errors import ConfigError, InputError, RLMScopeError
from rlm_core.limits import Limits
from rlm_core.lm_handler import LMHandler
from rlm_core.options import Options
from rlm_core.rlms_events import Callbacks, OnIteration, OnIterationEnd, OnSubcall, OnSubcallEnd
from rlm_core.rlms_events import ModelUsageSummary as ModelUsageSummary
from rlm_core.rlms_events import UsageSummary as UsageSummary
from rlm_core.rlms_models import counterpart, model_id, reply_tokens
from rlm_core.telemetry import Recorder

_TOOLS: Final = (
    "code in the sandbox calls nothing of yours; give sub-models tools with "
    "options=rlm_core.Options(tools=(rlm_core.tools.tool(function),))"
)
_NOT_HERE: Final[tuple[tuple[str, Any, str], ...]] = (  # parameter, its default, what to do instead
    ("environment", "local", "cells always run in a locked-in process of this machine; leave it out"),
    ("environment_kwargs", None, "the sandbox has no settings; leave it out"),
    ("depth", 0, "a run begins at depth 0; leave it out"),
    ("max_errors", None, "no limit counts errors; use max_iterations or max_timeout"),
    ("custom_system_prompt", None, "the prompt goes by the model; say what you want in root_prompt"),
    ("logger", None, "runs are recorded with record="),
    ("persistent", False, "every completion has a REPL of its own; put what it should know into the prompt"),
    ("custom_tools", None, _TOOLS),
    ("custom_sub_tools", None, _TOOLS),
    ("compaction_threshold_pct", 0.85, "set the root's window with options=rlm_core.Options(root_window=)"),
    ("orchestrator", True, "there is one prompt for the root; leave it out"),
    ("user_prologue", None, "say it in root_prompt"),
)
_QUESTION: Final = "Do what the context asks for, or answer the question it ends with."
Prompt = str | Sequence[str] | Mapping[str, str]


class Recording(Protocol):
    """What records one run, such as `traces.recording.Recording`."""

    @property
    def recorder(self) -> Recorder:
        """What the engine writes to."""
        ...


Record = Callable[[str], AbstractContextManager[Recording]]


class StoppedError(RLMScopeError):
    """A run ended without an answer; `partial_answer` is what its code had set so far, if anything."""

    def __init__(self, message: str, partial_answer: str | None = None) -> None:
        super().__init__(message)
        self.partial_answer = partial_answer


class BudgetExceededError(StoppedError):
    """`max_budget` left no room, and the root gave no last answer."""


class TokenLimitExceededError(StoppedError):
    """`max_tokens` (or the limit on calls) left no room, and the root gave no last answer."""


class TimeoutExceededError(StoppedError):
    """`max_timeout` was over, and the root gave no last answer."""


class CancellationError(StoppedError):
    """The run was cancelled, by `cancel` or Ctrl-C."""


@dataclass
class RLMChatCompletion:
    """One answer. `execution_time` is in seconds; `metadata` holds `run_id`, `stop_reason`, `forced`,
    `confidence`, `mark`, `cost_status` and `notices` (sentences that whoever asked should read).
    """

    root_model: str
    prompt: Prompt
    response: str
    usage_summary: UsageSummary
    execution_time: float
    metadata: dict[str, Any] | None = field(default=None)
    error: str | None = field(default=None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        shown = asdict(self) | {"usage_summary": self.usage_summary.to_dict()}
        return {key: value for key, value in shown.items() if value is not None}


@dataclass(eq=False, repr=False)
class RLM:
    """`rlms`' RLM. Beyond its parameters: `handler` answers instead of a provider (tests), `options` are
    those of `rlm_core.RLM`, and `record` opens a recording for a run id, for example
    `lambda run_id: traces.recording.open_recording(home, run_id, {})`.

    Raises `ConfigError` for what this engine does not do.
    """

    backend: str = "openai"
    backend_kwargs: Mapping[str, Any] | None = None
    environment: str = "local"
    environment_kwargs: Mapping[str, Any] | None = None
    depth: int = 0
    max_depth: int = 1
    max_iterations: int = 30
    max_budget: float | None = None
    max_timeout: float | None = None
    max_tokens: int | None = None
    max_errors: int | None = None
    custom_system_prompt: str | None = None
    other_backends: Sequence[str] | None = None
    other_backend_kwargs: Sequence[Mapping[str, Any]] | None = None
    logger: Any = None
    verbose: bool = False
    persistent: bool = False
    custom_tools: Mapping[str, Any] | None = None
    custom_sub_tools: Mapping[str, Any] | None = None
    compaction: bool = False
    compaction_threshold_pct: float = 0.85
    max_concurrent_subcalls: int = 4
    on_subcall_start: OnSubcall | None = None
    on_subcall_complete: OnSubcallEnd | None = None
    on_iteration_start: OnIteration | None = None
    on_iteration_complete: OnIterationEnd | None = None
    sampling_args: Mapping[str, Any] | None = None
    sub_sampling_args: Mapping[str, Any] | None = None
    orchestrator: bool = True
    user_prologue: str | None = None
    handler: LMHandler | None = field(default=None, kw_only=True)
    options: Options | None = field(default=None, kw_only=True)
    record: Record | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._refuse()
        others, other_kwargs = self.other_backends, self.other_backend_kwargs or ()
        if others is not None and (len(others) != 1 or len(other_kwargs) != 1):
            raise ConfigError("other_backends and other_backend_kwargs take one entry each: the sub-model")
        own = self.backend_kwargs or {}
        root = model_id(self.backend, own)
        sub = model_id(others[0], other_kwargs[0]) if others else counterpart(root)
        replies = {
            "max_tokens_root": reply_tokens(own, self.sampling_args),
            "max_tokens_sub": reply_tokens(other_kwargs[0] if others else own, self.sub_sampling_args),
        }
        limits = Limits(
            max_iterations=self.max_iterations,
            max_depth=max(0, self.max_depth - 1),
            max_cost_usd=None if self.max_budget is None else Decimal(str(self.max_budget)),
            max_seconds=self.max_timeout,
            max_tokens=self.max_tokens,
            max_workers=self.max_concurrent_subcalls,
            **{name: tokens for name, tokens in replies.items() if tokens is not None},
        )
        options = self.options or Options(strategy="rlm" if self.max_depth > 0 else "direct")
        self._engine = engine.RLM(root, sub, limits=limits, options=options, handler=self.handler)

    def _refuse(self) -> None:
        """Raise `ConfigError` for the first setting that would have to be ignored."""
        for name, default, instead in _NOT_HERE:
            given = getattr(self, name)
            if given != default and (given or default):
                raise ConfigError(f"{name} is not supported: {instead}")

    def completion(self, prompt: Prompt, root_prompt: str | None = None) -> RLMChatCompletion:
        """Answer `root_prompt` over `prompt`, which is what code sees as `context`: one text, a list of texts
        or texts by name. Blocks. Raises `InputError` for other prompts, `StoppedError` where there is no
        answer.
        """
        calls, run_id = self._begin(prompt)
        try:
            with self._recording(run_id) as recording:
                answer = self._engine.ask(
                    root_prompt or _QUESTION, prompt, run_id=run_id, recorder=_of(recording), events=calls
                )
        except KeyboardInterrupt:
            raise CancellationError("the run was cancelled by Ctrl-C") from None
        return self._completed(prompt, answer, calls)

    async def acompletion(self, prompt: Prompt, root_prompt: str | None = None) -> RLMChatCompletion:
        """`completion` for callers inside an event loop; cancelling the awaiting task cancels the run."""
        calls, run_id = self._begin(prompt)
        with self._recording(run_id) as recording:
            answer = await self._engine.aask(
                root_prompt or _QUESTION, prompt, run_id=run_id, recorder=_of(recording), events=calls
            )
        return self._completed(prompt, answer, calls)

    def cancel(self) -> None:
        """Cancel every run of this object; safe from other threads and signal handlers."""
        self._engine.cancel()

    def close(self) -> None:
        """Cancel what runs and release connections."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, prompt: Prompt) -> tuple[Callbacks, str]:
        texts: Any = prompt.values() if isinstance(prompt, Mapping) else prompt
        listed = isinstance(prompt, Mapping | list | tuple) and all(isinstance(text, str) for text in texts)
        if not isinstance(prompt, str) and not listed:
            raise InputError("a prompt is a text, a list of texts or a mapping from names to texts here")
        calls = Callbacks(
            self.on_subcall_start,
            self.on_subcall_complete,
            self.on_iteration_start,
            self.on_iteration_complete,
            self.verbose,
        )
        return calls, engine.new_run_id()

    def _recording(self, run_id: str) -> AbstractContextManager[Recording | None]:
        return nullcontext() if self.record is None else self.record(run_id)

    def _completed(self, prompt: Prompt, answer: Answer, calls: Callbacks) -> RLMChatCompletion:
        if answer.text is None:
            raise self._stopped(answer)
        return RLMChatCompletion(
            root_model=self._engine.root,
            prompt=prompt,
            response=answer.text,
            usage_summary=calls.usage(),
            execution_time=answer.seconds,
            metadata={
                "run_id": answer.run_id,
                "stop_reason": answer.stop_reason,
                "forced": answer.forced,
                "confidence": answer.confidence,
                "mark": answer.mark,
                "cost_status": answer.cost_status,
                "notices": [*answer.notices, *calls.problems],
            },
        )

    def _stopped(self, answer: Answer) -> StoppedError:
        kinds: dict[str, type[StoppedError]] = {
            "budget": TokenLimitExceededError if self.max_budget is None else BudgetExceededError,
            "timeout": TimeoutExceededError,
            "cancelled": CancellationError,
        }
        message = f"the run ended without an answer ({answer.stop_reason})"
        if answer.error:
            message += f": {answer.error}"
        return kinds.get(answer.stop_reason, StoppedError)(message, answer.best_partial)


def _of(recording: Recording | None) -> Recorder | None:
    return None if recording is None else recording.recorder
