"""Every error the project raises on purpose.

RLMScopeError                 one clear sentence for the person who reads it
├── InputError                bad usage or bad input: exit code 2
│   ├── CorpusError           a corpus that cannot be read at all
│   └── ConfigError           a setting, model id or key that cannot work
├── SandboxError              the sandbox is below the asked minimum, or cannot start
├── ModelError                one attempt of a model call failed (retryable or not)
├── LimitReached              a limit of the run forbids the next step
├── WorkerDied                the worker process ended or broke the protocol
├── RunCancelled              the user (or the end of the run) cancelled the work
└── RecordError               the record (spool, store) cannot be read or written
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm_core.lm_handler import Completion


class RLMScopeError(Exception):
    """Base of all errors whose message is meant to be read by a person, without a traceback."""

    exit_code = 1


class InputError(RLMScopeError):
    """Wrong usage or unusable input; the message says what, where and what to do."""

    exit_code = 2


class CorpusError(InputError):
    """A corpus (path, folder, id) that cannot be used."""


class ConfigError(InputError):
    """A setting, model id or credential that cannot work."""


class SandboxError(InputError):
    """The sandbox level that was found is below the minimum asked for, or no worker can start."""


class ModelError(RLMScopeError):
    """One attempt of a model call failed.

    `kind` is one of rate_limit, server, connection, timeout, malformed, empty, length, context_window, auth,
    bad_request, refused, unknown, and of a sub-call schema (its reply does not fit) or tools (calls of tools
    without end, or of one that is not known here). `retry_after` is in seconds, or None when the server did
    not say. `completion` is what came, where it is no answer but says what it used: that was paid for.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
        completion: Completion | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.completion = completion
        self.retryable = retryable
        self.retry_after = retry_after
        self.status = status


class LimitReached(RLMScopeError):
    """A limit forbids the next step: iterations, calls, tokens, cost, depth, width or seconds."""

    def __init__(self, dimension: str, message: str) -> None:
        super().__init__(message)
        self.dimension = dimension


class WorkerDied(RLMScopeError):
    """The worker process ended, was killed, or sent what is not the protocol; `cause` says which."""

    def __init__(self, cause: str, message: str) -> None:
        super().__init__(message)
        self.cause = cause


class RunCancelled(RLMScopeError):
    """The run was cancelled from outside."""


class RecordError(RLMScopeError):
    """A spool or store that cannot be read or written."""
