"""The model server as a witness: what it was asked, by run, while those who ask are being killed."""

from __future__ import annotations

import re
import threading
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tests.support.loopback import Fault, Loopback, Messages, Script, last_user

BATCHES = (12, 8)
REQUESTS = sum(BATCHES) + 2 + 1  # of an undisturbed run: two root calls, and one prompt that is tried twice
ROOT = "(root)"
_TAG = re.compile(r"chaos-\d{5}")
_CELL = "r = llm_batch(['{tag} batch {batch} call %02d' % n for n in range({size})])\nprint(len(r))\n{end}"


def question(number: int) -> str:
    """The question of a run; the tag in it names the run in every request."""
    return f"How much is chaos-{number:05}?"


def tag_of(text: str) -> str:
    """The tag of a run in any text of it, empty when there is none."""
    found = _TAG.search(text)
    return found[0] if found else ""


def _root(messages: Messages) -> str:
    tag = tag_of("\n".join(str(message.get("content")) for message in messages))
    turn = sum(message.get("role") == "assistant" for message in messages)
    batch = min(turn, len(BATCHES) - 1)
    end = "FINAL('done')" if turn else ""
    return f"```repl\n{_CELL.format(tag=tag, batch=batch, size=BATCHES[batch], end=end)}\n```"


class Witness(Loopback):
    """The server; `asked[tag][prompt]` counts requests, those of the root under `ROOT`."""

    def __init__(self, log: Path, latency: float = 0.03) -> None:
        script = Script(
            root=_root,
            latency=latency,
            root_latency=latency,
            faults=[Fault("500", contains="batch 0 call 05")],
        )
        self.asked: dict[str, Counter[str]] = defaultdict(Counter)
        self._guard = threading.Lock()
        super().__init__(script, log=log)

    def received(self, path: str, data: dict[str, Any], headers: dict[str, str]) -> tuple[int, Fault | None]:
        """Note a request under its run, then log and answer it."""
        messages: Messages = data.get("messages", [])
        prompt = last_user(messages)
        root = str(data.get("model", "")).startswith("root")
        tag = tag_of("\n".join(str(message.get("content")) for message in messages))
        with self._guard:
            self.asked[tag][ROOT if root else prompt] += 1
        return super().received(path, data, headers)

    def count(self, tag: str) -> int:
        """Requests of a run so far."""
        with self._guard:
            return self.asked[tag].total() if tag in self.asked else 0
