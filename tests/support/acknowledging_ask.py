"""`rlmscope ask`, with a side file of what the engine acknowledged: the other witness of kill -9 tests.

Called as `acknowledging_ask.py SIDE_FILE ask ...`. Each line of the side file names a sub-call whose end the
recorder had taken before anything else could happen, and the hash of its response.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from rlm_core import semconv as sc
from rlm_core import telemetry
from ui.cli import main


def watch(side_file: str) -> None:
    """From now on, note each ended sub-call after its end was recorded."""
    descriptor = os.open(side_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    end, text = telemetry.RunSpan.end, telemetry.RunSpan.text
    responses: dict[str, str] = {}

    def noting_text(self: telemetry.RunSpan, prefix: str, value: str) -> str:
        digest = text(self, prefix, value)
        if prefix == sc.RESPONSE:
            responses[self.span_id] = digest
        return digest

    def noting_end(self: telemetry.RunSpan, *args: Any, **kwargs: Any) -> None:
        end(self, *args, **kwargs)
        if self.kind == "sub_call":
            line = {"span_id": self.span_id, "response": responses.get(self.span_id)}
            os.write(descriptor, (json.dumps(line) + "\n").encode())

    telemetry.RunSpan.end = noting_end  # type: ignore[method-assign]
    telemetry.RunSpan.text = noting_text  # type: ignore[method-assign]


if __name__ == "__main__":
    watch(sys.argv.pop(1))
    main()
