"""A root model that follows a script, and a run of it: the seam most engine tests use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from rlm_core import RLM, Answer, Completion, FunctionLMHandler, Limits, Request
from rlm_core.lm_handler import Usage
from rlm_core.retries import RetryPolicy

FAST = RetryPolicy(max_tries=3, base=0.001, cap=0.002, total_seconds=2.0, silent_seconds=0.05)
Sub = Callable[[Request], Any]


def cell(code: str) -> str:
    """A reply that holds one cell."""
    return f"```repl\n{code}\n```"


def echo(request: Request) -> str:
    """The default sub-model: says how long its prompt was."""
    return f"seen {len(request.prompt)}"


@dataclass
class Script:
    """Replies of the root in order; a str is a reply, an exception is raised, a callable is asked."""

    replies: Iterable[Any]
    sub: Sub = echo
    root_requests: list[Request] = field(default_factory=list)
    sub_requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._next = iter(self.replies)

    def __call__(self, request: Request) -> Any:
        """Answer one request, as a `FunctionLMHandler` wants it."""
        if request.role == "sub":
            self.sub_requests.append(request)
            reply = self.sub(request)
        else:
            self.root_requests.append(request)
            reply = next(self._next)
            if callable(reply):
                reply = reply(request)
        if isinstance(reply, Exception):
            raise reply
        return reply

    @property
    def outputs(self) -> list[str]:
        """What the root was shown, turn by turn, without the opening."""
        return [request.messages[-1].content for request in self.root_requests[1:]]


def run(script: Script, corpus: Any = "the corpus", *, question: str = "what?", **options: Any) -> Answer:
    """One run of a script."""
    limits = options.pop("limits", None) or Limits()
    ask = {key: options.pop(key) for key in ("recorder", "on_event", "run_id", "events") if key in options}
    handler = FunctionLMHandler(script, concurrency=limits.concurrency)
    options.setdefault("retries", FAST)
    with RLM("test/root", "test/sub", handler=handler, limits=limits, **options) as rlm:
        return rlm.ask(question, corpus, **ask)


def play(*codes: str, corpus: Any = "the corpus", sub: Sub = echo, **options: Any) -> tuple[Answer, Script]:
    """Run cells one after another, the last of which must end the run; returns the answer and the script."""
    script = Script([cell(code) for code in codes], sub)
    return run(script, corpus, **options), script


def completion(text: str | None, **fields: Any) -> Completion:
    """A completion with reported usage."""
    fields.setdefault("usage", Usage(input=10, output=5))
    return Completion(text, **fields)
